"""Slot `quotient`: a real number divided by its scale, before it is rounded to a quantized value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic.narrow_float import FORMATS, nearest
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class QuotientRule:
    """How numbers are rounded before and after the division.

    Attributes:
        formula: for tables.
        to: rounds a binary64 array to the precision.
    """

    formula: str
    to: Callable[[np.ndarray], np.ndarray]

    def divide(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """to(to(x) / to(scale)), the division as in IEEE 754.

        0 / 0 and infinity / infinity are negative NaN; of two NaN the first one stays.
        """
        with np.errstate(all="ignore"):
            first, second = self.to(x), self.to(scale)
            result = np.asarray(self.to(first / second))
        missing = np.isnan(result)
        if missing.any():
            # Processors differ in the sign of a NaN that is made here, and in which one of two they keep.
            one, other = np.isnan(first), np.isnan(second)
            made = missing & ~one & ~other
            result = np.where(made, np.copysign(result, -1), np.where(one & other, first, result))
        return result

    def add(self, quotient: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        """to(quotient + zero_point)."""
        with np.errstate(all="ignore"):
            return self.to(quotient.astype(np.float64) + zero_point)


def _binary32(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


def _binary64(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


# A quotient of two numbers of p bits that was rounded to 2p + 2 bits or more can be rounded again to p bits: the result
# is that of a single rounding. So binary64 (53 bits) serves 16-bit types (11 and 8 bits).
RULES: dict[str, QuotientRule] = {
    "binary16": QuotientRule("f16(f16(x) / f16(scale))", lambda x: nearest(x, FORMATS["f16"])),
    "binary32": QuotientRule("f32(f32(x) / f32(scale))", _binary32),
    "binary64": QuotientRule("f64(x / scale)", _binary64),
    "brain16": QuotientRule("bf16(bf16(x) / bf16(scale))", lambda x: nearest(x, FORMATS["bf16"])),
}
