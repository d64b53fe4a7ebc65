"""Model files to graphs. `read_model` tells the format from the content."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import InputError, ModelFormatError

if TYPE_CHECKING:
    import numpy as np

    from ..graph import ModelFile

__all__ = ["read_model"]


def read_model(source: str | os.PathLike[str] | bytes | bytearray | memoryview | np.ndarray | BinaryIO) -> ModelFile:
    """Reads a model from a path, from bytes, or from a file opened in binary mode.

    A path is memory-mapped: constants of the result are views of the file, which stays mapped as long as one of them is
    alive (ONNX models are decoded instead, only their external data is mapped). Replace such a file by renaming another
    over it; never truncate it in place.

    Raises:
        InputError: there is no such file, or `source` is of the wrong kind.
        ModelFormatError, InvalidModelError, UnsupportedError, ResourceError: see `.tflite` and `.onnx`.
    """
    if isinstance(source, (str, os.PathLike)):
        try:
            return _read(_map(source), Path(source).parent)
        except ModelFormatError as error:
            if error.place:
                raise
            raise ModelFormatError(
                error.code, error.message, place=str(os.fspath(source)), advice=error.advice
            ) from None
    read = getattr(source, "read", None)
    if isinstance(source, mmap.mmap) or not callable(read):
        return _read(source)
    try:
        content = read()
    except (OSError, ValueError) as error:
        raise InputError("BT-FILE-SOURCE", f"cannot read the file object: {error}", place="source") from error
    if isinstance(content, str):
        raise InputError(
            "BT-FILE-SOURCE", "the file is opened as text", place="source", advice="open it in binary mode ('rb')"
        )
    return _read(content)


def _read(source: object, folder: Path | None = None) -> ModelFile:
    from .recognise import as_bytes, is_onnx

    content = as_bytes(source)
    if is_onnx(content):
        from .onnx import read_onnx

        return read_onnx(content, folder)
    from .tflite import read_tflite

    return read_tflite(source)  # type: ignore[arg-type]


def _map(path: str | os.PathLike[str]) -> memoryview | bytes:
    """The content of a file, mapped where the file can be mapped. The descriptor is closed before this returns."""
    import stat

    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
                raise ValueError("it is a device")
            if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
                return file.read()
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            "BT-FILE-PATH",
            f"cannot read the model file: {reason}",
            place=str(name),
            advice="check the path; relative ones start at the current directory",
        ) from error
