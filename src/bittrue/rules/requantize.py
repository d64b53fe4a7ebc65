"""Slot `requantize`: an accumulator times real scales over another one, rounded once; the zero point is added later.

An alternative to the slots `scale_form` and `rescale` together, which form a multiplier first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

Prepared = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class RequantizeRule:
    """`prepare(first, second, output) -> arrays` of binary32 scales; `apply(acc, arrays) -> int64 array`."""

    prepare: Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray]
    formula: str
    source: str


# No result of this size is stored; below it a binary64 quotient knows its integer part.
_FAR = 2.0**40
# Three roundings of the quotient, with room.
_DOUBT = 2.0**-50


def _keep_exact(first: npt.ArrayLike, second: npt.ArrayLike, output: npt.ArrayLike) -> Prepared:
    scales = [np.asarray(values).astype(np.float64) for values in (first, second, output)]
    if not all(np.isfinite(values).all() for values in scales) or not scales[2].all():
        raise ValueError("scales that are infinite, NaN, or 0 for the result, which have no quotient")
    # 24 + 24 bits, and exponents far inside of binary64: exact.
    numerator, denominator = np.broadcast_arrays(scales[0] * scales[1], scales[2])
    return {"numerator": numerator.copy(), "denominator": denominator.copy()}


def _exact_even(acc: int, numerator: float, denominator: float) -> int:
    return round(acc * Fraction(numerator) / Fraction(denominator))


_exact = np.frompyfunc(_exact_even, 3, 1)


def real_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """round_even(acc * numerator / denominator) of the real numbers; beyond 2^40 only the sign is kept.

    Domain: acc s32, scales binary32. Where the binary64 quotient is too close to a tie to tell, fractions decide.

    >>> rule = RULES["real_even"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1, 5]), rule.prepare(np.float32(0.25), 2, 1))]
    [0, 2, 0, 2]
    """
    numerator, denominator = prepared["numerator"], prepared["denominator"]
    quotient = np.clip(acc.astype(np.float64) * numerator / denominator, -_FAR, _FAR)
    rounded = np.rint(quotient).astype(np.int64)
    unsure = np.abs(np.abs(quotient - np.floor(quotient)) - 0.5) <= np.abs(quotient) * _DOUBT
    if unsure.any():
        tops, bottoms = (np.broadcast_to(values, acc.shape)[unsure] for values in (numerator, denominator))
        rounded[unsure] = _exact(acc[unsure].astype(object), tops, bottoms).astype(np.int64)
    return rounded


RULES: dict[str, RequantizeRule] = {
    "real_even": RequantizeRule(
        _keep_exact,
        real_even,
        "round_even(acc * first * second / output) of real numbers",
        "specified layers that leave the precision open: exact",
    ),
}
