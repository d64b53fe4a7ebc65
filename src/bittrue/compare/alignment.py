"""How the values of one tensor are brought to another one that stands for the same thing: axes, type, meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from ..graph import Quantization, data_type
from ..runners.recording import Recorded
from .statistics import pieces

# Axes of one array in all orders: 120 for the last rank that is tried.
_RANK = 5
_SAMPLE = 4096
_NAMES: dict[tuple[int, ...], str] = {(0, 2, 3, 1): "NCHW to NHWC", (0, 3, 1, 2): "NHWC to NCHW"}
# Order in which equally good ones are tried.
_USUAL = ((0, 2, 3, 1), (0, 3, 1, 2))


@dataclass(frozen=True)
class Layout:
    """Brings B's axes to A's.

    Attributes:
        shape: of A's tensor.
        first: B's shape is changed to this one before its axes change places; None for its own.
        axes: order of B's axes in A; None when they stay.
    """

    shape: tuple[int, ...]
    first: tuple[int, ...] | None = None
    axes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        if self.axes is not None:
            axes = _NAMES.get(self.axes, f"axes {' '.join(map(str, self.axes))}")
            return axes if self.first is None else f"reshaped, {axes}"
        return "same" if self.first is None else "reshaped"

    def __call__(self, value: np.ndarray) -> np.ndarray:
        """B's value with A's axes; a view where one is possible."""
        value = value if self.first is None else value.reshape(self.first)
        return (value if self.axes is None else value.transpose(self.axes)).reshape(self.shape)

    def back(self, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A value with A's axes as B has it, whose shape is `shape`."""
        if self.axes is not None:
            inner = self.first or shape
            value = value.reshape([inner[i] for i in self.axes]).transpose(np.argsort(self.axes))
        return value.reshape(shape)


