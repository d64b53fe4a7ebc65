"""Slot `shifted_softmax`: shares of exponentials along a row of quantized values, by shifts and additions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point
from ..arithmetic.floats import round_away
from ..records import dataclass

_MOST_STEPS = 20
_ONE = 1 << 30
_RIGHT_SHIFT = 23


@dataclass(frozen=True, eq=False)
class ShiftedSoftmaxRule:
    """`prepare(input scale)` gives what the steps are counted in, and raises ValueError for scales without a meaning;
    `apply(rows without zero point, unit)` gives shares in units of `scale`, and raises OverflowError where sums are 0.
    """

    prepare: Callable[[float], int]
    apply: Callable[[np.ndarray, int], np.ndarray]
    scale: np.float32
    formula: str
    source: str


def _unit(scale: float) -> int:
    if not 0 < scale <= 1:
        raise ValueError(f"the input's scale is {scale}, at most 1 is possible")
    with np.errstate(over="ignore"):
        unit = float(round_away(np.float32(1) / np.float32(scale)))
    if unit > fixed_point.S32_MAX:
        raise ValueError(f"1 / {scale} is no 32-bit integer")
    return int(unit)


def _shares(rows: np.ndarray, unit: int) -> np.ndarray:
    """Integers of 32 bits.

    >>> _shares(np.int64([[10, 0], [3, 3]]), 10).tolist()
    [[91, 36], [63, 63]]
    """
    wrap, one = fixed_point.wrap_s32, np.int64(unit)
    x = wrap(rows - rows.max(axis=-1, keepdims=True))
    power = wrap(x + (x >> 1) - (x >> 4))
    # Both are 32 bits: the binary64 quotient does not reach an integer that the real one does not reach.
    steps = np.clip(np.trunc(power / -one).astype(np.int64), 0, _MOST_STEPS)
    rest = wrap(power + wrap(steps * one))
    exponential = wrap(np.left_shift(wrap((rest >> 1) + one), steps.max(axis=-1, keepdims=True) - steps))
    total = wrap(exponential.sum(axis=-1, keepdims=True))
    if not total.all():
        raise OverflowError("exponentials add up to 0 modulo 2^32")
    return np.asarray(wrap(np.trunc(_ONE / total).astype(np.int64) * exponential) >> _RIGHT_SHIFT)


RULES: dict[str, ShiftedSoftmaxRule] = {
    "binary_powers_s32": ShiftedSoftmaxRule(
        _unit,
        _shares,
        np.float32(1 / 128),
        "x = q - zero point - max, x0 = round_away(f32(1 / scale)), p = x + (x >> 1) - (x >> 4), "
        "n = clamp(trunc(p / -x0), 0, 20), r = p + n * x0, b = (r >> 1) + x0, e = b << (max n - n), "
        "(trunc(2^30 / sum of e) * e) >> 23, sums and products modulo 2^32; of scale 1 / 128",
        "docs/facts/tvm_qnn.md 10, read",
    ),
}
