"""Slot `accumulate`: the width of the accumulator, and of what is added up before it.

Sums are exact integers, so their order cannot matter; only widths can, once a sum leaves them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import fixed_point
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class AccumulateRule:
    """`limit`: largest magnitude that is certainly kept; `finish` maps the exact sum to what the register holds.

    `lost`, where products of u8 and s8 values are added up in something narrower first: what exact sums exceed such
    ones by, for quantized values x[..., M, K] and w[..., K, N]; `limit` then says nothing.
    """

    limit: int
    finish: Callable[[np.ndarray], np.ndarray]
    formula: str
    lost: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


_S16_MIN, _S16_MAX = -(2**15), 2**15 - 1


def _even(quantized: np.ndarray, axis: int) -> np.ndarray:
    """Quantized values with a 0 behind an odd number of them."""
    widths = [(0, 0)] * quantized.ndim
    widths[axis] = (0, quantized.shape[axis] % 2)
    return np.pad(quantized, widths)


def risky_pairs(w: np.ndarray, low: int = 0, high: int = 255) -> np.ndarray:
    """Which neighbours w[..., 2p, n], w[..., 2p + 1, n] can leave 16 bits for quantized values between `low` and
    `high`.

    >>> risky_pairs(np.array([[64, 64, -128], [64, 65, -1]])).tolist()
    [[False, True, True]]
    """
    pairs = _even(w.astype(np.int64), -2)
    ends = np.stack([low * pairs, high * pairs])
    highest, lowest = (e[..., ::2, :] + e[..., 1::2, :] for e in (ends.max(axis=0), ends.min(axis=0)))
    return np.asarray((highest > _S16_MAX) | (lowest < _S16_MIN))


def tap_by_tap(filters: np.ndarray, anew: bool) -> np.ndarray:
    """Filters [O, C, taps...] in the order in which windows are multiplied by them, [O, taps and channels]; where pairs
    begin `anew` at every tap, with a 0 behind an odd number of channels.

    >>> tap_by_tap(np.array([[[1, 2], [3, 4]]]), False).tolist()
    [[1, 3, 2, 4]]
    >>> tap_by_tap(np.array([[[1, 2]]]), True).tolist()
    [[1, 0, 2, 0]]
    """
    rows = filters.reshape(*filters.shape[:2], -1)
    rows = (_even(rows, 1) if anew else rows).swapaxes(1, 2)
    return rows.reshape(filters.shape[0], rows.shape[1] * rows.shape[2])


def lost_to_s16_pairs(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """sum over pairs p of s - clamp(s, -32768, 32767), s = x[2p] w[2p] + x[2p + 1] w[2p + 1], as s64 [..., M, N].

    x holds u8 values [..., M, K], w s8 values [..., K, N]; the last pair of an odd K has a 0. Zero points come later:
    s8 values x are those of u8 with the zero point 128, so that 128 is added to them here, and taken off u8 values w.

    >>> lost_to_s16_pairs(np.array([[255, 255, 255]]), np.array([[127], [127], [127]])).tolist()
    [[32003]]
    >>> lost_to_s16_pairs(np.int8([[127, 127, 127]]), np.int8([[127], [127], [127]])).tolist()
    [[32003]]
    """
    unsigned = x.astype(np.int32) + (128 if x.dtype == np.int8 else 0)
    signed = w.astype(np.int32) - (128 if w.dtype == np.uint8 else 0)
    left, right = _even(unsigned, -1), _even(signed, -2)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*batch, left.shape[-2], right.shape[-1]), np.int64)
    risky = risky_pairs(signed)
    for pair in np.flatnonzero(risky.any(axis=(*range(risky.ndim - 2), -1))):
        columns = np.flatnonzero(risky[..., pair, :].any(axis=tuple(range(risky.ndim - 2))))
        first, second = (right[..., 2 * pair + k, :][..., None, columns] for k in (0, 1))
        sums = left[..., 2 * pair, None] * first + left[..., 2 * pair + 1, None] * second
        total[..., columns] += sums - np.clip(sums, _S16_MIN, _S16_MAX)
    return total


def _nearest_binary32(exact: np.ndarray) -> np.ndarray:
    return exact.astype(np.float32).astype(np.int64)


RULES: dict[str, AccumulateRule] = {
    "s32_wrap": AccumulateRule(2**31 - 1, fixed_point.wrap_s32, "two's complement, modulo 2^32"),
    "s16_wrap": AccumulateRule(2**15 - 1, fixed_point.wrap_s16, "two's complement, modulo 2^16"),
    "s16_pairs_s32_wrap": AccumulateRule(
        2**31 - 1,
        fixed_point.wrap_s32,
        "sums of two neighbouring products of u8 and s8 values are clamped to 16 bits, all else is modulo 2^32; where "
        "both are s8, 128 is added to the first ones, where both are u8, it is taken off the second ones",
        lost_to_s16_pairs,
    ),
    "binary32": AccumulateRule(
        2**24,
        _nearest_binary32,
        "the exact sum without bias (known only while no partial sum leaves 2^24) plus the bias, rounded to binary32",
    ),
    "s64": AccumulateRule(2**63 - 1, lambda exact: exact, "64 bits; the planner proves that no sum leaves them"),
}
