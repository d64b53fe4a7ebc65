"""Slot `level_sum`: the sum of two quantized values as one of a third tensor, without limits.

Real numbers are scale * (quantized value - zero point); quantized values are integers, kept in binary32 or in integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point, floats
from ..records import dataclass
from . import rescale

Prepared = dict[str, np.ndarray]
# A binary64 scale and a zero point.
Pair = tuple[float, int]
_TWO_STEP = "q31_two_step_up_away"


@dataclass(frozen=True, eq=False)
class LevelSumRule:
    """`prepare(first, second, output)` takes a binary64 scale and a zero point of each; `apply(a, b, arrays)` takes
    quantized values that broadcast and gives int64. Both raise ValueError for what has no defined result.
    """

    prepare: Callable[[Pair, Pair, Pair], Prepared]
    apply: Callable[[np.ndarray, np.ndarray, Mapping[str, np.ndarray]], np.ndarray]
    formula: str
    source: str


def prepare_defined(real: float, prefix: str = "") -> Prepared:
    """Q31 multiplier and exponent of a real number for which they are defined without an adjustment.

    Raises ValueError for 0, for numbers that are not finite, and where the significand is rounded up to 1; -1 is one of
    32 bits.

    >>> {key: int(value) for key, value in prepare_defined(0.75).items()}
    {'multiplier': 1610612736, 'exponent': 0}
    >>> {key: int(value) for key, value in prepare_defined(2.0**-53 - 1).items()}
    {'multiplier': -2147483648, 'exponent': 0}
    """
    if real == 0 or not math.isfinite(real):
        raise ValueError(f"a multiplier of {real!r} has no fixed-point form")
    if math.frexp(real)[0] * 2.0**31 >= 2.0**31 - 0.5:
        raise ValueError(f"the significand of the multiplier {real!r} is rounded up to 1, where the runtime stops")
    return rescale.prepare(_TWO_STEP, real, prefix)


def rescaled(values: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Slot `rescale`, rule q31_two_step_up_away, of int64 values that a left shift keeps inside of 32 bits.

    Raises ValueError where it does not.
    """
    left = max(0, int(np.max(prepared["exponent"], initial=0)))
    worst = int(np.abs(values).max(initial=0)) << left
    if worst > fixed_point.S32_MAX:
        raise ValueError(f"a register of 32 bits does not hold {worst}")
    return rescale.apply(_TWO_STEP, values, prepared)


