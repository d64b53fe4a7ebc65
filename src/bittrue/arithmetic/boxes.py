"""Overlap of axis-aligned boxes in binary32, one rounding per operation, in a fixed order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

F32 = np.ndarray[Any, np.dtype[Any]]


def _larger(a: F32, b: npt.ArrayLike) -> F32:
    """The second only where it is truly larger: a NaN in the first stays, one in the second is passed over."""
    return np.where(a < b, b, a)


def _smaller(a: F32, b: npt.ArrayLike) -> F32:
    return np.where(b < a, b, a)


def sorted_corners(boxes: npt.ArrayLike) -> F32:
    """[..., 4] corners (y, x, y, x) in any order as (low y, low x, high y, high x), binary32.

    >>> sorted_corners([3, 0, 1, 2]).tolist()
    [1.0, 0.0, 3.0, 2.0]
    """
    x = np.asarray(boxes, np.float32)
    first, second = x[..., :2], x[..., 2:]
    return np.concatenate([_smaller(first, second), _larger(first, second)], axis=-1)


def intersection_over_union(first: npt.ArrayLike, second: npt.ArrayLike) -> F32:
    """intersection / ((area 1 + area 2) - intersection) of boxes [..., 4] (low y, low x, high y, high x), binary32.

    0 where one of the areas is not above 0 (an area that is NaN counts as above). Shapes broadcast.
    Domain: all. Source: LiteRT ``detection_postprocess.cc`` and ``non_max_suppression.h`` at f674577, read and run.

    >>> intersection_over_union([0, 0, 2, 2], [[1, 1, 3, 3], [5, 5, 6, 6], [1, 1, 1, 3]]).tolist()
    [0.1428571492433548, 0.0, 0.0]
    """
    one, two = np.asarray(first, np.float32), np.asarray(second, np.float32)
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        areas = [(b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (one, two)]
        low, high = _larger(one[..., :2], two[..., :2]), _smaller(one[..., 2:], two[..., 2:])
        sides = _larger(high - low, zero)
        shared = sides[..., 0] * sides[..., 1]
        ratio = shared / ((areas[0] + areas[1]) - shared)
    return np.where((areas[0] <= 0) | (areas[1] <= 0), zero, ratio)
