"""Arrays of recorded vectors, as files hold them: .npz, .npy, raw binary, .pb. All of it is untrusted."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ...errors import ModelFormatError, ResourceError
from ...graph import data_type

# Bytes of one array or file.
_MOST_BYTES = 1 << 28
_MEANINGS = "the folder is damaged or incomplete; fetch it again"


def damaged(message: str, place: str) -> ModelFormatError:
    """The error for a folder that contradicts itself."""
    return ModelFormatError("BT-VECTORS-FORMAT", message, place=place, advice=_MEANINGS)


def inside(folder: Path, name: Any, place: str) -> Path:
    """The path of a file that a manifest names; an error for names that leave the folder."""
    if not isinstance(name, str):
        raise damaged("'file' and 'key' must be texts", place)
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\0" in name:
        raise damaged(f"'{name}' is no file of the folder", place)
    return folder / name


@lru_cache(maxsize=4)
def _archive(path: Path, stamp: tuple[int, int]) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _from_archive(path: Path, key: Any, place: str) -> np.ndarray:
    """One array of an .npz file. Pickles are never opened."""
    if not isinstance(key, str):
        raise damaged("'file' and 'key' must be texts", place)
    try:
        status = path.stat()
        archive = _archive(path, (status.st_mtime_ns, status.st_size))
        entry = archive.getinfo(f"{key}.npy")
        if entry.file_size > _MOST_BYTES:
            raise ResourceError("BT-VECTORS-SIZE", f"array '{key}' takes more than {_MOST_BYTES:,} bytes", place=place)
        array: np.ndarray = np.load(io.BytesIO(archive.read(entry)), allow_pickle=False)
    except KeyError:
        raise damaged(f"{path.name} has no array '{key}'", place) from None
    except (OSError, ValueError, EOFError, MemoryError, NotImplementedError, RuntimeError) as error:
        raise damaged(f"cannot read array '{key}' of {path.name}: {error}", place) from None
    except (zipfile.BadZipFile, zlib.error, SyntaxError, TypeError) as error:
        raise damaged(f"array '{key}' of {path.name} is damaged: {error}", place) from None
    return array


def read_file(folder: Path, name: Any, place: str) -> bytes:
    """The bytes of a file of the folder."""
    path = inside(folder, name, place)
    try:
        if not path.is_file():
            raise damaged(f"{name} is no file", place)
        if path.stat().st_size > _MOST_BYTES:
            raise ResourceError("BT-VECTORS-SIZE", f"{name} takes more than {_MOST_BYTES:,} bytes", place=place)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None


def read_array(folder: Path, entry: Mapping[str, Any], place: str) -> np.ndarray:
    """The array that an object of a manifest stands for, by the ending of its file.

    Args:
        entry: ``file``; ``key`` for .npz files; ``dtype``, ``shape`` and ``byte_order`` for .bin files.
    """
    name = entry.get("file")
    path = inside(folder, name, place)
    if path.suffix == ".npy":
        return from_npy(read_file(folder, name, place), str(name), place)
    if path.suffix == ".bin":
        return _from_raw(read_file(folder, name, place), entry, place)
    if path.suffix == ".pb":
        from .node_tests import read_tensor

        return read_tensor(path, str(entry.get("name", ""))).value
    return _from_archive(path, entry.get("key"), place)


def from_npy(content: bytes, name: str, place: str) -> np.ndarray:
    """The array of an .npy file. Pickles are never opened."""
    try:
        array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError, SyntaxError, TypeError, OverflowError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None
    if not isinstance(array, np.ndarray):
        raise damaged(f"{name} is no .npy file", place)
    return array


def _from_raw(content: bytes, entry: Mapping[str, Any], place: str) -> np.ndarray:
    order, shape = entry.get("byte_order"), entry.get("shape")
    if order not in ("little", "big"):
        raise damaged(f"'byte_order' is {order!r}, not 'little' or 'big'", place)
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise damaged(f"shape {shape} is no shape", place)
    try:
        dtype = data_type(entry["dtype"]).numpy
    except (KeyError, TypeError):
        raise damaged(f"element type {entry.get('dtype')!r} is not known", place) from None
    wanted = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or wanted != len(content):
        raise damaged(f"{entry.get('file')} has {len(content):,} bytes, its shape needs {wanted:,}", place)
    # Both halves of a complex number are numbers of their own.
    width = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    parts = np.frombuffer(content, np.uint8).reshape(-1, width)
    if order == "big":
        parts = parts[:, ::-1]
    return np.frombuffer(parts.tobytes(), dtype).reshape(shape)
