"""Samples that are files: a folder per class, a list of paths, or the layout of MLPerf Tiny."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ...errors import InputError
from ...visible import visible
from .base import Sample, Source, no_samples
from .places import Remote, read_file, read_in

IMAGES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})
LABELS_FILE = "y_labels.csv"
_QUANTITY = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Files(Source):
    """Files under one folder, with a label each.

    Args:
        folder: what paths are relative to.
        files: path with forward slashes, and label.
    """

    def __init__(self, place: str, folder: Path, files: Sequence[tuple[str, object]], classes: Sequence[str]) -> None:
        super().__init__(place, classes)
        self._files = files
        # Text, where it can be: joining paths takes longer than reading small files.
        self._folder = folder if isinstance(folder, Remote) else os.fspath(folder)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, position: int) -> Sample:
        name, label = self._files[position]
        return Sample(name, label, lambda: [read_in(self._folder, name)])


class ImageFolder(Files):
    """A folder with a folder of images per class; classes are numbered in the order of their names."""

    kind = "imagefolder"
    holds = "image"

    def __init__(self, folder: Path) -> None:
        classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        files = [
            (path.relative_to(folder).as_posix(), number)
            for number, name in enumerate(classes)
            for path in sorted((folder / name).rglob("*"))
            if path.suffix.lower() in IMAGES and path.is_file()
        ]
        if not files:
            raise no_samples(str(folder), "a folder of images for every class")
        super().__init__(str(folder), folder, files, classes)


class Manifest(Files):
    """A CSV file with a line ``path,label`` per sample, paths relative to it.

    A first line whose label column is called ``label`` is a head. Labels that are all integers are class numbers,
    other numbers are quantities, other texts names, which are numbered in their order.
    """

    kind = "csv"
    holds = "image"

    def __init__(self, path: Path) -> None:
        rows = _rows(path)
        if rows and len(rows[0]) > 1 and rows[0][1].strip().lower() in ("label", "class", "class_id"):
            rows = rows[1:]
        for line, row in enumerate(rows, 1):
            if len(row) < 2:
                raise InputError(
                    "BT-DATA-LIST",
                    f"expected path,label, found '{visible(','.join(row))}'",
                    place=f"{path}, row {line}",
                )
        if not rows:
            raise no_samples(str(path), "a line path,label for every sample")
        labels, classes = numbered([row[1].strip() for row in rows])
        files = [(inside(row[0], path, i), label) for i, (row, label) in enumerate(zip(rows, labels, strict=True), 1)]
        super().__init__(str(path), path.parent, files, classes)


class MlperfTiny(Files):
    """A folder as MLPerf Tiny's runner takes it: ``y_labels.csv`` with ``file,classes,label`` and files of values.

    Two further columns, the width of a window and the stride between them in bytes, make each window of the file one
    run; bytes that fill no further window are left out, as in MLPerf Tiny's runner.
    """

    kind = "mlperf-tiny"
    holds = "bytes"

    def __init__(self, folder: Path) -> None:
        place = folder / LABELS_FILE
        files = []
        self._windows: list[tuple[int, int] | None] = []
        for i, row in enumerate(_rows(place), 1):
            try:
                name, _, label = row[:3]
                files.append((inside(name, place, i), int(label)))
                width, stride = map(int, row[3:]) if len(row) != 3 else (0, 0)
                if len(row) != 3 and min(width, stride) < 1:
                    raise ValueError("windows of no bytes")
                self._windows.append((width, stride) if width else None)
            except ValueError:
                raise InputError(
                    "BT-DATA-LIST",
                    f"expected file,classes,label or file,classes,label,width,stride, found '{visible(','.join(row))}'",
                    place=f"{place}, row {i}",
                ) from None
        if not files:
            raise no_samples(str(place), "a line file,classes,label for every sample")
        super().__init__(str(folder), folder, files, ())

    def __getitem__(self, position: int) -> Sample:
        sample, window = super().__getitem__(position), self._windows[position]
        if window is None:
            return sample
        width, stride = window

        def read() -> Sequence[bytes]:
            content = read_in(self._folder, sample.id)
            parts = [content[at : at + width] for at in range(0, len(content) - width + 1, stride)]
            if not parts:
                place = visible(os.path.join(self._folder, sample.id))
                raise InputError("BT-DATA-SIZE", f"{len(content)} bytes hold no window of {width} bytes", place=place)
            return parts

        return Sample(sample.id, sample.label, read)


def numbered(texts: Sequence[str]) -> tuple[Sequence[float], list[str]]:
    """Labels as numbers, and names of the classes.

    Texts that are all integers are class numbers without names, or quantities, as other numbers are; other texts are
    names, numbered in their order.

    >>> numbered(["7", "-1"]), numbered(["0.5", "1"]), numbered(["owl", "cat"])
    (([7, -1], []), ([0.5, 1.0], []), ([1, 0], ['cat', 'owl']))
    """
    if all(text.removeprefix("-").isdecimal() and text.isascii() for text in texts):
        return [int(text) for text in texts], []
    if all(map(_QUANTITY.fullmatch, texts)):
        return [float(text) for text in texts], []
    classes = sorted(set(texts))
    number = {name: i for i, name in enumerate(classes)}
    return [number[text] for text in texts], classes


def _rows(path: Path) -> list[list[str]]:
    try:
        text = read_file(path).decode("utf-8-sig")
        return [row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("BT-DATA-LIST", f"no CSV file in UTF-8: {error}", place=str(path)) from None


def inside(name: str, place: Path, row: int) -> str:
    """A path of a list, which must not lead out of the list's folder."""
    path = name.strip()
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts:
        raise InputError(
            "BT-DATA-PATH",
            f"'{visible(name)}' is no path below the list's folder",
            place=f"{place}, row {row}",
            advice="paths are relative to the list and stay inside its folder",
        )
    return "/".join(parts)
