"""Images with boxes as COCO's JSON files list them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...visible import visible
from .base import no_samples
from .folders import Files, inside
from .places import read_file

# Files of annotations in a folder, those that are looked for first first; the name of a split follows the prefix.
_PREFIX = "instances_"
_FILES = ("annotations.json", "_annotations.coco.json", f"annotations/{_PREFIX}*.json", "annotations/*.json", "*.json")
_CLEAR = _FILES[:3]
# Folders of images beside or above the file.
_FOLDERS = (".", "images", "data", "..", "../images", "../data")
# Categories with larger numbers have no names in results.
_MOST_NAMES = 1 << 16


class Coco(Files):
    """The images of a COCO file, each with its boxes.

    A label has ``image``, the image's number, ``size``, its rows and columns (None where the file does not say),
    ``first``, 0 where categories are counted from 0 and 1 otherwise, and ``objects``: ``[category, left, top, width,
    height, area, crowd]`` each, in pixels. A file without annotations gives no labels.

    Args:
        path: the JSON file, or a folder with one. Images lie beside it, in a folder ``images`` or one called like the
            split (``val2017`` of ``instances_val2017.json``), there or one folder up.
    """

    kind = "coco"
    holds = "image"

    def __init__(self, path: Path) -> None:
        file = _only_file(path) if path.is_dir() else path
        self._file = file
        content = _parsed(file)
        images = self._list(content, "images")
        if not images:
            raise no_samples(visible(str(path)), "images in the COCO file")
        names = self._names(content)
        self._numbers: list[int] = []
        for at, image in self._entries("images", images):
            number = image.get("id")
            if type(number) is not int or not isinstance(image.get("file_name"), str):
                raise self._error(at, f"expected id and file_name, found {image!r:.120}")
            self._numbers.append(number)
        if len(set(self._numbers)) != len(self._numbers):
            raise self._error("images", "two images have one id")
        objects = self._objects(content, names)
        first = int(0 not in names and not any(one[0] == 0 for boxes in objects.values() for one in boxes))
        labels = [
            {"image": image["id"], "size": _size(image), "first": first, "objects": objects.get(image["id"], [])}
            if "annotations" in content
            else None
            for image in images
        ]
        files = [inside(image["file_name"], file, row) for row, image in enumerate(images, 1)]
        most = max(names, default=-1)
        classes = [names.get(number, str(number)) for number in range(most + 1)] if most < _MOST_NAMES else []
        super().__init__(visible(str(path)), self._beside(files), list(zip(files, labels, strict=True)), classes)

    def _error(self, at: str, text: str) -> InputError:
        return InputError("BT-DATA-COCO", text, place=f"{visible(str(self._file))}, {at}")

    def _list(self, content: Mapping[str, Any], name: str) -> list[Any]:
        found = content.get(name, [])
        if not isinstance(found, list):
            raise self._error(name, "expected a list")
        return found

    def _entries(self, name: str, found: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for i, entry in enumerate(found):
            if not isinstance(entry, dict):
                raise self._error(f"{name}[{i}]", "expected a JSON object")
            yield f"{name}[{i}]", entry

    def _names(self, content: Mapping[str, Any]) -> dict[int, str]:
        names: dict[int, str] = {}
        for at, category in self._entries("categories", self._list(content, "categories")):
            number = category.get("id")
            if type(number) is not int or number < 0 or number in names:
                raise self._error(at, f"expected an id of its own from 0 on, found {number!r:.80}")
            names[number] = str(category.get("name", number))
        return names

    def _objects(self, content: Mapping[str, Any], names: Mapping[int, str]) -> dict[int, list[list[float]]]:
        """What every image has."""
        found: dict[int, list[list[float]]] = {number: [] for number in self._numbers}
        for at, entry in self._entries("annotations", self._list(content, "annotations")):
            image, category, box = entry.get("image_id"), entry.get("category_id"), entry.get("bbox")
            if image not in found:
                raise self._error(at, f"there is no image {image!r:.80}")
            if type(category) is not int or (names and category not in names):
                raise self._error(at, f"there is no category {category!r:.80}")
            if not isinstance(box, list) or len(box) != 4 or not all(map(_number, box)) or min(box[2:]) < 0:
                raise self._error(at, f"expected bbox: [left, top, width, height], found {box!r:.120}")
            area = entry.get("area", box[2] * box[3])
            if not _number(area):
                raise self._error(at, f"expected an area, found {area!r:.80}")
            found[image].append([category, *box, area, int(bool(entry.get("iscrowd", 0)))])
        return found

    def _beside(self, files: Sequence[str]) -> Path:
        split = self._file.stem.removeprefix(_PREFIX)
        parent = self._file.parent
        folders = [parent / name for name in (*_FOLDERS, split, f"../{split}", f"images/{split}", f"../images/{split}")]
        found = next((folder for folder in folders if (folder / files[0]).is_file()), None)
        if found is None:
            raise InputError(
                "BT-DATA-COCO",
                f"its first image '{visible(files[0])}' is not there",
                place=visible(str(self._file)),
                advice="put the images beside the file, or into a folder 'images' there",
            )
        return found


def has_coco(folder: Path) -> bool:
    """Whether a folder has a file of annotations with one of the usual names."""
    return any(any(folder.glob(pattern)) for pattern in _CLEAR)


def _only_file(folder: Path) -> Path:
    for pattern in _FILES:
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            names = ", ".join(visible(str(file)) for file in found[:10])
            raise InputError("BT-DATA-COCO", f"there are several files: {names}", advice="name one of them")
        if found:
            return found[0]
    raise no_samples(visible(str(folder)), "a JSON file of annotations")


def _parsed(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_file(file))
    except (ValueError, RecursionError) as error:
        raise InputError("BT-DATA-COCO", f"no JSON: {error}", place=visible(str(file))) from None
    if not isinstance(content, dict) or "images" not in content:
        raise InputError(
            "BT-DATA-COCO", "no COCO file: expected an object with images and annotations", place=visible(str(file))
        )
    return content


def _size(image: Mapping[str, Any]) -> list[int] | None:
    rows, columns = image.get("height"), image.get("width")
    return [rows, columns] if type(rows) is int and type(columns) is int else None


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
