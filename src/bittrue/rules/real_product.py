"""Slot `real_product`: products of matrices of real numbers, in binary32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..arithmetic.correct_rounding import fraction, settle

# Elements of binary64 results held at a time.
_BLOCK = 1 << 18


@dataclass(frozen=True)
class RealProductRule:
    """`apply(a, b, c, alpha, beta)`: alpha * a[..., M, K] b[..., K, N] + beta * c.

    Arrays are binary32; `c` broadcasts over the result, None stands for nothing to add.
    """

    apply: Callable[[np.ndarray, np.ndarray, np.ndarray | None, float, float], np.ndarray]
    formula: str
    source: str


def _rounded_once(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float) -> np.ndarray:
    """Exact zeros are +0.

    >>> ones = np.float32([[1], [1], [1]])
    >>> RULES["rounded_once"].apply(np.float32([[2**24, 1, -(2**24)]]), ones, None, 1.0, 1.0).tolist()
    [[1.0]]
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    right = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    added = None if c is None else np.broadcast_to(c, shape).reshape(-1, *shape[-2:])
    out = np.empty((left.shape[0], *shape[-2:]), np.float32)
    rows = max(1, _BLOCK // max(1, shape[-1]))
    for index in range(left.shape[0]):
        for begin in range(0, shape[-2], rows):
            part = slice(begin, begin + rows)
            more = None if added is None else added[index, part]
            out[index, part] = _one_product(left[index, part], right[index], more, alpha, beta)
    return out.reshape(shape)


def _one_product(a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: float, beta: float) -> np.ndarray:
    depth = a.shape[1]
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64), b.astype(np.float64)
        value = alpha * (wide[0] @ wide[1])
        # Products are exact; depth additions in any order, the products with alpha and beta, and one more addition.
        size = abs(alpha) * (np.abs(wide[0]) @ np.abs(wide[1]))
        if c is not None:
            value = value + beta * c.astype(np.float64)
            size = size + np.abs(beta * c.astype(np.float64))
        error = size * ((depth + 4) * 2.0**-52)
    value = np.where(size == 0, 0.0, value)

    def exact(place: int) -> Fraction:
        m, n = divmod(place, b.shape[1])
        total = sum((fraction(x) * fraction(y) for x, y in zip(a[m], b[:, n], strict=True)), Fraction(0))
        return fraction(alpha) * total + (0 if c is None else fraction(beta) * fraction(c[m, n]))

    return settle(value, np.where(np.isfinite(error), error, 0), exact)


RULES: dict[str, RealProductRule] = {
    "rounded_once": RealProductRule(
        _rounded_once,
        "alpha * sum of products + beta * c as a real number, rounded once to binary32, ties to even",
        "the definition of correct rounding; fractions",
    ),
}
