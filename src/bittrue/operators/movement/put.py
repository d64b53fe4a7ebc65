"""put_along: a copy of a tensor with elements replaced, or combined with others, by position along an axis.

Updates act one after the other, in order. add and multiply wrap (or round) in the type, truth values are joined by or
and and; largest and smallest keep the update unless the element is beyond it, so NaN and equal zeros are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from .gather import along

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


def infer(call: Call) -> list[Shape]:
    """The tensor's shape. Positions and updates have one shape, within the tensor's but along the axis."""
    call.expect(3)
    source, positions, updates = call.input(0), call.input(1, "positions"), call.input(2, "updates")
    call.rank(source, 1, max(1, source.rank))
    axis = call.axis(call.attribute("axis"), source.rank)
    fits = positions.rank == source.rank and all(
        a == axis or extent <= source.shape[a] for a, extent in enumerate(positions.shape)
    )
    if positions.shape != updates.shape or not fits:
        raise call.invalid(
            "BT-SCATTER",
            f"positions {list(positions.shape)} and updates {list(updates.shape)} do not fit {list(source.shape)}",
        )
    return [source.shape]


def lower(call: Call) -> Lowered:
    """The axis and what happens to the old element."""
    axis = call.axis(call.attribute("axis"), call.input(0).rank)
    return Lowered(
        {"axis": axis, "reduction": call.attribute("reduction")},
        work=call.input(0).size + call.input(1).size,
        scratch=64 * call.input(1).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """out[i, positions[i, j, ...], ...] = updates[i, j, ...] for axis 1."""
    out = inputs[0].copy()
    places = along(step, inputs[1], out.shape)
    if inputs[1].size:
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), out.shape).reshape(-1)
        combine(out.reshape(-1), flat, inputs[2].reshape(-1), step["reduction"])
    return [out]


OPERATOR = Operator("put_along", (), infer, lower, reference, "elements replaced along one axis", moves=True)
