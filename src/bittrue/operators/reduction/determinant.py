"""determinant and inverse: of square matrices, the last two axes, by elimination with pivots.

The pivot is the first of the largest magnitudes of a column; products and differences go by slot `multiply_add`.
determinant: the diagonal is multiplied from the top, then by the sign of the exchanges. inverse: both triangles are
solved for the columns of the identity, in panels of a few rows: what rows before the panel give is added up and
subtracted at once, what rows of the panel give one by one, from the first row to the last; the diagonal's reciprocals
multiply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step, same_shape
from ..core.stopping import check_stop

# Rows of a panel, by bytes of an element.
_PANEL = {2: 4, 4: 8, 8: 4}


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


def _eliminated(m: np.ndarray, rule: multiply_add.MultiplyAddRule) -> tuple[np.ndarray, np.ndarray]:
    """Matrices [N, size, size] become both triangles in place; the order of rows, and the sign of the exchanges."""
    size = m.shape[-1]
    rows, sign = np.arange(m.shape[0]), np.ones(m.shape[0], m.dtype)
    order = np.tile(np.arange(size), (m.shape[0], 1))
    for k in range(size if m.shape[0] else 0):
        check_stop()
        pivot = k + np.abs(m[:, k:, k]).argmax(axis=1)
        sign = np.where(pivot != k, -sign, sign)
        for whole in (m, order):
            upper = whole[rows, pivot].copy()
            whole[rows, pivot] = whole[:, k]
            whole[:, k] = upper
        upper, below = m[:, k], m[:, k + 1 :, k]
        factors = np.where(upper[:, k, None] != 0, below / upper[:, k, None], below)
        m[:, k + 1 :, k] = factors
        m[:, k + 1 :, k + 1 :] = rule.apply(-factors[:, :, None], upper[:, None, k + 1 :], m[:, k + 1 :, k + 1 :])
    return order, sign


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Matrix by matrix beside each other."""
    size = inputs[0].shape[-1]
    m = inputs[0].reshape(math.prod(inputs[0].shape[:-2]), size, size).copy()
    with np.errstate(all="ignore"):
        _, sign = _eliminated(m, multiply_add.RULES[step.rules["multiply_add"]])
        result = np.ones_like(sign)
        for k in range(size):
            result = m[:, k, k] if k == 0 else result * m[:, k, k]
        result = result if size == 0 else sign * result
    return [np.asarray(result, inputs[0].dtype).reshape(inputs[0].shape[:-2])]


def _subtract(x: np.ndarray, m: np.ndarray, panel: range, others: range, rule: multiply_add.MultiplyAddRule) -> None:
    """What other rows give to those of a panel."""
    if not others:
        return
    rows = slice(panel.start, panel.stop)
    total = np.zeros_like(x[:, rows])
    for k in others:
        total = rule.apply(m[:, rows, k, None], x[:, None, k], total)
    x[:, rows] -= total


def reference_inverse(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Matrix by matrix beside each other."""
    size = inputs[0].shape[-1]
    m = inputs[0].reshape(math.prod(inputs[0].shape[:-2]), size, size).copy()
    width, rule = _PANEL[m.itemsize], multiply_add.RULES[step.rules["multiply_add"]]
    panels = [range(first, min(first + width, size)) for first in range(0, size, width)]
    with np.errstate(all="ignore"):
        order, _ = _eliminated(m, rule)
        x = np.asarray(order[:, :, None] == np.arange(size), m.dtype)
        for panel in panels:
            check_stop()
            _subtract(x, m, panel, range(panel.start), rule)
            for i in panel:
                for k in range(panel.start, i):
                    x[:, i] = rule.apply(-m[:, i, k, None], x[:, k], x[:, i])
        for panel in reversed(panels):
            check_stop()
            _subtract(x, m, panel, range(panel.stop, size), rule)
            for i in reversed(panel):
                for k in range(i + 1, panel.stop):
                    x[:, i] = rule.apply(-m[:, i, k, None], x[:, k], x[:, i])
                x[:, i] *= m.dtype.type(1) / m[:, i, i, None]
        return [x.reshape(inputs[0].shape)]


OPERATORS = (
    Operator("determinant", ("multiply_add",), infer, lower, reference, "determinants of square matrices"),
    Operator("inverse", ("multiply_add",), infer_inverse, lower, reference_inverse, "inverses of square matrices"),
)
