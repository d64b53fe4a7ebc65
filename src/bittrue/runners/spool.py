"""Values of a run, in memory up to a limit and beyond it in files, so that big models can be recorded."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

# Bytes that the values of one recording may take in memory.
MEMORY = 256 << 20


class Spool:
    """Holds values by name: the first ones in memory, those beyond `memory` bytes in a temporary folder.

    The folder goes when nothing refers to the spool any more; what `keep` returns does.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._left = memory
        self._held: dict[str, np.ndarray] = {}
        self._folder: Path | None = None
        self._files = 0

    @property
    def folder(self) -> Path:
        """The temporary folder, made when it is first asked for."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="bittrue-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def file(self) -> Path:
        """A new name in the folder."""
        self._files += 1
        return self.folder / f"{self._files:06d}.bin"

    def keep(self, name: str, value: np.ndarray) -> Callable[[], np.ndarray]:
        """Keep a value that nobody writes into; what is returned reads it. A later value of the name replaces it."""
        previous = self._held.pop(name, None)
        if previous is not None:
            self._left += previous.nbytes
        if value.nbytes <= self._left or not value.size:
            self._left -= value.nbytes
            self._held[name] = value
            return lambda: value
        path = self.file()
        np.ascontiguousarray(value).tofile(path)
        return self.reader(path, value.dtype, value.shape)

    def reader(self, path: Path, dtype: np.dtype, shape: Sequence[int], start: int = 0) -> Callable[[], np.ndarray]:
        """Reads a value that lies in a file of the folder."""
        # The default argument keeps the folder alive as long as the reader.
        return lambda spool=self: mapped(path, dtype, shape, start)  # type: ignore[misc]


def mapped(path: Path, dtype: np.dtype, shape: Sequence[int], start: int = 0) -> np.ndarray:
    """Values of a file as an array that cannot be written, mapped: what is not touched is not read."""
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    content = np.memmap(path, np.uint8, "r", start, (count * dtype.itemsize,))
    return np.asarray(content).view(dtype).reshape(tuple(shape))
