"""Slot `real_normalization`: rows brought to mean 0 and variance 1, then scaled and shifted, in binary32."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial

import numpy as np

from ..arithmetic import double_words, elementary, reciprocal_estimate
from ..arithmetic.correct_rounding import decimal, fraction, in_digits, round_even, settle
from ..records import dataclass, replace
from . import multiply_add
from .real_sum import FUSED_SQUARES, NEIGHBOURS, aligned_packets

Rows = np.ndarray
fma = multiply_add.RULES["rounded_once"].apply


@dataclass(frozen=True, eq=False)
class RealNormalizationRule:
    """Attributes:
    by_rows: (x [R, n], scale, bias, epsilon, centred, kind) to (result, mean [R], 1 / deviation [R]); scale and bias
        broadcast over [R, n], None stands for 1 and 0; rows that are not `centred` keep their mean and are divided by
        their root mean square. `kind` says whose rows these are, for rules that treat them differently: ``layer``,
        ``half`` (a layer's of widened binary16 numbers), ``summed`` (a layer's behind a sum), ``embedded`` (a layer's
        behind rows of tables), ``broadcast`` (a layer's whose scale or bias is no row of its own), ``branches`` (the
        same, of several branches that are neither centred nor shifted), ``instance``, ``group`` or ``moments`` (any
        axes, neither scaled nor shifted).
    by_given: (x, scale, bias, mean, variance, epsilon), the last ones broadcast over x.
    by_length: (x [R, n], p) to x / (sum of |x|^p)^(1/p), p = 1 or 2; rows of zeros stay.
    across: (x [n, channels, rest], size, alpha, beta, bias) to x / (bias + alpha / size * sum of the squares of
        `size` neighbouring channels)^beta.
    by_batch: (x [n, channels, rest], scale, bias, mean, variance, epsilon, momentum) to (result, running mean, running
        variance, and perhaps own mean and 1 / sqrt(own variance + epsilon)): channels by their own mean and variance;
        running = given momentum + own (1 - momentum).
    """

    by_rows: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
    by_given: Callable[..., np.ndarray]
    by_length: Callable[[np.ndarray, int], np.ndarray]
    across: Callable[..., np.ndarray]
    formula: str
    source: str
    by_batch: Callable[..., tuple[np.ndarray, ...]]


def _wide(array: np.ndarray | None, fallback: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.broadcast_to(np.asarray(fallback if array is None else array, np.float64), shape)


def _finite(error: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(error), error, 0)


def _rows_rounded_once(
    x: Rows, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, centred: bool, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = x.shape[1]
    unit = 2.0**-52
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        size = np.abs(wide).sum(axis=1, keepdims=True)
        mean = wide.sum(axis=1, keepdims=True) / count if centred else np.zeros((x.shape[0], 1))
        off_mean = size / count * (count + 2) * unit if centred else np.zeros((x.shape[0], 1))
        apart = wide - mean
        off_apart = off_mean + np.abs(apart) * unit
        variance = np.square(apart).sum(axis=1, keepdims=True) / count
        off_variance = (2 * np.abs(apart) * off_apart + np.square(off_apart)).sum(axis=1, keepdims=True) / count
        off_variance = off_variance + variance * (count + 4) * unit
        under = variance + epsilon
        inverse = 1 / np.sqrt(under)
        off_inverse = inverse * (off_variance / under + 4 * unit)
        scales, biases = _wide(scale, 1.0, x.shape), _wide(bias, 0.0, x.shape)
        value = apart * inverse * scales + biases
        off = np.abs(scales) * (off_apart * inverse + np.abs(apart) * off_inverse) * 1.01
        off = off + (np.abs(value) + np.abs(biases)) * 4 * unit

    @cache
    def moments(row: int) -> tuple[Fraction, Decimal]:
        # Integers of one unit: sums of fractions would look for common divisors all the time.
        ratios = [float(v).as_integer_ratio() for v in x[row]]
        unit = max(denominator for _, denominator in ratios)
        values = [numerator * (unit // denominator) for numerator, denominator in ratios]
        total = sum(values) if centred else 0
        spread = Fraction(sum((count * v - total) ** 2 for v in values), unit**2 * count**3)
        return Fraction(total, unit * count), inverse_root(spread + fraction(epsilon))

    @in_digits
    def inverse_root(under: Fraction) -> Decimal:
        return 1 / decimal(under).sqrt()

    @in_digits
    def exact(place: int) -> Decimal:
        row, column = divmod(place, count)
        middle, root = moments(row)
        scaled = decimal((fraction(x[row, column]) - middle) * fraction(scales[row, column])) * root
        return scaled + decimal(biases[row, column])

    return (
        settle(value, _finite(off), exact),
        settle(mean[:, 0], _finite(off_mean[:, 0]), lambda row: moments(row)[0]),
        settle(inverse[:, 0], _finite(off_inverse[:, 0]), lambda row: moments(row)[1]),
    )


def _given_rounded_once(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    unit = 2.0**-52
    scales, biases, means, spreads = (_wide(part, 0.0, x.shape) for part in (scale, bias, mean, variance))
    with np.errstate(all="ignore"):
        apart = x.astype(np.float64) - means
        factor = scales / np.sqrt(spreads + epsilon)
        value = apart * factor + biases
        error = np.abs(apart * factor) * 16 * unit + np.abs(value) * unit
    parts = [part.reshape(-1) for part in (x, scales, biases, means, spreads)]

    @in_digits
    def exact(place: int) -> Decimal:
        one, by, shift, middle, spread = (fraction(part[place]) for part in parts)
        return decimal((one - middle) * by) / decimal(spread + fraction(epsilon)).sqrt() + decimal(shift)

    return settle(value, _finite(error), exact)


def _batch_rounded_once(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    epsilon: float,
    momentum: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Results by rows, one per channel; running numbers by fractions.

    >>> one = np.ones(1, np.float32)
    >>> _batch_rounded_once(np.float32([[[1, 5]], [[1, 5]]]), one, one, one, one, 0.0, 0.5)[1:]
    (array([2.], dtype=float32), array([2.5], dtype=float32))
    """
    channels = np.moveaxis(x, 1, 0)
    rows = channels.reshape(x.shape[1], -1)
    result = _rows_rounded_once(rows, scale[:, None], bias[:, None], epsilon, True, "instance")[0]
    keep, running = fraction(momentum), []
    for row, middle, spread in zip(rows, mean, variance, strict=True):
        values = [fraction(v) for v in row]
        own = sum(values, Fraction(0)) / len(values)
        apart = sum(((v - own) ** 2 for v in values), Fraction(0)) / len(values)
        given = fraction(middle), fraction(spread)
        running.append([round_even(g * keep + o * (1 - keep)) for g, o in zip(given, (own, apart), strict=True)])
    statistics = np.array(running, np.float32).reshape(-1, 2)
    return np.moveaxis(result.reshape(channels.shape), 0, 1), statistics[:, 0], statistics[:, 1]


