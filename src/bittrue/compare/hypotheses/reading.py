"""Inputs that are read differently than they lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...operators import find
from .case import Case, Hypothesis
from .common import Array, of_inputs

Change = Callable[[Array], Array]


def reading(case: Case) -> Iterator[Hypothesis]:
    """Every input that is no constant: its quantized values, its layout, its shape."""
    graph, operator = case.segment.graph, find(case.step.operator)
    # Operands are stretched to a common shape.
    stretching = operator is not None and operator.elementwise == 2
    names = [graph.tensors[i].name for i in graph.inputs]
    for number, name in enumerate(names):
        value = case.values[0][name]
        if 1 < number < len(names) - 1:
            # What holds of some of many operands holds of all.
            continue
        whose = "input" if len(names) == 1 else "last input" if number > 1 else f"input {number + 1}"
        if value.dtype.kind not in "iu" or not value.size:
            continue
        for title, text, change in (*_quantized(value), *_layouts(value)):
            yield of_inputs(f"{whose} {title}", f"{whose}: {text}", {name: change})
        shape = case.theirs[0].shape
        if stretching:
            for title, text, wide in _broadcasts(value, shape):
                yield of_inputs(f"{whose} {title}", f"{whose}: {text}", {name: wide})
    if len(names) == 2:
        one, two = names
        if case.values[0][one].dtype == case.values[0][two].dtype:
            yield of_inputs(
                "first input used for both", "both operands are the first input", {two: _taken(case.values[0][one])}
            )
            yield of_inputs(
                "second input used for both", "both operands are the second input", {one: _taken(case.values[0][two])}
            )


def _taken(other: Array) -> Change:
    def change(value: Array) -> Array:
        return np.broadcast_to(other, np.broadcast_shapes(other.shape, value.shape)).copy()

    return change


def _quantized(value: Array) -> Iterator[tuple[str, str, Change]]:
    ends = np.iinfo(value.dtype)
    top = value.dtype.type(ends.min if ends.min < 0 else 1 << (ends.bits - 1))
    if ends.bits <= 16:
        yield (
            "of the other signedness",
            "quantized values are taken for those of the other signedness",
            lambda v: v ^ top,
        )
        yield (
            "lowest quantized value read as the next",
            f"{ends.min} is read as {ends.min + 1}",
            lambda v: np.maximum(v, ends.min + 1),
        )
        yield (
            "highest quantized value read as the one before",
            "the highest quantized value is read as the one before",
            lambda v: np.minimum(v, ends.max - 1),
        )
        yield "lowest bit lost", "the lowest bit is read as 0", lambda v: v & ~value.dtype.type(1)
        yield "lowest 4 bits lost", "the lowest four bits are read as 0", lambda v: v & ~value.dtype.type(15)
        yield (
            "highest data bit lost",
            "the bit below the sign is read as 0",
            lambda v: v & ~value.dtype.type(1 << (ends.bits - 2)),
        )
        yield (
            "one quantized value too large",
            "every quantized value is one too large",
            lambda v: np.where(v < ends.max, v + 1, v).astype(v.dtype),
        )
        if ends.min < 0:
            yield (
                "without signs",
                "quantized values are taken without their signs",
                lambda v: np.abs(v.astype(np.int64)).clip(ends.min, ends.max).astype(v.dtype),
            )
            yield (
                "saturated to 7 bits",
                "quantized values are cut to [-64, 63]",
                lambda v: v.clip(ends.min // 2, ends.max // 2),
            )


def _layouts(value: Array) -> Iterator[tuple[str, str, Change]]:
    if value.size > 1:
        yield "read one element too late", "element i is read where i + 1 should be", lambda v: np.roll(v, 1)
        yield "read one element too early", "element i is read where i - 1 should be", lambda v: np.roll(v, -1)
        yield "read backwards", "elements are read in reversed order", lambda v: v.reshape(-1)[::-1].reshape(v.shape)
        yield "last element read as 0", "the last element is read as 0", _last
        yield "neighbours swapped", "two and two neighbours are swapped", _neighbours
    for axis, size in enumerate(value.shape):
        if size > 1 and value.ndim > 1:
            yield f"read from index 0 of axis {axis}", f"only index 0 of axis {axis} is read", _only(axis)
    if value.ndim == 4:
        yield (
            "read as NCHW",
            "it is read with channels first",
            lambda v: v.reshape(v.shape[0], v.shape[3], v.shape[1], v.shape[2]).transpose(0, 2, 3, 1),
        )
    if value.ndim >= 2:
        yield (
            "read column by column",
            "its last two axes are swapped in memory",
            lambda v: v.reshape(*v.shape[:-2], v.shape[-1], v.shape[-2]).swapaxes(-1, -2),
        )
    for block in (4, 8, 16, 32, 64):
        if value.size > block and value.size % block:
            yield (
                f"beyond whole blocks of {block} read as 0",
                f"elements beyond whole blocks of {block} are read as 0",
                _beyond(value.size - value.size % block),
            )


def _last(value: Array) -> Array:
    return _beyond(value.size - 1)(value)


def _beyond(first: int) -> Change:
    def change(value: Array) -> Array:
        flat = value.reshape(-1).copy()
        flat[first:] = 0
        return flat.reshape(value.shape)

    return change


def _neighbours(value: Array) -> Array:
    flat = value.reshape(-1).copy()
    even = flat.size - flat.size % 2
    flat[:even] = flat[:even].reshape(-1, 2)[:, ::-1].reshape(-1)
    return flat.reshape(value.shape)


def _only(axis: int) -> Change:
    return lambda v: np.broadcast_to(v.take([0], axis), v.shape).copy()


def _broadcasts(value: Array, shape: tuple[int, ...]) -> Iterator[tuple[str, str, Change]]:
    """Wrong ways to stretch an operand to the result's shape."""
    size = int(np.prod(shape))
    if value.shape == shape or value.size >= size:
        return
    yield (
        "stretched by its first element",
        "its first element stands for all",
        lambda v: np.broadcast_to(v.reshape(-1)[:1], shape).copy(),
    )
    yield (
        "stretched by its last element",
        "its last element stands for all",
        lambda v: np.broadcast_to(v.reshape(-1)[-1:], shape).copy(),
    )
    yield "repeated end to end", "element i is read at i modulo its size", lambda v: np.resize(v.reshape(-1), shape)
    if size % value.size == 0:
        yield (
            "elements repeated one by one",
            "every element is repeated before the next one",
            lambda v: np.repeat(v.reshape(-1), size // v.size).reshape(shape),
        )
    if value.size > 1:
        yield (
            "followed by zeros",
            "beyond its size zeros are read",
            lambda v: np.append(v.reshape(-1), np.zeros(size - v.size, v.dtype)).reshape(shape),
        )
    aligned = (1,) * (len(shape) - value.ndim) + value.shape
    ranks = [axis for axis, dimension in enumerate(shape) if dimension == value.size and aligned[axis] != dimension]
    for axis in ranks:
        yield (
            f"stretched along axis {axis} alone",
            f"it is taken to belong to axis {axis}",
            lambda v, axis=axis: np.broadcast_to(  # type: ignore[misc]
                v.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape
            ).copy(),
        )
