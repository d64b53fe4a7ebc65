"""Images with masks: a class per pixel, in another file of the same stem."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError, UnsupportedError
from ...runners.arrays import npy_in
from ...visible import visible
from .base import Sample, Source, no_samples
from .folders import IMAGES
from .places import read_file

# What the two folders are called, in the order in which they are looked for.
_IMAGES = ("images", "image", "imgs", "img", "jpegimages")
_MASKS = ("masks", "mask", "annotations", "labels", "segmentationclass", "segmentations", "gt")
# What stems of masks may have at the end beside their image's.
_ENDINGS = ("_mask", "-mask", "_label", "_segmentation", "_gt")
_CLASSES = ("classes.txt", "labels.txt")
# Folders below the one that is named in which Pascal VOC's archives put theirs.
_VOC, _VOC_DEPTHS = "jpegimages", ("*", "*/*")
_SUFFIXES = IMAGES | {".npy"}


class Masks(Source):
    """A folder with ``images/`` and ``masks/``, files of the same stems, or one as Pascal VOC has it.

    Args:
        path: the folder, or one of Pascal VOC's lists of stems (``ImageSets/Segmentation/val.txt``). Images without a
            mask have no label; of Pascal VOC's, those with a mask are samples. Names of classes are the lines of a file
            ``classes.txt`` or ``labels.txt`` in it.
    """

    kind = "masks"
    holds = "image"

    def __init__(self, path: Path) -> None:
        listed = None if path.is_dir() else _lines(path)
        root = path if listed is None else next((up for up in path.parents if _folders(up) is not None), path.parent)
        found = _found(root)
        if found is None:
            raise no_samples(visible(str(path)), "a folder 'images' and a folder 'masks', or those of Pascal VOC")
        self._root, (images, masks) = found
        super().__init__(visible(str(path)), _class_names(self._root))
        self._images, self._masks = _stems(images, IMAGES), _stems(masks, _SUFFIXES, _ENDINGS)
        alone = sorted(self._masks.keys() - self._images.keys())
        if listed is None and alone:
            raise InputError(
                "BT-DATA-MASK",
                f"{len(alone):,} masks have no image of their stem in '{images.name}'",
                place=visible(str(self._masks[alone[0]])),
            )
        voc = images.name.lower() == _VOC
        if listed is None:
            listed = sorted(self._masks if voc else self._images)
        self._keys = listed
        for row, key in enumerate(self._keys, 1):
            if key not in self._images or (voc and key not in self._masks):
                raise InputError(
                    "BT-DATA-LIST",
                    f"there is no {'mask' if key in self._images else 'image'} '{visible(key)}'",
                    place=f"{visible(str(path))}, row {row}",
                )
        if not self._keys or not self._masks:
            raise no_samples(visible(str(path)), "images, and masks of the same stems")

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, position: int) -> Sample:
        key = self._keys[position]
        image, mask = self._images[key], self._masks.get(key)
        name = image.relative_to(self._root).as_posix()
        if mask is None:
            return Sample(name, None, lambda: [read_file(image)])
        label = mask.relative_to(self._root).as_posix()
        return Sample(name, label, lambda: [read_file(image)], lambda: read_mask(mask))


def has_masks(folder: Path) -> bool:
    """Whether a folder is such a one."""
    return _found(folder) is not None


def read_mask(path: Path) -> np.ndarray:
    """A class per pixel: an image's grey values or palette numbers, or an array.

    Raises:
        InputError: it is neither.
    """
    content = read_file(path)
    place = visible(str(path))
    if path.suffix.lower() == ".npy":
        return npy_in(content, path, "").squeeze()
    module = _pillow()
    try:
        with module.open(io.BytesIO(content)) as image:
            values = np.asarray(image)
    except Exception as error:  # what Pillow raises of damaged files is of many types
        raise InputError("BT-IMAGE", f"the mask cannot be decoded: {error}", place=place) from None
    if values.ndim == 3 and (values[..., :1] == values[..., : 1 if values.shape[2] == 2 else 3]).all():
        values = values[..., 0]
    if values.ndim != 2:
        raise InputError(
            "BT-DATA-MASK",
            "the mask is a colour image, expected numbers of classes as grey values or in a palette",
            place=place,
            advice="write masks as greyscale PNG, the class of each pixel as its value",
        )
    return values


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise UnsupportedError("BT-PACKAGE", "pillow is not installed", advice="pip install pillow") from None


def _found(root: Path) -> tuple[Path, tuple[Path, Path]] | None:
    """The folder that holds the two, and these."""
    below = (images.parent for depth in _VOC_DEPTHS for images in sorted(root.glob(f"{depth}/JPEGImages")))
    for folder in (root, *below):
        found = _folders(folder)
        if found is not None:
            return folder, found
    return None


def _folders(root: Path) -> tuple[Path, Path] | None:
    there = {entry.name.lower(): entry for entry in root.iterdir() if entry.is_dir()}
    images = next((there[name] for name in _IMAGES if name in there), None)
    masks = next((there[name] for name in _MASKS if name in there and any(_files(there[name], _SUFFIXES))), None)
    return None if images is None or masks is None else (images, masks)


def _files(folder: Path, suffixes: frozenset[str]) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix.lower() in suffixes and not path.name.startswith(".") and path.is_file():
            yield path


def _stems(folder: Path, suffixes: frozenset[str], endings: tuple[str, ...] = ()) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(_files(folder, suffixes)):
        key = path.relative_to(folder).with_suffix("").as_posix()
        key = next((key.removesuffix(ending) for ending in endings if key.endswith(ending)), key)
        if key in found:
            raise InputError(
                "BT-DATA-MASK",
                f"'{visible(found[key].name)}' and '{visible(path.name)}' have one stem",
                place=visible(str(folder)),
            )
        found[key] = path
    return found


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in read_file(path).decode().splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError("BT-DATA-LIST", "no list of stems in UTF-8", place=visible(str(path))) from None


def _class_names(root: Path) -> list[str]:
    return next((_lines(root / name) for name in _CLASSES if (root / name).is_file()), [])