def _length_rounded_once(x: Rows, p: int) -> np.ndarray:
    """Rows of zeros stay.

    >>> RULES["rounded_once"].by_length(np.float32([[3, 4], [0, 0]]), 2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        length = np.abs(wide).sum(axis=1, keepdims=True)
        if p == 2:
            length = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
        value = np.where(length == 0, wide, wide / length)
        error = np.abs(value) * ((x.shape[1] + 8) * 2.0**-52)

    @in_digits
    def exact(place: int) -> Decimal:
        row, column = divmod(place, x.shape[1])
        values = [fraction(v) for v in x[row]]
        whole = decimal(sum((abs(v) ** p for v in values), Fraction(0)))
        return decimal(values[column]) / (whole.sqrt() if p == 2 else whole)

    return settle(value, _finite(error), exact)


def neighbours(channels: int, size: int) -> list[tuple[int, int]]:
    """First channel and end of the window around every channel.

    >>> neighbours(4, 3), neighbours(3, 2)
    ([(0, 2), (0, 3), (1, 4), (2, 4)], [(0, 2), (1, 3), (2, 3)])
    """
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    return [(max(0, c - before), min(channels, c + after + 1)) for c in range(channels)]


def _across_rounded_once(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    windows = neighbours(x.shape[1], size)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        squares = np.square(wide)
        sums = np.stack([squares[:, first:end].sum(axis=1) for first, end in windows], axis=1)
        under = bias + alpha / size * sums
        value = wide * np.power(under, -beta)
        shares = (abs(bias) + abs(alpha) / size * sums) / np.abs(under)
        error = np.abs(value) * (abs(beta) * shares * (size + 8) + 64) * 2.0**-52

    @in_digits
    def exact(place: int) -> Decimal:
        n, c, k = (int(i) for i in np.unravel_index(place, x.shape))
        first, end = windows[c]
        found = sum((fraction(v) ** 2 for v in x[n, first:end, k]), Fraction(0))
        base = decimal(fraction(bias) + fraction(alpha) / size * found)
        return decimal(x[n, c, k]) * (-decimal(beta) * base.ln()).exp()

    return settle(value, _finite(error), exact)


_ONE = np.float32(1)
# Rows that are shorter are normalized element by element: those with their mean taken away, and others.
_SHORT, _SHORT_OTHERWISE = 8, 16
# From so many numbers on squares of a row are made in fours on aarch64.
_LONG = 27


def _eighths(rows: np.ndarray) -> np.ndarray:
    """8 lanes: halves, halves, the last two."""
    fours = rows[:, :4] + rows[:, 4:]
    twos = fours[:, :2] + fours[:, 2:]
    return np.asarray(twos[:, 0] + twos[:, 1])


def _squares_in_lanes(x: np.ndarray, fused: bool) -> np.ndarray:
    """Sums of squares by fused multiply-adds in 8 lanes; then four by four, squares rounded, then fused ones.

    With `fused` the four are fused, too.
    """
    whole = x.shape[1] // 8 * 8
    lanes: np.ndarray = np.zeros((x.shape[0], 8), np.float32)
    for i in range(0, whole, 8):
        lanes = fma(x[:, i : i + 8], x[:, i : i + 8], lanes)
    total = _eighths(lanes)
    fours = whole if fused else x.shape[1] // 4 * 4
    for i in range(whole, fours):
        total = total + x[:, i] * x[:, i]
    for i in range(fours, x.shape[1]):
        total = fma(x[:, i], x[:, i], total)
    return total


def _mean_in_lanes(x: np.ndarray) -> np.ndarray:
    """Sums in binary64 in 4 lanes, the rest one by one; the mean is rounded to binary32."""
    whole = x.shape[1] // 4 * 4
    lanes = np.zeros((x.shape[0], 4))
    for i in range(0, whole, 4):
        lanes += x[:, i : i + 4]
    total: np.ndarray = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
    for i in range(whole, x.shape[1]):
        total = total + x[:, i]
    return np.asarray((total / x.shape[1]).astype(np.float32))


def _running(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared differences, updated with every element."""
    mean: np.ndarray = np.zeros(x.shape[0], np.float32)
    squares = mean.copy()
    for i in range(x.shape[1]):
        apart = x[:, i] - mean
        mean = mean + apart / np.float32(i + 1)
        squares = squares + apart * (x[:, i] - mean)
    return mean, squares


