"""put_along and put_nd: a copy of a tensor with elements or slices replaced, or combined with others, by position.

Updates act one after the other, in order. add and multiply wrap (or round) in the type, truth values are joined by or
and and; largest and smallest keep the update unless the element is beyond it, so NaN and equal zeros are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .gather import along, merged
from .indexing import bounded

_UFUNCS: dict[str, Any] = {"add": np.add, "multiply": np.multiply}
_BEYOND: dict[str, Callable[[Any, Any], Any]] = {"largest": np.greater, "smallest": np.less}


def _combine(out: np.ndarray, places: Any, updates: np.ndarray, how: str) -> None:
    """out[places] = how(out[places], updates), repeated places one after the other."""
    with np.errstate(all="ignore"):
        if how == "replace":
            out[places] = updates
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


def infer_along(call: Call) -> list[Shape]:
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


def lower_along(call: Call) -> Lowered:
    """The axis and what happens to the old element."""
    axis = call.axis(call.attribute("axis"), call.input(0).rank)
    return Lowered(
        {"axis": axis, "reduction": call.attribute("reduction")},
        work=call.input(0).size + call.input(1).size,
        scratch=64 * call.input(1).size,
    )


def reference_along(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """out[i, positions[i, j, ...], ...] = updates[i, j, ...] for axis 1."""
    out = inputs[0].copy()
    places = along(step, inputs[1], out.shape)
    if inputs[1].size:
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), out.shape).reshape(-1)
        _combine(out.reshape(-1), flat, inputs[2].reshape(-1), step["reduction"])
    return [out]


def infer_nd(call: Call) -> list[Shape]:
    """The tensor's shape. [..., k] coordinates address its first k axes; updates are [..., the other axes]."""
    call.expect(3)
    source, positions, updates = call.input(0), call.input(1, "coordinates"), call.input(2, "updates")
    depth = positions.shape[-1] if positions.rank else 0
    if (
        not source.rank
        or not positions.rank
        or depth > source.rank
        or updates.shape != positions.shape[:-1] + source.shape[depth:]
    ):
        raise call.invalid(
            "BT-SCATTER",
            f"coordinates {list(positions.shape)} and updates {list(updates.shape)} do not fit {list(source.shape)}",
        )
    return [bounded(call, source.shape)]


def lower_nd(call: Call) -> Lowered:
    """Extents that coordinates address, number of slices and their size."""
    source, positions = call.input(0).shape, call.input(1).shape
    return Lowered(
        {
            "extents": source[: positions[-1]],
            "count": math.prod(positions[:-1]),
            "inner": math.prod(source[positions[-1] :]),
            "wraps": True,
            "reduction": call.attribute("reduction"),
        },
        work=call.input(0).size + call.input(2).size,
        scratch=24 * call.input(1).size + 64 * call.input(2).size,
    )


def reference_nd(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Slice by slice."""
    count, inner, updates = step["count"], step["inner"], inputs[2]
    out = inputs[0].copy()
    flat = merged(step, inputs[1], count, step["extents"])
    if updates.size:
        places = (flat[:, None] * inner + np.arange(inner)).reshape(-1)
        _combine(out.reshape(-1), places, updates.reshape(-1), step["reduction"])
    return [out]


OPERATORS = (
    Operator(
        "put_along", (), infer_along, lower_along, reference_along, "elements replaced along one axis", moves=True
    ),
    Operator("put_nd", (), infer_nd, lower_nd, reference_nd, "slices replaced by coordinates", moves=True),
)
