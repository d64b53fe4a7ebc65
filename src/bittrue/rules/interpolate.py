"""Slot `interpolate`: two-way linear interpolation between pixels.

`prepare` runs at plan time, once per axis: for every output position the two input positions and the weight of the
second one. `apply` combines the four neighbours of each pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic.floats import fused_multiply_add as fma
from ..records import dataclass

Prepared = dict[str, np.ndarray]
Corners = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class InterpolateRule:
    """`prepare(size, out, align corners, half-pixel centres) -> low, high, weight`, one entry per output position.

    It raises ValueError when a position falls outside the input. `apply(corners, weight_y, weight_x)` takes the pixels
    (low y, low x), (high y, low x), (low y, high x), (high y, high x) and weights that broadcast against them.
    """

    prepare: Callable[[int, int, bool, bool], Prepared]
    apply: Callable[[Corners, np.ndarray, np.ndarray], np.ndarray]
    formula: str
    source: str


def _inside(low: np.ndarray, size: int) -> None:
    if low.size and int(low.max()) >= size:
        position = int(np.argmax(low >= size))
        raise ValueError(f"output position {position} reads input position {int(low[position])} of {size}")


def _prepare_tenths(size: int, out: int, align_corners: bool, half_pixel: bool) -> Prepared:
    step = (1024 * size + out // 2) // out
    if align_corners and out > 1:
        step = (1024 * (size - 1) + (out - 1) // 2) // (out - 1)
    position = np.arange(out, dtype=np.int64) * step
    if half_pixel:
        position += step // 2 - 512
    # Positions reach down to -512. Shifting those gives -1, dividing them toward zero 0: clamped, both are 0.
    low = np.maximum(position >> 10, 0)
    high = np.minimum((position + 1023) >> 10, size - 1)
    _inside(low, size)
    return {"low": low, "high": high, "weight": position - 1024 * low}


def _apply_tenths(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Weights are whole 1024ths: a tie, a negative tie, and a step of 341/1024 where a third was meant.

    >>> rule = RULES["ten_bits_half_away"]
    >>> half, none = np.array([512]), np.array([0])
    >>> [rule.apply((np.array([v]), none, np.array([v + 1]), none), none, half).tolist() for v in (2, -3)]
    [[3], [-3]]
    >>> rule.prepare(2, 6, False, False)["weight"].tolist()
    [0, 341, 682, 1023, 340, 681]
    """
    total = _tenths_total(corners, weight_y, weight_x)
    # Toward zero after half a unit away from zero: nearest, ties away from zero.
    magnitude = (np.abs(total) + (1 << 19)) >> 20
    return np.where(total > 0, magnitude, -magnitude)


