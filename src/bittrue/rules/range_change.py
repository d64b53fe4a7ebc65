"""Slot `range_change`: a quantized value of one range as a quantized value of another range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .range_levels import check_factors


def binary32_quotients_even(
    q: np.ndarray, levels: float, span: float, output_levels: float, output_span: float, low: int, high: int
) -> np.ndarray:
    """clamp(round_even(f32(q * f))), f = f32(f32(output levels / output range) / f32(levels / range)); where the two
    quotients are equal, q itself.

    Ties to even. Domain: 8-bit integers; ranges that are numbers, else ValueError. Returns int64.
    Source: docs/facts/mxnet.md 1 (concat), verified by running.

    >>> binary32_quotients_even(np.int8([5, -5, 7]), 127.5, 1.0, 127.5, 2.0, -128, 127).tolist()  # 2.5, -2.5, 3.5
    [2, -2, 4]
    >>> binary32_quotients_even(np.uint8([0, 255]), 255.5, 1.0, 127.5, 1.0, -128, 127).tolist()
    [0, 127]
    """
    f32 = np.float32
    with np.errstate(all="ignore"):
        one, other = f32(levels) / f32(span), f32(output_levels) / f32(output_span)
        if one == other:
            return np.asarray(q, np.int64)
        factor = other / one
        check_factors(float(factor))
        return np.clip(np.rint(np.asarray(q).astype(np.float32) * factor), f32(low), f32(high)).astype(np.int64)


RULES: dict[str, Callable[[np.ndarray, float, float, float, float, int, int], np.ndarray]] = {
    "binary32_quotients_even": binary32_quotients_even,
}
