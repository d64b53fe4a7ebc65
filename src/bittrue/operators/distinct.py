"""distinct: different elements, or slices along an axis; where each is first, which one each is, and how often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .stopping import check_stop


def _slices(x: np.ndarray, axis: int | None) -> np.ndarray:
    """[slices, elements of a slice]."""
    if axis is None:
        return x.reshape(-1, 1)
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], math.prod(x.shape[:axis] + x.shape[axis + 1 :]))


def _found(x: np.ndarray, axis: int | None, in_order: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First places of different slices, which one each slice is, counts."""
    rows = _slices(x, axis)
    keys: dict[Any, int] = {}
    first: list[int] = []
    which = np.zeros(len(rows), np.int64)
    for number, row in enumerate(rows.tolist()):
        check_stop()
        place = keys.setdefault(tuple(row), len(first))
        if place == len(first):
            first.append(number)
        which[number] = place
    places = np.array(first, np.int64)
    if in_order and places.size:
        # The last key of lexsort is the first one that counts.
        order = np.lexsort(rows[places].T[::-1]) if rows.shape[1] else np.arange(places.size)
        moved = np.empty(order.size, np.int64)
        moved[order] = np.arange(order.size)
        places, which = places[order], moved[which]
    return places, which, np.bincount(which, minlength=places.size).astype(np.int64)


def _axis(call: Call) -> int | None:
    axis = call.node.attributes.get("axis")
    return None if axis is None else call.axis(int(str(axis)), call.input(0).rank)


def infer(call: Call) -> list[Shape]:
    """The number of different slices is in the values."""
    call.expect(1, len(call.outputs))
    source, axis = call.input(0), _axis(call)
    count = -1
    if source.value is not None:
        count = _found(source.value, axis, False)[0].size
    elements = source.size if axis is None else source.shape[axis]
    values = (count,) if axis is None else (*source.shape[:axis], count, *source.shape[axis + 1 :])
    return [values, (count,), (elements,), (count,)][: len(call.outputs)]


def lower(call: Call) -> Lowered:
    """Axis (-1: elements) and order."""
    axis = _axis(call)
    return Lowered(
        {"axis": -1 if axis is None else axis, "in_order": bool(call.attribute("sorted"))},
        scratch=400 * call.input(0).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Ascending, or in the order in which they first occur. NaNs are all different, equal zeros are not."""
    x, axis = inputs[0], None if step["axis"] < 0 else step["axis"]
    places, which, counts = _found(x, axis, step["in_order"])
    values = x.reshape(-1)[places] if axis is None else np.take(x, places, axis=axis)
    return [np.ascontiguousarray(values), places, which, counts][: len(step.outputs)]


OPERATOR = Operator("distinct", (), infer, lower, reference, "different elements or slices")
