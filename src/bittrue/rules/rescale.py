"""Slot `rescale`: an accumulator times a real multiplier, rounded back to an integer.

Each rule has two halves. `prepare` runs once, at plan time, and turns real multipliers (binary64) into the
integers or floats that hardware would hold in registers. `apply` runs per element. The result is the rescaled
value before the output zero point is added; its ties are named in the rule's name.

Write M for the encoded multiplier in [2^30, 2^31), e for its exponent: real multiplier = M * 2^(e - 31).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..arithmetic import fixed_point, floats, multiplier
from ..records import dataclass
from . import shift_count as shift_counts

if TYPE_CHECKING:
    import numpy.typing as npt

Prepared = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class RescaleRule:
    """One way to fill the slot: `prepare(real) -> arrays`, `apply(acc, arrays) -> int64 array`.

    Rules that are not `integral` give a real number: the rule of the slot `store` adds the zero point and rounds.

    `largest_exponent` bounds the domain of integer rules: beyond it a left shift would push the sign bit out of the
    register, which kernels leave undefined. `signed` rules take negative multipliers: their ties are not symmetric.
    `operands`: arrays beside what `prepare` gives that `apply` reads, for operators that have them.
    """

    prepare: Callable[[npt.ArrayLike], Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray]
    formula: str
    source: str
    largest_exponent: int = 30
    signed: bool = False
    operands: tuple[str, ...] = ()
    integral: bool = True


def _encode(real: npt.ArrayLike) -> Prepared:
    encoded, exponent = multiplier.encode_q31(real)
    return {"multiplier": encoded, "exponent": exponent}


def _shift_left_wrapping(acc: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    left = np.maximum(exponent, 0)
    if not left.any():
        return acc
    # A left shift of 32 or more would lose every bit; the encoder's exponents stay below that for real scales.
    return fixed_point.wrap_s32(np.left_shift(acc, np.minimum(left, 32)))


def _two_step_up_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """First the doubling high multiply (ties up), then the power of two (ties away from zero).

    Two roundings can push a value further than one could: 1 * 0.25 becomes 0.5, then 1.

    >>> rule = RULES["q31_two_step_up_away"]
    >>> quarter = rule.prepare(0.25)
    >>> [int(rule.apply(np.int64(acc), quarter)) for acc in (1, 2, -2, -6, 6)]
    [1, 1, -1, -2, 2]
    """
    exponent = prepared["exponent"]
    high = fixed_point.doubling_high_multiply_up(_shift_left_wrapping(acc, exponent), prepared["multiplier"])
    return fixed_point.divide_by_power_of_two_away(high, np.maximum(-exponent, 0))


def _two_step_up_up(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    exponent = prepared["exponent"]
    high = fixed_point.doubling_high_multiply_up(_shift_left_wrapping(acc, exponent), prepared["multiplier"])
    return fixed_point.divide_by_power_of_two_up(high, np.maximum(-exponent, 0))


def _one_step_up(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    # |acc * M| < 2^62 and the rounding constant is at most 2^61: no int64 overflow for exponents in [-31, 30].
    right = np.clip(31 - prepared["exponent"], 1, 62)
    return (acc * prepared["multiplier"] + np.left_shift(np.int64(1), right - 1)) >> right


def _one_step_up_shift_wraps(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """The doubling high multiply drops its fraction, and a right shift by at least 1 rounds.

    Without a left shift that is one rounding; a left shift is one more than the exponent, and wraps earlier.

    >>> rule = RULES["q31_one_step_up_shift_wraps"]
    >>> [int(rule.apply(np.int64(acc), rule.prepare(real))) for acc, real in ((-2, 0.25), (3, 1.5), (2**29, 1.5))]
    [0, 5, -805306368]
    """
    exponent = prepared["exponent"]
    high = _shift_left_wrapping(acc, exponent + 1) * prepared["multiplier"] >> 31
    return fixed_point.divide_by_power_of_two_up(high, np.maximum(-exponent, 1))


_LOWEST_EXPONENT = -32
_POWER_OF_TWO = 1 << 30


def _encode_whole(real: npt.ArrayLike) -> Prepared:
    prepared = _encode(real)
    lost = (prepared["multiplier"] == 0) & (np.asarray(real, np.float64) != 0)
    if np.any(lost & (np.frexp(np.asarray(real, np.float64))[1] < _LOWEST_EXPONENT)):
        raise ValueError("a multiplier below 2^-33, whose right shift leaves 64 bits")
    return prepared


def _encode_whole_or_shift(real: npt.ArrayLike) -> Prepared:
    prepared = _encode_whole(real)
    fraction, exponent = np.frexp(np.asarray(real, np.float64))
    # A right shift by 1 - exponent in 32 bits.
    if np.any((fraction == 0.5) & (exponent < -30)):
        raise ValueError("a power of two below 2^-31, whose right shift leaves 32 bits")
    return prepared


def _whole_product(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """acc * 2^max(e,0) * M modulo 2^64, and the right shift 31 + max(-e,0)."""
    exponent = prepared["exponent"]
    product = np.left_shift(np.asarray(acc, np.int64), np.maximum(exponent, 0)) * prepared["multiplier"]
    return product, 31 + np.maximum(-exponent, 0)


def _one_step_up_wrap(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(over="ignore"):
        product, right = _whole_product(acc, prepared)
        return fixed_point.wrap_s32((product + np.left_shift(np.int64(1), right - 1)) >> right)


def _shift_or_one_step_up(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Powers of two are shifts in 32 bits, so that half of the divisor makes the largest accumulators wrap.

    >>> half = RULES["q31_shift_or_one_step_up"].prepare(0.5)
    >>> [int(_shift_or_one_step_up(np.int64(acc), half)) for acc in (1, -1, 2**31 - 1)]
    [1, 0, -1073741824]
    """
    power = np.asarray(prepared["exponent"]) - 1
    left, right = np.maximum(power, 0), np.maximum(-power, 0)
    half = np.where(right > 0, np.left_shift(np.int64(1), np.maximum(right - 1, 0)), 0)
    shifted = fixed_point.wrap_s32(np.left_shift(fixed_point.wrap_s32(acc + half) >> right, left))
    return np.where(prepared["multiplier"] == _POWER_OF_TWO, shifted, _one_step_up_wrap(acc, prepared))


