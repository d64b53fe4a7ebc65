"""Arrays of recorded vectors, as files hold them: .npz, .npy, raw binary, .pb. All of it is untrusted."""

from __future__ import annotations

import io
import json
import lzma
import math
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ...errors import ModelFormatError, ResourceError, UnsupportedError
from ...graph import DataType, data_type
from ...importers.onnx import onnx_package
from ...importers.onnx_tensors import constant

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# What the archive reader of Python raises for files that are none, or damaged ones.
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    IndexError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
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
    path = folder / name
    try:
        # Links may lead anywhere; without one the path stays where it is.
        links = any((folder / Path(*parts[:end])).is_symlink() for end in range(1, len(parts) + 1))
        if links and not path.resolve().is_relative_to(folder.resolve()):
            raise damaged(f"'{name}' is a link out of the folder", place)
    except (OSError, RuntimeError, ValueError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None
    return path


def parsed(content: bytes, place: str) -> dict[str, Any]:
    """A JSON object whose texts can be printed."""
    try:
        text = content.decode()
        found = json.loads(text)
        if _SURROGATE.search(text):
            # Halves of characters, which no terminal and no file takes.
            json.dumps(found, ensure_ascii=False).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise damaged(f"no UTF-8 text: {error.reason}", place) from None
    except (ValueError, RecursionError) as error:
        raise damaged(f"no JSON: {error}", place) from None
    if not isinstance(found, dict):
        raise damaged(f"a JSON object is expected, found {type(found).__name__}", place)
    return found


@dataclass(frozen=True)
class Archive:
    """A folder inside of a .zip file.

    Attributes:
        path: of the file.
        prefix: of the names in it; empty, or ending in a slash.
    """

    path: Path
    prefix: str = ""

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.prefix.rstrip("/").rpartition("/")[2] or self.path.name

    def members(self, place: str) -> Mapping[str, zipfile.ZipInfo]:
        """All of the file, by name; ModelFormatError when it is no archive."""
        return self._open(place).NameToInfo

    def read(self, name: Any, place: str) -> bytes:
        """A member's bytes."""
        if not isinstance(name, str):
            raise damaged("'file' and 'key' must be texts", place)
        archive = self._open(place)
        try:
            entry = archive.getinfo(self.prefix + name)
            if entry.file_size > _MOST_BYTES:
                raise ResourceError("BT-VECTORS-SIZE", f"{name} takes more than {_MOST_BYTES:,} bytes", place=place)
            return archive.read(entry)
        except KeyError:
            raise damaged(f"{self.path.name} has no file {self.prefix + name}", place) from None
        except _UNREADABLE as error:
            raise damaged(f"cannot read {name} of {self.path.name}: {error}", place) from None

    def _open(self, place: str) -> zipfile.ZipFile:
        try:
            # Whatever is not a regular file may never end.
            if not self.path.is_file():
                raise damaged(f"{self.path.name} is no file", place)
            status = self.path.stat()
            return _archive(self.path, (status.st_mtime_ns, status.st_size))
        except _UNREADABLE as error:
            raise damaged(f"cannot read {self.path.name}: {error}", place) from None


Source = Path | Archive


@lru_cache(maxsize=4)
def _archive(path: Path, stamp: tuple[int, int]) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _from_archive(path: Path, key: Any, place: str) -> np.ndarray:
    """One array of an .npz file. Pickles are never opened."""
    if not isinstance(key, str):
        raise damaged("'file' and 'key' must be texts", place)
    archive = Archive(path)
    if f"{key}.npy" not in archive.members(place):
        raise damaged(f"{path.name} has no array '{key}'", place)
    return from_npy(archive.read(f"{key}.npy", place), f"array '{key}' of {path.name}", place)


def read_file(folder: Source, name: Any, place: str) -> bytes:
    """The bytes of a file of the folder."""
    if isinstance(folder, Archive):
        return folder.read(name, place)
    path = inside(folder, name, place)
    try:
        if not path.is_file():
            raise damaged(f"{name} is no file", place)
        if path.stat().st_size > _MOST_BYTES:
            raise ResourceError("BT-VECTORS-SIZE", f"{name} takes more than {_MOST_BYTES:,} bytes", place=place)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None


def read_part(folder: Source, entry: Mapping[str, Any], place: str) -> bytes:
    """The bytes that an object of a manifest stands for: a whole file, or `length` bytes of it from `start` on."""
    name, start, length = entry.get("file"), entry.get("start"), entry.get("length")
    if start is None and length is None:
        return read_file(folder, name, place)
    if type(start) is not int or type(length) is not int or start < 0 or not 0 <= length <= _MOST_BYTES:
        raise damaged(f"start {start!r} and length {length!r} are no part of a file", place)
    if isinstance(folder, Archive):
        raise damaged("parts of files are not in archives", place)
    path = inside(folder, name, place)
    try:
        if not path.is_file():
            raise damaged(f"{name} is no file", place)
        if start + length > path.stat().st_size:
            raise damaged(f"{name} ends before byte {start + length:,}", place)
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)
    except (OSError, ValueError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None


def read_array(folder: Source, entry: Mapping[str, Any], place: str) -> np.ndarray:
    """The array that an object of a manifest stands for, by the ending of its file.

    Args:
        entry: ``file``; ``key`` for .npz files; for .bin files ``dtype``, ``shape``, ``byte_order``, and ``start`` and
            ``length`` where it is a part of one.
    """
    name = entry.get("file")
    if not isinstance(name, str):
        raise damaged("'file' and 'key' must be texts", place)
    suffix = PurePosixPath(name).suffix
    if suffix == ".npy":
        return from_npy(read_file(folder, name, place), name, place)
    if suffix == ".bin":
        return _from_raw(read_part(folder, entry, place), entry, place)
    if suffix == ".pb":
        return from_pb(read_file(folder, name, place), str(entry.get("name", "")), place)[1]
    if isinstance(folder, Archive):
        raise damaged(f"{name} is an archive in an archive", place)
    return _from_archive(inside(folder, name, place), entry.get("key"), place)


def from_npy(content: bytes, name: str, place: str) -> np.ndarray:
    """The array of an .npy file. Pickles are never opened."""
    try:
        with warnings.catch_warnings():
            # Of headers that no version of NumPy wrote.
            warnings.simplefilter("ignore")
            array: np.ndarray = np.load(io.BytesIO(content), allow_pickle=False)
    except (*_UNREADABLE, SyntaxError, TypeError, OverflowError, tokenize.TokenError) as error:
        raise damaged(f"cannot read {name}: {error}", place) from None
    if not isinstance(array, np.ndarray):
        raise damaged(f"{name} is no .npy file", place)
    return array


def from_pb(content: bytes, name: str, place: str) -> tuple[DataType, np.ndarray]:
    """Type and values of a serialized TensorProto, called `name`."""
    from google.protobuf.message import DecodeError

    proto = onnx_package().TensorProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, RuntimeError) as error:
        raise ModelFormatError("BT-VECTORS-FORMAT", f"no TensorProto: {error}", place=place) from None
    if not proto.data_type:
        raise UnsupportedError("BT-VECTORS-FORMAT", "only tensors are read", place=place)
    tensor = constant(proto, name, None)
    return data_type(tensor.dtype), tensor.values()


def _from_raw(content: bytes, entry: Mapping[str, Any], place: str) -> np.ndarray:
    order, shape = entry.get("byte_order"), entry.get("shape")
    if order not in ("little", "big"):
        raise damaged(f"'byte_order' is {order!r}, not 'little' or 'big'", place)
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
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
