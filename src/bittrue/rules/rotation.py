"""Slot `rotation`: pairs of real numbers turned by an angle whose cosine and sine are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic.floats import fused_multiply_add as fma
from ..arithmetic.floats import fused_multiply_add_16
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class RotationRule:
    """`apply(x, y, cos, sin, interleaved)`: x cos - y sin and x sin + y cos, for [.., pairs]; `interleaved`: both
    numbers of a pair are neighbours in memory.
    """

    apply: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool], tuple[np.ndarray, np.ndarray]]
    formula: str
    source: str


def _fused(
    x: np.ndarray, y: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The products with y are rounded.

    >>> one, two = np.float32([1]), np.float32([2])
    >>> [part.tolist() for part in RULES["binary32_fused_vectors"].apply(one, two, 0 * one, one, False)]
    [[-2.0], [1.0]]
    """
    with np.errstate(all="ignore"):
        by_sin, by_cos = y * sin, y * cos
        first, second = fma(x, cos, -by_sin), fma(x, sin, by_cos)
        # Of the pairs behind the last vector of 8, all but the first one.
        single = x.shape[-1] // 8 * 8 + 1
        if interleaved and x.shape[-1] > single:
            rest = (..., slice(single, None))
            first[rest] = (x * cos)[rest] - by_sin[rest]
            second[rest] = (x * sin)[rest] + by_cos[rest]
        return first, second


def _fused_in_fours(
    x: np.ndarray, y: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The products with x are rounded, behind the last four pairs those with y.

    >>> one, two = np.float32([1]), np.float32([2])
    >>> [part.tolist() for part in RULES["binary32_fused_fours"].apply(one, two, 0 * one, one, False)]
    [[-2.0], [1.0]]
    """
    with np.errstate(all="ignore"):
        inside = np.arange(x.shape[-1]) < x.shape[-1] // 4 * 4
        first = np.where(inside, fma(-y, sin, x * cos), fma(x, cos, -(y * sin)))
        return first, np.where(inside, fma(y, cos, x * sin), fma(x, sin, y * cos))


def _fused_halves(
    x: np.ndarray, y: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The products with x are rounded.

    >>> one, two = np.float32([1]), np.float32([2])
    >>> [part.tolist() for part in RULES["binary16_fused"].apply(one, two, 0 * one, one, False)]
    [[-2.0], [1.0]]
    """
    with np.errstate(all="ignore"):
        by_cos, by_sin = ((x * factor).astype(np.float16).astype(np.float32) for factor in (cos, sin))
    return fused_multiply_add_16(-y, sin, by_cos), fused_multiply_add_16(y, cos, by_sin)


RULES: dict[str, RotationRule] = {
    "binary32_fused_vectors": RotationRule(
        _fused,
        "fma(x, cos, -f32(y sin)), fma(x, sin, f32(y cos)); of interleaved pairs behind the last 8 all but the first "
        "one without fused operations",
        "a library of vector kernels for x86-64, run",
    ),
    "binary32_fused_fours": RotationRule(
        _fused_in_fours,
        "fma(-y, sin, f32(x cos)), fma(y, cos, f32(x sin)); of pairs behind the last four fma(x, cos, -f32(y sin)), "
        "fma(x, sin, f32(y cos))",
        "the same library's kernels for aarch64, read; verified by running",
    ),
    "binary16_fused": RotationRule(
        _fused_halves,
        "of binary16 numbers: fma(-y, sin, x cos), fma(y, cos, x sin), both products with x rounded",
        "the same library's kernels of binary16 for aarch64; verified by running",
    ),
}
