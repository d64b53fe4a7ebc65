"""Files of sources: on this machine, or wherever pyarrow's file systems reach (``s3://``, ``gs://`` ...)."""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, TypeVar, cast

from ... import files
from ...errors import InputError
from ...runners.arrays import regular_file
from ...visible import visible
from ..arrow import parquet

_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
T = TypeVar("T")


class Remote(PurePosixPath):
    """A path in one of pyarrow's file systems, which answers what sources ask of a `Path`; made by `remote`.

    What lies below a folder is asked for once.

    Attributes:
        system: the file system; every path that is made of this one has it.
        below: entries by folder, and whether each is a file.
    """

    system: ClassVar[Any]
    below: ClassVar[dict[str, dict[Any, bool]]]

    def exists(self) -> bool:
        return self._type() != "NotFound"

    def is_dir(self) -> bool:
        return self._type() == "Directory"

    def is_file(self) -> bool:
        known = (entries[self] for entries in self.below.values() if self in entries)
        return next(known, None) or self._type() == "File"

    def iterdir(self) -> Iterator[Remote]:
        return (entry for entry in self._entries() if entry.parent == self)

    def rglob(self, pattern: str) -> Iterator[Remote]:
        return (entry for entry in self._entries() if fnmatchcase(entry.name, pattern))

    def glob(self, pattern: str) -> Iterator[Remote]:
        words = pattern.split("/")
        for entry in self._entries():
            parts = entry.parts[len(self.parts) :]
            if len(parts) == len(words) and all(map(fnmatchcase, parts, words)):
                yield entry

    def open(self, mode: str = "rb") -> Any:
        return _guarded(self, lambda: self.system.open_input_file(str(self)))

    def size(self) -> int:
        """Bytes of the file; InputError for whatever is none."""
        with self.open() as file:
            return _guarded(self, lambda: int(file.size()))

    def read(self, start: int, size: int | None) -> bytes:
        """Bytes of the file from `start` on; all that follow, or so many."""
        with self.open() as file:

            def content() -> bytes:
                return bytes(file.read_at(max(file.size() - start, 0) if size is None else size, start))

            return _guarded(self, content)

    def _type(self) -> str:
        return str(_guarded(self, lambda: self.system.get_file_info(str(self)).type.name))

    def _entries(self) -> dict[Any, bool]:
        found = self.below.get(str(self))
        if found is None:
            selector = _module(self).FileSelector(str(self), recursive=True)
            infos = _guarded(self, lambda: self.system.get_file_info(selector))
            found = self.below[str(self)] = {type(self)(info.path): info.type.name == "File" for info in infos}
        return found


def remote(system: Any, path: str) -> Path:
    """A path in a file system of pyarrow, which `open_source` takes like any other."""
    return cast(Path, type("Remote", (Remote,), {"system": system, "below": {}})(path))


def placed(text: str) -> Path:
    """The path that a text stands for.

    Raises:
        InputError: a file system that is not known, or that does not answer.
        UnsupportedError: pyarrow is needed and not installed.
    """
    if not _URI.match(text):
        return Path(text)
    # A pattern is no part of an address.
    address, slash, rest = text.partition("{")
    if slash:
        address, _, name = address.rpartition("/")
        rest = f"/{name}{slash}{rest}"
    fs = _module(text)
    system, path = _guarded(text, lambda: fs.FileSystem.from_uri(address))
    return Path(path + rest) if isinstance(system, fs.LocalFileSystem) else remote(system, path + rest)


def is_address(text: str) -> bool:
    """Whether a text names a place by a scheme, as ``s3://bucket/folder``."""
    return bool(_URI.match(text))


def read_file(path: str | Path, start: int = 0, size: int | None = None) -> bytes:
    """As `bittrue.files.read_file`, wherever the file is."""
    if isinstance(path, Remote):
        return path.read(start, size)
    return files.read_file(path, start, size)


def read_in(folder: str | Path, name: str) -> bytes:
    """The file `name` in a folder."""
    return read_file(folder / name if isinstance(folder, Remote) else os.path.join(folder, name))


def size_of(path: Path) -> int:
    """Bytes of a file; InputError for whatever is none."""
    return path.size() if isinstance(path, Remote) else regular_file(path).st_size


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """The file on this machine."""
    if not isinstance(path, Remote):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="bittrue-") as folder:
        copy = Path(folder) / path.name
        files.scratch_bytes(copy, path.read(0, None))
        yield copy


def _module(place: object) -> Any:
    parquet()
    try:
        return importlib.import_module("pyarrow.fs")
    except ImportError as error:  # builds of pyarrow without it
        raise InputError("BT-DATA-REMOTE", f"pyarrow has no file systems: {error}", place=str(place)) from None


def _guarded(place: object, function: Callable[[], T]) -> T:
    """What a file system gives; what it raises is an InputError."""
    arrow, _ = parquet()
    try:
        return function()
    except (arrow.ArrowException, OSError, ValueError, TypeError, NotImplementedError) as error:
        text = visible(" ".join(str(error).split()))[:300]
        raise InputError("BT-DATA-REMOTE", f"cannot be read: {text}", place=visible(str(place))) from None
