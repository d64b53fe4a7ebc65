"""Random operands for one-node models: any bits, shapes that may be empty, pairs that broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

TYPES = [np.dtype(t) for t in "f4 f8 f2 u1 i1 u2 i2 u4 i4 u8 i8 ?".split()]
# op_type, operands, output types, attributes, opset
Case = tuple[str, dict[str, "np.ndarray | None"], list[int], dict[str, Any], int]


def kind(dtype: Any) -> int:
    """TensorProto's number of a type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def bits(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Any bit patterns, NaN payloads among them."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(tuple(shape)) < 0.5)
    count = int(np.prod(shape, dtype=np.int64))
    return rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype).reshape(tuple(shape)).copy()


def numbers(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Small numbers with many ties, zeros of both signs, infinities, extremes of integers; no NaN."""
    dtype = np.dtype(dtype)
    size = tuple(shape)
    if dtype == np.bool_:
        return np.asarray(rng.random(size) < 0.5)
    if dtype.kind == "f":
        values = np.asarray(rng.integers(-6, 7, size) / 2.0)
        values = np.where(rng.random(size) < 0.3, rng.normal(size=size), values)
        special = rng.choice([0.0, -0.0, np.inf, -np.inf], size)
        return np.asarray(np.where(rng.random(size) < 0.1, special, values), dtype)
    info = np.iinfo(dtype)
    values = rng.integers(max(info.min, -9), 10, size, dtype=dtype)
    ends = np.where(rng.random(size) < 0.5, info.min, info.max).astype(dtype)
    return np.asarray(np.where(rng.random(size) < 0.1, ends, values), dtype)


def shape(rng: np.random.Generator, low: int = 0, high: int = 5, empty: float = 0.03) -> tuple[int, ...]:
    """Dimensions up to 5, now and then 0."""
    sizes = rng.integers(1, 6, int(rng.integers(low, high + 1)))
    return tuple(int(e) if rng.random() > empty else 0 for e in sizes)


def broadcastable(rng: np.random.Generator, base: Sequence[int]) -> list[int]:
    """A shape that broadcasts to `base` (nearly always)."""
    found = [e if rng.random() < 0.7 else 1 for e in base][int(rng.integers(0, 3)) * (rng.random() < 0.4) :]
    if found and rng.random() < 0.01:
        found[0] += 1
    return found


def one_type(rng: np.random.Generator, types: str = "") -> np.dtype:
    """One of NumPy's type codes, or any type."""
    chosen = [np.dtype(t) for t in types.split()] or TYPES
    return chosen[rng.integers(len(chosen))]


def ordinary(x: np.ndarray) -> np.ndarray:
    """f16 with quiet NaNs without a payload: the runtime widens some f16 tensors and narrows them again."""
    if x.dtype == np.float16:
        x.view(np.uint16)[np.isnan(x)] &= 0xFE00
        x.view(np.uint16)[np.isnan(x)] |= 0x7E00
    return x
