"""Slot `window_levels`: the average of the quantized values in a window as one of another tensor.

Quantized values are added in binary32, one by one, row by row. Numbers that count but are not there are stored zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from ..records import dataclass
from .level_sum import Pair, integers, prepare_defined, rescaled

_f32 = np.float32


@dataclass(frozen=True, eq=False)
class WindowRule:
    """`apply(total, count, source, output)`: binary32 totals, int64 counts (at least 1) that broadcast, and a binary64
    scale and a zero point of each; gives binary32. Raises ValueError for what has no defined result.
    """

    apply: Callable[[np.ndarray, np.ndarray, Pair, Pair], np.ndarray]
    formula: str
    source: str


def _divide_away(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    magnitude = (np.abs(total) + count // 2) // count
    return np.where(total > 0, magnitude, -magnitude)


def _two_step(total: np.ndarray, count: np.ndarray, source: Pair, output: Pair) -> np.ndarray:
    """5 / 2 and -5 / 2; with another scale, rescaling comes first: 3 steps of 1/2 are 1.5, so 2, and 2 / 3 is 1.

    >>> rule = RULES["q31_two_step_then_away"]
    >>> rule.apply(np.float32([5, -5]), np.int64([2]), (1.0, 7), (1.0, 7)).tolist()
    [3.0, -3.0]
    >>> rule.apply(np.float32([3]), np.int64([3]), (0.5, 0), (1.0, 0)).tolist()
    [1.0]
    """
    acc = integers(total, np.trunc)
    if source[0] == output[0]:
        return _divide_away(acc, count).astype(_f32)
    prepared = prepare_defined(source[0] / output[0] if output[0] else np.inf)
    return (_divide_away(rescaled(acc - source[1] * count, prepared), count) + output[1]).astype(_f32)


def _scaled(
    total: np.ndarray,
    count: np.ndarray,
    source: Pair,
    output: Pair,
    nearest: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    with np.errstate(all="ignore"):
        factor = _f32(source[0]) / (_f32(output[0]) * count.astype(_f32))
        moved = total - (source[1] * count).astype(_f32)
        return nearest(moved * factor) + _f32(output[1])


def _scaled_even(total: np.ndarray, count: np.ndarray, source: Pair, output: Pair) -> np.ndarray:
    """A tie and a negative tie; the zero point is added behind.

    >>> rule = RULES["binary32_over_product_even"]
    >>> rule.apply(np.float32([5, -5]), np.int64([2]), (1.0, 0), (1.0, 1)).tolist()
    [3.0, -1.0]
    """
    return _scaled(total, count, source, output, np.rint)


def _scaled_away(total: np.ndarray, count: np.ndarray, source: Pair, output: Pair) -> np.ndarray:
    """The same ties.

    >>> rule = RULES["binary32_over_product_away"]
    >>> rule.apply(np.float32([5, -5]), np.int64([2]), (1.0, 0), (1.0, 1)).tolist()
    [4.0, -2.0]
    """
    return _scaled(total, count, source, output, floats.round_away)


def _quotient(total: np.ndarray, count: np.ndarray, source: Pair, output: Pair) -> np.ndarray:
    """A plain average.

    >>> RULES["binary32_quotient"].apply(np.float32([5]), np.int64([2]), (3.0, 1), (1.0, 0)).tolist()
    [2.5]
    """
    with np.errstate(all="ignore"):
        return total / count.astype(_f32)


RULES: dict[str, WindowRule] = {
    "q31_two_step_then_away": WindowRule(
        _two_step,
        "equal scales: round_away(S / n), whatever the zero points are; else round_away(R(S - z * n, scale / output "
        "scale) / n) + output zero point, R = q31_two_step_up_away, the quotient in binary64; S is truncated",
        "docs/facts/snps_caffe.md 6 (t), verified by replaying its vectors",
    ),
    "binary32_over_product_even": WindowRule(
        _scaled_even,
        "f32(round_even(f32(f32(S - f32(z * n)) * f32(f32(scale) / f32(f32(output scale) * f32(n))))) + output zero "
        "point)",
        "docs/facts/snps_caffe.md 6 (o), verified by replaying its vectors",
    ),
    "binary32_over_product_away": WindowRule(
        _scaled_away,
        "as binary32_over_product_even with ties away from zero",
        "docs/facts/snps_caffe.md 6 (c without padding), verified by replaying its vectors",
    ),
    "binary32_quotient": WindowRule(
        _quotient,
        "f32(S / f32(n)), whatever scales and zero points are",
        "docs/facts/snps_caffe.md 6, verified by replaying its vectors",
    ),
}