def layouts(a: tuple[int, ...], b: tuple[int, ...]) -> Iterator[Layout]:
    """Every way in which an array of shape `b` may be laid out as `a`, the likeliest ones first.

    Dimensions of 1 may be missing or added. Arrays with a dimension of 1 on the moved axes come in one way only.
    """
    if math.prod(a) != math.prod(b):
        return
    seen: set[tuple[int, ...]] = set()
    if a == b:
        seen.add(_order(b, tuple(range(len(b)))))
        yield Layout(a)
    if len(a) == len(b) <= _RANK:
        for axes in sorted(permutations(range(len(a))), key=lambda p: (p not in _USUAL, p)):
            if tuple(b[i] for i in axes) == a and _order(b, axes) not in seen:
                seen.add(_order(b, axes))
                yield Layout(a, None, axes)
    if a != b and _order(b, tuple(range(len(b)))) not in seen and (len(a) != len(b) or _dense(a) == _dense(b)):
        yield Layout(a, a)
    if len(a) == 4 != len(b) and _dense(a) != _dense(b):
        for axes in _USUAL:
            first = [0] * 4
            for position, axis in enumerate(axes):
                first[axis] = a[position]
            yield Layout(a, tuple(first), axes)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _order(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """What tells two orders of axes apart: those axes that are longer than 1."""
    return tuple(axis for axis in axes if shape[axis] != 1)


@dataclass(frozen=True)
class Meaning:
    """How B's stored values become comparable with A's.

    Attributes:
        text: for people; empty when nothing is done.
        convert: B's values to A's type (or to what A's become); None when nothing is done.
        convert_a: A's values likewise.
        problem: why the two cannot be compared; empty when they can.
    """

    text: str = ""
    convert: Callable[[np.ndarray], np.ndarray] | None = None
    convert_a: Callable[[np.ndarray], np.ndarray] | None = None
    problem: str = ""


def meaning(a: Recorded, b: Recorded) -> Meaning:
    """How the types and the parameters of two tensors stand to each other. Stored values of one type are compared as
    they are; u8 and s8 of one scale after a move by 128; integers against real numbers after dequantization in
    binary32: real = scale * (q - zero_point).
    """
    if a.dtype == b.dtype:
        found = _parameters(a.quantization, b.quantization)
        return Meaning(f"the parameters differ: {found}; stored values are compared" if found else "")
    one, two = data_type(a.dtype), data_type(b.dtype)
    if {a.dtype, b.dtype} == {"u8", "s8"} and _moved(a, b):
        return Meaning(f"{b.dtype} {'-' if a.dtype == 's8' else '+'} 128", _other_sign)
    if (one.is_integer or a.dtype == "bool") and (two.is_integer or b.dtype == "bool"):
        if "u64" in (a.dtype, b.dtype):
            return Meaning(problem=f"cannot be compared: {a.dtype} and {b.dtype}")
        return Meaning(f"{b.dtype} against {a.dtype}, as numbers", _whole, _whole)
    if one.is_float and two.is_float:
        wide = np.promote_types(one.numpy, two.numpy) if "b" not in a.dtype + b.dtype else np.dtype(np.float32)
        widen = lambda v: v.astype(wide)  # noqa: E731
        return Meaning(f"{b.dtype} against {a.dtype}, as {wide}", widen, widen)
    if one.is_integer and two.is_float:
        return _real(a, b, a.quantization, "A")
    if one.is_float and two.is_integer:
        return _real(a, b, b.quantization, "B")
    return Meaning(problem=f"cannot be compared: {a.dtype} and {b.dtype}")


def _real(a: Recorded, b: Recorded, parameters: Quantization | None, side: str) -> Meaning:
    other = b if side == "A" else a
    quantized = a if side == "A" else b
    if parameters is None or parameters.per_axis or other.dtype != "f32":
        reason = "no scale and zero point are known" if parameters is None else "scales per axis"
        return Meaning(problem=f"cannot be compared: {a.dtype} and {b.dtype}, {reason} of {side}")
    scale, zero_point = np.float32(parameters.scales[0]), int(parameters.zero_points[0])
    real = lambda q: ((q.astype(np.int64) - zero_point).astype(np.float32) * scale).astype(np.float32)  # noqa: E731
    text = f"{quantized.dtype} of {side} as real numbers, {scale:.9g} * (q - {zero_point})"
    return Meaning(text, None, real) if side == "A" else Meaning(text, real, None)


def as_a(a: Recorded, b: Recorded, value: np.ndarray) -> np.ndarray | None:
    """B's value, already in A's layout, in A's type: the very same numbers; None where A's type does not have them."""
    found = _numbers(a, b, np.ascontiguousarray(value))
    # Contiguous copies of scalars have an axis.
    return None if found is None else found.reshape(value.shape)


def _numbers(a: Recorded, b: Recorded, value: np.ndarray) -> np.ndarray | None:
    if a.dtype == b.dtype:
        return value
    one, two = data_type(a.dtype), data_type(b.dtype)
    if {a.dtype, b.dtype} == {"u8", "s8"} and _moved(a, b):
        return _other_sign(value)
    if one.is_integer and two.is_float:
        return _stored(a, value)
    if one.is_float and two.is_integer:
        convert = meaning(a, b).convert
        return None if convert is None else convert(value)
    with np.errstate(all="ignore"):
        cast = value.astype(one.numpy)
        return cast if cast.astype(two.numpy).tobytes() == value.tobytes() else None


def _stored(a: Recorded, value: np.ndarray) -> np.ndarray | None:
    """The stored values of `a` that stand for exactly these real numbers."""
    if a.quantization is None or a.quantization.per_axis:
        return None
    scale, zero_point = np.float32(a.quantization.scales[0]), int(a.quantization.zero_points[0])
    kind = data_type(a.dtype)
    stored = np.empty(value.shape, kind.numpy)
    for _, place in pieces(value.shape):
        real = np.ascontiguousarray(value[place], np.float32)
        with np.errstate(all="ignore"):
            q = np.rint(real.astype(np.float64) / np.float64(scale)) + zero_point
        if not np.isfinite(q).all():
            return None
        whole = np.clip(q, kind.minimum, kind.maximum).astype(np.int64)
        # Both zeros are the same number here.
        if not np.array_equal((whole - zero_point).astype(np.float32) * scale, real):
            return None
        stored[place] = whole.astype(kind.numpy)
    return stored


def _parameters(a: Quantization | None, b: Quantization | None) -> str:
    if a is None or b is None or a.per_axis or b.per_axis or a.same_as(b):
        return ""
    return f"{a} and {b}"


def _moved(a: Recorded, b: Recorded) -> bool:
    if a.quantization is None or b.quantization is None:
        return True
    one, two = a.quantization, b.quantization
    away = 128 if a.dtype == "u8" else -128
    return np.array_equal(one.scales, two.scales) and np.array_equal(one.zero_points, two.zero_points + away)


def _other_sign(values: np.ndarray) -> np.ndarray:
    return (values.view(np.uint8) ^ np.uint8(128)).view(np.int8 if values.dtype == np.uint8 else np.uint8)


def _whole(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64)


def sample(a: tuple[int, ...], count: int = _SAMPLE) -> np.ndarray:
    """Flat positions by which values of a shape are known again; the same ones for every tensor of that shape."""
    size = math.prod(a)
    if size <= count:
        return np.arange(size)
    return np.sort(np.random.default_rng(size).choice(size, count, replace=False))


def sampled(value: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The elements at flat positions of an array in C order, without a copy of the array."""
    if not value.shape:
        return value.reshape(1)[positions]
    return value[np.unravel_index(positions, value.shape)]


def real_sample(tensor: Recorded, layout: Layout, positions: np.ndarray) -> np.ndarray:
    """Sampled values as binary64: real numbers where scale and zero point are known."""
    array = layout(tensor.load())
    picked = sampled(array, positions).astype(np.float64)
    parameters = tensor.quantization
    if parameters is not None and not parameters.per_axis and data_type(tensor.dtype).is_integer:
        # In binary32, so that stored values equal what a dequantization makes of them.
        real = (picked - int(parameters.zero_points[0])).astype(np.float32) * np.float32(parameters.scales[0])
        return real.astype(np.float64)
    return picked


def with_quantization(tensor: Recorded, quantization: Quantization | None) -> Recorded:
    """The tensor, with parameters that its runner does not know."""
    return (
        tensor
        if tensor.quantization is not None or quantization is None
        else replace(tensor, quantization=quantization)
    )
