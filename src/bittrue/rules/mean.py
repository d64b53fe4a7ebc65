"""Slot `mean`: a sum over whole axes, divided by the number of summands and brought to the output's scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point, floats, multiplier, steps
from ..records import dataclass
from . import rescale

Prepared = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class MeanRule:
    """`prepare(real, count)` at plan time, real = input scale / output scale; `apply(total, arrays)` per element.

    `prepare_affine`, when set, is called instead with the zero points of input and output behind; `total` is then the
    plain sum of quantized values, and the output's zero point is part of the result.
    """

    prepare: Callable[[float, int], Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray]
    formula: str
    source: str
    # Set instead of `prepare_affine` where both scales are needed: (input scale, output scale, count, zero points).
    prepare_scales: Callable[[float, float, int, int, int], Prepared] | None = None
    prepare_affine: Callable[[float, int, int, int], Prepared] | None = None


def _fold_count(real: float, count: int) -> Prepared:
    encoded, exponent = (int(value) for value in multiplier.encode_q31(real))
    # As many bits as the count has are gained before the division; the exponent must not leave -31.
    gained = min(count.bit_length() - 1, 32, 31 + exponent)
    folded = (encoded << gained) // count
    return {"multiplier": np.asarray(folded, np.int64), "exponent": np.asarray(exponent - gained, np.int64)}


def _two_step(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """The count is part of the multiplier; ties go up without a right shift, away from zero with one.

    A tie and a negative tie of either kind, and the shortened multiplier of 1/3 (saturation is the store's):

    >>> rule = RULES["q31_count_folded_two_step_up_away"]
    >>> [int(v) for v in rule.apply(np.array([3, -3]), rule.prepare(1.0, 2))]
    [2, -1]
    >>> [int(v) for v in rule.apply(np.array([12, -12]), rule.prepare(0.25, 2))]
    [2, -2]
    >>> int(rule.prepare(1.0, 3)["multiplier"]), int(rule.prepare(1.0, 3)["exponent"])
    (715827882, 0)
    """
    return rescale.RULES["q31_two_step_up_away"].apply(total, prepared)


def _one_step(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """The count is part of the multiplier; one rounding, ties up.

    >>> rule = RULES["q31_count_folded_one_step_up"]
    >>> [int(v) for v in rule.apply(np.array([3, -3, 1]), rule.prepare(1.0, 2))]
    [2, -1, 1]
    """
    return rescale.RULES["q31_one_step_up"].apply(total, prepared)


def _keep_count(real: float, count: int) -> Prepared:
    return {"count": np.asarray(count, np.int64)}


def _integer_trunc(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Integer division toward zero.

    >>> rule = RULES["integer_trunc"]
    >>> [int(v) for v in rule.apply(np.array([3, -3]), rule.prepare(1.0, 2))]
    [1, -1]
    """
    quotient, remainder = np.divmod(total, prepared["count"])
    return quotient + ((quotient < 0) & (remainder != 0))


def _binary32_divide(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """One rounding to binary32, ties to even.

    >>> rule = RULES["binary32_divide"]
    >>> rule.apply(np.float32([3, -3, 1]), rule.prepare(1.0, 3)).tolist()
    [1.0, -1.0, 0.3333333432674408]
    """
    with np.errstate(all="ignore"):
        return total / prepared["count"].astype(np.float32)


def _prepare_factor(real: float, count: int) -> Prepared:
    return {"factor": np.asarray(np.float32(1) / np.float32(count), np.float64)}


def _times_factor(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Two roundings to binary32, ties to even: of the reciprocal and of the product.

    >>> rule = RULES["binary32_reciprocal"]
    >>> rule.apply(np.float32([3, 5, 1]), rule.prepare(1.0, 3)).tolist()
    [1.0, 1.6666667461395264, 0.3333333432674408]
    """
    with np.errstate(all="ignore"):
        return total * np.float32(prepared["factor"])


def _prepare_affine(real: float, count: int, zero_point: int, output_zero_point: int) -> Prepared:
    f32 = np.float32
    factor = f32(real) * (f32(1) / f32(count))
    # The product of count and zero point is a 32-bit integer first.
    offset = f32(output_zero_point) - f32(int(fixed_point.wrap_s32(count * zero_point))) * factor
    return {"factor": np.asarray(factor, np.float64), "offset": np.asarray(offset, np.float64)}


def _affine_even(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Two roundings in binary32, then ties to even.

    >>> rule = RULES["binary32_affine_even"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1]), rule.prepare_affine(1.0, 2, 0, 10))]
    [10, 12, 10]
    """
    with np.errstate(all="ignore"):
        moved = total.astype(np.float32) * np.float32(prepared["factor"]) + np.float32(prepared["offset"])
    return floats.saturate_to_s32(np.rint(moved))


def _fused_affine(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    return floats.fused_multiply_add(
        total.astype(np.float32), np.float32(prepared["factor"]), np.float32(prepared["offset"])
    )


def _prepare_fused_affine(real: float, count: int, zero_point: int, output_zero_point: int) -> Prepared:
    f32 = np.float32
    factor = f32(real) * (f32(1) / f32(count))
    moved = f32(int(fixed_point.wrap_s32(count * zero_point)))
    offset = floats.fused_multiply_add(-moved, factor, f32(output_zero_point))
    return {"factor": np.asarray(factor, np.float64), "offset": np.asarray(offset, np.float64)}


def _fused_affine_even(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """One rounding in binary32, then ties to even.

    >>> rule = RULES["binary32_fused_affine_even"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1]), rule.prepare_affine(1.0, 2, 0, 10))]
    [10, 12, 10]
    """
    return floats.saturate_to_s32(np.rint(_fused_affine(total, prepared)))


def _prepare_biased(scale: float, output_scale: float, count: int, zero_point: int, output_zero_point: int) -> Prepared:
    f32 = np.float32
    with np.errstate(all="ignore"):
        moved = f32(zero_point) * f32(scale) / f32(output_scale)
        moved = moved + f32(0.5) if moved > 0 else moved - f32(0.5)
        real = f32(scale) / (f32(count) * f32(output_scale))
    # The conversion to 32 bits drops the fraction; what does not fit becomes -2^31.
    bias = fixed_point.wrap_s32(output_zero_point - floats.truncate_to_s32(np.asarray(moved)))
    return {**rescale.prepare("q31_two_step_up_up", float(real)), "bias": np.asarray(bias)}


def _biased(rule: str) -> Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray]:
    def apply(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
        return fixed_point.wrap_s32(rescale.RULES[rule].apply(total, prepared) + prepared["bias"])

    return apply


def _prepare_sum(scale: float, output_scale: float, count: int, zero_point: int, output_zero_point: int) -> Prepared:
    f32 = np.float32
    with np.errstate(all="ignore"):
        factor = f32(scale) / f32(output_scale)
        offset = f32(-zero_point) * factor * f32(count)
    return {
        "factor": np.asarray(factor, np.float64),
        "offset": np.asarray(offset, np.float64),
        "bias": np.asarray(output_zero_point, np.int64),
    }


def _affine_away(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Two roundings in binary32, then ties away from zero; what does not fit 32 bits becomes -2^31.

    >>> rule = RULES["binary32_affine_away"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1]), rule.prepare_scales(0.5, 1.0, 4, 0, 10))]
    [11, 12, 9]
    """
    with np.errstate(all="ignore"):
        moved = total.astype(np.float32) * np.float32(prepared["factor"]) + np.float32(prepared["offset"])
    return fixed_point.wrap_s32(floats.truncate_to_s32(floats.round_away(moved)) + prepared["bias"])


def _fused_affine_away(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """One rounding in binary32, then ties away from zero; what does not fit 32 bits is limited to them.

    >>> rule = RULES["binary32_fused_affine_away"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1]), rule.prepare_scales(0.5, 1.0, 4, 0, 10))]
    [11, 12, 9]
    """
    return fixed_point.wrap_s32(
        floats.saturate_to_s32(floats.round_away(_fused_affine(total, prepared))) + prepared["bias"]
    )


def _prepare_exact(scale: float, output_scale: float, count: int, zero_point: int, output_zero_point: int) -> Prepared:
    from fractions import Fraction

    first, second = float(np.float32(scale)), float(np.float32(output_scale))
    if not (0 < first < np.inf and 0 < second < np.inf):
        raise ValueError(f"scales {first!r} and {second!r} have no meaning, they must be finite and above 0")
    return {"steps": steps.even_steps(Fraction(first) / (count * Fraction(second)))}


def _exact_even(total: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """One rounding, ties to even.

    >>> rule = RULES["exact_even"]
    >>> [int(v) for v in rule.apply(np.array([1, 3, -1]), rule.prepare_scales(1.0, 1.0, 2, 0, 10))]
    [0, 2, 0]
    """
    return steps.apply_steps(total, prepared["steps"])


def _needs_scales(real: float, count: int) -> Prepared:
    raise NotImplementedError("this rule is prepared from both scales")


RULES: dict[str, MeanRule] = {
    "q31_count_folded_two_step_up_away": MeanRule(
        _fold_count,
        _two_step,
        "M' = floor(M * 2^k / count), e' = e - k, k = min(floor(log2 count), 32, 31 + e); then, on 32-bit sums, "
        "round_away(round_up(total * 2^max(e',0) * M' / 2^31) / 2^max(-e',0))",
        "docs/facts/litert.md 2.4 (MEAN), verified by running",
    ),
    "q31_count_folded_one_step_up": MeanRule(
        _fold_count,
        _one_step,
        "M' and e' as q31_count_folded_two_step_up_away; then round_up(total * M' / 2^(31-e'))",
        "docs/facts/single_rounding.md 2.5, verified by running",
    ),
    "integer_trunc": MeanRule(
        _keep_count, _integer_trunc, "trunc(total / count) on 64-bit sums", "kernels/reduce.h, verified by running"
    ),
    "binary32_divide": MeanRule(
        _keep_count,
        _binary32_divide,
        "f32(total / f32(count)) on binary32 sums taken in row-major order",
        "kernels/reduce.h, verified by running",
    ),
    "binary32_reciprocal": MeanRule(
        _prepare_factor,
        _times_factor,
        "f32(total * f32(1 / count)) on binary32 sums; where the slot `order` gives sums in parts, part by part",
        "docs/facts/xnnpack.md 3.4, verified by running",
    ),
    "binary32_affine_even": MeanRule(
        lambda real, count: _prepare_affine(real, count, 0, 0),
        _affine_even,
        "round_even(f32(f32(f32(total) * s) + z)), s = f32(f32(input / output scale) * f32(1 / count)), "
        "z = f32(output zero point - f32(f32(count * zero point) * s)), total without zero points taken off",
        "docs/facts/xnnpack.md 2.6, verified by running",
        prepare_affine=_prepare_affine,
    ),
    "binary32_fused_affine_even": MeanRule(
        lambda real, count: _prepare_fused_affine(real, count, 0, 0),
        _fused_affine_even,
        "as binary32_affine_even, with f32(total) * s + z and output zero point - f32(count * zero point) * s rounded "
        "to binary32 once",
        "docs/aarch64.md, verified by running",
        prepare_affine=_prepare_fused_affine,
    ),
    "binary32_real_two_step_up_up": MeanRule(
        _needs_scales,
        _biased("q31_two_step_up_up"),
        "round_up(round_up(total * 2^max(e,0) * M / 2^31) / 2^max(-e,0)) + b, M and e from f32(scale / f32(count * "
        "output scale)), b = output zero point - trunc(f32(zero point * scale / output scale) +- 0.5), total without "
        "zero points taken off",
        "kernels/internal/optimized/integer_ops/mean.h (vector loop), verified by running",
        prepare_scales=_prepare_biased,
    ),
    "binary32_real_two_step_up_away": MeanRule(
        _needs_scales,
        _biased("q31_two_step_up_away"),
        "as binary32_real_two_step_up_up with the second rounding away from zero at ties",
        "kernels/internal/optimized/integer_ops/mean.h (scalar loop), verified by running",
        prepare_scales=_prepare_biased,
    ),
    "binary32_affine_away": MeanRule(
        _needs_scales,
        _affine_away,
        "round_away(f32(f32(f32(total) * s) + z)) + output zero point, s = f32(scale / output scale), "
        "z = f32(f32(-zero point * s) * count), total without zero points taken off",
        "kernels/internal/optimized/reduce.h (QuantizedMeanOrSum), verified by running",
        prepare_scales=_prepare_sum,
    ),
    "binary32_fused_affine_away": MeanRule(
        _needs_scales,
        _fused_affine_away,
        "as binary32_affine_away, with f32(total) * s + z rounded to binary32 once, and limited to 32 bits",
        "kernels/internal/optimized/reduce.h (QuantizedMeanOrSum), verified by running on aarch64",
        prepare_scales=_prepare_sum,
    ),
    "exact_even": MeanRule(
        _needs_scales,
        _exact_even,
        "round_even(scale * total / (count * output scale)) in real numbers, limited to -511..511, total without zero "
        "points",
        "definition",
        prepare_scales=_prepare_exact,
    ),
}