def _apply_tenths_up(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """A tie and a negative tie.

    >>> rule = RULES["ten_bits_half_up"]
    >>> half, none = np.array([512]), np.array([0])
    >>> [rule.apply((np.array([v]), none, np.array([v + 1]), none), none, half).tolist() for v in (2, -3)]
    [[3], [-2]]
    """
    return (_tenths_total(corners, weight_y, weight_x) + (1 << 19)) >> 20


def _tenths_total(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    at_low_y = corners[0] * (1024 - weight_x) + corners[2] * weight_x
    at_high_y = corners[1] * (1024 - weight_x) + corners[3] * weight_x
    return at_low_y * (1024 - weight_y) + at_high_y * weight_y


def _prepare_binary32(size: int, out: int, align_corners: bool, half_pixel: bool) -> Prepared:
    f32 = np.float32
    step = f32(size - 1) / f32(out - 1) if align_corners and out > 1 else f32(size) / f32(out)
    position = np.arange(out).astype(f32)
    position = (position + f32(0.5)) * step - f32(0.5) if half_pixel else position * step
    low = np.maximum(np.floor(position).astype(np.int64), 0)
    high = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    _inside(low, size)
    return {"low": low, "high": high, "weight": position - low.astype(f32)}


def _prepare_fused(size: int, out: int, align_corners: bool, half_pixel: bool) -> Prepared:
    f32 = np.float32
    step = f32(size - 1) / f32(out - 1) if align_corners and out > 1 else f32(size) / f32(out)
    position = np.arange(out).astype(f32)
    position = fma(position + f32(0.5), step, f32(-0.5)) if half_pixel else position * step
    low = np.maximum(np.floor(position).astype(np.int64), 0)
    high = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    _inside(low, size)
    return {"low": low, "high": high, "weight": position - low.astype(f32)}


def _prepare_eleven_bits(size: int, out: int, align_corners: bool, half_pixel: bool) -> Prepared:
    low, high, weight = _clamped_positions(size, out, align_corners, half_pixel)
    return {"low": low, "high": high, "weight": np.rint(weight * np.float32(2048)).astype(np.int64)}


def _clamped_positions(
    size: int, out: int, align_corners: bool, half_pixel: bool, fused: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions are limited to [0, dimension - 1] before they are split into a whole and a fraction."""
    f32 = np.float32
    corners = 1 if align_corners and out > 1 else 0
    step = f32(size - corners) / f32(out - corners)
    count = np.arange(out).astype(f32)
    position = count * step
    if half_pixel and not align_corners:
        start = f32(0.5) * step - f32(0.5)
        position = fma(count, step, start) if fused else position + start
    position = np.minimum(np.maximum(position, f32(0)), f32(size - 1))
    low = position.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), position - low.astype(f32)


def _apply_eleven_bits(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Weights are whole 2048ths; ties go up, negative ones too.

    >>> rule = RULES["eleven_bits_half_up"]
    >>> half, none = np.array([1024]), np.array([0])
    >>> [rule.apply((np.array([v]), none, np.array([v + 1]), none), none, half).tolist() for v in (2, -3)]
    [[3], [-2]]
    """
    top = corners[0] * 2048 + (corners[2] - corners[0]) * weight_x
    bottom = corners[1] * 2048 + (corners[3] - corners[1]) * weight_x
    return (top * 2048 + (bottom - top) * weight_y + (1 << 21)) >> 22


def _prepare_clamped(size: int, out: int, align_corners: bool, half_pixel: bool, fused: bool = False) -> Prepared:
    low, high, weight = _clamped_positions(size, out, align_corners, half_pixel, fused)
    return {"low": low, "high": high, "weight": weight}


def _prepare_ends(size: int, out: int, align_corners: bool, half_pixel: bool) -> Prepared:
    f32 = np.float32
    if align_corners and out == 1:
        raise ValueError("one output position has no step between corners")
    corners = 1 if align_corners else 0
    step = f32((size - corners) / (out - corners))
    position = np.arange(out).astype(f32)
    position = (position + f32(0.5)) * step - f32(0.5) if half_pixel else position * step
    below = np.floor(position)
    low, high = (np.clip(below.astype(np.int64) + more, 0, size - 1) for more in (0, 1))
    return {"low": low, "high": high, "weight": position - below}


def _apply_ends(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Along x first, then between the rows; both ends have a weight.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_ends"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    one = np.float32(1)
    with np.errstate(all="ignore"):
        top = corners[0] * (one - weight_x) + corners[2] * weight_x
        bottom = corners[1] * (one - weight_x) + corners[3] * weight_x
        return top * (one - weight_y) + bottom * weight_y


def _apply_differences(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Along x first, then between the rows.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_differences"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    with np.errstate(all="ignore"):
        top = corners[0] + (corners[2] - corners[0]) * weight_x
        bottom = corners[1] + (corners[3] - corners[1]) * weight_x
        return top + (bottom - top) * weight_y


def _apply_fused_differences(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """As `_apply_differences`; a product and the sum that it enters are rounded once.

    >>> low, high, weight = np.float32([-1]), np.float32([0.3]), np.float32([0.7])
    >>> rules = (RULES[name] for name in ("binary32_differences", "binary32_fused_differences"))
    >>> [rule.apply((low, low, high, high), 0 * low, weight).tolist() for rule in rules]
    [[-0.09000003337860107], [-0.09000004827976227]]
    """
    with np.errstate(all="ignore"):
        top = fma(corners[2] - corners[0], weight_x, corners[0])
        bottom = fma(corners[3] - corners[1], weight_x, corners[1])
        return fma(bottom - top, weight_y, top)


def _four_products(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray, nudge: np.float32) -> np.ndarray:
    one = np.float32(1)
    with np.errstate(all="ignore"):
        total = corners[0] * (one - weight_y) * (one - weight_x)
        total = total + corners[1] * weight_y * (one - weight_x)
        total = total + corners[2] * (one - weight_y) * weight_x
        total = total + corners[3] * weight_y * weight_x
        return total + nudge


def _apply_binary32_up(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Ties go up.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_products_half_up"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [3]
    """
    corners = tuple(corner.astype(np.float32) for corner in corners)  # type: ignore[assignment]
    return np.trunc(_four_products(corners, weight_y, weight_x, np.float32(0.5))).astype(np.int64)


def _apply_binary32(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Zeros come out positive, because 0 is added last.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_products"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    return _four_products(corners, weight_y, weight_x, np.float32(0))


def _fused_products(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    one = np.float32(1)
    with np.errstate(all="ignore"):
        total = corners[1] * weight_y * (one - weight_x)
        total = fma(corners[0] * (one - weight_y), one - weight_x, total)
        total = fma(corners[2] * (one - weight_y), weight_x, total)
        return fma(corners[3] * weight_y, weight_x, total)


def _apply_fused_products_up(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Ties go up.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> rule = RULES["binary32_fused_products_half_up"]
    >>> rule.apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [3]
    """
    corners = tuple(corner.astype(np.float32) for corner in corners)  # type: ignore[assignment]
    return np.trunc(_fused_products(corners, weight_y, weight_x) + np.float32(0.5)).astype(np.int64)


def _apply_fused_products(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Zeros come out positive, because 0 is added last.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_fused_products"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    with np.errstate(all="ignore"):
        return _fused_products(corners, weight_y, weight_x) + np.float32(0)


def _apply_fused_weights_up(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Ties go up.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> rule = RULES["binary32_fused_weights_half_up"]
    >>> rule.apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [3]
    """
    one = np.float32(1)
    low_y, high_y, low_high, both = (corner.astype(np.float32) for corner in corners)
    with np.errstate(all="ignore"):
        total = low_high * ((one - weight_y) * weight_x)
        total = fma(low_y, (one - weight_y) * (one - weight_x), total)
        total = fma(high_y, weight_y * (one - weight_x), total)
        total = fma(both, weight_y * weight_x, total)
        return np.trunc(total + np.float32(0.5)).astype(np.int64)


def _apply_fused_weights(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Zeros come out positive, because the sum begins with 0.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_fused_weights"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    one = np.float32(1)
    with np.errstate(all="ignore"):
        total = fma(corners[0], (one - weight_y) * (one - weight_x), np.float32(0))
        total = fma(corners[2], (one - weight_y) * weight_x, total)
        total = fma(corners[1], weight_y * (one - weight_x), total)
        return fma(corners[3], weight_y * weight_x, total)


def _weighted(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray, start: np.float32 | None) -> np.ndarray:
    """Each corner times the rounded product of its weights, row by row, `start` before or nothing."""
    one = np.float32(1)
    weights = (one - weight_y) * (one - weight_x), weight_y * (one - weight_x), (one - weight_y) * weight_x
    with np.errstate(all="ignore"):
        total = corners[0] * weights[0]
        if start is not None:
            total = start + total
        total = total + corners[2] * weights[2]
        total = total + corners[1] * weights[1]
        return total + corners[3] * (weight_y * weight_x)


def _apply_weights_up(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Ties go up.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_weights_half_up"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [3]
    """
    corners = tuple(corner.astype(np.float32) for corner in corners)  # type: ignore[assignment]
    return np.trunc(_weighted(corners, weight_y, weight_x, None) + np.float32(0.5)).astype(np.int64)


def _apply_weights(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Zeros come out positive, because the sum begins with 0.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> RULES["binary32_weights"].apply((np.float32([2]), none, np.float32([3]), none), none, half).tolist()
    [2.5]
    """
    return _weighted(corners, weight_y, weight_x, np.float32(0))


def _apply_halves(corners: Corners, weight_y: np.ndarray, weight_x: np.ndarray) -> np.ndarray:
    """Weights are 0 or 1/2.

    >>> half, none = np.float32([0.5]), np.float32([0])
    >>> corners = tuple(np.float32([v]) for v in (2, 4, 3, 6))
    >>> [float(RULES["binary32_halves"].apply(corners, y, x)[0]) for y in (none, half) for x in (none, half)]
    [2.0, 2.5, 3.0, 3.75]
    """
    half = np.float32(0.5)
    with np.errstate(all="ignore"):
        left = (corners[0] + corners[1]) * half
        both = (left + (corners[2] + corners[3]) * half) * half
        top = np.where(weight_x > 0, (corners[0] + corners[2]) * half, corners[0])
    return np.where(weight_y > 0, np.where(weight_x > 0, both, left), top)


RULES: dict[str, InterpolateRule] = {
    "ten_bits_half_away": InterpolateRule(
        _prepare_tenths,
        _apply_tenths,
        "step = (1024 * dimension + out div 2) div out; position and weights in 1/1024; "
        "the exact sum over 2^20, to nearest, ties away from zero",
        "docs/facts/litert.md 2.4 (RESIZE_BILINEAR int8, int16), verified by running",
    ),
    "ten_bits_half_up": InterpolateRule(
        _prepare_tenths,
        _apply_tenths_up,
        "as ten_bits_half_away, with ties up",
        "docs/facts/single_rounding.md 1.3, verified by running",
    ),
    "binary32_products_half_up": InterpolateRule(
        _prepare_binary32,
        _apply_binary32_up,
        "weights in binary32; p00*(1-wy)*(1-wx) + p10*wy*(1-wx) + p01*(1-wy)*wx + p11*wy*wx + 0.5, each operation "
        "rounded to binary32 in this order, then truncated",
        "docs/facts/litert.md 2.4 (RESIZE_BILINEAR uint8), verified by running",
    ),
    "binary32_products": InterpolateRule(
        _prepare_binary32,
        _apply_binary32,
        "as binary32_products_half_up with 0 in place of 0.5, not truncated",
        "kernels/resize_bilinear.h, verified by running",
    ),
    "eleven_bits_half_up": InterpolateRule(
        _prepare_eleven_bits,
        _apply_eleven_bits,
        "positions in binary32, limited to the image; weights in 1/2048, ties to even; the exact sum over 2^22, "
        "ties up",
        "docs/facts/xnnpack.md 2.7, verified by running",
    ),
    "binary32_ends": InterpolateRule(
        _prepare_ends,
        _apply_ends,
        "a (1 - t) + b t along x, then along y, in binary32; t is the fraction of the position, and positions outside"
        " of the image read its border",
        "docs/facts/tvm_qnn.md 12, read",
    ),
    "binary32_differences": InterpolateRule(
        _prepare_clamped,
        _apply_differences,
        "positions as in eleven_bits_half_up, weights in binary32; t = low + (high - low) * wx in both rows, then "
        "t + (b - t) * wy, every operation rounded to binary32",
        "docs/facts/xnnpack.md 3.5, verified by running",
    ),
    "binary32_fused_differences": InterpolateRule(
        partial(_prepare_clamped, fused=True),
        _apply_fused_differences,
        "as binary32_differences; a product and the sum that it enters are rounded once",
        "docs/facts/xnnpack.md 3.5, verified by running on aarch64",
    ),
    "binary32_differences_unlimited": InterpolateRule(
        _prepare_binary32,
        _apply_differences,
        "positions (i + 1/2) * step - 1/2 or i * step in binary32, not limited before they are split; t = low + (high "
        "- low) * wx in both rows, then t + (b - t) * wy, every operation rounded to binary32",
        "docs/facts/snps_caffe.md 8 (ResizeBilinear), verified by replaying its vectors",
    ),
    "binary32_weights_half_up": InterpolateRule(
        _prepare_binary32,
        _apply_weights_up,
        "p00*f32((1-wy)*(1-wx)) + p01*f32((1-wy)*wx) + p10*f32(wy*(1-wx)) + p11*f32(wy*wx) + 0.5, each operation "
        "rounded to binary32 in this order, then truncated",
        "kernels/internal/optimized/resize_bilinear.h (uint8), verified by running",
    ),
    "binary32_weights": InterpolateRule(
        _prepare_binary32,
        _apply_weights,
        "0 + p00*f32((1-wy)*(1-wx)) + p01*f32((1-wy)*wx) + p10*f32(wy*(1-wx)) + p11*f32(wy*wx), each operation rounded "
        "to binary32 in this order",
        "kernels/internal/optimized/resize_bilinear.h (float), verified by running",
    ),
    "binary32_fused_products_half_up": InterpolateRule(
        _prepare_fused,
        _apply_fused_products_up,
        "as binary32_products_half_up, but a product and the sum that it enters are rounded once: p01, p11 and, last "
        "of the first two, p00 times their second weight; (i + 1/2) * step - 1/2 likewise",
        "kernels/resize_bilinear.h (uint8), verified by running on aarch64",
    ),
    "binary32_fused_products": InterpolateRule(
        _prepare_fused,
        _apply_fused_products,
        "as binary32_fused_products_half_up with 0 in place of 0.5, not truncated",
        "kernels/resize_bilinear.h, verified by running on aarch64",
    ),
    "binary32_fused_weights_half_up": InterpolateRule(
        _prepare_fused,
        _apply_fused_weights_up,
        "p01*f32((1-wy)*wx), to which p00*f32((1-wy)*(1-wx)), p10*f32(wy*(1-wx)) and p11*f32(wy*wx) are added with one "
        "rounding each, + 0.5, then truncated; (i + 1/2) * step - 1/2 is rounded once, too",
        "kernels/internal/optimized/resize_bilinear.h (uint8), verified by running on aarch64",
    ),
    "binary32_fused_weights": InterpolateRule(
        _prepare_fused,
        _apply_fused_weights,
        "as binary32_weights with one rounding per product and sum; (i + 1/2) * step - 1/2 is rounded once, too",
        "kernels/internal/optimized/resize_bilinear.h (float), verified by running on aarch64",
    ),
    "binary32_halves": InterpolateRule(
        _prepare_binary32,
        _apply_halves,
        "twice the size: p00, (p00 + p01) / 2, (p00 + p10) / 2 and ((p00 + p10) / 2 + (p01 + p11) / 2) / 2",
        "kernels/internal/optimized/resize_bilinear.h (2x2), verified by running",
    ),
}


Weights = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class WeightedRule:
    """Slot `weighted`: each of four neighbours times the weight of its row and of its column.

    `prepare(places, low, high)`: weights of the lower and the higher position, from binary32 places. `apply(corners,
    weights)`: corners (low y low x, low y high x, high y low x, high y high x), weights (low y, high y, low x, high x);
    of volumes those of the low z, then those of the high one, and weights (..., low z, high z).
    `limited`: places beyond the last position count as that one.
    """

    prepare: Callable[[np.ndarray, np.ndarray, np.ndarray], Weights]
    apply: Callable[[list[np.ndarray], list[np.ndarray]], np.ndarray]
    formula: str
    source: str
    limited: bool = True


def _prepare_fractions(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> Weights:
    fraction = places - low.astype(np.float32)
    return np.float32(1) - fraction, fraction


def _apply_in_pairs(corners: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """Four products; the sums of both rows are added.

    >>> one = np.float32([1])
    >>> rule = WEIGHTED["binary32_fractions_in_pairs"]
    >>> rule.apply([np.float32([v]) for v in (2**24, 1, 1, 0)], [one] * 4).tolist()
    [16777216.0]
    >>> rule.prepare(np.float32([1.25]), np.array([1]), np.array([1]))
    (array([0.75], dtype=float32), array([0.25], dtype=float32))
    """
    low_y, high_y, low_x, high_x = weights
    with np.errstate(all="ignore"):
        low = low_x * low_y * corners[0] + high_x * low_y * corners[1]
        return low + (low_x * high_y * corners[2] + high_x * high_y * corners[3])


def _prepare_distances(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> Weights:
    half, same, f32 = np.float32(0.5), low == high, np.float32
    first, second = np.abs(places - high.astype(f32)), np.abs(places - low.astype(f32))
    return np.where(same, half, first), np.where(same, half, second)


def _prepare_ten_bits(places: np.ndarray, low: np.ndarray, high: np.ndarray) -> Weights:
    whole, same = (places * np.float32(1024)).astype(np.int64), low == high
    return np.where(same, 512, np.abs(whole - 1024 * high)), np.where(same, 512, np.abs(whole - 1024 * low))


def _shares(weights: list[np.ndarray]) -> list[np.ndarray]:
    """Of the corners, in their order."""
    low_y, high_y, low_x, high_x, *planes = weights
    with np.errstate(all="ignore"):
        return [
            wx * wy * wz
            for wz in planes or [np.ones((), np.float32)]
            for wy in (low_y, high_y)
            for wx in (low_x, high_x)
        ]


def _apply_in_order(corners: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """Four products, or eight with two planes, added one by one.

    >>> half = np.float32([0.5])
    >>> rule = WEIGHTED["binary32_weights_in_order"]
    >>> rule.apply([np.float32([v]) for v in (1, 2, 3, 4)], [half] * 4).tolist()
    [2.5]
    """
    total: np.ndarray | None = None
    with np.errstate(all="ignore"):
        for share, corner in zip(_shares(weights), corners, strict=True):
            product = share * corner.astype(np.float32)
            total = product if total is None else total + product
    assert total is not None
    return total


def _apply_fused_in_order(corners: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """The same with one rounding of each product and what it is added to; the second product is rounded first.

    >>> weights = [np.float32([41 / 61])] * 4
    >>> corners = [np.float32([v]) for v in (1, 3, 7, 9)]
    >>> [WEIGHTED[f"binary32{way}_weights_in_order"].apply(corners, weights).tolist() for way in ("", "_fused")]
    [[9.03520393371582], [9.035204887390137]]
    """
    pairs = [(share, corner.astype(np.float32)) for share, corner in zip(_shares(weights), corners, strict=True)]
    with np.errstate(all="ignore"):
        total = fma(*pairs[0], np.multiply(*pairs[1]))
        for pair in pairs[2:]:
            total = fma(*pair, total)
    return total


def _apply_toward_zero(corners: list[np.ndarray], weights: list[np.ndarray]) -> np.ndarray:
    """The exact sum over 2^20, toward zero.

    >>> half = np.array([512])
    >>> rule = WEIGHTED["ten_bits_toward_zero"]
    >>> [rule.apply([np.int8([v]) for v in four], [half] * 4).tolist() for four in ((1, 2, 3, 4), (-1, -2, -3, -4))]
    [[2], [-2]]
    """
    low_y, high_y, low_x, high_x = weights
    wide = [corner.astype(np.int64) for corner in corners]
    total = low_x * low_y * wide[0] + high_x * low_y * wide[1] + low_x * high_y * wide[2] + high_x * high_y * wide[3]
    return np.where(total < 0, -(-total >> 20), total >> 20)


WEIGHTED: dict[str, WeightedRule] = {
    "binary32_weights_in_order": WeightedRule(
        _prepare_distances,
        _apply_in_order,
        "weights are distances in binary32, both 1/2 where low = high; wx0*wy0*p00 + wx1*wy0*p01 + wx0*wy1*p10 + "
        "wx1*wy1*p11 from left to right, each operation rounded to binary32, of volumes eight wx*wy*wz*p; integers "
        "truncate the result",
        "run",
    ),
    "binary32_fused_weights_in_order": WeightedRule(
        _prepare_distances,
        _apply_fused_in_order,
        "as binary32_weights_in_order, but a product and the sum that it enters have one rounding; the second product "
        "is rounded first",
        "docs/facts/onnxruntime.md 3.8, verified by running",
    ),
    "binary32_fractions_in_pairs": WeightedRule(
        _prepare_fractions,
        _apply_in_pairs,
        "weights are the fraction of a place and 1 less that; (wx0*wy0*p00 + wx1*wy0*p01) + (wx0*wy1*p10 + "
        "wx1*wy1*p11), each operation rounded to binary32",
        "run",
        limited=False,
    ),
    "ten_bits_toward_zero": WeightedRule(
        _prepare_ten_bits,
        _apply_toward_zero,
        "places in 1/1024, truncated; weights are distances, both 512 where low = high; the exact sum over 2^20, "
        "toward zero",
        "run",
    ),
}
