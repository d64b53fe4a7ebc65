"""Slot `divide`: the quotient of two quantized values before it is stored; slot `real_divide`: of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point, multiplier, reciprocal_estimate, transcendental
from ..records import dataclass


def _prepare(first: float, second: float, output: float) -> dict[str, np.ndarray]:
    """f64(f32(first / f32(second * output))) as multiplier and exponent; ValueError when it is not finite."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        real = np.float32(first) / (np.float32(second) * np.float32(output))
    encoded, exponent = multiplier.encode_q31([np.float64(real)])
    return {"multiplier": encoded, "exponent": exponent}


def _product(
    first: np.ndarray, second: np.ndarray, prepared: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The quotient times the multiplier, and the right shift n that is left."""
    a = np.where(second < 0, -first, first)
    b = np.abs(second)
    reciprocal, bits = transcendental.reciprocal(b, 31)
    # Redundant sign bits: the leading zeros of a, or of ~a, less the sign bit itself.
    headroom = fixed_point.count_leading_zeros_s32(np.where(a < 0, ~a, a)) - 1
    quotient = fixed_point.doubling_high_multiply_up(fixed_point.wrap_s32(a << headroom), reciprocal)
    high = fixed_point.doubling_high_multiply_up(quotient, prepared["multiplier"])
    return high, bits + headroom - prepared["exponent"]


def q31_reciprocal_up_away(
    first: np.ndarray, second: np.ndarray, prepared: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The quotient first / second times the multiplier, and the mask of elements for which this has a meaning.

    b = |second| and a = first with the quotient's sign; R / 2^31 ~ 2^bits / b by three Newton steps; h = redundant sign
    bits of a. quotient = round_up(a * 2^h * R / 2^31); result = round_away(round_up(quotient * M / 2^31) / 2^n) with
    n = bits + h - exponent, which has a meaning for n in 0..31 only: small |a| over large |b| lies outside, and so
    does 0 / b unless b or the output scale is small. Domain: second != 0, both s17. Elsewhere the result is 0.
    Source: docs/facts/litert.md 2.2 (DIV), verified by running.

    A tie, a negative one that the first rounding has moved, a saturated reciprocal (of 1), an undefined zero:

    >>> rule = RULES["q31_reciprocal_up_away"]
    >>> one = rule.prepare(1.0, 1.0, 1.0)
    >>> [v.tolist() for v in rule.apply(np.int64([5, -5, 255, 0]), np.int64([2, 2, 1, 4]), one)]
    [[3, -2, 255, 0], [True, True, True, False]]
    """
    high, right_shift = _product(first, second, prepared)
    defined = (right_shift >= 0) & (right_shift <= 31)
    result = fixed_point.divide_by_power_of_two_away(high, np.where(defined, right_shift, 0))
    return np.where(defined, result, 0), defined


def q31_reciprocal_up_away_modulo_32(
    first: np.ndarray, second: np.ndarray, prepared: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """As `q31_reciprocal_up_away`, with what compiled code makes of n outside 0..31.

    The shift of 32 bits is by n modulo 32. What is shifted out is compared with a mask of n modulo 64 ones, cut to 32
    bits. From 32 on these are all ones: the remainder is the number itself, and half of the mask -1 (0 below zero), so
    that 1 is added to everything above -1. Source: docs/facts/litert.md 1.10, run on x86-64 and aarch64.

    A tie as above, zero over 4 (n = 32), and over 64 with a larger output scale:

    >>> rule = RULES["q31_reciprocal_up_away_modulo_32"]
    >>> rule.apply(np.int64([5, 0]), np.int64([2, 4]), rule.prepare(1.0, 1.0, 1.0))[0].tolist()
    [3, 1]
    >>> rule.apply(np.int64([-1]), np.int64([64]), rule.prepare(1.0, 1.0, 16.0))[0].tolist()
    [-4194304]
    """
    high, right_shift = _product(first, second, prepared)
    count = right_shift & 31
    inside = fixed_point.divide_by_power_of_two_away(high, count)
    outside = (high >> count) + (high >= 0)
    return np.where((right_shift & 63) < 32, inside, outside), np.ones(np.shape(high), np.bool_)


@dataclass(frozen=True, eq=False)
class DivideRule:
    """`prepare(first scale, second scale, output scale)` and `apply(first, second, prepared)`."""

    prepare: Callable[[float, float, float], dict[str, np.ndarray]]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], tuple[np.ndarray, np.ndarray]]
    formula: str


RULES: dict[str, DivideRule] = {
    "q31_reciprocal_up_away": DivideRule(
        _prepare, q31_reciprocal_up_away, "round_away(round_up(first / second * M / 2^31) / 2^n), n in 0..31"
    ),
    "q31_reciprocal_up_away_modulo_32": DivideRule(
        _prepare,
        q31_reciprocal_up_away_modulo_32,
        "the same with n modulo 64; from 32 on, (x >> n modulo 32) + (x >= 0)",
    ),
}


def _at_once(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The rounded quotient.

    >>> _at_once(np.float32([5]), np.float32([3])).tolist()
    [1.6666666269302368]
    """
    return np.asarray(first / second)


def _by_reciprocal(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """f32(f32(1 / second) * first).

    >>> _by_reciprocal(np.float32([5]), np.float32([3])).tolist()
    [1.6666667461395264]
    """
    return np.asarray((np.float32(1) / second) * first)


def _by_estimate(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The reciprocals of whole fours of a vector begin with a processor's estimate.

    >>> REAL["binary32_product_of_estimate"](np.ones(5, np.float32), np.full(5, 0.3, np.float32)).tolist()
    [3.3333330154418945, 3.3333330154418945, 3.3333330154418945, 3.3333330154418945, 3.3333332538604736]
    """
    return np.asarray(reciprocal_estimate.in_fours(second) * first)


REAL: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "binary32_quotient": _at_once,
    "binary32_product_of_reciprocal": _by_reciprocal,
    "binary32_product_of_estimate": _by_estimate,
}
