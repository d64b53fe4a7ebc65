"""Slot `softmax`: exp(beta * scale * (x - max)) over the sum of these along a row.

Only the difference to the row's maximum enters, so 8-bit rules prepare one exponential per difference (256 of them)
at plan time; F(k) is a signed raw integer with k integer bits (see `arithmetic.transcendental`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import elementary, fixed_point, floats, multiplier, tables, transcendental
from ..records import dataclass
from . import rescale

Prepared = dict[str, np.ndarray]

# Integer bits of scaled differences and of sums of exponentials.
DIFFERENCE_BITS, SUM_BITS = 5, 12
_EXP_RANGE = 10.0


@dataclass(frozen=True, eq=False)
class SoftmaxRule:
    """`prepare(input scale, beta)` raises ValueError for unusable products; `apply(rows, arrays, bits)` takes int64
    rows and gives probabilities in units of 2^-bits (2^-15 for 16-bit tables), not yet clamped or moved to the output's
    smallest value. `apply` raises OverflowError where a row has no defined result. `counted`: `prepare` also takes the
    length of a row.
    """

    prepare: Callable[..., Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray], int], np.ndarray]
    formula: str
    source: str
    # Results are in units of the output's scale, which `apply` finds as `output_scale` among the arrays (binary32);
    # then they are moved to the output's zero point, or to 0.
    scaled: bool = False
    moved: bool = False
    counted: bool = False
    # Rows become real numbers first: `apply` finds the zero point as `input_zero_point` (s64) among the arrays.
    centered: bool = False


def scaled_differences(input_scale: float, beta: float) -> tuple[np.ndarray, int, int, int]:
    """Differences -255..0 in F5, the smallest one that counts, and the multiplier and exponent behind them.

    v = min(beta * scale * 2^26, 2^31 - 1) must exceed 1; M * 2^(e - 31) = v; differences below
    -floor(31 * 2^26 / 2^e) do not count (their entries are 0). Raises ValueError for other v, NaN included.
    Source: docs/facts/litert.md 2.5, verified by running.

    >>> raw, smallest, encoded, exponent = scaled_differences(1.0, 1.0)
    >>> raw[-3:].tolist(), smallest, encoded, exponent
    ([-134217728, -67108864, 0], -15, 1073741824, 27)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        real = np.float64(beta) * np.float64(input_scale) * 2.0 ** (31 - DIFFERENCE_BITS)
    if not real > 1.0:
        raise ValueError(f"beta * scale * 2^{31 - DIFFERENCE_BITS} is {float(real)!r}, it must exceed 1")
    encoded, exponent = (int(part) for part in multiplier.encode_q31(min(float(real), 2.0**31 - 1)))
    smallest = -(((1 << DIFFERENCE_BITS) - 1 << (31 - DIFFERENCE_BITS)) >> exponent)
    differences = np.arange(-255, 1, dtype=np.int64)
    differences = np.where(differences < smallest, 0, differences)
    return fixed_point.doubling_high_multiply_up(differences << exponent, encoded), smallest, encoded, exponent


def exponentials(raw: np.ndarray, smallest: int) -> np.ndarray:
    """Exponentials of scaled differences in F0; 0 for differences that do not count."""
    counts = np.arange(-255, 1) >= smallest
    return np.where(counts, transcendental.exp_on_negative(raw, DIFFERENCE_BITS), 0)


def sum_of_exponentials(entries: np.ndarray) -> np.ndarray:
    """Row sums in F12 of exponentials in F0, each divided by 2^12 with ties away.

    Raises OverflowError for a sum of 2^12 or more, which leaves 32 bits.
    """
    total = fixed_point.divide_by_power_of_two_away(entries, SUM_BITS).sum(axis=-1, keepdims=True)
    if total.size and int(total.max()) > fixed_point.S32_MAX:
        raise OverflowError(f"the exponentials of a row add up to {int(total.max()) / 2.0**19}, at most 4095 fit")
    return total


def _prepare_fixed(input_scale: float, beta: float) -> Prepared:
    raw, smallest, _, _ = scaled_differences(input_scale, beta)
    return {"exponentials": exponentials(raw, smallest)}


