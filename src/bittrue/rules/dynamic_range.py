"""Slot `dynamic_range`: scale and zero point of u8 from the extremes of the numbers that are to be quantized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# 1-D binary32 array to binary32 scale and zero point; OverflowError where they have no defined value.
DynamicRangeRule = Callable[[np.ndarray], tuple[np.float32, int]]
_F32 = np.float32
# Lanes of a vector, and vectors that are walked side by side.
_LANES, _ABREAST = 8, 4


def _larger(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The x86 maximum: b where one of them is NaN."""
    return np.where(a > b, a, b)


def _smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a < b, a, b)


def _columns(rows: np.ndarray, largest: bool) -> np.ndarray:
    """Every column reduced from above: as a NaN gives way to what follows, what comes before it has no effect."""
    result = np.empty(rows.shape[1], np.float32)
    for column in range(rows.shape[1]):
        values = rows[:, column]
        missing = np.flatnonzero(np.isnan(values))
        if missing.size:
            values = values[min(missing[-1] + 1, len(values) - 1) :]
        result[column] = values.max() if largest else values.min()
    return result


def _extreme(x: np.ndarray, largest: bool) -> np.float32:
    """The extreme as vectors of 8 find it, four abreast, then one by one, then halves, then single numbers."""
    if not np.isnan(x).any():
        return _F32(x.max() if largest else x.min())
    pick = _larger if largest else _smaller
    done, found = 0, np.float32(-np.finfo(np.float32).max if largest else np.finfo(np.float32).max)
    if x.size >= _LANES:
        block = _LANES * _ABREAST
        done = x.size // block * block
        lanes = np.full(_LANES, found)
        if done:
            four = _columns(x[:done].reshape(-1, block), largest).reshape(_ABREAST, _LANES)
            lanes = pick(pick(four[0], four[1]), pick(four[2], four[3]))
        while x.size - done >= _LANES:
            lanes = pick(lanes, x[done : done + _LANES])
            done += _LANES
        half = pick(lanes[:4], lanes[4:])
        pair = pick(half[:2], half[2:])
        found = pick(pair[:1], pair[1:])[0]
    for value in x[done:]:
        # Here a NaN is passed over, and one that was found before stays.
        if value > found if largest else value < found:
            found = value
    return _F32(found)


def _missing_in_fours(x: np.ndarray) -> np.ndarray:
    """Where NaN stands in whole vectors of 4, the one first that stays: by lanes, then by the four that are abreast."""
    whole = x.size // 4 * 4
    places = np.flatnonzero(np.isnan(x[:whole]))
    abreast = np.where(places < whole // 16 * 16, places // 4 % 4, 4)
    return places[np.lexsort((places, abreast, places % 4))]


def _parameters(low: np.float32, high: np.float32, flat: np.float32 | None) -> tuple[np.float32, np.float32]:
    """Scale, and zero point before it is rounded; `flat` is the scale of an empty range, None for none of its own."""
    with np.errstate(all="ignore"):
        scale = (high - low) / _F32(255)
        if flat is not None and high == low:
            scale = flat
        return scale, _F32(0) - low / scale


def binary32_over_255_by_eights(x: np.ndarray) -> tuple[np.float32, int]:
    """scale = f32(f32(hi - lo) / 255), 1 where hi = lo; zero point = round_even(clamp(f32(0 - f32(lo / scale)))).

    lo = min(0, x), hi = max(0, x), found by vectors of 8 numbers, whose lanes forget what they held before a NaN; so
    NaN matters by its place. A NaN in place of the zero point counts as 255. No numbers: scale 1, zero point 0.
    Source: docs/facts/onnxruntime.md 1.4, verified by running on one thread (others split the numbers among them).

    >>> binary32_over_255_by_eights(np.float32([-1, 0, 1.55]))
    (np.float32(0.01), 100)
    >>> binary32_over_255_by_eights(np.float32([1, np.nan, 2]))
    (np.float32(0.007843138), 0)
    >>> binary32_over_255_by_eights(np.float32([-1, 254]))
    (np.float32(1.0), 1)
    """
    return _from_extremes(*(_extreme(x, largest) if x.size else _F32(0) for largest in (False, True)))


def binary32_over_255_by_fours(x: np.ndarray) -> tuple[np.float32, int]:
    """The same, but a NaN in a whole vector of 4 numbers stays, and one that is left over is passed by.

    Source: docs/facts/onnxruntime.md 3.7, verified by running on aarch64.

    >>> [binary32_over_255_by_fours(np.float32(x)) for x in ([1, 2, np.nan, 4], [0, 0, 0, 2.55, np.nan])]
    [(np.float32(nan), 255), (np.float32(0.01), 0)]
    """
    missing = _missing_in_fours(x)
    if missing.size:
        return _from_extremes(x[missing[0]], x[missing[0]])
    numbers = x[~np.isnan(x)]
    return _from_extremes(_F32(numbers.min(initial=0)), _F32(numbers.max(initial=0)))


def _from_extremes(low: np.float32, high: np.float32) -> tuple[np.float32, int]:
    """Their comparisons with 0 keep a NaN."""
    zero = _F32(0)
    low, high = (zero if low > 0 else low), (zero if high < 0 else high)
    scale, point = _parameters(low, high, _F32(1))
    point = point if point < 255 else _F32(255)
    return scale, int(np.rint(point if point > 0 else zero))


def binary32_over_255(x: np.ndarray) -> tuple[np.float32, int]:
    """scale = f32(f32(hi - lo) / 255); zero point = round_even(clamp(f32(0 - f32(lo / scale)))), lo <= 0 <= hi.

    An empty range, NaN and infinities have no defined result: they would divide by 0 or round what is no number.
    Source: the operator's function body in the specification, every operation rounded once.

    >>> binary32_over_255(np.float32([-1, 0, 1.55]))
    (np.float32(0.01), 100)
    """
    low, high = (_F32(x.min(initial=0)), _F32(x.max(initial=0)))
    scale, point = _parameters(low, high, None)
    if not np.isfinite(scale) or scale == 0:
        raise OverflowError(f"values between {low} and {high} give the scale {scale}, by which nothing can be divided")
    return scale, int(np.rint(min(max(point, _F32(0)), _F32(255))))


RULES: dict[str, DynamicRangeRule] = {
    "binary32_over_255": binary32_over_255,
    "binary32_over_255_by_eights": binary32_over_255_by_eights,
    "binary32_over_255_by_fours": binary32_over_255_by_fours,
}
