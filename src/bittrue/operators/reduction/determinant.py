"""determinant: of square matrices, the last two axes, by elimination with pivots.

The pivot is the first of the largest magnitudes of a column; every product, quotient and difference is rounded, and the
diagonal is multiplied from the top, then by the sign of the exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.stopping import check_stop


def infer(call: Call) -> list[Shape]:
    """All axes but the last two, which are of one size."""
    call.expect(1)
    shape = call.input(0).shape
    call.rank(call.input(0), 2, 8)
    if shape[-1] != shape[-2]:
        raise call.invalid("BT-DETERMINANT", f"matrices of shape {list(shape[-2:])} are not square")
    return [shape[:-2]]


def lower(call: Call) -> Lowered:
    """Nothing but the work."""
    return Lowered(work=call.input(0).size * call.input(0).shape[-1], scratch=3 * 4 * call.input(0).size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Matrix by matrix beside each other."""
    size = inputs[0].shape[-1]
    m = inputs[0].reshape(-1, size, size).copy()
    rows, sign = np.arange(m.shape[0]), np.ones(m.shape[0], m.dtype)
    with np.errstate(all="ignore"):
        for k in range(size if m.shape[0] else 0):
            check_stop()
            pivot = k + np.abs(m[:, k:, k]).argmax(axis=1)
            sign = np.where(pivot != k, -sign, sign)
            upper = m[rows, pivot].copy()
            m[rows, pivot] = m[:, k]
            m[:, k] = upper
            below = m[:, k + 1 :, k]
            factors = np.where(upper[:, k, None] != 0, below / upper[:, k, None], below)
            m[:, k + 1 :, k] = factors
            m[:, k + 1 :, k + 1 :] -= factors[:, :, None] * upper[:, None, k + 1 :]
        result = np.ones_like(sign)
        for k in range(size):
            result = m[:, k, k] if k == 0 else result * m[:, k, k]
        result = result if size == 0 else sign * result
    return [np.asarray(result, inputs[0].dtype).reshape(inputs[0].shape[:-2])]


OPERATOR = Operator("determinant", (), infer, lower, reference, "determinants of square matrices")
