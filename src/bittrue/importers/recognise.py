"""What a file is, told from its first bytes, so that the error for a wrong file names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    import numpy as np

IDENTIFIER = b"TFL3"

_ONNX = "pass the .onnx file that it was made from"
_CONVERT = "convert the model to .tflite (tf.lite.TFLiteConverter or ai-edge-torch) or .onnx first"
_SYMBOL = "pass the symbol (X-symbol.json), and this file as its weights"
_MODELS = "pass a .tflite or .onnx file, a .prototxt, a predict net or a -symbol.json"
_NO_IMAGE = f"an image is given with --input; {_MODELS}"
_AGAIN = f"fetch the file again if it is one of these; else {_CONVERT}"
_UNPACK = "unpack it and pass the .tflite file inside"
_FETCH = "download the file again and check the address: a server's error page may have been saved in its place"

# (position, bytes there, what it is, what to do)
_MAGIC: tuple[tuple[int, bytes, str, str], ...] = (
    (
        0,
        b"version https://git-lfs",
        "a Git LFS pointer",
        "this is a Git LFS pointer, fetch the real file: git lfs pull",
    ),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (a Keras .h5 model?)", _CONVERT),
    (0, b"\x1f\x8b", "gzip-compressed data", _UNPACK),
    (0, b"BZh", "bzip2-compressed data", _UNPACK),
    (0, b"\xfd7zXZ\x00", "xz-compressed data", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed data", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"\x93NUMPY", "a NumPy array file", "pass a model, not an array"),
    (0, b"\x7fELF", "an ELF program or library", "pass a model file"),
    (0, b"\x89PNG", "a PNG image", _NO_IMAGE),
    (0, b"\xff\xd8\xff", "a JPEG image", _NO_IMAGE),
    (0, b"GIF8", "a GIF image", _NO_IMAGE),
    (0, b"II*\0", "a TIFF image", _NO_IMAGE),
    (0, b"MM\0*", "a TIFF image", _NO_IMAGE),
    (8, b"WEBP", "a WebP image", _NO_IMAGE),
    (0, b"%PDF-", "a PDF document", _MODELS),
    (0, b"GGUF", "a GGUF model", _CONVERT),
    *((0, b"\x80" + bytes([n]), "a Python pickle (an old PyTorch file?)", _CONVERT) for n in range(2, 6)),
    (0, b"LITERTLM", "a LiteRT-LM bundle", _UNPACK),
    (4, b"ORTM", "an ONNX Runtime .ort model", _ONNX),
    (4, b"ET1", "an ExecuTorch program", _CONVERT),
    (4, b"TFL", "a TFLite file of another version", "convert the model again with a current converter"),
    (0, b"\x12\x01\0\0\0\0\0\0", "parameters of MXNet", _SYMBOL),
    (0, b"\x08\x01\x12", "a protobuf (a TensorFlow SavedModel?)", _CONVERT),
    (0, b"\x08\x01\x1a", "a protobuf (a TensorFlow SavedModel?)", _CONVERT),
)


# Names in zip archives, likewise.
_MEMBERS = (
    (
        b"plan.json",
        "a plan that bittrue saved",
        "`bittrue run` takes it; this needs the model itself",
    ),
    (b"data.pkl", "a PyTorch file", _CONVERT),
    (b"config.json", "a Keras .keras file", _CONVERT),
    (b".npy", "a NumPy archive", "arrays are given with --input; " + _MODELS),
)


def recognise(content: np.ndarray) -> tuple[str, str]:
    """(what the content looks like, advice) for bytes that are not a TFLite model.

    >>> import numpy as np
    >>> recognise(np.frombuffer(b"PK" + bytes([3, 4]), np.uint8))[0]
    'a zip archive (a Keras .keras file, a PyTorch file or a task bundle?)'
    """
    head = content[:1024].tobytes()
    if not head:
        return "an empty file", "the download or conversion that made it did not finish"
    if is_bitmap(content):
        return "a BMP image", _NO_IMAGE
    if head.startswith(b"PK\x03\x04"):
        return _archive(content)
    for position, magic, kind, advice in _MAGIC:
        if head.startswith(magic, position):
            return kind, advice
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:64].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "an HTML page", _FETCH
    if start.startswith((b"<?xml", b"<")):
        return "an XML or HTML text", _FETCH
    if start.startswith((b"{", b"[")):
        return "JSON text", _FETCH
    if all(byte in b"\t\n\r\f" or 32 <= byte < 127 for byte in head):
        return "plain text", f"{_MODELS}; if it was downloaded, check the address"
    if head[0] == 0x0A and len(head) > 2:
        return "a protobuf (a frozen TensorFlow graph, or a truncated network of Caffe or Caffe2?)", _AGAIN
    if len(head) < 8:
        return f"only {len(head)} bytes", "the file is truncated: fetch it again"
    return f"an unknown format (first bytes {head[:8].hex(' ')})", _MODELS


def _archive(content: np.ndarray) -> tuple[str, str]:
    """What kind of zip archive it is, by the names in it."""
    names = content[-(1 << 16) :].tobytes()
    for name, kind, advice in _MEMBERS:
        if name in names:
            return kind, advice
    return "a zip archive (a Keras .keras file, a PyTorch file or a task bundle?)", _UNPACK


def is_bitmap(content: np.ndarray) -> bool:
    """Whether the bytes look like a Windows bitmap: two letters, the length of the file, two zeros of 16 bits."""
    head = content[:14].tobytes()
    return head[:2] == b"BM" and len(head) == 14 and head[2:10] == len(content).to_bytes(8, "little")


# What stands in texts of these formats, and hardly anywhere else.
_TEXTS = (
    ("mxnet", rb'(?s)\A\s*\{(?=.*"nodes")(?=.*"(arg_nodes|heads|op)")'),
    ("caffe2", rb"(?m)^\s*op\s*:?\s*[{<]"),
    ("caffe", rb"(?<![\w\"'])((layers?|input_shape)\s*:?\s*[{<]|input_dim\s*:)"),
)
# Field numbers of a network of layers, and of one of operators; other messages have several of what is its name.
_LAYER, _OPERATOR, _NAME, _LAST_OF_OPERATORS = 100, 2, 1, 10


def format_of(content: np.ndarray) -> str:
    """``"onnx"``, ``"caffe"``, ``"caffe2"`` or ``"mxnet"`` for bytes that look like it, else ``"tflite"``."""
    # No text holds a zero.
    if content[3:8].tobytes() == b"\0" + IDENTIFIER:
        return "tflite"
    from .protobuf import is_text, top_fields

    head = content[:65536].tobytes()
    if head.lstrip()[:1] == b"{" or is_text(head):
        return next((name for name, text in _TEXTS if re.search(text, head)), "tflite")
    if content[4:8].tobytes() == IDENTIFIER:
        return "tflite"
    if is_onnx(content):
        return "onnx"
    if head[:1] in (b"\x0a", b"\x12", b"\x1a", b"\xa2"):
        fields = [number for number, _ in top_fields(content)]
        if _LAYER in fields:
            return "caffe"
        if _OPERATOR in fields and fields.count(_NAME) < 2 and max(fields) < _LAST_OF_OPERATORS:
            return "caffe2"
    return "tflite"


def is_onnx(content: np.ndarray) -> bool:
    """Whether the bytes look like an ONNX ModelProto.

    That is, field 1 (ir_version, a small number) comes first, then one of the fields 2 to 8 with a length; or the
    graph (field 7) or the operator sets (field 8) come first, as some writers put them.
    """
    head = content[:3].tobytes()
    if len(head) < 3:
        return False
    if is_bitmap(content):
        return False
    if head[0] == 0x08:
        return 2 <= head[1] < 0x20 and head[2] in range(0x12, 0x43, 8)
    return head[0] in (0x3A, 0x42) and content[4:8].tobytes() != IDENTIFIER


def as_bytes(source: object) -> np.ndarray:
    """The content of a bytes-like object as a read-only one-dimensional uint8 view.

    Raises:
        InputError: the object has no contiguous bytes.
    """
    import numpy as np

    try:
        view = memoryview(source)  # type: ignore[arg-type]
        # A shape with a 0 in it cannot be cast.
        content = np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InputError(
            "BT-FILE-SOURCE",
            f"cannot read a model from {type(source).__name__}: {error}",
            place="source",
            advice="pass a path, contiguous bytes, or a file opened in binary mode",
        ) from error
    content.flags.writeable = False
    return content
