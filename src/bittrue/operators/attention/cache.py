"""The cache of keys and values that a call of attention fills: full ones, ones of a window, and ones of integers."""

from __future__ import annotations

import numpy as np

from ...records import dataclass
from ..core.base import Step
from ..core.packed import unpacked


@dataclass(frozen=True)
class Places:
    """Where every sequence of a batch has its rows [B].

    Attributes:
        first, taken: the past rows that stay, and how many of them: new ones come behind them.
        before: keys before those that the first query sees.
        counts: keys that are seen.
        hidden: earlier keys that no row holds; additions to scores count them.
        kept: how many of the last rows are given for the next call; None: all of them, in their places.
    """

    first: np.ndarray
    taken: np.ndarray
    before: np.ndarray
    counts: np.ndarray
    hidden: np.ndarray
    kept: np.ndarray | None = None


def full(counts: np.ndarray, queries: int, new: int, begins: bool) -> Places:
    """Sequences begin at the front; where nothing is new, the past rows are all that there is."""
    nothing = np.zeros_like(counts)
    before = nothing if begins else counts - queries
    return Places(nothing, before if new else counts, before, counts, nothing)


def _resident(count: np.ndarray, room: int, window: int) -> np.ndarray:
    """How many of so many rows stay in a cache that frees several places at once.

    >>> _resident(np.arange(8), 5, 3).tolist()
    [0, 1, 2, 3, 4, 5, 3, 4]
    """
    step = room - window + 1
    return count - step * np.maximum(0, -(-(count - room) // step))


def of_window(counts: np.ndarray, queries: int, room: int, window: int) -> Places:
    """Rows that leave for new ones do so before queries look at the others, unless one of these needs them."""
    past = counts - queries
    held, kept = _resident(past, room, window), _resident(counts, room, window)
    taken = kept - queries
    if (taken < np.minimum(past, window - 1)).any():
        taken = held
    return Places(held - taken, taken, taken, taken + queries, past - taken, kept)


def joined(past: np.ndarray | None, new: np.ndarray, places: Places, rows: int, nothing: int) -> np.ndarray:
    """For each sequence its past rows and then the new ones [B, N, rows, size]; the others are `nothing`."""
    result = np.full((*new.shape[:2], rows, new.shape[3]), nothing, new.dtype)
    for b, (first, taken) in enumerate(zip(places.first, places.taken, strict=True)):
        if past is not None:
            result[b, :, :taken] = past[b, :, first : first + taken]
        result[b, :, taken : taken + new.shape[2]] = new[b]
    return result


def for_next_call(rows: np.ndarray, places: Places, room: int) -> np.ndarray:
    """What a cache with so many places gives."""
    if places.kept is None:
        return rows
    result = np.zeros((*rows.shape[:2], room, rows.shape[3]), rows.dtype)
    for b, (count, kept) in enumerate(zip(places.counts, places.kept, strict=True)):
        result[b, :, :kept] = rows[b, :, count - kept : count]
    return result


def quantized(x: np.ndarray, scales: np.ndarray, bits: int) -> np.ndarray:
    """Real rows as integers: f32(x * f32(1 / scale)), ties to even, limited; a scale of 0 counts as 1."""
    ones = np.ones_like(scales)
    with np.errstate(all="ignore"):
        steps = np.rint(x * np.divide(ones, scales, where=scales != 0, out=ones))
    limit = 1 << (bits - 1)
    # NaN is limited from above.
    return np.where(steps < limit - 1, np.maximum(steps, -limit), limit - 1).astype(np.int8)


def packed(x: np.ndarray, bits: int) -> np.ndarray:
    """Two numbers of 4 bits in a byte, each 8 more than it counts, the first in the low half."""
    if bits == 8:
        return x
    raised = (x + 8).astype(np.uint8)
    return raised[..., 0::2] | (raised[..., 1::2] << 4)


def numbers(x: np.ndarray, bits: int) -> np.ndarray:
    """The integers of packed rows."""
    return x if bits == 8 else unpacked(x, 4).astype(np.int8) - np.int8(8)


def scales_of(step: Step, scales: np.ndarray) -> np.ndarray:
    """[1], or a row for every head of keys."""
    return scales.reshape(1) if scales.size == 1 else scales.reshape(step["key_heads"], 1, -1)
