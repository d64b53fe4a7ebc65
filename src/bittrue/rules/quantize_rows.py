"""Slots `quantize_symmetric` and `quantize_asymmetric`: real rows become bytes with scales of their own at run time.

A row is what shares one scale: an image of a convolution, a row of a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import row_quantize
from ..arithmetic.floats import round_away

# [rows, n] binary32 -> integers [rows, n], binary32 scales [rows], zero points [rows], both integers as s64.
QuantizeRowsRule = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]


def binary32_range_even(
    x: np.ndarray, nearest: Callable[[np.ndarray], np.ndarray] = np.rint
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """s = f32(255 / f32(hi - lo)) with lo = min(0, x), hi = max(0, x); q = round_even(f32(x * s)) + zero point.

    zero point = -128 - f32(lo * s) where f32(f32(-128 + lo * s) + f32(127 + hi * s)) > 0, else 127 - f32(hi * s),
    limited to [-128, 127] and rounded, ties to even. The scale is f32(1 / s); a row of zeros has s = 1. Every operation
    rounds to binary32. Source: docs/facts/xnnpack.md 2.8, verified by running.

    >>> q, scale, zero_point = binary32_range_even(np.float32([[-1, 0, 1.55]]))
    >>> q.tolist(), scale.tolist(), zero_point.tolist()
    ([[-128, -28, 127]], [0.009999999776482582], [-28])
    """
    if not np.isfinite(x).all():
        raise OverflowError("a row holds NaN or an infinity")
    f32 = np.float32
    with np.errstate(all="ignore"):
        low, high = x.min(axis=-1, initial=f32(0)), x.max(axis=-1, initial=f32(0))
        flat = low == high
        steps = np.where(flat, f32(1), f32(255) / (high - low))
        from_low, from_high = low * steps, high * steps
        upper = (f32(-128) + from_low) + (f32(127) + from_high) > 0
        point = np.where(upper, f32(-128) - from_low, f32(127) - from_high)
        zero_points = np.rint(np.clip(point, f32(-128), f32(127))).astype(np.int64)
        rounded = nearest(np.clip(x * steps[:, None], f32(-32768), f32(32767))).astype(np.int64)
        return np.clip(rounded + zero_points[:, None], -128, 127), f32(1) / steps, zero_points


def binary32_range_even_then_away(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `binary32_range_even`, but elements are rounded with ties away from zero; zero points are not.

    Source: docs/facts/xnnpack.md 2.8, verified by running on aarch64.

    >>> row = np.float32([[-127.5, 0, 2.5, 127.5]])
    >>> [rule(row)[0].tolist() for rule in (binary32_range_even, binary32_range_even_then_away)]
    [[[-128, 0, 2, 127]], [[-128, 0, 3, 127]]]
    """
    return binary32_range_even(x, round_away)


SYMMETRIC: dict[str, QuantizeRowsRule] = {
    "binary32_range_over_127_by_eights": row_quantize.symmetric,
    "binary32_range_over_127_away": row_quantize.symmetric_away,
    "binary64_range_over_127_away": row_quantize.symmetric_by_wide_quotients,
}
ASYMMETRIC: dict[str, QuantizeRowsRule] = {
    "binary32_range_over_255_by_eights": row_quantize.asymmetric,
    "binary32_range_over_255_away": row_quantize.asymmetric_away,
    "binary32_range_even": binary32_range_even,
    "binary32_range_even_then_away": binary32_range_even_then_away,
}


def per_image(x: np.ndarray) -> np.ndarray:
    """All pixels of an image share a scale: [N, H, W, C] becomes [N, H * W * C].

    >>> per_image(np.zeros((2, 3, 3, 4), np.float32)).shape
    (2, 36)
    """
    return x.reshape(x.shape[0], -1)


def per_pixel(x: np.ndarray) -> np.ndarray:
    """Every pixel has a scale of its own: [..., C] becomes [pixels, C].

    >>> per_pixel(np.zeros((2, 3, 3, 4), np.float32)).shape
    (18, 4)
    """
    return x.reshape(-1, x.shape[-1])


# Slot `rows`: what shares one scale in a convolution.
ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"per_image": per_image, "per_pixel": per_pixel}
