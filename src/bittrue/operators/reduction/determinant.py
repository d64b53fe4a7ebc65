"""determinant and inverse: of square matrices, the last two axes, by elimination with pivots.

The pivot is the first of the largest magnitudes of a column; products and differences go by slot `elimination`.
determinant: the diagonal is multiplied from the top, then by the sign of the exchanges. inverse: both triangles are
solved for the columns of the identity, in panels of a few rows: what rows before the panel give is added up and
subtracted at once, what rows of the panel give one by one, from the first row to the last; the diagonal's reciprocals
multiply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import elimination
from ..core.base import Call, Lowered, Operator, Shape, Step, same_shape
from ..core.stopping import check_stop


def _check(call: Call) -> None:
    call.expect(1)
    shape = call.input(0).shape
    call.rank(call.input(0), 2, 8)
    if shape[-1] != shape[-2]:
        raise call.invalid("BT-DETERMINANT", f"matrices of shape {list(shape[-2:])} are not square")


def infer(call: Call) -> list[Shape]:
    """All axes but the last two, which are of one size."""
    _check(call)
    return [call.input(0).shape[:-2]]


def infer_inverse(call: Call) -> list[Shape]:
    """The input's shape, whose last two axes are of one size."""
    _check(call)
    return same_shape(call)


def lower(call: Call) -> Lowered:
    """Nothing but the work."""
    return Lowered(work=call.input(0).size * call.input(0).shape[-1], scratch=3 * 8 * call.input(0).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Matrix by matrix beside each other."""
    size = inputs[0].shape[-1]
    m = inputs[0].reshape(math.prod(inputs[0].shape[:-2]), size, size).copy()
    with np.errstate(all="ignore"):
        _, sign = elimination.RULES[step.rules["elimination"]].eliminate(m, check_stop)
        result = np.ones_like(sign)
        for k in range(size):
            result = m[:, k, k] if k == 0 else result * m[:, k, k]
        result = result if size == 0 else sign * result
    return [np.asarray(result, inputs[0].dtype).reshape(inputs[0].shape[:-2])]


def reference_inverse(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Matrix by matrix beside each other."""
    size = inputs[0].shape[-1]
    m = inputs[0].reshape(math.prod(inputs[0].shape[:-2]), size, size).copy()
    rule = elimination.RULES[step.rules["elimination"]]
    with np.errstate(all="ignore"):
        order, _ = rule.eliminate(m, check_stop)
        x = np.asarray(order[:, :, None] == np.arange(size), m.dtype)
        for lower in (True, False):
            rule.solve(m, x, lower)
        return [x.reshape(inputs[0].shape)]


OPERATORS = (
    Operator("determinant", ("elimination",), infer, lower, reference, "determinants of square matrices"),
    Operator("inverse", ("elimination",), infer_inverse, lower, reference_inverse, "inverses of square matrices"),
)
