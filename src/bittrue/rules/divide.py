"""Slot `divide`: the quotient of two quantized values before it is stored; slot `real_divide`: of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..arithmetic import fixed_point, multiplier, transcendental


def _prepare(first: float, second: float, output: float) -> dict[str, np.ndarray]:
    """f64(f32(first / f32(second * output))) as multiplier and exponent; ValueError when it is not finite."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        real = np.float32(first) / (np.float32(second) * np.float32(output))
    encoded, exponent = multiplier.encode_q31([np.float64(real)])
    return {"multiplier": encoded, "exponent": exponent}


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
    a = np.where(second < 0, -first, first)
    b = np.abs(second)
    reciprocal, bits = transcendental.reciprocal(b, 31)
    # Redundant sign bits: the leading zeros of a, or of ~a, less the sign bit itself.
    headroom = fixed_point.count_leading_zeros_s32(np.where(a < 0, ~a, a)) - 1
    quotient = fixed_point.doubling_high_multiply_up(fixed_point.wrap_s32(a << headroom), reciprocal)
    right_shift = bits + headroom - prepared["exponent"]
    defined = (right_shift >= 0) & (right_shift <= 31)
    high = fixed_point.doubling_high_multiply_up(quotient, prepared["multiplier"])
    result = fixed_point.divide_by_power_of_two_away(high, np.where(defined, right_shift, 0))
    return np.where(defined, result, 0), defined


@dataclass(frozen=True)
class DivideRule:
    """`prepare(first scale, second scale, output scale)` and `apply(first, second, prepared)`."""

    prepare: Callable[[float, float, float], dict[str, np.ndarray]]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], tuple[np.ndarray, np.ndarray]]


RULES: dict[str, DivideRule] = {"q31_reciprocal_up_away": DivideRule(_prepare, q31_reciprocal_up_away)}


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


REAL: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "binary32_quotient": _at_once,
    "binary32_product_of_reciprocal": _by_reciprocal,
}