def integers(values: np.ndarray, nearest: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Quantized values as int64, those between integers by `nearest`; ValueError for what 32 bits do not hold."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    with np.errstate(invalid="ignore"):
        whole = nearest(values)
        if not (np.abs(whole) < 2.0**31).all():
            raise ValueError("a quantized value that 32 bits do not hold")
    return whole.astype(np.int64)


def _prepare_twenty(first: Pair, second: Pair, output: Pair) -> Prepared:
    unit = max(first[0], second[0]) * 2.0
    if not 0 < unit < math.inf or not 0 < output[0] < math.inf:
        raise ValueError(f"scales {first[0]!r}, {second[0]!r} and {output[0]!r} have no meaning together")
    return {
        **prepare_defined(first[0] / unit, "first_"),
        **prepare_defined(second[0] / unit, "second_"),
        **prepare_defined(unit / (2.0**20 * output[0]), "output_"),
        "zero_points": np.array([first[1], second[1], output[1]], np.int64),
    }


def _part(prepared: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {key: prepared[prefix + key] for key in ("multiplier", "exponent")}


def align_twenty(values: np.ndarray, prepared: Mapping[str, np.ndarray], prefix: str, zero_point: int) -> np.ndarray:
    """One operand of "q31_left_20_two_step" before the sum."""
    moved = integers(values, np.trunc) - zero_point
    # -2^31 is a number of 32 bits, 2^31 is none.
    if moved.size and (int(moved.min()) < -(2**11) or int(moved.max()) >= 2**11):
        raise ValueError(
            "a quantized value 2^11 or more away from its zero point leaves 32 bits when it is shifted by 20"
        )
    return rescale.apply(_TWO_STEP, moved << 20, _part(prepared, prefix))


def _apply_twenty(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """A tie, a negative tie, and a sum that is no quantized value of either operand.

    >>> rule = RULES["q31_left_20_two_step"]
    >>> halves = rule.prepare((0.5, 0), (0.5, 0), (1.0, 1))
    >>> rule.apply(np.int8([3, -3, 127]), np.int8([0, 0, 127]), halves).tolist()
    [3, -1, 128]
    """
    zero_points = prepared["zero_points"]
    one = align_twenty(a, prepared, "first_", int(zero_points[0]))
    two = align_twenty(b, prepared, "second_", int(zero_points[1]))
    return rescaled(one + two, _part(prepared, "output_")) + int(zero_points[2])


def _prepare_21_bits(first: Pair, second: Pair, output: Pair) -> Prepared:
    f32 = np.float32
    with np.errstate(all="ignore"):
        scales = f32(first[0]), f32(second[0])
        largest, one, two = (f32(s / f32(output[0])) for s in (max(scales), *scales))
    if not 0 < largest < 2.0**31 or not (one >= 0 and two >= 0):
        raise ValueError(f"scales {first[0]!r}, {second[0]!r} over {output[0]!r} have no defined multipliers")
    bits = 0
    while largest < 2**21:
        largest, one, two, bits = largest * f32(2), one * f32(2), two * f32(2), bits + 1
    if bits > 30:
        raise ValueError(f"scales {first[0]!r} and {second[0]!r} are too small beside {output[0]!r}: 2^{bits} wraps")
    # C's conversion to a 32-bit integer; numbers of 24 bits and more are whole already.
    return {
        "multipliers": np.array([floats.round_away(one), floats.round_away(two)], np.int64),
        "right_shift": np.asarray(bits, np.int64),
        "zero_points": np.array([first[1], second[1], output[1]], np.int64),
    }


def finish_21_bits(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """round_away(f32(acc) / 2^right_shift) + output zero point, for "binary32_of_21_bits_away"."""
    unit = np.float32(2.0 ** int(prepared["right_shift"]))
    rounded = floats.round_away(acc.astype(np.float32) / unit)
    if not (np.abs(rounded) < 2.0**62).all():
        raise ValueError("a sum that 62 bits do not hold")
    return rounded.astype(np.int64) + int(prepared["zero_points"][2])


def _apply_21_bits(a: np.ndarray, b: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """A tie, a negative tie, and a large sum.

    >>> rule = RULES["binary32_of_21_bits_away"]
    >>> halves = rule.prepare((0.5, 0), (0.5, 0), (1.0, 1))
    >>> rule.apply(np.int8([3, -3, 127]), np.int8([0, 0, 127]), halves).tolist()
    [3, -1, 128]
    """
    multipliers, zero_points = prepared["multipliers"], prepared["zero_points"]
    one = (integers(a, floats.round_away) - zero_points[0]) * multipliers[0]
    two = (integers(b, floats.round_away) - zero_points[1]) * multipliers[1]
    return finish_21_bits(one + two, prepared)


RULES: dict[str, LevelSumRule] = {
    "q31_left_20_two_step": LevelSumRule(
        _prepare_twenty,
        _apply_twenty,
        "t = 2 * max(scales); R(R((a - za) * 2^20, sa / t) + R((b - zb) * 2^20, sb / t), t / (2^20 * output scale)) + "
        "output zero point, R = q31_two_step_up_away, ratios in binary64; quantized values are truncated to integers",
        "docs/facts/snps_caffe.md 5 (EltwiseSum t), verified by replaying its vectors",
    ),
    "binary32_of_21_bits_away": LevelSumRule(
        _prepare_21_bits,
        _apply_21_bits,
        "round_away(f32(f32(acc) / 2^k)) + output zero point, acc = (a - za) * A + (b - zb) * B in 64 bits, A and B = "
        "round_away(2^k * f32(f32(scale) / f32(output scale))), k the smallest number >= 0 with 2^k * f32(f32(larger "
        "scale) / f32(output scale)) >= 2^21; quantized values are rounded to integers, ties away from zero",
        "docs/facts/snps_caffe.md 5 (EltwiseSum c), verified by replaying its vectors",
    ),
}
