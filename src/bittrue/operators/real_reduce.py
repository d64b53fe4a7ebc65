"""Sums along axes, and functions of sums, of real numbers; integers saturate. Also products.

Inputs: x and, optionally, the axes. Without axes everything is reduced, or every element on its own with
`keeps_without_axes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..rules import real_sum
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK
from .reduce import row_major


def reduced(call: Call) -> tuple[int, ...] | None:
    """Axes from the front; None where every element is reduced on its own."""
    call.expect((1, 2))
    rank = call.input(0).rank
    axes = call.integers(1, "axes") if call.has(1) else []
    if not axes:
        return None if call.attribute("keeps_without_axes") else tuple(range(rank))
    # Named twice, an axis is reduced once: so do the runtimes, and the specification says nothing.
    found = {call.axis(axis, rank) for axis in axes}
    return tuple(sorted(found)) if rank else ()


def infer(call: Call) -> list[Shape]:
    """Reduced axes disappear, or keep an extent of 1 with `keep_dims`."""
    axes, shape = reduced(call), call.input(0).shape
    if axes is None:
        return [shape]
    kept = call.attribute("keep_dims")
    return [tuple(1 if i in axes else extent for i, extent in enumerate(shape) if kept or i not in axes)]


def lower(call: Call) -> Lowered:
    """Axes and output shape."""
    source, axes = call.input(0), reduced(call)
    return Lowered(
        parameters={"axes": () if axes is None else axes, "shape": call.output.shape},
        work=max(source.size, call.output.size),
        scratch=3 * source.size * max(8, source.type.numpy.itemsize) + 16 * BLOCK,
    )


def _saturated(total: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """binary64 without its fraction, limited to the type; NaN (infinity times 0) gives the smallest integer."""
    info = np.iinfo(dtype)
    total = np.where(np.isnan(total), -np.inf, total)
    whole = np.trunc(total)
    inside = np.where((whole >= float(info.min)) & (whole < float(info.max) + 1), whole, 0).astype(np.int64)
    return np.where(whole >= float(info.max), info.max, np.where(whole <= float(info.min), info.min, inside)).astype(
        dtype
    )


def _integers(kind: str, rows: np.ndarray) -> np.ndarray:
    """Sums (products) of 32-bit and 64-bit integers in binary64, one after the other, fractions dropped, saturated."""
    wide = rows.astype(np.float64)
    if kind == "sum_square":
        wide = wide * wide
    elif kind == "l1":
        wide = np.abs(wide)
    if not rows.shape[1]:
        return np.full(rows.shape[0], kind == "prod", rows.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        operation = np.multiply if kind == "prod" else np.add
        total = operation.accumulate(wide, axis=1)[:, -1]
    return _saturated(total / rows.shape[1] if kind == "mean" else total, rows.dtype)


def _way(kind: str, shape: Sequence[int], axes: Sequence[int], rows: Shape) -> real_sum.Way:
    """The order of rules that have one: neighbouring axes that are reduced, or kept, are one.

    Reducing everything, or sums along the last axes alone, go by packets; sums along the first and the last axes by
    runs; sums along axes in the middle by fours.
    """
    if kind not in ("sum", "mean"):
        return real_sum.Way("packets", np.arange(1)) if len(axes) == len(shape) else real_sum.Way()
    pattern: list[list[int]] = []  # [reduced, extent]
    for axis, extent in enumerate(shape):
        reduced_one = int(axis in axes)
        if pattern and pattern[-1][0] == reduced_one:
            pattern[-1][1] *= extent
        else:
            pattern.append([reduced_one, extent])
    # A single first extent that is kept does not count, except before sums along axes that lie apart.
    single = len(pattern) > 1 and pattern[0] == [0, 1]
    if single:
        pattern = pattern[1:]
    kinds = [which for which, _ in pattern]
    if kinds in ([1], [0, 1]):
        return real_sum.Way("packets", np.arange(rows[0]) * rows[1])
    if kinds == [0, 1, 0]:
        return real_sum.Way("fours")
    if kinds == [1, 0, 1] and not single and pattern[1][1] > 1:
        outer, kept, inner = (extent for _, extent in pattern)
        starts = (np.arange(outer) * kept + np.arange(kept)[:, None]) * inner
        return real_sum.Way("runs", starts, inner)
    return real_sum.Way()


def _part(way: real_sum.Way, begin: int, end: int) -> real_sum.Way:
    return way if way.starts is None else replace(way, starts=way.starts[begin:end])


def reference(step: Step, inputs: Sequence[np.ndarray], kind: str) -> list[np.ndarray]:
    """The rule's reduction of the elements of every output, in row-major order."""
    x = inputs[0]
    rows = row_major(x, step["axes"])
    if x.dtype.kind in "iu":
        return [_integers(kind, rows).reshape(step["shape"])]
    reduce = real_sum.RULES[step.rules["real_sum"]].reductions["sum" if kind == "mean" else kind]
    way = _way(kind, x.shape, step["axes"], rows.shape)
    out = np.empty(rows.shape[0], np.float32)
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    for begin in range(0, out.size, per_block):
        block = rows[begin : begin + per_block]
        out[begin : begin + per_block] = reduce(
            block.astype(np.float32, copy=False),
            np.full(len(block), float(rows.shape[1])) if kind == "mean" else None,
            _part(way, begin, begin + per_block),
        )
    return [out.astype(x.dtype, copy=False).reshape(step["shape"])]


_SUMS = {
    "reduce_sum": "sum",
    "reduce_mean": "average",
    "reduce_sum_square": "sum of squares",
    "reduce_l1": "sum of magnitudes",
    "reduce_l2": "root of the sum of squares",
    "reduce_log_sum": "logarithm of the sum",
    "reduce_log_sum_exp": "logarithm of the sum of e^x",
}

OPERATORS = (
    *(
        Operator(
            stem,
            ("real_sum",),
            infer,
            lower,
            partial(reference, kind=stem.removeprefix("reduce_")),
            f"{summary}, along axes",
            reduces=True,
        )
        for stem, summary in _SUMS.items()
    ),
    Operator(
        "axes_prod", ("real_sum",), infer, lower, partial(reference, kind="prod"), "product along axes", reduces=True
    ),
)
