"""Values of a run, in memory up to a limit and beyond it in files, so that big models can be recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..files import read_file, scratch
from .guard import folder_of

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
            self._folder = folder_of(self)
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
        with scratch(path) as file:
            file.write(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        return self.reader(path, value.dtype, value.shape)

    def reader(self, path: Path, dtype: np.dtype, shape: Sequence[int], start: int = 0) -> Callable[[], np.ndarray]:
        """Reads a value that lies in a file of the folder."""
        # The default argument keeps the folder alive as long as the reader.
        return lambda spool=self: read_values(path, dtype, shape, start)  # type: ignore[misc]


def read_values(path: Path, dtype: np.dtype, shape: Sequence[int], start: int = 0) -> np.ndarray:
    """Values of a file as an array that cannot be written: a copy, which stays as it is whatever becomes of the file.

    Raises:
        InputError: the file changed while it was being read, or is too short.
        OSError: what the system says.
    """
    count = int(np.prod(shape, dtype=np.int64))
    content = read_file(path, start, count * dtype.itemsize) if count else b""
    return np.frombuffer(content, dtype).reshape(tuple(shape))
