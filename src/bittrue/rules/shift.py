"""Slot `shift`: what a shift of bits does with places below 0 or beyond the width of the type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# x, places, whether bits move up.
Shift = Callable[[np.ndarray, np.ndarray, bool], np.ndarray]


def _shifted(x: np.ndarray, places: np.ndarray, up: bool) -> np.ndarray:
    return x << places if up else x >> places


def places_clamped(x: np.ndarray, places: np.ndarray, up: bool) -> np.ndarray:
    """Places are limited to 0 and the width less one. Domain: integers of any type. Source: run.

    >>> places_clamped(np.uint8([200, 200]), np.uint8([1, 9]), False).tolist()
    [100, 1]
    """
    return _shifted(x, np.clip(places, 0, 8 * x.dtype.itemsize - 1).astype(x.dtype), up)


def nothing_beyond(x: np.ndarray, places: np.ndarray, up: bool) -> np.ndarray:
    """Nothing but the sign of what moves down is left by places outside of 0 and the width less one. Domain: integers
    of any type. Source: run.

    >>> nothing_beyond(np.uint8([200, 200]), np.uint8([1, 9]), False).tolist()
    [100, 0]
    """
    beyond = (places >= x.dtype.type(8 * x.dtype.itemsize)) | (places < 0)
    rest = np.where((x < 0) & (not up), ~x.dtype.type(0), x.dtype.type(0))
    return np.where(beyond, rest, _shifted(x, np.where(beyond, x.dtype.type(0), places), up))


RULES: dict[str, Shift] = {"places_clamped": places_clamped, "nothing_beyond": nothing_beyond}
