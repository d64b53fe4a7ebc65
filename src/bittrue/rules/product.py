"""Slot `product`: the product of two quantized values before it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point
from ..records import dataclass
from . import rescale


def exact_s32(first: np.ndarray, second: np.ndarray, rescale_rule: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """rescale(first * second), the product being exact for 8 and 16 bits (|product| <= 2^30); it wraps to 32 bits.

    `first` and `second` have their zero points removed. Ties and saturation: those of the rescale rule.
    Source: docs/facts/litert.md 2.2 (MUL), verified by running.

    >>> half = rescale.prepare("q31_two_step_up_away", 0.25)
    >>> exact_s32(np.int64([1, -1, -3]), np.int64([2, 2, 2]), "q31_two_step_up_away", half).tolist()
    [1, -1, -2]
    """
    return rescale.apply(rescale_rule, fixed_point.wrap_s32(first * second), arrays)


def q15_up_then_256_away(
    first: np.ndarray, second: np.ndarray, rescale_rule: str, arrays: Mapping[str, np.ndarray]
) -> np.ndarray:
    """round_away(min(round_up(first * second / 2^15), 2^15 - 1) / 2^8): 16-bit fractions to 8 bits, no scale is used.

    Ties: up, then away from zero. Saturates only for -32768 * -32768. Domain: s16.
    Source: docs/facts/litert.md 2.2 (MUL i16 to i8), verified by running.

    >>> q15_up_then_256_away(np.int64([128, -128, -32768]), np.int64([32767, 32767, -32768]), "", {}).tolist()
    [1, -1, 128]
    """
    return fixed_point.divide_by_power_of_two_away(fixed_point.doubling_high_multiply_up_s16(first, second), 8)


@dataclass(frozen=True, eq=False)
class ProductRule:
    """`apply(first, second, rescale rule, arrays)`; `rescaled`: whether scales enter it (and zero points leave)."""

    apply: Callable[[np.ndarray, np.ndarray, str, Mapping[str, np.ndarray]], np.ndarray]
    rescaled: bool


RULES: dict[str, ProductRule] = {
    "exact_s32": ProductRule(exact_s32, True),
    "q15_up_then_256_away": ProductRule(q15_up_then_256_away, False),
}
