"""Sums, means and products along axes by rules of the slot `real_sum`, and functions of sums.

Inputs: x and, optionally, the axes. Without axes everything is reduced, or every element on its own with
`keeps_without_axes`; with `keeps_single`, where axes of one element alone are reduced, too. With `alone` every row of
the last axis is added up as if it were the only one: packets begin at its first element.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ...records import replace
from ...rules import real_sum
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import BLOCK
from .reduce import reduced_axes, row_major

# What happens to every element before they are added, and to their sum, as the rules call it.
_FUNCTIONS = {
    ("identity", "identity"): "sum",
    ("square", "identity"): "sum_square",
    ("abs", "identity"): "l1",
    ("square", "sqrt"): "l2",
    ("identity", "log"): "log_sum",
    ("exp", "log"): "log_sum_exp",
}


# Rows of integers that a sum along first axes compensates.
_FEW = 256


def function_of_sum(call: Call) -> str:
    """The rules' name of the sum that `before` and `after` ask for; both are the identity where they are absent."""
    before, after = (str(call.node.attributes.get(name, "identity")) for name in ("before", "after"))
    if (before, after) not in _FUNCTIONS:
        raise call.unsupported("BT-SUM-FUNCTION", f"a sum with '{before}' before and '{after}' after it is not read")
    return _FUNCTIONS[before, after]


def lower(call: Call, kind: str) -> Lowered:
    """Axes and output shape; `kind` is the reduction's name in the rules, or ``mean``."""
    source = call.input(0)
    if kind != "mean" and kind not in real_sum.RULES[call.rules["real_sum"]].reductions:
        raise call.unsupported("BT-SUM-FUNCTION", f"'{kind}' of {source.type.title} has no rule")
    axes = reduced_axes(call)
    if not axes and call.node.attributes.get("keeps_without_axes") and kind in ("sum", "mean", "prod"):
        return Lowered({"shape": call.output.shape}, operator="reshape", inputs=(0,))
    if call.node.attributes.get("keeps_single") and all(source.shape[axis] == 1 for axis in axes):
        return Lowered({"shape": call.output.shape}, operator="reshape", inputs=(0,))
    parameters: dict[str, Attribute] = {"axes": axes, "shape": call.output.shape, "kind": kind}
    if call.node.attributes.get("alone", False):
        parameters["alone"] = True
    return Lowered(
        parameters=parameters,
        work=max(source.size, call.output.size),
        scratch=3 * source.size * max(8, source.type.numpy.itemsize) + 16 * BLOCK,
    )


def _pattern(shape: Sequence[int], axes: Sequence[int]) -> list[list[int]]:
    """Whether axes are reduced, and their size; neighbours that are alike are one."""
    pattern: list[list[int]] = []
    for axis, size in enumerate(shape):
        reduced_one = int(axis in axes)
        if pattern and pattern[-1][0] == reduced_one:
            pattern[-1][1] *= size
        else:
            pattern.append([reduced_one, size])
    return pattern


def _way_of_integers(kind: str, shape: Sequence[int], axes: Sequence[int]) -> real_sum.Way:
    """Sums and means are compensated, but along axes in the middle, along the first and the last ones, and along first
    ones of many elements; means along last axes are not either. A single first dimension, or one that lies between, is
    none.
    """
    pattern = _pattern(shape, axes)
    kinds = [which for which, _ in pattern]
    plain = kinds == [0, 1] and kind == "mean"
    plain |= kinds == [0, 1, 0] and pattern[0][1] > 1
    plain |= kinds == [1, 0, 1] and pattern[1][1] > 1
    plain |= kinds == [1, 0] and pattern[0][1] > _FEW
    return real_sum.Way("in_order" if plain and kind in ("sum", "mean") else "compensated")


def _way(kind: str, shape: Sequence[int], axes: Sequence[int], rows: Shape) -> real_sum.Way:
    """The order of rules that have one: neighbouring axes that are reduced, or kept, are one.

    Reducing everything, or sums along the last axes alone, go by packets; sums along the first and the last axes by
    runs; sums along axes in the middle by fours.
    """
    if kind not in ("sum", "mean"):
        return real_sum.Way("packets", np.arange(1)) if len(axes) == len(shape) else real_sum.Way()
    pattern = _pattern(shape, axes)
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
        outer, kept, inner = (size for _, size in pattern)
        starts = (np.arange(outer) * kept + np.arange(kept)[:, None]) * inner
        return real_sum.Way("runs", starts, inner)
    return real_sum.Way()


def _part(way: real_sum.Way, begin: int, end: int) -> real_sum.Way:
    return way if way.starts is None else replace(way, starts=way.starts[begin:end])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's reduction of the elements of every output, in row-major order."""
    x, kind = inputs[0], step["kind"]
    rows = row_major(x, step["axes"])
    rule = real_sum.RULES[step.rules["real_sum"]]
    reduce = rule.reductions["sum" if kind == "mean" else kind]
    # The mean of nothing is no number, but 0 where orders are kept.
    count = float(rows.shape[1] or rule.ordered)
    integers = x.dtype.kind == "i"
    way = _way_of_integers(kind, x.shape, step["axes"]) if integers else _way(kind, x.shape, step["axes"], rows.shape)
    if "alone" in step.parameters:
        way = real_sum.Way("packets", np.zeros(len(rows), np.int64))
    # What has fewer bits is widened.
    out = np.empty(rows.shape[0], x.dtype if integers or x.dtype.itemsize > 4 else np.float32)
    if kind in ("sum", "mean") and way.order != "packets" and x.dtype.kind == "f":
        # Sums begin with 0, which only -0 alone shows.
        rows = rows + x.dtype.type(0)
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    for begin in range(0, out.size, per_block):
        block = rows[begin : begin + per_block]
        out[begin : begin + per_block] = reduce(
            block.astype(out.dtype, copy=False),
            np.full(len(block), count) if kind == "mean" else None,
            _part(way, begin, begin + per_block),
        )
    return [out.astype(x.dtype, copy=False).reshape(step["shape"])]
