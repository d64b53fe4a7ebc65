"""Slot `affine_softmax`: shares of exponentials along a row of quantized numbers, as quantized numbers."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from ..arithmetic import elementary, fixed_point, floats, tables
from ..records import dataclass
from .affine_sum import Pair, Prepared, check_scales
from .softmax import sum_in_order


@dataclass(frozen=True, eq=False)
class AffineSoftmaxRule:
    """`prepare(input, output, length)` takes a binary32 scale and a zero point of each and the length of rows, and
    raises ValueError for scales without a meaning; `apply(rows, arrays, low, high)` takes int64 rows of at least one
    element and gives int64. The input's zero point plays no part.
    """

    prepare: Callable[[Pair, Pair, int], Prepared]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray], int, int], np.ndarray]
    formula: str
    source: str


def _prepare_binary32(source: Pair, output: Pair, length: int) -> Prepared:
    f32, scale = np.float32, np.float64(np.float32(source[0]))
    with np.errstate(all="ignore"):
        # As large as it goes without sums that overflow, less 5.
        largest = np.float64(elementary.log(np.finfo(f32).max / f32(length)))
        raised = np.maximum(0.0, largest - 5.0) / scale
        powers = tables.exp_binary64((np.arange(256.0) - 255.0 + raised) * scale).astype(f32)
        factor = np.floor(f32(1) / f32(output[0]))
    return {
        "exponentials": powers,
        "factor": np.asarray(factor, f32),
        "output_zero_point": np.asarray(output[1], np.int64),
    }


def _shares(rows: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rounded to integers, ties to even; perhaps not finite."""
    entries = prepared["exponentials"][rows - rows.max(axis=-1, keepdims=True) + 255]
    with np.errstate(all="ignore"):
        return np.asarray(np.rint(entries * prepared["factor"] / sum_in_order(entries)))


def _apply_binary32(rows: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """The factor is an integer; a product beyond binary32 counts as 0 in an unsigned result.

    >>> rule = RULES["binary32_table_even"]
    >>> rule.apply(np.int64([[4, 4, 1]]), rule.prepare((1.0, 0), (1 / 256, 0), 3), 0, 255).tolist()
    [[125, 125, 6]]
    >>> alone = rule.prepare((1.0, 0), (1 / 256, 7), 1)
    >>> [rule.apply(np.int64([[4]]), alone, *ends).tolist() for ends in ((0, 255), (-128, 127))]
    [[[7]], [[-128]]]
    """
    shares = _shares(rows, prepared)
    zero_point = prepared["output_zero_point"]
    if low < 0:
        return np.clip(fixed_point.wrap_s32(floats.truncate_to_s32(shares) + zero_point), low, high)
    # The low half of a conversion to 64 bits, whose value for all that does not fit has a low half of 0.
    with np.errstate(all="ignore"):
        whole = np.where(np.abs(shares) < 2.0**63, shares, 0).astype(np.int64)
    return np.minimum((whole + zero_point) & 0xFFFFFFFF, high)


def _apply_limited(rows: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Conversions to 32 bits limit, and the zero point is added modulo 2^32.

    >>> rule = RULES["binary32_table_even_limited"]
    >>> rule.apply(np.int64([[4, 4, 1]]), rule.prepare((1.0, 0), (1 / 256, 0), 3), 0, 255).tolist()
    [[125, 125, 6]]
    >>> [rule.apply(np.int64([[4]]), rule.prepare((1.0, 0), (1 / 256, point), 1), 0, 255).tolist() for point in (0, 7)]
    [[[255]], [[6]]]
    """
    shares = _shares(rows, prepared)
    zero_point = prepared["output_zero_point"]
    if low < 0:
        return np.clip(fixed_point.wrap_s32(floats.saturate_to_s32(shares) + zero_point), low, high)
    whole = np.clip(np.nan_to_num(shares.astype(np.float64), posinf=2.0**32), 0, 2**32 - 1).astype(np.int64)
    return np.minimum((whole + zero_point) & 0xFFFFFFFF, high)


def _prepare_exact(source: Pair, output: Pair, length: int) -> Prepared:
    check_scales(source[0], output[0])
    return {
        "scales": np.array([source[0], output[0]], np.float32),
        "output_zero_point": np.asarray(output[1], np.int64),
    }


def _exact_share(row: np.ndarray, place: int, scale: Fraction, unit: Fraction) -> int:
    """round_even of the share of one element over `unit`, by 200 decimal digits.

    Shares are transcendental, and so no ties, unless all elements are equal, which the digits show exactly.
    """
    context = decimal.Context(prec=200)
    differences, counts = np.unique(row.max() - row, return_counts=True)
    exponents = [scale * int(d) for d in differences]
    powers = [Fraction(context.exp(context.minus(context.divide(e.numerator, e.denominator)))) for e in exponents]
    total = sum(power * int(n) for power, n in zip(powers, counts, strict=True))
    own = powers[int(np.searchsorted(differences, row.max() - row[place]))]
    return round(own / total / unit)


def _apply_exact(rows: np.ndarray, prepared: Mapping[str, np.ndarray], low: int, high: int) -> np.ndarray:
    """Shares by binary64, and those that are near a tie by decimal numbers.

    >>> rule = RULES["exact_even"]
    >>> rule.apply(np.int64([[4, 4, 1]]), rule.prepare((1.0, 0), (1 / 256, 0), 3), 0, 255).tolist()
    [[125, 125, 6]]
    """
    scale, unit = (float(value) for value in prepared["scales"])
    differences = rows - rows.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        powers = np.exp(scale * differences)
        steps = np.minimum(powers / powers.sum(axis=-1, keepdims=True) / unit, 1024.0)
        rounded = np.rint(steps)
        near = np.abs(np.abs(steps - rounded) - 0.5) < 1e-6 * np.maximum(steps, 1.0)
    for place in np.argwhere(near & (steps < 1024)):
        share = _exact_share(rows[tuple(place[:-1])], int(place[-1]), Fraction(scale), Fraction(unit))
        rounded[tuple(place)] = share
    return np.clip(rounded.astype(np.int64) + prepared["output_zero_point"], low, high)


RULES: dict[str, AffineSoftmaxRule] = {
    "binary32_table_even": AffineSoftmaxRule(
        _prepare_binary32,
        _apply_binary32,
        "round_even(f32(f32(e * c) / S)) as an integer of 32 bits, plus the output zero point, clamped; c = floor(f32("
        "1 / output scale)), S = sum of e from left to right in binary32, e = f32(exp((d + k) * scale)), d = x - row "
        "maximum, k = max(0, f32(ln(f32(largest binary32 / length))) - 5) / scale in binary64; what does not fit "
        "becomes -2^31 as a signed integer, its low half as an unsigned one",
        "docs/facts/onnxruntime.md 3.5, verified by running",
    ),
    "binary32_table_even_limited": AffineSoftmaxRule(
        _prepare_binary32,
        _apply_limited,
        "as binary32_table_even; what does not fit 32 bits, unsigned ones for unsigned results, is limited to them, "
        "NaN becomes 0, and the output zero point is added modulo 2^32",
        "docs/facts/onnxruntime.md 3.7 (aarch64), verified by running",
    ),
    "exact_even": AffineSoftmaxRule(
        _prepare_exact,
        _apply_exact,
        "clamp(round_even(e / S / output scale) + output zero point), e = exp(scale * x), S = sum of e, in real "
        "numbers",
        "definition",
    ),
}