def _apply_fixed(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """Two equal values share a row; a far smaller one gets nothing; one value alone reaches the full 2^8.

    >>> rule = RULES["exp_f5_sum_f12_reciprocal_away"]
    >>> rule.apply(np.array([[4, 4, -128], [4, -128, -128]]), rule.prepare(1.0, 1.0), 8).tolist()
    [[128, 128, 0], [256, 0, 0]]
    """
    entries = prepared["exponentials"][rows - rows.max(axis=-1, keepdims=True) + 255]
    scale, bits_over_unit = transcendental.reciprocal(sum_of_exponentials(entries), SUM_BITS)
    right_shift = bits_over_unit + 31 - bits
    if right_shift.size and int(right_shift.max()) > 31:
        raise OverflowError(f"the exponentials of a row add up to {1 << bits + 1} or more, too much for {bits} bits")
    return fixed_point.divide_by_power_of_two_away(fixed_point.doubling_high_multiply_up(scale, entries), right_shift)


def _prepare_tables(input_scale: float, beta: float) -> Prepared:
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.float32(input_scale) * np.float32(beta)
    encoded, exponent = multiplier.encode_q31(np.float64(product) / (_EXP_RANGE / 65535.0))
    if int(exponent) > 30:
        raise ValueError(f"beta * scale is {float(product)!r}, its multiplier needs a left shift by more than 30")
    return {
        "multiplier": encoded,
        "exponent": exponent,
        "exp": tables.table_513(np.exp, _EXP_RANGE / 65535.0, 32767, 2.0 / 65535.0, 0, np.float64),
        "reciprocal": tables.table_513(lambda x: 1.0 / (1.0 + x), 1.0 / 65535.0, -32768, 2.0 / 65535.0, 0, np.float64),
    }


def _apply_tables(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """Two equal values share a row; one that is 5 steps of 1/16 smaller gets exp(-5/16) of what the largest gets.

    >>> rule = RULES["tables_513_one_step_up"]
    >>> rule.apply(np.array([[4, 4, -32768], [5, 0, -32768]]), rule.prepare(1 / 16, 1.0), 15).tolist()
    [[16384, 16384, 1], [18923, 13844, 1]]
    """
    differences = rows - rows.max(axis=-1, keepdims=True)
    scaled = rescale.RULES["q31_two_step_up_away"].apply(differences, prepared)
    entries = tables.lookup_513(prepared["exp"], np.clip(fixed_point.wrap_s32(scaled + 32767), -32768, 32767))
    total = entries.sum(axis=-1, keepdims=True)
    if total.size and not 0 < int(total.min()) <= int(total.max()) <= fixed_point.S32_MAX:
        raise OverflowError("the exponentials of a row add up to more than 32 bits hold")
    headroom = fixed_point.count_leading_zeros_s32(total)
    normalised = ((total << (headroom - 1)) + (1 << 13)) >> 14
    factor = tables.lookup_513(prepared["reciprocal"], np.clip(normalised - 3 * 2**15, -32768, 32767))
    right_shift = 31 - headroom
    return fixed_point.divide_by_power_of_two_up(entries * factor, right_shift)


def binary32_exponentials(input_scale: float, beta: float) -> np.ndarray:
    """exp(f32(f32(-scale * beta) * d)) for d = 255..0, each operation rounded to binary32.

    >>> binary32_exponentials(0.5, 1.0)[[0, 253, 255]].tolist()
    [0.0, 0.3678794503211975, 1.0]
    """
    f32 = np.float32
    with np.errstate(all="ignore"):
        scale = -f32(input_scale) * f32(beta)
        return elementary.exp(scale * np.arange(255, -1, -1).astype(f32))


def sum_in_order(entries: np.ndarray) -> np.ndarray:
    """Row sums of binary32 numbers from left to right, each sum rounded."""
    # accumulate never regroups, unlike reduce.
    with np.errstate(all="ignore"):
        return np.add.accumulate(entries, axis=-1)[..., -1:]


def _prepare_binary32(input_scale: float, beta: float) -> Prepared:
    return {"exponentials": binary32_exponentials(input_scale, beta)}


def _binary32_shares(rows: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    entries = prepared["exponentials"][rows - rows.max(axis=-1, keepdims=True) + 255]
    with np.errstate(all="ignore"):
        return entries * (np.float32(1) / (sum_in_order(entries) * np.float32(prepared["output_scale"])))


def _binary32_away(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """Ties away from zero; what does not fit 32 bits becomes -2^31.

    >>> rule = RULES["binary32_table_away"]
    >>> rule.apply(np.array([[4, 4, -128]]), {**rule.prepare(1.0, 1.0), "output_scale": np.float32(0.2)}, 8).tolist()
    [[3, 3, 0]]
    """
    return floats.truncate_to_s32(floats.round_away(_binary32_shares(rows, prepared)))


def _binary32_half_up(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """One half is added in binary32, the fraction then dropped.

    >>> rule = RULES["binary32_table_half_up"]
    >>> rule.apply(np.array([[4, 4, -128]]), {**rule.prepare(1.0, 1.0), "output_scale": np.float32(0.2)}, 8).tolist()
    [[3, 3, 0]]
    """
    with np.errstate(all="ignore"):
        return floats.truncate_to_s32(np.trunc(_binary32_shares(rows, prepared) + np.float32(0.5)))


def u16_exponentials(input_scale: float, beta: float) -> np.ndarray:
    """exp(f32(f32(scale * beta) * d)) for d = -255..0 in units of 2^16 - 1, halves up.

    >>> u16_exponentials(0.5, 1.0)[[0, 253, 255]].tolist()
    [0, 24109, 65535]
    """
    f32 = np.float32
    with np.errstate(all="ignore"):
        scale = f32(input_scale) * f32(beta)
        units = elementary.exp(scale * np.arange(-255, 1).astype(f32)) * f32(65535)
        # The half is added in binary64; exponentials above 1, of negative scales, are limited to 16 bits.
        return np.minimum(floats.truncate_to_s32(np.trunc(units.astype(np.float64) + 0.5)), 65535)


def _prepare_u16(input_scale: float, beta: float) -> Prepared:
    return {"exponentials": u16_exponentials(input_scale, beta)}


def _u16_shares(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """Two equal values share a row: each has 65535 of 131070 units, and 1 / (131070 * 0.2) is a Q31 multiplier.

    >>> rule = RULES["u16_table_two_step_up"]
    >>> rule.apply(np.array([[4, 4, -128]]), {**rule.prepare(1.0, 1.0), "output_scale": np.float32(0.2)}, 8).tolist()
    [[3, 3, 0]]
    """
    entries = prepared["exponentials"][rows - rows.max(axis=-1, keepdims=True) + 255]
    total = fixed_point.wrap_s32(entries.sum(axis=-1, keepdims=True)).astype(np.float32)
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / (total * np.float32(prepared["output_scale"]))
    if not np.isfinite(inverse).all() or (inverse < 0).any():
        raise OverflowError("the exponentials of a row add up to more than 32 bits hold")
    # The entries are not negative: it makes no difference that vectors round the second step up, scalars away from 0.
    return rescale.RULES["q31_two_step_up_up"].apply(entries, rescale.prepare("q31_two_step_up_up", inverse))


def counted_exponentials(input_scale: float, length: int) -> np.ndarray:
    """round_even(unit * exp((i - 255) * scale)), i = 0 ... 255, with unit = min((2^32 - 1) / length, 2^23 - 1).

    So entries of 1 add up to less than 2^32 before they are rounded. Exact to 40 digits, which no tie comes near.

    >>> counted_exponentials(1.0, 10)[-3:].tolist(), int(counted_exponentials(1.0, 1000)[-1])
    ([1135275, 3085996, 8388607], 4294967)
    """
    import decimal

    if not (np.isfinite(np.float32(input_scale)) and input_scale > 0 and length >= 1):
        raise ValueError(f"an input scale of {input_scale!r} for rows of {length} has no table")
    quotient = np.float64(2**32 - 1) / np.float64(length)
    context = decimal.Context(prec=40)
    unit = min(decimal.Decimal(float(quotient)), decimal.Decimal(8388607))
    scale = decimal.Decimal(float(np.float32(input_scale)))
    entries = []
    for i in range(256):
        power = context.exp(context.multiply(decimal.Decimal(i - 255), scale))
        entries.append(int(context.multiply(unit, power).to_integral_value(decimal.ROUND_HALF_EVEN)))
    return np.array(entries, np.int64)


def _prepare_counted(input_scale: float, beta: float, length: int) -> Prepared:
    return {"exponentials": counted_exponentials(float(np.float32(input_scale) * np.float32(beta)), length)}


def _apply_counted(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """The quotient in units of 2^-8, to nearest, ties up; one value alone reaches 2^8, which does not fit 8 bits.

    The sum is taken modulo 2^32: more than 512 values near the largest one may leave it. OverflowError for a sum of 0.

    >>> rule = RULES["counted_table_half_up"]
    >>> rule.apply(np.array([[4, 4, -128], [5, 4, 4]]), rule.prepare(1.0, 1.0, 3), 8).tolist()
    [[128, 128, 0], [147, 54, 54]]
    """
    entries = prepared["exponentials"][rows - rows.max(axis=-1, keepdims=True) + 255]
    total = entries.sum(axis=-1, keepdims=True) & 0xFFFFFFFF
    if not total.all():
        raise OverflowError("the exponentials of a row add up to a multiple of 2^32, which leaves nothing to divide by")
    return ((entries << 8) + (total >> 1)) // total


def _keep_scale(input_scale: float, beta: float) -> Prepared:
    return {"input_scale": np.asarray(input_scale, np.float32)}


def _binary32_reals_away(rows: np.ndarray, prepared: Mapping[str, np.ndarray], bits: int) -> np.ndarray:
    """Ties away from zero; saturates far outside of any type.

    >>> rule = RULES["binary32_reals_away"]
    >>> more = {"output_scale": np.float32(0.2), "input_zero_point": np.int64(3)}
    >>> rule.apply(np.array([[4, 4, -128]]), {**rule.prepare(1.0, 1.0), **more}, 8).tolist()
    [[3, 3, 0]]
    """
    with np.errstate(all="ignore"):
        reals = (rows - prepared["input_zero_point"]).astype(np.float32) * prepared["input_scale"]
        powers = elementary.exp(reals - reals.max(axis=-1, keepdims=True))
        reciprocal = np.float32(1) / prepared["output_scale"]
        steps = floats.round_away(powers / sum_in_order(powers) * reciprocal)
    return np.clip(steps, np.float32(-(2**30)), np.float32(2**30)).astype(np.int64)


RULES: dict[str, SoftmaxRule] = {
    "exp_f5_sum_f12_reciprocal_away": SoftmaxRule(
        _prepare_fixed,
        _apply_fixed,
        "e = exp(x - max) in F0 by polynomial from F5; S = sum of round_away(e / 2^12) in F12; "
        "round_away(round_up(e * (1/S) / 2^31) / 2^(31 - bits + integer bits of S))",
        "docs/facts/litert.md 2.5 (SOFTMAX int8, uint8), verified by running",
    ),
    "tables_513_one_step_up": SoftmaxRule(
        _prepare_tables,
        _apply_tables,
        "e = table of exp on [-10, 0]; S = sum of e; r = table of 1 / (1 + x) of the normalised S; "
        "round_up(e * r / 2^(31 - clz S))",
        "docs/facts/litert.md 2.5 (SOFTMAX int16), verified by running",
    ),
    "binary32_table_away": SoftmaxRule(
        _prepare_binary32,
        _binary32_away,
        "e = exp(x - max) by a table in binary32; S = sum of e from left to right; "
        "round_away(e * (1 / (S * output scale))) + zero point",
        "kernels/internal/optimized/optimized_ops.h (Softmax), verified by running",
        scaled=True,
        moved=True,
    ),
    "counted_table_half_up": SoftmaxRule(
        _prepare_counted,
        _apply_counted,
        "e = round_even(U exp(x - max)) with U = min((2^32 - 1) / length, 2^23 - 1); S = sum of e "
        "modulo 2^32; (2^8 e + S div 2) div S",
        "docs/facts/caffe2.md 1.3, verified by running",
        counted=True,
    ),
    "binary32_table_half_up": SoftmaxRule(
        _prepare_binary32,
        _binary32_half_up,
        "as binary32_table_away, but trunc(e * (1 / (S * output scale)) + 0.5), without the zero point",
        "kernels/internal/optimized/optimized_ops.h (Softmax), verified by running",
        scaled=True,
    ),
    "u16_table_two_step_up": SoftmaxRule(
        _prepare_u16,
        _u16_shares,
        "e = trunc(f32(65535 exp(x - max)) + 0.5) by a table of 16 bits; S = sum of e; e times the Q31 multiplier of "
        "f32(1 / (S * output scale)), rounded twice, + zero point",
        "kernels/internal/optimized/optimized_ops.h (SoftmaxInt8LUT), verified by running on aarch64",
        scaled=True,
        moved=True,
    ),
    "binary32_reals_away": SoftmaxRule(
        _keep_scale,
        _binary32_reals_away,
        "x = f32((q - zero point) * scale); e = exp(f32(x - max)) in binary32; S = sum of e from left to right; "
        "round_away(f32(f32(e / S) * f32(1 / output scale))) + zero point; beta plays no part",
        "docs/facts/tvm_qnn.md 2, 3 and 12, read",
        scaled=True,
        moved=True,
        centered=True,
    ),
}
