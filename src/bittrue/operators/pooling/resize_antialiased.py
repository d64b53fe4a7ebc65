"""resize_antialiased: two axes at another size; where one shrinks, more pixels count, so that none is left out.

Inputs and attributes are those of `resized_places`; besides `filter` (``linear`` or ``cubic``), `factor` (the a of the
cubic polynomials) and `exclude_outside`: positions outside of the image count nothing, instead of pixels of the border
standing in. Weights are divided by their sum, in binary32. Columns come first, then rows; products are added in their
order, in binary32 (slot `multiply_add`, but products of whole fours of neighbours are rounded), or of 8-bit values
as integers by weights of 22 bits, with one rounding per axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...arithmetic import floats
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.stopping import check_stop
from .resized_places import F32, by_factors, fill_outside, outside, places, resized_axes

_BITS = 22


def infer(call: Call) -> list[Shape]:
    """The new sizes of two axes of two or four."""
    shape, factors = by_factors(call)
    if resized_axes(call) is None:
        raise call.invalid(
            "BT-RESIZE-LINEAR",
            f"factors {[float(f) for f in factors]}: two neighbouring axes of 2 or 4 are interpolated",
            "resize in several steps",
        )
    return [shape]


def _filter(x: np.ndarray, a: np.float32 | None, add: Callable[..., np.ndarray]) -> np.ndarray:
    """The weight of a pixel at distance x: linear, or by cubic polynomials of `a`."""
    x, one = np.abs(x), F32(1)
    if a is None:
        return np.where(x < one, one - x, F32(0))
    near = add(add(a + F32(2), x, -(a + F32(3))) * x, x, one)
    far = add(add(x - F32(5), x, F32(8)), x, F32(-4)) * a
    return np.where(x < one, near, np.where(x < F32(2), far, F32(0)))


def weights(
    places: np.ndarray, factor: np.float32, size: int, a: np.float32 | None, exclude: bool, rule: str
) -> tuple[list[int], list[np.ndarray]]:
    """Of every place the first position, and the weights from there on.

    Source: docs/facts/onnxruntime.md 5.12.
    """
    scale = F32(1) / factor
    reach = F32(1 if a is None else 2) * max(scale, F32(1))
    shrink = F32(1) / scale if scale >= 1 else F32(1)
    firsts, found = [], []
    for place in places:
        center = F32(0.5) + place
        begin, end = (int(np.floor(center + side + F32(0.5))) for side in (-reach, reach))
        low, high = max(begin, 0), min(end, size)
        if exclude:
            begin, end = low, high
        distances = (np.arange(begin, end).astype(F32) - center + F32(0.5)) * shrink
        own = _filter(distances, a, multiply_add.RULES[rule].apply)
        total = F32(0)
        for weight in own:
            total = total + weight
        before, behind = low - begin, end - high
        if before > 0:
            for weight in own[:before]:
                own[before] += weight
        if behind > 0:
            last = len(own) - behind - 1
            for weight in own[last + 1 :]:
                own[last] += weight
        inner = own[before : before + max(high - low, 0)]
        firsts.append(low)
        found.append(inner * (F32(1) / total if total else F32(1)))
    return firsts, found


def lower(call: Call) -> Lowered:
    """`resampled` by the filter that the node names."""
    return resampled(call, F32(float(call.attribute("factor"))) if call.attribute("filter") == "cubic" else None)


def resampled(call: Call, a: np.float32 | None) -> Lowered:
    """First positions, numbers of weights and weights for every row and column of the result.

    Args:
        call: of this operator, or of another one that is carried out by it.
        a: of the cubic polynomials; None for the linear filter.
    """
    source, shape = call.input(0), call.output.shape
    axes = resized_axes(call)
    assert axes is not None
    if shape == source.shape:
        return Lowered({"shape": shape}, operator="reshape", inputs=(0,))
    arrays = {}
    for axis, side in zip(axes, "yx", strict=True):
        size, factor = source.shape[axis], by_factors(call)[1][axis]
        lie = places(call, axis)
        if len(lie) and not (lie.min() > -1 and lie.max() < size):
            raise call.unsupported("BT-RESIZE-MODE", "places beyond the border are not made with antialiasing")
        exclude = bool(call.attribute("exclude_outside"))
        firsts, found = weights(lie, factor, size, a, exclude, call.rules["multiply_add"])
        counts = [len(one) for one in found]
        table = np.zeros((max(counts, default=0), shape[axis]), F32)
        for at, one in enumerate(found):
            table[: len(one), at] = one
        if source.dtype != "f32":
            table = floats.round_away(table * F32(1 << _BITS)).astype(np.int32)
        arrays[f"weights_{side}"] = table
        arrays[f"first_{side}"] = np.array(firsts, np.int64)
        arrays[f"count_{side}"] = np.array(counts, np.int64)
    filled = outside(call)
    if filled and axes == (1, 2):
        raise call.unsupported(
            "BT-RESIZE-REGION", "places outside of images whose channels lie last: the runtime fills others"
        )
    arrays |= filled
    parameters = {"shape": shape, "axes": axes}
    return Lowered(
        parameters,
        arrays,
        inputs=(0,),
        work=16 * call.output.size,
        scratch=24 * max(source.size, call.output.size),
        operator="resize_antialiased",
    )


def _along(x: np.ndarray, axis: int, step: Step, side: str) -> np.ndarray:
    """One axis at its new size; an axis that keeps its size is left alone."""
    if x.shape[axis] == step["shape"][axis]:
        return x
    table, first, count = (step.arrays[f"{name}_{side}"] for name in ("weights", "first", "count"))
    x, neighbours = np.moveaxis(x, axis, -1), axis == x.ndim - 1
    whole = x.dtype != F32
    total = np.full((*x.shape[:-1], len(first)), 1 << (_BITS - 1) if whole else 0, np.int32 if whole else F32)
    twice = multiply_add.RULES["rounded_twice"]
    rule = twice if whole else multiply_add.RULES[step.rules["multiply_add"]]
    fours = count // 4 * 4 if neighbours else np.zeros_like(count)
    for at, row in enumerate(table):
        check_stop()
        for used, add in ((at < fours, twice), ((fours <= at) & (at < count), rule)):
            total[..., used] = add.apply(x[..., first[used] + at], row[used], total[..., used])
    if whole:
        # Also of signed values the runtime keeps what fits unsigned ones.
        total = np.clip(total >> _BITS, 0, 255).astype(np.uint8).view(x.dtype)
    return np.moveaxis(total, -1, axis)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Columns, then rows."""
    rows, columns = step["axes"]
    with np.errstate(all="ignore"):
        out = _along(_along(inputs[0], columns, step, "x"), rows, step, "y")
        return [fill_outside(step, np.ascontiguousarray(out))]


OPERATOR = Operator(
    "resize_antialiased",
    ("multiply_add",),
    infer,
    lower,
    reference,
    "another size, interpolated along two axes by what shrinks",
)
