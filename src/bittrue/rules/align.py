"""Slot `align`: how two quantized inputs are brought to one scale before they are added, subtracted or squared.

With T = f64(f32(2 * max(first scale, second scale))) an input q becomes A = rescale((q - zero_point) * 2^left), the
real multiplier being scale / T (at most 1/2). One step of A is worth T / 2^left. The larger scale always gets 1/2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arithmetic import fixed_point
from ..records import dataclass
from . import rescale


@dataclass(frozen=True, eq=False)
class AlignRule:
    """One way to fill the slot.

    Attributes:
        left: bits of headroom that the inputs are moved up by before they are rescaled.
        powers_of_two: when the model asks for it and all scales are powers of two, inputs are instead divided by
            output scale / input scale, ties away from zero, and never moved up.
        exponent: ``"first"`` moves inputs by left + exponent in one go (to the left exactly, to the right down), then
            takes the high half of the product with the encoded multiplier; ``"down"`` divides by the power of two last,
            rounding down. Neither asks the rescale rule.
        shared_bits: when set, inputs are multiplied by integers of one power of two instead (see `shared_weights`),
            and the sum is divided by that power once.
        shared_ties: of that division, ``"up"`` or ``"away"``.
    """

    left: int
    powers_of_two: bool = False
    exponent: str = ""
    formula: str = "A = rescale((q - zero_point) * 2^left) with real multiplier scale / T"
    source: str = "docs/facts/litert.md 1.5 and 2.2, verified by running"
    shared_bits: int = 0
    shared_ties: str = "up"


RULES: dict[str, AlignRule] = {
    "left_20": AlignRule(20),
    "left_15": AlignRule(15),
    "left_7": AlignRule(7),
    "power_of_two_or_left_15": AlignRule(
        15,
        True,
        formula="round_away(q / 2^log2(output scale / scale)) where all scales are powers of two and the model says "
        "so; else as left_15",
    ),
    "shared_21_bits_even": AlignRule(
        0,
        shared_bits=21,
        formula="A = (q - zero_point) * round_even(f32(scale / output scale) * 2^r), r such that the larger of both "
        "integers has 21 bits; the sum is divided by 2^r, ties up",
        source="docs/facts/xnnpack.md 2.2, verified by running",
    ),
    "shared_22_bits_away": AlignRule(
        0,
        shared_bits=22,
        shared_ties="away",
        formula="as shared_21_bits_even, but the larger of both integers has 22 bits, and ties of the sum's division "
        "go away from zero",
        source="docs/facts/caffe2.md 1.1, verified by running",
    ),
    "left_20_exponent_first": AlignRule(
        20,
        exponent="first",
        formula="A = round_up((q - zero_point) * 2^(20 + e) * M / 2^31)",
        source="kernels/internal/optimized/integer_ops/add.h (vector loop over both inputs), verified by running",
    ),
    "power_of_two_or_left_15_exponent_first": AlignRule(
        15,
        True,
        exponent="first",
        formula="as power_of_two_or_left_15, else A = round_up((q - zero_point) * 2^(15 + e) * M / 2^31)",
        source="kernels/internal/optimized/integer_ops/add.h (vector loop of 16 bits), verified by running",
    ),
    "left_20_exponent_down": AlignRule(
        20,
        exponent="down",
        formula="A = round_down(round_up((q - zero_point) * 2^20 * M / 2^31) * 2^e)",
        source="kernels/internal/optimized/optimized_ops.h (AddElementwise of bytes), verified by running",
    ),
}


def shared_weights(rule: str, first: float, second: float, output: float) -> tuple[int, int, int]:
    """(first integer, second integer, r): round_even(f32(scale / output) * 2^r) with r = bits - 1 - floor(log2 larger).

    >>> shared_weights("shared_21_bits_even", 1.0, 0.25, 2.0)
    (1048576, 262144, 21)
    """
    ratios = np.float32(first) / np.float32(output), np.float32(second) / np.float32(output)
    right_shift = RULES[rule].shared_bits - int(np.frexp(max(ratios))[1])
    one, two = (int(np.rint(np.ldexp(ratio, right_shift))) for ratio in ratios)
    return one, two, right_shift


def unit(first: float, second: float) -> np.float64:
    """T = f64(f32(2 * max(first, second))): the real value of 2^left aligned steps.

    >>> float(unit(0.5, 0.25))
    1.0
    """
    with np.errstate(over="ignore"):
        return np.float64(np.float32(2) * np.maximum(np.float32(first), np.float32(second)))


def result_multiplier(rule: str, first: float, second: float, output: float, power: int = 1) -> np.float64:
    """T^power / f64(f32(2^(left * power) * output)): from aligned steps (or their square) to the output's scale.

    >>> bool(result_multiplier("left_20", 0.5, 0.25, 1.0) == 2.0**-20)
    True
    """
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        divisor = np.float64(np.float32(1 << (RULES[rule].left * power)) * np.float32(output))
        top = unit(first, second)
        return top / divisor if power == 1 else top * top / divisor


def apply(
    rule: str, q: np.ndarray, zero_point: int, rescale_rule: str, arrays: Mapping[str, np.ndarray], prefix: str
) -> np.ndarray:
    """The aligned input; the shifted value wraps to 32 bits (it cannot for zero points inside the type).

    Ties: those of the rescale rule. Three inputs whose second halves are a tie, a negative tie and a wrap:

    >>> tie = rescale.prepare("q31_two_step_up_away", 2.0**-9, "a_")
    >>> [int(v) for v in apply("left_7", np.int64([2, -2, 1 << 24]), 0, "q31_two_step_up_away", tie, "a_")]
    [1, -1, -4194304]
    """
    left, exponent = RULES[rule].left, RULES[rule].exponent
    if exponent:
        encoded, right = arrays[prefix + "multiplier"], -arrays[prefix + "exponent"]
        if exponent == "first":
            up = np.left_shift(q - zero_point, np.maximum(left - right, 0))
            moved = np.right_shift(fixed_point.wrap_s32(up), np.maximum(right - left, 0))
            return fixed_point.doubling_high_multiply_up(moved, encoded)
        high = fixed_point.doubling_high_multiply_up(np.left_shift(q - zero_point, left), encoded)
        return np.right_shift(high, right)
    moved = fixed_point.wrap_s32(np.left_shift(q - zero_point, left))
    return rescale.apply(rescale_rule, moved, arrays, prefix)


def apply_power_of_two(q: np.ndarray, right_shift: int) -> np.ndarray:
    """round_away(q / 2^right_shift).

    >>> [int(v) for v in apply_power_of_two(np.int64([3, -3, 32767]), 1)]
    [2, -2, 16384]
    """
    return fixed_point.divide_by_power_of_two_away(q, right_shift)
