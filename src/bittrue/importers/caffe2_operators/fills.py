"""Operators of init nets: constants, and declarations of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...graph import Quantization
from ...records import dataclass
from .base import Source

# Elements of one constant.
_MOST_ELEMENTS = 1 << 31
_MOST_DIMENSIONS = 8
# TensorProto.DataType of ConstantFill.
_FLOAT, _INT32, _INT64 = 1, 2, 10


@dataclass(frozen=True, eq=False)
class Filled:
    """What a fill gives: a constant, or an input where `value` is None.

    Attributes:
        shape: None where none is declared.
    """

    dtype: str
    shape: tuple[int, ...] | None
    quantization: Quantization | None
    value: np.ndarray | None


def _shape(source: Source) -> tuple[int, ...] | None:
    shape = source.integers("shape")
    if shape is None:
        return None
    count = math.prod(size or 1 for size in shape)
    if min(shape, default=0) < 0 or len(shape) > _MOST_DIMENSIONS or count > _MOST_ELEMENTS:
        raise source.invalid("BT-CAFFE2-SHAPE", f"shape {shape[:8]} is no shape")
    return tuple(shape)


def _fitted(source: Source, value: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    """`value` in `shape`, which is empty where it is absent, as in the runtime."""
    shape = shape or ()
    if value.size != math.prod(shape):
        raise source.invalid("BT-CAFFE2-DATA", f"{value.size} values do not fit the shape {list(shape)}")
    return value.reshape(shape)


def _int8_given(source: Source) -> Filled:
    shape, content = _shape(source), source.content("values")
    value = None if content is None else _fitted(source, np.frombuffer(content, np.uint8), shape)
    return Filled("u8", shape, source.requested(), value)


def _int8_given_int(source: Source) -> Filled:
    shape, values = _shape(source), source.integers("values")
    # The zero point of a bias is not used, and not limited to 8 bits.
    scale, zero_point = source.real("Y_scale", 1.0), source.integer("Y_zero_point", 0)
    source.parameters(scale, 0)
    quantization = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))
    value = None if values is None else _fitted(source, _integers(source, values, np.dtype(np.int32)), shape)
    return Filled("s32", shape, quantization, value)


def _integers(source: Source, values: list[int], dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    if values and not (limits.min <= min(values) and max(values) <= limits.max):
        raise source.invalid("BT-CAFFE2-DATA", f"values {min(values)} to {max(values)} do not fit {dtype}")
    return np.array(values, dtype)


def _given(source: Source) -> Filled:
    shape, values = _shape(source), source.several("values", "floats")
    value = None if values is None else _fitted(source, np.array(values, np.float32), shape)
    return Filled("f32", shape, None, value)


def _given_integers(name: str, dtype: np.dtype) -> Callable[[Source], Filled]:
    def fill(source: Source) -> Filled:
        shape, values = _shape(source), source.integers("values")
        value = None if values is None else _fitted(source, _integers(source, values, dtype), shape)
        return Filled(name, shape, None, value)

    return fill


def _constant(source: Source) -> Filled:
    shape, dtype = _shape(source) or (), source.integer("dtype", _FLOAT)
    if dtype == _FLOAT:
        return Filled("f32", shape, None, np.full(shape, source.real("value", 0.0), np.float32))
    if dtype not in (_INT32, _INT64):
        raise source.unsupported("BT-CAFFE2-TYPE", f"a ConstantFill of data type {dtype} is not read")
    wanted = np.dtype(np.int32 if dtype == _INT32 else np.int64)
    value = _integers(source, [source.integer("value", 0)], wanted)
    return Filled("s32" if dtype == _INT32 else "s64", shape, None, np.full(shape, value[0], wanted))


FILLS: dict[str, Callable[[Source], Filled]] = {
    "ConstantFill": _constant,
    "GivenTensorFill": _given,
    "GivenTensorInt64Fill": _given_integers("s64", np.dtype(np.int64)),
    "GivenTensorIntFill": _given_integers("s32", np.dtype(np.int32)),
    "Int8GivenIntTensorFill": _int8_given_int,
    "Int8GivenTensorFill": _int8_given,
}


def fill(source: Source) -> Filled:
    """The content of a fill; errors as `map_operator`."""
    source.expect(0)
    if source.engine:
        raise source.unsupported("BT-CAFFE2-ENGINE", f"the engine '{source.engine}' is not known for a fill")
    found = FILLS[source.type](source)
    source.finish()
    return found
