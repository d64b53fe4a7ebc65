"""TensorProto to arrays in bittrue's types; everything is checked against the shape before it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError
from ..files import read_file
from ..graph import DataType, Tensor, data_type

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import TensorProto

# TensorProto.DataType by number.
TYPES = dict(
    enumerate(
        "- f32 u8 s8 u16 s16 s32 s64 string bool f16 f64 u32 u64 c64 c128 bf16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz "
        "u4 s4 f4e2m1 f8e8m0 u2 s2 f6e2m3 f6e3m2".split()
    )
)
# The field that holds a type's elements where raw_data does not, and how many elements one entry holds.
_FIELDS = {
    **dict.fromkeys(("f32", "c64"), "float_data"),
    **dict.fromkeys(("f64", "c128"), "double_data"),
    **dict.fromkeys(("u32", "u64"), "uint64_data"),
    "s64": "int64_data",
}
_MOST_DIMENSIONS = 64
# Bytes of the largest type, and still a number of 64 bits.
_MOST_ELEMENTS = (1 << 63) // 16 - 1


def type_name(number: int, place: str) -> str:
    """Our name of a TensorProto.DataType."""
    if number not in TYPES or number == 0:
        raise UnsupportedError(
            "BT-ONNX-TYPE", f"element type {number} is not known", place=place, advice="export the model again"
        )
    return TYPES[number]


def constant(proto: TensorProto, name: str, folder: str | None, raw: np.ndarray | None = None) -> Tensor:
    """A constant tensor; `raw` is its raw_data where that was taken out of the message.

    Raises:
        InvalidModelError: contents and shape do not fit together.
        ModelFormatError: external data is missing, too short, or outside of the model's folder.
        UnsupportedError: unknown types.
    """
    place = f"tensor '{name}'"
    dtype = data_type(type_name(proto.data_type, place))
    shape = tuple(int(size) for size in proto.dims)
    if is_no_shape(shape):
        raise InvalidModelError("BT-ONNX-SHAPE", f"shape {list(shape[:8])} is no shape", place=place)
    count = math.prod(shape)
    if dtype.name == "string":
        if len(proto.string_data) != count:
            raise _length(place, shape, len(proto.string_data), "strings")
        return Tensor(name, dtype.name, shape, data=np.array([*proto.string_data, None], object)[:-1])
    if proto.data_location == proto.EXTERNAL:
        data = _from_bytes(_external(proto, place, folder, _bytes(dtype, count)), dtype, shape, place)
    elif raw is not None or proto.HasField("raw_data"):
        data = _from_bytes(np.frombuffer(proto.raw_data, np.uint8) if raw is None else raw, dtype, shape, place)
    else:
        data = _from_field(proto, dtype, shape, place)
    return Tensor(name, dtype.name, shape, data=data)


def is_no_shape(shape: Sequence[int]) -> bool:
    """Whether a tensor cannot have this shape: negative or too many dimensions, or more than arrays can count.

    NumPy refuses dimensions whose product is too large even where another size is 0.
    """
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0:
        return True
    return 0 in shape and math.prod(size or 1 for size in shape) > _MOST_ELEMENTS


def from_array(array: np.ndarray, name: str) -> Tensor:
    """A constant tensor with the content of an array."""
    dtype = "string" if array.dtype.hasobject else data_type(array.dtype.name).name
    return Tensor(name, dtype, array.shape, data=np.ascontiguousarray(array).reshape(-1))


def _length(place: str, shape: tuple[int, ...], found: int, unit: str) -> InvalidModelError:
    return InvalidModelError(
        "BT-ONNX-DATA",
        f"shape {list(shape)} does not fit {found:,} {unit} of content",
        place=place,
        advice="the file is damaged or was written wrongly",
    )


def raw_bits(dtype: DataType) -> int:
    """Bits of an element in raw_data, where narrow elements follow each other without gaps, low bits first."""
    return {"f4e2m1": 4, "f6e2m3": 6, "f6e3m2": 6}.get(dtype.name, dtype.bits)


def _bytes(dtype: DataType, count: int) -> int:
    return (count * raw_bits(dtype) + 7) // 8


def _from_bytes(raw: np.ndarray, dtype: DataType, shape: tuple[int, ...], place: str) -> np.ndarray:
    count = math.prod(shape)
    if raw.size != _bytes(dtype, count):
        raise _length(place, shape, raw.size, "bytes")
    if dtype.is_packed:
        return raw
    width = raw_bits(dtype)
    if width < 8:
        bits = np.unpackbits(raw, count=count * width, bitorder="little").reshape(count, width)
        return np.packbits(bits, axis=1, bitorder="little").reshape(-1).view(dtype.numpy)
    if dtype.name == "bool":
        return raw != 0
    if dtype.numpy.itemsize == 1:
        return raw.view(dtype.numpy)
    if _is_foreign(dtype):
        return raw.view("<u2").astype(np.uint16).view(dtype.numpy)
    return raw.view(dtype.numpy.newbyteorder("<")).astype(dtype.numpy, copy=False)


def _is_foreign(dtype: DataType) -> bool:
    """Whether the elements are floats that NumPy itself does not know."""
    return isinstance(dtype.array, str)


def _from_field(proto: TensorProto, dtype: DataType, shape: tuple[int, ...], place: str) -> np.ndarray:
    entries: Any = getattr(proto, _FIELDS.get(dtype.name, "int32_data"))
    count = math.prod(shape)
    if dtype.name in ("c64", "c128"):
        pairs = np.array(entries, np.float32 if dtype.name == "c64" else np.float64)
        if pairs.size != 2 * count:
            raise _length(place, shape, pairs.size, "numbers")
        return pairs.view(dtype.numpy)
    width = raw_bits(dtype)
    if width in (2, 4):
        # Every entry holds one byte of packed elements.
        packed = np.array(entries, np.int64).astype(np.uint8)
        return _from_bytes(packed, dtype, shape, place)
    if len(entries) != count:
        raise _length(place, shape, len(entries), "numbers")
    if _is_foreign(dtype) or dtype.name == "f16":
        # Entries hold bit patterns.
        patterns = np.array(entries, np.int64) & ((1 << width) - 1)
        return patterns.astype(np.uint16 if width == 16 else np.uint8).view(dtype.numpy)
    if dtype.name in ("f32", "f64"):
        return np.array(entries, dtype.numpy)
    wide = np.array(entries, np.uint64 if dtype.name == "u64" else np.int64)
    return wide != 0 if dtype.name == "bool" else wide.astype(dtype.numpy)


def _external(proto: TensorProto, place: str, folder: str | None, size: int) -> np.ndarray:
    """Bytes of another file beside the model, which must lie inside of the model's folder."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelFormatError(
            "BT-ONNX-EXTERNAL",
            f"its content lies in the file '{location}', but the model was given as bytes",
            place=place,
            advice="load the model by its path",
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise ModelFormatError("BT-ONNX-EXTERNAL", "offset and length must be numbers", place=place) from None
    path = _inside(folder, location)
    if path is None:
        raise ModelFormatError(
            "BT-ONNX-EXTERNAL",
            f"'{location[:200]}' is no file in the model's folder",
            place=place,
            advice="keep the data files beside the model",
        )
    if offset < 0 or length != size or offset + length > path.stat().st_size:
        raise ModelFormatError(
            "BT-ONNX-EXTERNAL",
            f"{size:,} bytes are needed; offset {offset:,}, length {length:,} of '{location}' do not give them",
            place=place,
            advice="the data file is truncated or belongs to another model",
        )
    if not size:
        return np.zeros(0, np.uint8)
    try:
        return np.frombuffer(read_file(path, offset, length), np.uint8)
    except OSError as error:
        reason = error.strerror or error
        raise ModelFormatError("BT-ONNX-EXTERNAL", f"cannot read '{location}': {reason}", place=place) from None


def _inside(folder: str, location: str) -> Path | None:
    """The file that `location` means; None where it is none, or one outside of the folder, be it through links."""
    from pathlib import Path

    try:
        root = Path(folder).resolve()
        path = (root / location).resolve()
        return path if location and path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        # Names that no file can have, links in a circle.
        return None
