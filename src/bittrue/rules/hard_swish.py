"""Slot `hard_swish`: x * clamp(x / 6 + 1/2, 0, 1) of a quantized x, in 16-bit fixed point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point, multiplier

_THREE = np.float32(3) / np.float32(32768)  # the scale on which 3 is 2^15


def _encode_q15(real: np.float32) -> tuple[int, int]:
    """(15-bit multiplier, exponent): the 31-bit one, its upper half rounded up at ties."""
    encoded, exponent = multiplier.encode_q31(np.float64(real))
    if int(exponent) > 30:
        raise OverflowError(f"a left shift by {int(exponent)} bits leaves the register")
    return int(multiplier.reduce_to_q15(encoded)), int(exponent)


def _divide_by_power_of_two(x: np.ndarray, right_shift: int) -> np.ndarray:
    """Ties away from zero in 16 bits. From 16 on the mask of the dropped bits wraps, which leaves 1 or -1."""
    if right_shift > 15:
        return np.where(x < 0, -1, 1)
    return fixed_point.divide_by_power_of_two_away(x, right_shift)


def _shift_up(x: np.ndarray, right_shift: int) -> np.ndarray:
    """Ties up in 16 bits; from 16 on nothing is left."""
    return np.asarray(x + (1 << right_shift >> 1) >> right_shift if right_shift < 16 else np.zeros_like(x))


def _saturate(x: np.ndarray) -> np.ndarray:
    return np.clip(x, fixed_point.S16_MIN, fixed_point.S16_MAX)


def _q15_gate(
    q: np.ndarray,
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    minimum: int,
    maximum: int,
    vectors: bool,
) -> np.ndarray:
    """(gate * y / 2^15) / 2^-e, where y is 128 x on the output's scale before its exponent e, and the gate is
    (128 x on the scale 3 / 2^15, saturated) / 2 + 1/2 in 15 bits.

    Multipliers of 15 bits come from binary32 quotients. The last product is truncated, in `vectors` rounded down. Ties:
    up in other products, away from zero in divisions by powers of two, in `vectors` up. The sum with the zero point
    wraps to 16 bits. Domain: 8-bit q. Raises OverflowError when output scales are too small (e > 0) or exponents leave
    the register. Source: docs/facts/litert.md 2.3 (HARD_SWISH), its reference/hard_swish.h, read and run.

    >>> q = np.int64([-128, -64, -32, 32, 48, 127])
    >>> RULES["q15_gate_trunc"](q, 1 / 16, 0, 1 / 16, 0, -128, 127).tolist()
    [0, 0, -5, 27, 48, 127]
    >>> [RULES[name](np.int64([-36]), 1 / 16, 0, 1 / 16, 0, -128, 127).tolist() for name in RULES]
    [[-5], [-4]]
    """
    divide = _shift_up if vectors else _divide_by_power_of_two
    fine_scale = np.float32(1 / 128) * np.float32(input_scale)
    output_multiplier, output_exponent = _encode_q15(fine_scale / np.float32(output_scale))
    gate_multiplier, gate_exponent = _encode_q15(fine_scale / _THREE)
    if output_exponent > 0:
        raise OverflowError(f"the input scale is more than 128 times the output scale (2^{output_exponent})")
    product = fixed_point.doubling_high_multiply_up_s16
    fine = fixed_point.wrap_s16((fixed_point.as_s64(q) - input_zero_point) * 128)
    y = product(fine, output_multiplier)
    gate = fine
    if gate_exponent > 0:
        gate = _saturate(gate << (gate_exponent - 1))
    gate = product(gate, gate_multiplier)
    if gate_exponent > 0:
        gate = _saturate(gate * 2)
    if gate_exponent < 0:
        gate = divide(gate, -gate_exponent)
    gate = (gate + 32768) >> 1
    total = gate * y
    scaled = total >> 15 if vectors else np.sign(total) * (np.abs(total) >> 15)
    stored = fixed_point.wrap_s16(divide(scaled, -output_exponent) + output_zero_point)
    return np.clip(stored, minimum, maximum)


def q15_gate_trunc(
    q: np.ndarray, scale: float, zero_point: int, out_scale: float, out_zero_point: int, low: int, high: int
) -> np.ndarray:
    """(gate * y / 2^15) / 2^-e in 15 bits: the product is truncated, divisions by powers of two round ties away.

    See `_q15_gate`.
    """
    return _q15_gate(q, scale, zero_point, out_scale, out_zero_point, low, high, vectors=False)


def q15_gate_down(
    q: np.ndarray, scale: float, zero_point: int, out_scale: float, out_zero_point: int, low: int, high: int
) -> np.ndarray:
    """(gate * y / 2^15) / 2^-e in 15 bits: the product is rounded down, divisions by powers of two round ties up.

    See `_q15_gate`.
    """
    return _q15_gate(q, scale, zero_point, out_scale, out_zero_point, low, high, vectors=True)


HardSwishRule = Callable[[np.ndarray, float, int, float, int, int, int], np.ndarray]
RULES: dict[str, HardSwishRule] = {"q15_gate_trunc": q15_gate_trunc, "q15_gate_down": q15_gate_down}
