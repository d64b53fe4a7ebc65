"""Sums along axes, and functions of sums, of real numbers; integers wrap. Also the extremes and products of any type.

Inputs: x and, optionally, the axes. Without axes everything is reduced, or nothing with `keeps_without_axes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..rules import real_sum
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK
from .reduce import row_major


def reduced(call: Call) -> tuple[int, ...] | None:
    """Axes from the front; None where nothing is reduced."""
    call.expect((1, 2))
    rank = call.input(0).rank
    axes = call.integers(1, "axes") if call.has(1) else []
    if not axes:
        return None if call.attribute("keeps_without_axes") else tuple(range(rank))
    found = [call.axis(axis, rank) for axis in axes]
    if rank and len(set(found)) < len(found):
        raise call.invalid("BT-SHAPE-AXIS", f"axes {axes} name an axis twice")
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
        parameters={"axes": () if axes is None else axes, "shape": call.output.shape, "identity": axes is None},
        work=max(source.size, call.output.size),
        scratch=3 * source.size * max(8, source.type.numpy.itemsize) + 16 * BLOCK,
    )


def _integers(kind: str, rows: np.ndarray) -> np.ndarray:
    """Sums of 32-bit and 64-bit integers, modulo their width; a mean divides toward zero."""
    dtype = rows.dtype
    if kind == "sum_square":
        rows = rows * rows
    elif kind == "l1":
        rows = np.abs(rows)
    total = rows.sum(axis=1, dtype=dtype)
    if kind != "mean" or not rows.shape[1]:
        return total
    wide = total.astype(np.int64)
    return (np.sign(wide) * (np.abs(wide) // rows.shape[1])).astype(dtype)


def reference(step: Step, inputs: Sequence[np.ndarray], kind: str) -> list[np.ndarray]:
    """The rule's reduction of the elements of every output, in row-major order."""
    x = inputs[0]
    if step["identity"]:
        return [x.copy()]
    rows = row_major(x, step["axes"])
    if x.dtype.kind in "iu":
        with np.errstate(over="ignore"):
            return [_integers(kind, rows).reshape(step["shape"])]
    reduce = real_sum.RULES[step.rules["real_sum"]].reductions["sum" if kind == "mean" else kind]
    out = np.empty(rows.shape[0], np.float32)
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    for begin in range(0, out.size, per_block):
        block = rows[begin : begin + per_block]
        out[begin : begin + per_block] = reduce(
            block.astype(np.float32, copy=False), np.full(len(block), float(rows.shape[1])) if kind == "mean" else None
        )
    return [out.astype(x.dtype, copy=False).reshape(step["shape"])]


def _extreme(step: Step, inputs: Sequence[np.ndarray], sign: int) -> list[np.ndarray]:
    """A NaN among the elements is the result; equal zeros give the first one. Without elements: the end of the type."""
    x = inputs[0]
    if step["identity"]:
        return [x.copy()]
    rows = row_major(x, step["axes"])
    if not rows.shape[1]:
        none = _end(x.dtype, -sign)
        return [np.full(step["shape"], none, x.dtype)]
    best = rows.argmax(axis=1) if sign > 0 else rows.argmin(axis=1)
    return [rows[np.arange(rows.shape[0]), best].reshape(step["shape"])]


def _end(dtype: np.dtype, sign: int) -> object:
    if dtype.kind == "f":
        return sign * math.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _product(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    if inputs[0].dtype.kind == "f":
        return reference(step, inputs, "prod")
    x = inputs[0]
    if step["identity"]:
        return [x.copy()]
    rows = row_major(x, step["axes"])
    return [np.multiply.reduce(rows, axis=1, dtype=x.dtype).reshape(step["shape"])]


_SUMS = {
    "sum": "sum",
    "mean": "average",
    "sum_square": "sum of squares",
    "l1": "sum of magnitudes",
    "l2": "root of the sum of squares",
    "log_sum": "logarithm of the sum",
    "log_sum_exp": "logarithm of the sum of e^x",
}

OPERATORS = (
    *(
        Operator(f"reduce_{kind}", ("real_sum",), infer, lower, partial(reference, kind=kind), f"{summary}, along axes")
        for kind, summary in _SUMS.items()
    ),
    Operator("axes_max", (), infer, lower, partial(_extreme, sign=1), "largest element along axes, NaN included"),
    Operator("axes_min", (), infer, lower, partial(_extreme, sign=-1), "smallest element along axes, NaN included"),
    Operator("axes_prod", ("real_sum",), infer, lower, _product, "product of the elements along axes"),
)
