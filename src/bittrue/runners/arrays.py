"""Arrays in files of untrusted origin: what is in there without reading it, and reading it when it is wanted."""

from __future__ import annotations

import io
import os
import stat
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO

import numpy as np

from ..errors import InputError, ResourceError
from .spool import read_values

# Members of archives are decompressed as a whole, and say themselves how large they become.
MEMBER_LIMIT = 4 << 30
_MOST_AXES = 32
# Headers are read one at a time: filters of warnings are the process's, and Python 3.11's parser of literals raises
# SystemError now and then where two threads use it (CPython issue 106905).
_HEADERS = threading.Lock()
_BROKEN = (
    *(ValueError, TypeError, OSError, EOFError, LookupError, SyntaxError, ArithmeticError, RuntimeError),
    *(TokenError, zlib.error, zipfile.BadZipFile),
)


@dataclass(frozen=True)
class Stored:
    """An array in a file.

    Attributes:
        dtype: as the file has it.
        shape: as the file has it.
        load: reads it; views of a file where that can be.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]


def regular_file(path: Path) -> os.stat_result:
    """What the system says of a file; InputError for everything that is none: pipes and devices are not opened."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("BT-FILE-MISSING", f"cannot be read: {reason}", place=str(path)) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError("BT-FILE-MISSING", "is no regular file", place=str(path))
    return status


@contextmanager
def _broken(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise ResourceError("BT-MEMORY", "out of memory", place=str(path)) from None
    except _BROKEN as error:
        text = f"no readable {what}: {type(error).__name__}: {error}"
        raise InputError("BT-FILE-ARRAY", text[:400], place=str(path)) from None


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether the first axis runs fastest, and type; the file stands at the first value then."""
    version = np.lib.format.read_magic(file)
    with _HEADERS, warnings.catch_warnings():
        # Headers are Python literals: damaged ones make Python and NumPy warn.
        warnings.simplefilter("ignore")
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        elif version in ((2, 0), (3, 0)):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {version} of the format")
    if dtype.hasobject:
        raise ValueError("it holds Python objects (pickles), which are never loaded")
    if dtype.names is not None or dtype.subdtype is not None:
        raise ValueError(f"its type is {dtype}")
    if len(shape) > _MOST_AXES or any(size < 0 for size in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype


def _size(shape: tuple[int, ...], dtype: np.dtype) -> int:
    size = dtype.itemsize
    for dimension in shape:
        size *= dimension
    return size


def npy(path: Path) -> Stored:
    """An .npy file. InputError unless it is as long as its header says."""
    opened = regular_file(path)
    with _broken(path, ".npy file"), path.open("rb") as file:
        shape, fortran, dtype = _header(file)
        start = file.tell()
    size, left = _size(shape, dtype), opened.st_size - start
    if left != size:
        raise _wrong_size(path, f"{dtype}{list(shape)}", size, left)
    stored = shape[::-1] if fortran else shape

    def load() -> np.ndarray:
        value = _values(path, opened, dtype, stored, start)
        return _native(value.transpose() if fortran else value)

    return Stored(_native_type(dtype), shape, load)


def npy_in(content: bytes, path: Path, what: str) -> np.ndarray:
    """The array that the bytes of an .npy file hold; `path` and `what` say where they come from.

    Raises:
        InputError: they are no such file, or more or fewer than its header says.
    """
    file = io.BytesIO(content)
    with _broken(path, what):
        shape, fortran, dtype = _header(file)
    size, left = _size(shape, dtype), len(content) - file.tell()
    if size != left:
        raise _wrong_size(path, f"{what}, {dtype}{list(shape)},", size, left)
    with _broken(path, what):
        value = np.frombuffer(content, dtype, offset=file.tell())
        return _native(value.reshape(shape[::-1]).transpose() if fortran else value.reshape(shape))


def raw(path: Path, dtype: np.dtype, shape: tuple[int, ...], start: int | None) -> Stored:
    """Little-endian values in a row. InputError unless the file has them: exactly them, without a `start` in bytes."""
    opened = regular_file(path)
    size, begin = _size(shape, dtype), start or 0
    left = opened.st_size - begin
    if (start is None and left != size) or left < size:
        raise _wrong_size(path, f"{dtype}{list(shape)}", size, left)

    def load() -> np.ndarray:
        return _native(_values(path, opened, dtype.newbyteorder("<"), shape, begin))

    return Stored(dtype, shape, load)


def members(path: Path) -> dict[str, Stored]:
    """The arrays of an .npz file by name. They are read one at a time, each when it is asked for."""
    opened = regular_file(path)
    found = {}
    with _broken(path, ".npz file"), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                found[entry.filename.removesuffix(".npy")] = _member(path, opened, archive, entry)
    return found


def _member(path: Path, opened: os.stat_result, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Stored:
    with _broken(path, f"member '{entry.filename}'"):
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"compressed by method {entry.compress_type}, which NumPy does not write")
    with _broken(path, f"member '{entry.filename}'"), archive.open(entry) as file:
        shape, fortran, dtype = _header(file)
        size, left = _size(shape, dtype), entry.file_size - file.tell()
    if size != left:
        raise _wrong_size(path, f"member '{entry.filename}', {dtype}{list(shape)},", size, left)
    if size > MEMBER_LIMIT:
        raise ResourceError(
            "BT-MEMORY",
            f"member '{entry.filename}' takes {size:,} bytes, the limit is {MEMBER_LIMIT:,}",
            place=str(path),
            advice="write it as an .npy file, which is read in parts",
        )

    def load() -> np.ndarray:
        with _broken(path, f"member '{entry.filename}'"), zipfile.ZipFile(path) as again, again.open(entry) as file:
            _header(file)
            content = file.read(size)
            if len(content) != size:
                raise EOFError(f"{len(content)} of {size} bytes")
            _check_same(path, opened)
        value = np.frombuffer(content, dtype)
        return _native(value.reshape(shape[::-1]).transpose() if fortran else value.reshape(shape))

    return Stored(_native_type(dtype), shape, load)


def _wrong_size(path: Path, what: str, expected: int, found: int) -> InputError:
    kind = "is cut off" if found < expected else "has too many bytes"
    return InputError(
        "BT-FILE-SIZE", f"{kind}: {what} takes {expected:,} bytes, there are {max(found, 0):,}", place=str(path)
    )


def _values(path: Path, opened: os.stat_result, dtype: np.dtype, shape: tuple[int, ...], start: int) -> np.ndarray:
    with _broken(path, "values"):
        value = read_values(path, dtype, shape, start)
        _check_same(path, opened)
    return value


def _check_same(path: Path, opened: os.stat_result) -> None:
    """The file is still the one whose header was read."""
    now = regular_file(path)
    if any(getattr(now, key) != getattr(opened, key) for key in ("st_dev", "st_ino", "st_size", "st_mtime_ns")):
        raise InputError(
            "BT-FILE-CHANGED", "changed since it was opened", place=str(path), advice="run again once it is whole"
        )


def _native_type(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("=")


def _native(value: np.ndarray) -> np.ndarray:
    return value if value.dtype.isnative else value.astype(_native_type(value.dtype))
