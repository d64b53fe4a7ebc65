"""Functions of sums along axes by rules of the slot `real_sum`, which also carries out some sums, means and products.

Inputs: x and, optionally, the axes. Without axes everything is reduced, or every element on its own with
`keeps_without_axes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...rules import real_sum
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from .reduce import infer, reduced_axes, row_major


def lower(call: Call) -> Lowered:
    """Axes and output shape."""
    source = call.input(0)
    return Lowered(
        parameters={"axes": reduced_axes(call), "shape": call.output.shape},
        work=max(source.size, call.output.size),
        scratch=3 * source.size * max(8, source.type.numpy.itemsize) + 16 * BLOCK,
    )


def _way(kind: str, shape: Sequence[int], axes: Sequence[int], rows: Shape) -> real_sum.Way:
    """The order of rules that have one: neighbouring axes that are reduced, or kept, are one.

    Reducing everything, or sums along the last axes alone, go by packets; sums along the first and the last axes by
    runs; sums along axes in the middle by fours.
    """
    if kind not in ("sum", "mean"):
        return real_sum.Way("packets", np.arange(1)) if len(axes) == len(shape) else real_sum.Way()
    pattern: list[list[int]] = []  # [reduced, dimension]
    for axis, extent in enumerate(shape):
        reduced_one = int(axis in axes)
        if pattern and pattern[-1][0] == reduced_one:
            pattern[-1][1] *= extent
        else:
            pattern.append([reduced_one, extent])
    # A single first dimension that is kept does not count, except before sums along axes that lie apart.
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
    reduce = real_sum.RULES[step.rules["real_sum"]].reductions["sum" if kind == "mean" else kind]
    way = _way(kind, x.shape, step["axes"], rows.shape)
    out = np.empty(rows.shape[0], x.dtype if x.dtype.kind == "i" else np.float32)
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    for begin in range(0, out.size, per_block):
        block = rows[begin : begin + per_block]
        out[begin : begin + per_block] = reduce(
            block.astype(out.dtype, copy=False),
            np.full(len(block), float(rows.shape[1])) if kind == "mean" else None,
            _part(way, begin, begin + per_block),
        )
    return [out.astype(x.dtype, copy=False).reshape(step["shape"])]


_SUMS = {
    "reduce_sum_square": "sum of squares",
    "reduce_l1": "sum of magnitudes",
    "reduce_l2": "root of the sum of squares",
    "reduce_log_sum": "logarithm of the sum",
    "reduce_log_sum_exp": "logarithm of the sum of e^x",
}

OPERATORS = tuple(
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
)
