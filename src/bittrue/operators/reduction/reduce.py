"""reduce_max and reduce_min: one value for all elements along some axes; of truth values, whether any or all hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ...rules import extreme
from ..core.base import Call, Lowered, Operator, Shape, Step, keeps_axes_of_nothing
from ..core.elementwise import BLOCK


def reduced_axes(call: Call) -> tuple[int, ...]:
    """The axes that the second input names, counted from the front, each once; none for a scalar input.

    Where it names none, every element is reduced on its own, or everything with `keeps_without_axes` false. See
    `keeps_axes_of_nothing`.
    """
    call.expect((1, 2))
    source = call.input(0)
    axes = call.integers(1, "axes") if call.has(1) else []
    if source.rank == 0:
        return ()
    if not axes and not call.node.attributes.get("keeps_without_axes", True):
        return tuple(range(source.rank))
    if keeps_axes_of_nothing(call):
        axes = [axis for axis in axes if axis >= 0]
    return tuple(sorted({call.axis(axis, source.rank) for axis in axes}))


def infer(call: Call) -> list[Shape]:
    """Reduced axes disappear, or keep a dimension of 1 with `keep_dims`; `truth_values` takes no other types."""
    if call.node.attributes.get("truth_values") and call.input(0).dtype != "bool":
        raise call.invalid("BT-NODE-TYPE", f"truth values are needed, found {call.input(0).type.title}")
    axes = reduced_axes(call)
    kept = call.attribute("keep_dims")
    shape = call.input(0).shape
    return [tuple(1 if i in axes else size for i, size in enumerate(shape) if kept or i not in axes)]


def _way(shape: Sequence[int], axes: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    """How rows lie in memory, as rules of the slot `extreme` call it, and sizes; neighbouring axes of one kind are one.

    A single first dimension that is kept does not count.
    """
    kinds: list[bool] = []
    sizes: list[int] = []
    for axis, size in enumerate(shape):
        if kinds and kinds[-1] == (axis in axes):
            sizes[-1] *= size
        else:
            kinds, sizes = [*kinds, axis in axes], [*sizes, size]
    if len(kinds) > 1 and not kinds[0] and sizes[0] == 1:
        kinds, sizes = kinds[1:], sizes[1:]
    ways = {(True,): "rows", (False, True): "rows", (False, True, False): "columns", (True, False, True): "runs"}
    return ways.get(tuple(kinds), "in_order"), tuple(sizes)


def lower(call: Call) -> Lowered:
    """Axes and output shape; where the rule asks for it, how rows lie in memory."""
    source = call.input(0)
    parameters: dict[str, Attribute] = {"axes": reduced_axes(call), "shape": tuple(call.output.shape)}
    if "extreme" in call.rules and extreme.RULES[call.rules["extreme"]].in_packets:
        parameters["way"], parameters["sizes"] = _way(source.shape, reduced_axes(call))
    return Lowered(
        parameters=parameters,
        work=max(source.size, call.output.size),
        scratch=2 * source.size * source.type.numpy.itemsize + 16 * BLOCK,
    )


def row_major(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """[outputs, summands]: the elements of every output in the order in which they lie in `x`."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    outputs = int(np.prod([x.shape[axis] for axis in kept], dtype=np.int64))
    summands = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return np.transpose(x, [*kept, *axes]).reshape(outputs, summands)


def neighbours(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements of an output lie side by side: the last axes, up to one that is kept; 1 if that is the last."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    return max(1, math.prod(shape[max(kept, default=-1) + 1 :]))


def starts_with_first(step: Step, x: np.ndarray) -> bool:
    """Whether a reduction of binary32 numbers begins with the first element instead of the neutral value."""
    return "start" in step.rules or len(step["axes"]) == x.ndim


def in_order(operation: np.ufunc, x: np.ndarray, axes: Sequence[int], start: float, first: bool) -> np.ndarray:
    """`operation` over the elements of each output one after the other, each result rounded to the type of `x`.

    It begins with `start`, or with the `first` element, which differs for a negative zero. Without elements the result
    is `start`.
    """
    rows = row_major(x, axes)
    out = np.full(rows.shape[0], start, x.dtype)
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    with np.errstate(all="ignore"):
        for begin in range(0, rows.shape[0] if rows.shape[1] else 0, per_block):
            block = rows[begin : begin + per_block]
            if not first:
                block = block.copy()
                block[:, 0] = operation(x.dtype.type(start), block[:, 0])
            out[begin : begin + per_block] = operation.accumulate(block, axis=1)[:, -1]
    return out


def _first_extreme(x: np.ndarray, axes: Sequence[int], sign: int) -> np.ndarray:
    """The extreme of binary32 values as a chain of comparisons finds it.

    The chain begins with the opposite end of the finite range, or with the first element when everything is reduced;
    a value replaces the kept one only if it is strictly beyond it, so NaN never does, and a NaN at the beginning stays.
    """
    rows = row_major(x, axes)
    end = np.float32(-sign) * np.finfo(np.float32).max
    if not rows.shape[1]:
        return np.full(rows.shape[0], end, x.dtype)
    ordered = np.where(np.isnan(rows), np.float32(-sign) * np.float32(np.inf), rows)
    best = ordered.argmax(axis=1) if sign > 0 else ordered.argmin(axis=1)
    extreme = ordered[np.arange(rows.shape[0]), best]
    if len(axes) == x.ndim:
        first = rows[:, 0]
        beyond = extreme > first if sign > 0 else extreme < first
        return np.where(beyond, extreme, first)
    beyond = extreme > end if sign > 0 else extreme < end
    return np.where(beyond, extreme, end)


def _of_truth_values(x: np.ndarray, axes: Sequence[int], sign: int) -> np.ndarray:
    """Whether any, or all, are true, bit by bit: it shows where a byte is neither 0 nor 1, as in the kernels."""
    operation, start = (np.bitwise_or, 0) if sign > 0 else (np.bitwise_and, 1)
    return np.asarray(operation.reduce(x.view(np.uint8), axis=tuple(axes), initial=start), np.uint8).view(np.bool_)


def _extreme(operation: np.ufunc, sign: int) -> Callable[[Step, Sequence[np.ndarray]], list[np.ndarray]]:
    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        x, axes = inputs[0], step["axes"]
        rule = extreme.RULES[step.rules["extreme"]] if "extreme" in step.rules else None
        if x.dtype == np.bool_:
            result = _of_truth_values(x, axes, sign)
        elif not math.prod(step["shape"]):
            result = np.zeros(0)
        elif rule is not None and (x.size or rule.of_nothing):
            told = (step["way"], step["sizes"]) if rule.in_packets else (neighbours(x.shape, axes),) * rule.in_parts
            result = rule.apply(row_major(x, axes), sign, *told)
        elif x.dtype == np.float32:
            result = _first_extreme(x, axes, sign)
        else:
            limits = np.iinfo(x.dtype)
            result = operation.reduce(x, axis=axes, initial=limits.min if sign > 0 else limits.max)
        return [np.asarray(result, x.dtype).reshape(step["shape"])]

    return reference


OPERATORS = (
    Operator(
        "reduce_max",
        ("extreme",),
        infer,
        lower,
        _extreme(np.maximum, 1),
        "largest value along axes",
        compares=True,
        largest=True,
        reduces=True,
    ),
    Operator(
        "reduce_min",
        ("extreme",),
        infer,
        lower,
        _extreme(np.minimum, -1),
        "smallest value along axes",
        compares=True,
        largest=False,
        reduces=True,
    ),
)
