"""Folders with a desc.json: one case each, with a model and .npy files beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import BittrueError
from ...graph import data_type
from .adapters import Trial
from .stored import Archive, Source, damaged, from_npy, parsed, read_file
from .suite_case import suite_trial
from .vectors import Recorded

FORMAT = "bittrue-desc-1"
DESC = "desc.json"
_DEEPEST = 8
_MOST_TESTS = 100_000
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class DescTest:
    """One case.

    Attributes:
        identity: the folder, relative to the one that was searched.
        operator: as desc.json says; the folder's name when it says nothing that can be read.
        folder: where everything is.
    """

    identity: str
    operator: str
    folder: Source

    def trials(self) -> Iterator[Trial]:
        """The case."""
        place = self.identity
        found = _content(self.folder, place)
        if found.get("format") != FORMAT:
            raise damaged(f"expected the format '{FORMAT}', found {found.get('format')!r}", f"{place}/{DESC}")
        must_fail, needs = found.get("expected_failure"), found.get("test_requirements")
        if type(must_fail) is not bool or not isinstance(needs, dict):
            raise damaged("'expected_failure' is no truth value, or 'test_requirements' no object", f"{place}/{DESC}")
        numerics = needs.get("numerics")
        if not isinstance(numerics, str):
            raise damaged("'test_requirements' names no 'numerics'", f"{place}/{DESC}")
        content = read_file(self.folder, found.get("model_file"), place)
        fed, expected = (self._arrays(found, word) for word in ("ifm", "ofm"))
        meta = found.get("meta")
        refused = not isinstance(meta, dict) or meta.get("numerics_refuses", True) is True
        yield suite_trial(content, fed, expected, numerics, must_fail, place, refused)

    def _arrays(self, found: dict[str, Any], word: str) -> list[Recorded]:
        names, files = found.get(f"{word}_name"), found.get(f"{word}_file")
        place = f"{self.identity}/{DESC}"
        if not isinstance(names, list) or not isinstance(files, list) or not all(isinstance(t, str) for t in names):
            raise damaged(f"'{word}_name' and '{word}_file' are lists of texts", place)
        if len(names) != len(files):
            raise damaged(f"{len(names)} texts in '{word}_name', {len(files)} in '{word}_file'", place)
        arrays = [from_npy(read_file(self.folder, file, place), file, place) for file in files]
        try:
            kinds = [data_type(array.dtype.name) for array in arrays]
        except KeyError as error:
            raise damaged(f"element type {error} is not known", place) from None
        return [Recorded(name, kind, array) for name, kind, array in zip(names, kinds, arrays, strict=True)]


def find_desc_tests(folder: Path) -> list[DescTest]:
    """All cases in a folder, the folders and the .zip files in it, in name order; empty when there are none."""
    found: list[DescTest] = []
    for here, folders, files in os.walk(folder):
        folders.sort()
        path = Path(here)
        if DESC in files:
            identity = path.relative_to(folder).as_posix()
            identity = path.name if identity == "." else identity
            found.append(DescTest(identity, _operator(path), path))
            folders.clear()
        if len(path.relative_to(folder).parts) >= _DEEPEST or len(found) >= _MOST_TESTS:
            folders.clear()
    # Of archives that were unpacked here, the folders count.
    seen = {test.identity for test in found}
    for path in sorted(folder.glob("*.zip"))[:_MOST_TESTS]:
        found += [test for test in _packed(path) if test.identity not in seen]
    return found


def _packed(path: Path) -> Iterator[DescTest]:
    try:
        names = Archive(path).members(path.name)
    except BittrueError:
        # It is told when the case is read.
        yield DescTest(path.name, path.stem, Archive(path))
        return
    for name in sorted(names)[:_MOST_TESTS]:
        if name.endswith(f"/{DESC}"):
            case = Archive(path, name.removesuffix(DESC))
            yield DescTest(case.prefix.rstrip("/"), _operator(case), case)


def _operator(folder: Source) -> str:
    try:
        found = _content(folder, folder.name).get("op")
    except BittrueError:
        # It is told with the case.
        found = None
    return found if isinstance(found, str) and found else folder.name


def _content(folder: Source, place: str) -> dict[str, Any]:
    text = read_file(folder, DESC, place)
    if len(text) > _MOST_BYTES:
        raise damaged(f"a {DESC} of more than {_MOST_BYTES:,} bytes", place)
    return parsed(text, f"{place}/{DESC}")