def _layer(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray | None,
    epsilon: np.float32,
    centred: bool,
    short: bool,
    fused: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = np.float32(x.shape[1])
    if short:
        mean, squares = _running(x) if centred else (np.zeros(x.shape[0], np.float32), _in_order(x * x))
        deviation = np.sqrt(squares / count + epsilon)
        apart = x - mean[:, None] if centred else x
        result = apart / deviation[:, None] * scale
        return result if bias is None else result + bias, mean, _ONE / deviation
    mean = _mean_in_lanes(x) if centred else np.zeros(x.shape[0], np.float32)
    apart = x - mean[:, None] if centred else x
    inverse = _ONE / np.sqrt(_squares_in_lanes(apart, fused) / count + epsilon)
    normal = apart * inverse[:, None]
    return normal * scale if bias is None else fma(normal, scale, bias), mean, inverse


def _layer_in_order(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, epsilon: np.float32
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of numbers, then of squared differences from the mean."""
    count = np.float32(x.shape[1])
    mean = _in_order(x) / count
    apart = x - mean[:, None]
    deviation = np.sqrt(_in_order(apart * apart) / count + epsilon)
    return apart / deviation[:, None] * scale + bias, mean, _ONE / deviation


def _layer_in_binary64(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, epsilon: np.float32, centred: bool, joined: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of numbers and of squares in order, the variance as mean of squares less square of the mean; `joined`:
    products enter sums with one rounding.
    """
    wide, add = x.astype(np.float64), multiply_add.RULES["rounded_once" if joined else "rounded_twice"].apply
    squares: np.ndarray = np.zeros(x.shape[0])
    for column in wide.T:
        squares = add(column, column, squares)
    squares = squares / x.shape[1]
    mean = _in_order(wide) / x.shape[1] if centred else np.zeros(x.shape[0])
    deviation = np.sqrt((add(-mean, mean, squares) if centred else squares) + np.float64(epsilon))
    normal = (wide - mean[:, None]) / deviation[:, None]
    result = add(normal, scale, bias) if centred else normal * scale
    return result.astype(x.dtype), mean.astype(np.float32), (1 / deviation).astype(np.float32)


def _rows_in_lanes(
    x: Rows, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, centred: bool, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers in fused lanes, images and groups in packets.

    >>> x = np.float32([[1, 2, 3, 4, 5, 6, 7, 8]])
    >>> RULES["binary32_lanes"].by_rows(x, None, None, 0.0, True, "layer")[2].tolist()
    [0.4364357590675354]
    """
    small, count = np.float32(epsilon), np.float32(x.shape[1])
    by, add = np.asarray(_ONE if scale is None else scale), np.asarray(np.float32(0) if bias is None else bias)
    with np.errstate(all="ignore"):
        if kind == "broadcast":
            return _layer_in_binary64(x, by, add, small, centred)
        if kind == "embedded":
            return _layer_in_order(x, by, add, small)
        if kind == "branches":
            inverse = _ONE / np.sqrt(_in_order(x * x) / count + small)
            return x * inverse[:, None] * by, np.zeros(x.shape[0], np.float32), inverse
        if kind in ("layer", "summed", "half"):
            half = kind == "half"
            short = x.shape[1] < (_SHORT if centred and not half else _SHORT_OTHERWISE)
            return _layer(x, by, bias, small, centred, kind == "summed" or short, half)
        starts = np.arange(x.shape[0]) * x.shape[1]
        mean = aligned_packets(x, starts) / count
        if kind == "group":
            variance = aligned_packets(x * x, starts) / count - mean * mean
            deviation = np.sqrt(variance + small)
            return (x - mean[:, None]) / deviation[:, None] * by + add, mean, _ONE / deviation
        apart = x - mean[:, None]
        if kind == "moments":
            deviation = np.sqrt(aligned_packets(apart * apart, 0 * starts) / count)
            return apart / deviation[:, None], mean, _ONE / deviation
        inverse = _ONE / np.sqrt(aligned_packets(apart * apart, 0 * starts) / count + small)
        factor = inverse[:, None] * by
        return x * factor + (add - mean[:, None] * factor), mean, inverse


def _rows_running(
    x: Rows, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, centred: bool, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers of binary64 numbers by running means, whose mean and deviation are binary32.

    >>> x = np.float64([[1, 2, 3, 4, 5, 6, 7, 8]])
    >>> RULES["binary64_running"].by_rows(x, None, None, 0.0, True, "layer")[2].tolist()
    [0.4364357888698578]
    """
    small, by = np.float32(epsilon), np.asarray(_ONE if scale is None else scale)
    with np.errstate(all="ignore"):
        if kind == "broadcast":
            return _layer_in_binary64(x, by, np.asarray(_ONE * 0 if bias is None else bias), small, centred)
        result, mean, inverse = _layer(x, by, bias, small, centred, True, False)
        return result, mean.astype(np.float32), inverse.astype(np.float32)


def _fused_squares(x: np.ndarray) -> np.ndarray:
    total = np.zeros(x.shape[0], np.float32)
    for i in range(x.shape[1]):
        total = fma(x[:, i], x[:, i], total)
    return total


def _squares_in_turn(x: np.ndarray) -> np.ndarray:
    """One square after the other; those of whole fours are rounded, and the others fused."""
    total = np.zeros(x.shape[0], np.float32)
    for i in range(x.shape[1]):
        part = x[:, i]
        total = total + part * part if i < x.shape[1] // 4 * 4 else fma(part, part, total)
    return total


def _running_joined(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared differences, updated with every element, the latter by fused multiply-adds."""
    mean: np.ndarray = np.zeros(x.shape[0], np.float32)
    squares = mean.copy()
    for i in range(x.shape[1]):
        apart = x[:, i] - mean
        mean = mean + apart / np.float32(i + 1)
        squares = fma(apart, x[:, i] - mean, squares)
    return mean, squares


def _rows_joined(
    x: Rows, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, centred: bool, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_rows_in_lanes`; layers by running means, products and sums rounded once. Means and deviations of binary64
    numbers are binary32.

    >>> x = np.float32([[1, 2, 3, 4, 5, 6, 7, 8]])
    >>> RULES["binary32_joined"].by_rows(x, None, None, 0.0, True, "layer")[2].tolist()
    [0.4364357590675354]
    """
    small, count = np.float32(epsilon), np.float32(x.shape[1])
    by, add = np.asarray(_ONE if scale is None else scale), np.asarray(np.float32(0) if bias is None else bias)
    starts = np.arange(x.shape[0]) * x.shape[1]
    with np.errstate(all="ignore"):
        if kind == "broadcast":
            return _layer_in_binary64(x, by, add, small, centred, True)
        if kind == "branches":
            inverse = _ONE / np.sqrt(_fused_squares(x) / count + small)
            return x * inverse[:, None] * by, np.zeros(x.shape[0], np.float32), inverse
        if kind in ("layer", "summed", "half", "embedded"):
            mean: np.ndarray = np.zeros(x.shape[0], np.float32)
            if kind == "embedded":
                mean = _in_order(x) / count
                squares = _squares_in_turn(x - mean[:, None])
            elif centred:
                mean, squares = _running_joined(x)
            else:
                long = x.shape[1] >= _LONG and x.dtype == np.float32
                squares = (_squares_in_turn if long else _fused_squares)(x)
            deviation = np.sqrt(squares / count + small)
            normal = (x - mean[:, None] if centred else x) / deviation[:, None]
            result = normal * by if bias is None else fma(normal, by, add)
            return result, mean.astype(np.float32), (_ONE / deviation).astype(np.float32)
        mean = aligned_packets(x, starts, NEIGHBOURS) / count
        apart = x - mean[:, None]
        if kind == "group":
            variance = aligned_packets(x * x, starts, NEIGHBOURS) / count - mean * mean
            deviation = np.sqrt(variance + small)
            return apart / deviation[:, None] * by + add, mean, _ONE / deviation
        # Of two products that are added up first, the second one is rounded.
        short = kind == "instance" and 1 < x.shape[1] < 4
        turned = apart[:, [1, 0, *range(2, x.shape[1])]] if short else apart
        spread = aligned_packets(turned, 0 * starts, FUSED_SQUARES) / count
        if kind == "moments":
            deviation = np.sqrt(spread)
            return apart / deviation[:, None], mean, _ONE / deviation
        inverse = _ONE / np.sqrt(spread + small)
        factor = inverse[:, None] * by
        return fma(x, factor, fma(-mean[:, None], factor, add)), mean, inverse


def _inverse_joined(x: np.ndarray) -> np.ndarray:
    """Reciprocals of whole fours begin with an estimate, but for those of binary64 numbers."""
    if x.dtype == np.float64:
        return np.asarray(_ONE / x)
    return reciprocal_estimate.in_fours(x.reshape(-1)).reshape(x.shape)


def _given_joined(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    """The scale over the deviation is a product."""
    with np.errstate(all="ignore"):
        factor = _inverse_joined(np.sqrt(variance + np.float32(epsilon))) * scale
        return np.asarray(fma(x, factor, fma(-mean, factor, bias)))


def _given_as_line(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    with np.errstate(all="ignore"):
        factor = (_ONE / np.sqrt(variance + np.float32(epsilon))) * scale
        return np.asarray(x * factor + (bias - mean * factor))


def _batch_in_packets(
    x: np.ndarray,
    scale: np.ndarray,
    bias: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    epsilon: float,
    momentum: float,
    joined: bool = False,
) -> tuple[np.ndarray, ...]:
    """Sums of every channel of every image in packets, then image by image; the root is of the reciprocal. `joined`:
    lanes are folded by neighbours, and products enter sums with one rounding.
    """
    add = multiply_add.RULES["rounded_once" if joined else "rounded_twice"].apply
    rows, kind, width = x.reshape(-1, x.shape[2]), x.dtype.type, 16 // x.itemsize
    starts, count, one = np.arange(rows.shape[0]) * x.shape[2], kind(x.shape[0] * x.shape[2]), kind(1)

    def over_images(sums: np.ndarray) -> np.ndarray:
        total = np.zeros(x.shape[1], x.dtype)
        for image in sums.reshape(x.shape[:2]):
            total = total + image
        return total / count

    with np.errstate(all="ignore"):
        if joined:
            own = over_images(aligned_packets(rows, starts, NEIGHBOURS, width))
            apart = (x - own[:, None]).reshape(rows.shape)
            if x.shape[2] == 1:
                # Squares of an image are sums by themselves.
                spread = _fused_squares(apart.reshape(x.shape[:2]).T) / count
            else:
                spread = over_images(aligned_packets(apart, 0 * starts, FUSED_SQUARES, width))
            inverse = np.sqrt(_inverse_joined(spread + kind(np.float32(epsilon))))
        else:
            own = over_images(aligned_packets(rows, starts, width=width))
            apart = (x - own[:, None]).reshape(rows.shape)
            spread = over_images(aligned_packets(apart * apart, 0 * starts, width=width))
            inverse = np.sqrt(one / (spread + kind(np.float32(epsilon))))
        factor = inverse * scale
        result = add(x, factor[:, None], add(-own, factor, bias)[:, None])
        keep = kind(np.float32(momentum))
        running = tuple(add(a, keep, b * (one - keep)) for a, b in ((mean, own), (variance, spread)))
        return result, *running, own, inverse


def _given_as_difference(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float
) -> np.ndarray:
    """The scale over the deviation, times the difference from the mean, plus the bias.

    >>> one = np.ones(1, np.float32)
    >>> RULES["binary32_difference"].by_given(np.float32([3, 4]), one, one, one, 3 * one, 1.0).tolist()
    [2.0, 2.5]
    """
    with np.errstate(all="ignore"):
        return np.asarray(scale / np.sqrt(variance + np.float32(epsilon)) * (x - mean) + bias)


def _in_order(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.accumulate(rows, axis=1)[:, -1])


def _length_in_order(x: Rows, p: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        length = (_in_order(np.abs(x)) if p == 1 else np.sqrt(_in_order(x * x)))[:, None]
        return np.where(length == 0, x.dtype.type(0), x / length)


def _length_fused(x: Rows, p: int) -> np.ndarray:
    """Squares are added one after the other, each with one rounding.

    >>> RULES["binary32_joined"].by_length(np.float32([[3, 4], [0, 0]]), 2).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if p == 1:
        return _length_in_order(x, p)
    with np.errstate(all="ignore"):
        length = np.sqrt(_fused_squares(x))[:, None]
        return np.where(length == 0, np.float32(0), x / length)


def _across_running(
    x: np.ndarray, size: int, alpha: float, beta: float, bias: float, joined: bool = False
) -> np.ndarray:
    """Sums of a moving window: one square is added, then one is taken away; `joined`: their products are fused."""

    def add(total: np.ndarray, factor: np.float32, square: np.ndarray) -> np.ndarray:
        return fma(factor, square, total) if joined else total + factor * square

    before = (size - 1) // 2
    share = np.float32(alpha) / np.float32(size)
    with np.errstate(all="ignore"):
        squares = np.pad(x * x, ((0, 0), (before, size - 1 - before), (0, 0)))
        sums = np.full_like(x, bias)
        under = sums[:, 0].copy()
        for i in range(size):
            under = add(under, share, squares[:, i])
        sums[:, 0] = under
        for c in range(1, x.shape[1]):
            under = add(add(under, share, squares[:, c + size - 1]), -share, squares[:, c - 1])
            sums[:, c] = under
        # The last one to three of all numbers are the C library's.
        flat, exponent = sums.ravel(), np.float32(-beta)
        rest = flat[flat.size // 4 * 4 :]
        powers = double_words.power(flat, exponent, joined)
        powers[flat.size - rest.size :] = elementary.power(rest, np.full_like(rest, exponent))
        return np.asarray(x * powers.reshape(x.shape))


_ROUNDED_ONCE = RealNormalizationRule(
    _rows_rounded_once,
    _given_rounded_once,
    _length_rounded_once,
    _across_rounded_once,
    "the whole formula as a real number, rounded once to binary32, ties to even",
    "the definition of correct rounding; fractions and decimal arithmetic with 260 digits",
    _batch_rounded_once,
)
_LANES = RealNormalizationRule(
    _rows_in_lanes,
    _given_as_line,
    _length_in_order,
    _across_running,
    "layer: mean from binary64 sums in 4 lanes, squared differences by fused multiply-adds in 8 lanes, fma((x - "
    "mean) "
    "(1 / deviation), scale, bias); short or summed rows by running means; broadcast scales in binary64, "
    "rounded once at the end, by mean of squares less square of mean; branches: squares in order, x (1 / root) scale; "
    "instance and group: sums in packets "
    "of 4, "
    "x factor + shift, or mean of squares less square of mean; given: x f32(scale / deviation) + shift; length: "
    "sums in "
    "order; across: sums of a moving window, powers in fours by sums of two numbers, the last ones by the C library; "
    "batch: sums in packets of 4, image by image, x factor + shift with factor = sqrt(1 / (variance + epsilon)) scale",
    "kernels of one runtime and its libraries for x86-64, read; verified by running",
    _batch_in_packets,
)
RULES: dict[str, RealNormalizationRule] = {
    "rounded_once": _ROUNDED_ONCE,
    "binary32_difference": replace(
        _ROUNDED_ONCE,
        by_given=_given_as_difference,
        formula="given: f32(f32(f32(scale / f32(sqrt(f32(variance + epsilon)))) f32(x - mean)) + bias); the others as "
        "real numbers, rounded once",
        source="a runtime's kernel for channels in planes; verified by running",
    ),
    "binary32_lanes": _LANES,
    "binary32_joined": replace(
        _LANES,
        by_rows=_rows_joined,
        by_given=_given_joined,
        by_length=_length_fused,
        across=partial(_across_running, joined=True),
        by_batch=partial(_batch_in_packets, joined=True),
        formula="layer: running means, or sums of squares in order where means stay, fma((x - mean) / deviation, "
        "scale, bias); broadcast scales as binary32_lanes, fused; instance and group: sums in packets of 4 "
        "whose lanes are folded by neighbours, squares fused (of 2 or 3 in an instance the second square is rounded "
        "first), fma(x, factor, fma(-mean, factor, bias)), or "
        "mean of squares less square of mean; given: the same with factor = scale / deviation by an estimate "
        "of the reciprocal in fours; across: as binary32_lanes with fused sums, and powers whose logarithms "
        "lose second words of products; batch: squares fused, sqrt(1 / (variance + epsilon)) by an estimate "
        "in fours, fma(x, factor, fma(-mean, factor, bias)). Of binary64 numbers: the same in packets of 2, "
        "reciprocals without an estimate",
        source="the same kernels as compilers for aarch64 join their operations; verified by running",
    ),
    "binary64_running": replace(
        _LANES,
        by_rows=_rows_running,
        formula="of binary64 numbers, layers: running means, or with broadcast scales mean of squares less square of "
        "mean; (x - mean) / deviation scale + bias; given: x (scale / deviation) + shift; length: sums in order",
    ),
}
