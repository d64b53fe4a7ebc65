"""Slot `nearest`: from a real place to the whole position that is read there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# (places in binary32, how to round, whether the axis shrinks) to whole positions, not yet limited to the axis.
NearestRule = Callable[[np.ndarray, str, bool], np.ndarray]


def half_away(x: np.ndarray | np.float32) -> np.ndarray:
    """To nearest, ties away from zero, exact."""
    wide = np.asarray(x, np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def _whole(x: np.ndarray, how: str, shrinks: bool) -> np.ndarray | None:
    if how == "floor":
        return np.floor(x)
    if how == "ceil":
        return np.ceil(x)
    return None if how != "simple" else np.ceil(x) if shrinks else np.trunc(x)


def ties_within_a_millionth(x: np.ndarray, how: str, shrinks: bool) -> np.ndarray:
    """floor, ceil, simple (ceil where the axis shrinks, else toward zero); round_prefer_floor and round_prefer_ceil: to
    nearest, where a fraction within 10^-6 of 1/2 is a tie, which goes down or up.

    Domain: binary32. Source: run (a threshold of 10^-6 in binary32).

    >>> x = np.float32([0.5, 1.4999998, 1.4999])
    >>> [ties_within_a_millionth(x, f"round_prefer_{how}", False).tolist() for how in ("floor", "ceil")]
    [[0.0, 1.0, 1.0], [1.0, 2.0, 1.0]]
    """
    found = _whole(x, how, shrinks)
    if found is not None:
        return found
    below = np.floor(x)
    tie = np.abs((x - below) - np.float32(0.5)) <= np.float32(1e-6)
    return np.where(tie, below if how == "round_prefer_floor" else below + np.float32(1), half_away(x))


RULES: dict[str, NearestRule] = {"ties_within_a_millionth": ties_within_a_millionth}