def _one_step_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(over="ignore"):
        product, right = _whole_product(acc, prepared)
        half = np.left_shift(np.int64(1), right - 1)
        return fixed_point.wrap_s32((product + np.where(product >= 0, half, half - 1)) >> right)


def _encode_q15(real: npt.ArrayLike) -> Prepared:
    encoded, exponent = multiplier.encode_q31(real)
    return {"multiplier": multiplier.reduce_to_q15(encoded), "exponent": exponent}


def _q15_one_step_up(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    right = 15 - prepared["exponent"]
    total = acc * prepared["multiplier"] + np.left_shift(np.int64(1), right - 1)
    return fixed_point.wrap_s32(total >> right)


def _keep_binary64(real: npt.ArrayLike) -> Prepared:
    return {"factor": np.asarray(real, np.float64)}


def _binary64_multiply_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    product = floats.round_away(acc.astype(np.float64) * prepared["factor"])
    return floats.truncate_to_s32(product)


def _keep_binary32(real: npt.ArrayLike) -> Prepared:
    return {"factor": np.asarray(real, np.float64).astype(np.float32)}


def _binary32_multiply_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    product = np.rint(acc.astype(np.float32) * prepared["factor"])
    return floats.saturate_to_s32(product)


def _binary32_multiply_even_overflow_lowest(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Products beyond 32 bits, infinities and NaN (which a factor may give) become -2^31.

    >>> rule = RULES["binary32_multiply_even_overflow_lowest"]
    >>> [int(rule.apply(np.int64(acc), rule.prepare(real))) for acc, real in ((5, 0.5), (-5, 0.5), (3, 1e9))]
    [2, -2, -2147483648]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return floats.truncate_to_s32(np.rint(acc.astype(np.float32) * prepared["factor"]))


def _add_multiply(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    addend = prepared.get("addend", np.zeros(1, np.int32))
    return (acc.astype(np.float32) + addend.astype(np.float32)) * prepared["factor"]


def _binary32_add_multiply_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    return floats.saturate_to_s32(np.rint(_add_multiply(acc, prepared)))


def _binary32_add_multiply_twice_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    second = prepared.get("second", np.ones(1, np.float32))
    return floats.saturate_to_s32(np.rint(_add_multiply(acc, prepared) * second))


def _binary32_multiply(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(np.asarray(acc).astype(np.float32) * prepared["factor"])


def _binary64_multiply(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(np.asarray(acc).astype(np.float64) * prepared["factor"])


def _encode_q8(real: npt.ArrayLike) -> Prepared:
    # The product with 256 is exact in binary32 unless it overflows, which `prepare` refuses.
    return {"factor": np.rint(np.asarray(real, np.float64).astype(np.float32) * np.float32(256)).astype(np.float64)}


def _q8_one_step_up(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    return (acc * prepared["factor"].astype(np.int64) + 128) >> 8


# Accumulators have up to 32 bits: products with smaller factors stay inside of 64.
_FACTOR_LIMIT = 2.0**31


def _keep_within(low: float, high: float, what: str) -> Callable[[npt.ArrayLike], Prepared]:
    """`prepare` of rules that know factors between two ends only, the upper one excluded."""

    def prepare(real: npt.ArrayLike) -> Prepared:
        factor = np.asarray(real, np.float64)
        if not ((factor >= low) & (factor < high)).all():
            raise ValueError(f"{what}, found {factor.reshape(-1)[:4].tolist()}")
        return {"factor": factor}

    return prepare


_keep_wide = _keep_within(0.0, _FACTOR_LIMIT, "multipliers must be numbers from 0 to 2^31")
# The right shift must be one of a 32-bit integer.
_keep_fraction = _keep_within(2.0**-31, 1.0, "multipliers must be at least 2^-31 and less than 1")
_keep_shifted = _keep_within(2.0**-31, _FACTOR_LIMIT, "multipliers must be at least 2^-31")


def _binary64_multiply_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.asarray(np.rint(acc.astype(np.float64) * prepared["factor"])).astype(np.int64)


def _binary32_multiply_even_wide(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    factor = prepared["factor"].astype(np.float32)
    return np.asarray(np.rint(acc.astype(np.float32) * factor)).astype(np.int64)


def _binary64_two_step_away_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    fraction, exponent = np.frexp(prepared["factor"])
    high = np.asarray(floats.round_away(acc.astype(np.float64) * fraction)).astype(np.float32)
    return floats.round_away(np.ldexp(high, exponent)).astype(np.int64)


def _binary32_two_step_away_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    fraction, exponent = np.frexp(prepared["factor"].astype(np.float32))
    high = floats.round_away(acc.astype(np.float32) * fraction)
    return floats.round_away(np.ldexp(high, exponent)).astype(np.int64)


def _binary64_product_binary32_away(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    product = np.asarray(acc.astype(np.float64) * prepared["factor"]).astype(np.float32)
    return floats.round_away(product).astype(np.int64)


# 0.5, made a little less so that significands round to at most 2^15 - 1.
_Q15_HIGH = 0.5 * (65536 - 0.51) / 65536


def _encode_q15_odd(real: npt.ArrayLike) -> Prepared:
    """M = round_away(real * 2^s) in [2^14, 2^15), s from 16 to 46; both halve while M is even and s above 1."""
    value = np.asarray(real, np.float64)
    if not ((value >= _Q15_HIGH / 2**31) & (value < _Q15_HIGH)).all():
        raise ValueError(f"multipliers must be less than 0.499996 and not tiny, found {value.reshape(-1)[:4].tolist()}")
    shift = np.full(value.shape, 16, np.int64)
    scaled = value.copy()
    while (small := scaled < _Q15_HIGH / 2).any():
        scaled = np.where(small, scaled * 2, scaled)
        shift += small
    encoded = np.asarray(floats.round_away(np.ldexp(value, shift))).astype(np.int64)
    while (even := (encoded % 2 == 0) & (shift > 1)).any():
        encoded = np.where(even, encoded // 2, encoded)
        shift -= even
    return {"multiplier": encoded, "exponent": 15 - shift}


def _q15_one_step_even(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    right = 15 - prepared["exponent"]
    product = acc * prepared["multiplier"]
    return (product + ((product >> right) & 1) + np.left_shift(np.int64(1), right - 1) - 1) >> right


def _q30_floor_plus_one(acc: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    right = np.clip(30 - prepared["exponent"], 0, 62)
    return ((acc * prepared["multiplier"]) >> right) + 1


RULES: dict[str, RescaleRule] = {
    "q31_two_step_up_away": RescaleRule(
        _encode,
        _two_step_up_away,
        "round_away(round_up(acc * 2^max(e,0) * M / 2^31) / 2^max(-e,0)), the left shift wraps to 32 bits",
        "docs/facts/litert.md 1.3 (MBQM), verified by running",
    ),
    "q31_two_step_up_up": RescaleRule(
        _encode,
        _two_step_up_up,
        "round_up(round_up(acc * 2^max(e,0) * M / 2^31) / 2^max(-e,0)), the left shift wraps to 32 bits",
        "docs/facts/litert.md 1.3 (MBQMup), verified by running",
    ),
    "q31_one_step_up": RescaleRule(
        _encode,
        _one_step_up,
        "round_up(acc * M / 2^(31-e))",
        "docs/facts/litert.md 1.3 (MBQM1), read",
    ),
    "q31_one_step_up_shift_wraps": RescaleRule(
        _encode,
        _one_step_up_shift_wraps,
        "round_up(floor(acc * 2^max(e+1,0) * M / 2^31) / 2^max(-e,1)), the left shift wraps to 32 bits",
        "ruy/kernel_arm64.cc, verified by running on aarch64",
    ),
    "q31_one_step_up_wrap": RescaleRule(
        _encode_whole,
        _one_step_up_wrap,
        "wrap32(round_up(acc * 2^max(e,0) * M / 2^(31+max(-e,0)))), the product modulo 2^64",
        "docs/facts/tvm_qnn.md 4 (UPWARD, per channel), read",
        largest_exponent=31,
    ),
    "q31_shift_or_one_step_up": RescaleRule(
        _encode_whole_or_shift,
        _shift_or_one_step_up,
        "as q31_one_step_up_wrap, but powers of two are (acc + 2^(n-1)) >> n or acc << n, the sum modulo 2^32",
        "docs/facts/tvm_qnn.md 4 (UPWARD, one scale), read",
        largest_exponent=31,
    ),
    "q31_one_step_away": RescaleRule(
        _encode_whole,
        _one_step_away,
        "wrap32(round_away(acc * 2^max(e,0) * M / 2^(31+max(-e,0)))), the product modulo 2^64",
        "docs/facts/tvm_qnn.md 4 (TONEAREST), read",
        largest_exponent=31,
    ),
    "q15_one_step_up": RescaleRule(
        _encode_q15,
        _q15_one_step_up,
        "round_up(acc * R / 2^(15-e)) with R = M rounded up to 15 bits; acc of up to 48 bits",
        "docs/facts/litert.md 1.4 (MBQM64), verified by running",
        largest_exponent=14,
    ),
    "binary64_multiply_away": RescaleRule(
        _keep_binary64,
        _binary64_multiply_away,
        "round_away(binary64(acc) * binary64 factor), converted to 32 bits by truncation",
        "docs/facts/litert.md 1.3, verified by running",
    ),
    "binary32_multiply_even": RescaleRule(
        _keep_binary32,
        _binary32_multiply_even,
        "round_even(binary32(binary32(acc) * binary32 factor)), saturated to 32 bits",
        "docs/facts/litert.md 1.3, verified by running",
    ),
    "binary32_multiply_even_overflow_lowest": RescaleRule(
        _keep_binary32,
        _binary32_multiply_even_overflow_lowest,
        "round_even(binary32(binary32(acc) * binary32 factor)); what does not fit 32 bits becomes -2^31",
        "docs/facts/caffe2.md 0 (FR), verified by running",
    ),
    "binary32_add_multiply_even": RescaleRule(
        _keep_binary32,
        _binary32_add_multiply_even,
        "round_even(f32(f32(f32(acc) + f32(addend)) * binary32 factor)), saturated to 32 bits",
        "docs/facts/mxnet.md 2, verified by running",
        operands=("addend",),
    ),
    "binary32_add_multiply_twice_even": RescaleRule(
        _keep_binary32,
        _binary32_add_multiply_twice_even,
        "round_even(f32(f32(f32(f32(acc) + f32(addend)) * binary32 factor) * second)), saturated to 32 bits",
        "docs/facts/mxnet.md 2, verified by running",
        operands=("addend", "second"),
    ),
    "binary32_multiply": RescaleRule(
        _keep_binary32,
        _binary32_multiply,
        "binary32(binary32(acc) * binary32 factor), a real number for the slot `store` to round",
        "docs/facts/tvm_qnn.md 4 (float32), read",
        integral=False,
    ),
    "binary64_multiply": RescaleRule(
        _keep_binary64,
        _binary64_multiply,
        "binary64(acc) * binary64 factor, a real number for the slot `store` to round",
        "docs/facts/tvm_qnn.md 4 (float64), read",
        integral=False,
    ),
    "q8_one_step_up": RescaleRule(
        _encode_q8,
        _q8_one_step_up,
        "round_up(acc * F / 2^8) with F = round_even(f32(256 * real)), which may be negative; acc of up to 9 bits",
        "docs/facts/xnnpack.md 2.3, verified by running",
        signed=True,
    ),
    "binary64_multiply_even": RescaleRule(
        _keep_wide,
        _binary64_multiply_even,
        "round_even(binary64(acc) * binary64 factor), 64 bits",
        "docs/facts/snps_caffe.md 4, verified by running",
    ),
    "binary32_multiply_even_wide": RescaleRule(
        _keep_wide,
        _binary32_multiply_even_wide,
        "round_even(binary32(binary32(acc) * binary32 factor)), 64 bits",
        "docs/facts/snps_caffe.md 1, verified by running",
    ),
    "binary64_two_step_away_away": RescaleRule(
        _keep_fraction,
        _binary64_two_step_away_away,
        "round_away(f32(round_away(binary64(acc) * m)) * 2^e), factor = m * 2^e, 1/2 <= m < 1, -30 <= e <= 0",
        "docs/facts/snps_caffe.md 4, verified by running",
    ),
    "binary32_two_step_away_away": RescaleRule(
        _keep_fraction,
        _binary32_two_step_away_away,
        "round_away(round_away(binary32(binary32(acc) * m)) * 2^e), f32(factor) = m * 2^e, 1/2 <= m < 1, -30 <= e <= 0",
        "docs/facts/snps_caffe.md 2, verified by running",
    ),
    "binary64_product_binary32_away": RescaleRule(
        _keep_shifted,
        _binary64_product_binary32_away,
        "round_away(f32(binary64(acc) * factor))",
        "docs/facts/snps_caffe.md 1 (SR), verified by running",
    ),
    "q15_one_step_even": RescaleRule(
        _encode_q15_odd,
        _q15_one_step_even,
        "round_even(acc * M / 2^(15-e)) with M = round_away(real * 2^(15-e)) of at most 15 bits",
        "docs/facts/snps_caffe.md 1 (EV), verified by running",
        largest_exponent=14,
    ),
    "q30_floor_plus_one": RescaleRule(
        _encode,
        _q30_floor_plus_one,
        "floor(acc * M / 2^(30-e)) + 1: as a document prints the rounding shift, with a right shift of one less",
        "docs/facts/snps_caffe.md 9 (D1 of the document, as printed), read",
    ),
}


def prepare(rule: str, real: npt.ArrayLike, prefix: str = "", shift_count: str = "") -> Prepared:
    """Plan-time half of `rule` for real multipliers `real` (binary64 scalar or 1-D), keys prefixed by `prefix`.

    Exponents beyond the rule's domain become what the rule `shift_count` of that slot says; the array `undefined_shift`
    then holds all exponents as they were.

    Raises ValueError for multipliers that are not finite, and for those too large for the rule without `shift_count`.
    """
    prepared = RULES[rule].prepare(real)
    exponent = int(np.max(prepared["exponent"], initial=0)) if "exponent" in prepared else 0
    if exponent > RULES[rule].largest_exponent:
        if not shift_count:
            raise ValueError(f"a left shift by {exponent} bits leaves the register")
        asked = prepared["exponent"]
        prepared = {**prepared, "exponent": shift_counts.RULES[shift_count](asked), "undefined_shift": asked}
    return {prefix + key: value for key, value in prepared.items()}


def apply(rule: str, acc: np.ndarray, arrays: Mapping[str, np.ndarray], prefix: str = "") -> np.ndarray:
    """Run-time half of `rule` on int64 accumulators; per-axis parameters broadcast over the last axis."""
    if prefix:
        arrays = {key[len(prefix) :]: value for key, value in arrays.items() if key.startswith(prefix)}
    return RULES[rule].apply(acc, arrays)
