"""Where samples come from: found from what is there, or named by a prefix (``imagefolder:DIR``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from ...errors import InputError
from ...names import near_or_all
from ...visible import visible
from .arrays import Arrays
from .base import Held, Part, Sample, Source, Value
from .coco import Coco, has_coco
from .folders import LABELS_FILE, ImageFolder, Manifest, MlperfTiny
from .masks import Masks, has_masks
from .places import Remote, is_address, placed
from .shards import Shards
from .tables import TABLES, open_tables

__all__ = ["KINDS", "Held", "Part", "Sample", "Source", "Value", "located", "open_source"]

KINDS: dict[str, Callable[[Path], Source]] = {
    "arrays": Arrays,
    "coco": Coco,
    "csv": Manifest,
    "imagefolder": ImageFolder,
    "masks": Masks,
    "mlperf-tiny": MlperfTiny,
    "parquet": open_tables,
    "webdataset": Shards,
}
# Those that hold values by the names of inputs.
_SEVERAL: dict[str, Callable[[Path, Sequence[str]], Source]] = {
    "arrays": Arrays,
    "parquet": open_tables,
    "webdataset": Shards,
}
_BY_SUFFIX = {
    ".npy": "arrays",
    ".npz": "arrays",
    ".csv": "csv",
    ".json": "coco",
    ".tar": "webdataset",
    **dict.fromkeys(TABLES, "parquet"),
}


def open_source(text: str | os.PathLike[str], inputs: Sequence[str] = ()) -> Source:
    """The samples that a text stands for: a path, with or without a prefix of `KINDS`.

    Without one: .npy and .npz files are arrays, .csv files lists, .json files COCO's, .parquet, .arrow and .feather
    files tables, .tar files shards of WebDataset. A folder with ``y_labels.csv`` is one of MLPerf Tiny; one with
    annotations as COCO names them holds images with boxes; one with ``images/`` and ``masks/``, or as Pascal VOC has
    it, images with masks; one with tables or shards in it holds those; any other has a folder per class.

    Args:
        text: what the user typed; a path may be an address that pyarrow's file systems know (``s3://bucket/folder``).
        inputs: names of a model's inputs where it has several: each is an array, a column or a member of its name.

    Raises:
        InputError: no such file or folder, or none that holds samples of the kind.
    """
    given = "" if isinstance(text, Remote) else os.fspath(text)
    prefix, colon, rest = given.partition(":")
    named = colon and not os.path.exists(given) and not is_address(given)
    if named and prefix not in KINDS:
        raise InputError("BT-DATA-KIND", f"no kind of data '{prefix}'", advice=near_or_all(prefix, KINDS, "there are"))
    path = cast(Path, text) if isinstance(text, Remote) else placed(rest if named else given)
    if not path.exists() and prefix != "webdataset":
        advice = "webdataset: before it takes a pattern" if "{" in given else ""
        raise InputError(
            "BT-DATA", f"there is no '{(rest if named else given) or path}'", place="--data", advice=advice
        )
    if not named:
        prefix = _kind_of_folder(path) if path.is_dir() else _BY_SUFFIX.get(path.suffix.lower(), "")
        if not prefix:
            raise InputError(
                "BT-DATA-KIND", f"what '{path}' holds is not known", advice=f"name it: {', '.join(KINDS)}: before it"
            )
    if not inputs:
        return KINDS[prefix](path)
    if prefix not in _SEVERAL:
        raise InputError(
            "BT-EVALUATE-INPUTS",
            f"{prefix}: holds one value per sample, the model has the inputs {', '.join(map(visible, inputs))}",
            place=visible(str(path)),
            advice=f"values by the names of inputs are held by {', '.join(f'{kind}:' for kind in _SEVERAL)}",
        )
    return _SEVERAL[prefix](path, inputs)


def _kind_of_folder(path: Path) -> str:
    if (path / LABELS_FILE).is_file():
        return "mlperf-tiny"
    if has_coco(path):
        return "coco"
    if has_masks(path):
        return "masks"
    suffixes = {entry.suffix.lower() for entry in path.iterdir()}
    return "parquet" if suffixes & TABLES else "webdataset" if ".tar" in suffixes else "imagefolder"


def located(text: str | os.PathLike[str]) -> str:
    """What `open_source` takes, fit for processes that stand in another folder."""
    name = os.fspath(text)
    prefix, colon, path = name.partition(":")
    if not colon or os.path.exists(name) or path.startswith("//"):
        prefix, path = "", name
    return prefix + colon * bool(prefix) + (path if "://" in path else os.path.abspath(path))
