"""How updates of scattered elements meet what is there.

Updates act one after the other, in order. add and multiply wrap (or round) in the type, truth values are joined by or
and and; largest and smallest keep the update unless the element is beyond it, so NaN and equal zeros are replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_UFUNCS: dict[str, Any] = {"add": np.add, "multiply": np.multiply}
_BEYOND: dict[str, Callable[[Any, Any], Any]] = {"largest": np.greater, "smallest": np.less}


def combine(out: np.ndarray, places: Any, updates: np.ndarray, how: str) -> None:
    """out[places] = how(out[places], updates), repeated places one after the other."""
    with np.errstate(all="ignore"):
        if how == "replace":
            out[places] = updates
        elif how == "add" and out.dtype == np.bool_:
            np.bitwise_or.at(out.view(np.uint8), places, updates.view(np.uint8))
        elif how in _UFUNCS:
            _UFUNCS[how].at(out, places, updates)
        else:
            _keep_beyond(out, places, updates, _BEYOND[how])


def _keep_beyond(out: np.ndarray, places: Any, updates: np.ndarray, beyond: Callable[[Any, Any], Any]) -> None:
    """Round by round: the first update of every place, then the second one, and so on."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if ordered.size else np.zeros(0, np.bool_)
    start = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0)) if ordered.size else first
    turn = np.arange(ordered.size) - start
    by_turn = np.argsort(turn, kind="stable")
    for chosen in np.split(order[by_turn], np.flatnonzero(np.diff(turn[by_turn])) + 1):
        at, new = places[chosen], updates[chosen]
        old = out[at]
        out[at] = np.where(beyond(old, new), old, new)
