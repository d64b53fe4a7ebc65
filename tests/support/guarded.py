"""Arrays beside pages that nobody may touch: a kernel that reads or writes past its operands ends the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from bittrue.runtime import native

_PAGE = mmap.PAGESIZE
# Native runs take arrays where they lie that begin at such addresses, and copy others.
_ALIGNMENT = 16
_LARGEST = 1 << 20
_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def empty(shape: Any, dtype: Any = np.float64) -> np.ndarray:
    """`numpy.empty` whose last element ends where the pages end, or not 16 bytes before."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if dtype.hasobject or not 0 < size <= _LARGEST:
        return np.empty(shape, dtype)
    inside = -(-size // _PAGE) * _PAGE
    memory = mmap.mmap(-1, inside + 2 * _PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (begin, begin + _PAGE + inside):
        if _protect(page, _PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = _PAGE + (inside - size) // _ALIGNMENT * _ALIGNMENT
    return np.frombuffer(memory, dtype, size // dtype.itemsize, first).reshape(shape)


def copied(array: np.ndarray) -> np.ndarray:
    """The same numbers, there."""
    found = empty(array.shape, array.dtype)
    found[...] = array
    return found


class _NumPy:
    empty = staticmethod(empty)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@contextmanager
def results() -> Iterator[None]:
    """Native runs put their results there."""
    with mock.patch.object(native, "np", _NumPy()):
        yield
