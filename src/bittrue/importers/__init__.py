"""Model files to graphs. `read_model` tells the format from the content."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InputError, ModelFormatError, UnsupportedError
from ..files import read_file

if TYPE_CHECKING:
    import numpy as np

    from ..graph import ModelFile
    from .mxnet import Symbol

__all__ = ["read_model"]

# Formats with a second file, and who reads them: (network, weights or None) to ModelFile.
_WITH_WEIGHTS = {
    "caffe": ("caffe", "read_caffe"),
    "caffe2": ("caffe2", "read_caffe2"),
    "mxnet": ("mxnet", "read_mxnet"),
}


def read_model(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | np.ndarray | BinaryIO,
    weights: str | os.PathLike[str] | bytes | bytearray | memoryview | np.ndarray | BinaryIO | None = None,
) -> ModelFile:
    """Reads a model from a path, from bytes, or from a file opened in binary mode.

    Formats that keep their weights in a second file get it as `weights`. Where that is None and `source` is a path, a
    file beside it is taken: ``X.caffemodel`` (or ``X.caffemodel.h5``) for ``X.prototxt``, ``init_net`` for
    ``predict_net``, the newest ``X-NNNN.params`` for ``X-symbol.json``.

    A file is copied into memory, and constants of the result are views of that copy: whatever becomes of the file later
    changes nothing. Constants are views of bytes, arrays and mappings that are given instead, too: these must stay as
    they are (of ONNX models, only large initializers are views).

    Raises:
        InputError: there is no such file, it changed while it was being read, or `source` is of the wrong kind.
        ModelFormatError, InvalidModelError, UnsupportedError, ResourceError: see the readers of the formats.
    """
    path, content, weights, learned = _contents(source, weights)
    try:
        return _read(content, path, learned)
    except ModelFormatError as error:
        place = error.place or str(path or "")
        if isinstance(weights, (str, os.PathLike)) and re.match(r"weights\b", place):
            place = f"{os.fspath(weights)}{place.removeprefix('weights')}"
        if place == error.place:
            raise
        raise ModelFormatError(error.code, error.message, place=place, advice=error.advice) from None


def read_symbol(source: Any, weights: Any = None) -> Symbol:
    """The operators of an MXNet symbol, from a path or bytes as in `read_model`, and its tensors.

    Raises:
        InputError, ModelFormatError, InvalidModelError, UnsupportedError: as `read_model`.
    """
    from .mxnet import read_operators
    from .recognise import as_bytes

    _, content, _, learned = _contents(source, weights)
    return read_operators(as_bytes(content), None if learned is None else as_bytes(learned))


def _contents(source: Any, weights: Any) -> tuple[str | None, Any, Any, Any]:
    """The path, what is read there, where the weights come from, and what is read there."""
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    content = _content(source)
    if path is not None and weights is None:
        weights = companion(path)
    return path, content, weights, None if weights is None else _content(weights)


def companion(path: str | os.PathLike[str]) -> str | None:
    """The file that holds the weights of the model at `path`, by the customs of its format; None when there is none.

    >>> companion("model.tflite") is None
    True
    """
    folder, name = os.path.split(path)
    if name.endswith(".prototxt"):
        stem = name.removesuffix(".prototxt")
        stems = dict.fromkeys((stem, stem.removesuffix("_deploy"), stem.removesuffix("-deploy")))
        found = [f"{stem}.caffemodel{more}" for stem in stems for more in ("", ".h5")]
    elif "predict_net" in name:
        from glob import escape, glob

        init = name.replace("predict_net", "init_net")
        found = [init, *sorted(glob(f"{escape(init.split('.')[0])}.pb*", root_dir=folder))]
    elif name.endswith("-symbol.json"):
        from glob import escape, glob

        stem = name.removesuffix("-symbol.json")
        found = sorted(glob(f"{escape(stem)}-[0-9][0-9][0-9][0-9].params", root_dir=folder), reverse=True)
    else:
        return None
    return next((one for one in (os.path.join(folder, name) for name in found) if os.path.isfile(one)), None)


def _content(source: Any) -> Any:
    """Something that `as_bytes` takes: what a file or a file object holds, or the source itself."""
    if isinstance(source, (str, os.PathLike)):
        return _file_content(source)
    import mmap

    read = getattr(source, "read", None)
    if isinstance(source, mmap.mmap) or not callable(read):
        return source
    try:
        content = read()
    except (OSError, ValueError) as error:
        raise InputError("BT-FILE-SOURCE", f"cannot read the file object: {error}", place="source") from error
    if isinstance(content, str):
        raise InputError(
            "BT-FILE-SOURCE", "the file is opened as text", place="source", advice="open it in binary mode ('rb')"
        )
    return content


def _read(source: object, path: str | None, weights: object) -> ModelFile:
    from .recognise import as_bytes, format_of

    content = as_bytes(source)
    file_format = format_of(content)
    if file_format in _WITH_WEIGHTS:
        module, name = _WITH_WEIGHTS[file_format]
        reader = getattr(importlib.import_module(f".{module}", __package__), name)
        found: ModelFile = reader(content, None if weights is None else as_bytes(weights))
        return found
    from .recognise import IDENTIFIER

    if weights is not None and (file_format == "onnx" or content[4:8].tobytes() == IDENTIFIER):
        raise InputError(
            "BT-FILE-WEIGHTS", "this format holds its weights itself", place="weights", advice="pass the model alone"
        )
    if file_format == "onnx":
        from .onnx import read_onnx

        return read_onnx(content, None if path is None else os.path.dirname(path))
    from .tflite import read_tflite

    return read_tflite(source)  # type: ignore[arg-type]


def _file_content(path: str | os.PathLike[str]) -> bytes:
    try:
        return read_file(path, meanwhile=lambda: _import_reader(os.fsdecode(path)))
    except OSError as error:
        raise InputError(
            "BT-FILE-PATH",
            f"cannot read the model file: {error.strerror or error}",
            place=os.fspath(path),
            advice="check the path; relative ones start at the current directory",
        ) from error


def _import_reader(path: str) -> None:
    """Imports what files of this name need, as a rule: what a file is, its content says later."""
    if path.endswith(".tflite"):
        importlib.import_module(".tflite", __package__)
    elif path.endswith(".onnx"):
        from .onnx import messages

        with suppress(UnsupportedError):
            messages()
