"""unique: the different elements, or slices along an axis; where each is first, which one each is, and how often.

Ascending, or in the order in which they first occur. Equal zeros are one value. NaNs are all different, or are taken
for others as in a kernel that keeps values in an ordered tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import data_type
from ..core.base import Call, Lowered, Operator, Shape, Step


def _slices(x: np.ndarray, axis: int | None) -> np.ndarray:
    """[slices, elements of a slice]."""
    if axis is None:
        return x.reshape(-1, 1)
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], math.prod(x.shape[:axis] + x.shape[axis + 1 :]))


def _sliced(x: np.ndarray, axis: int | None, in_order: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First places of different slices, which one each slice is, counts."""
    rows = _slices(x, axis)
    # The last key of lexsort is the first one that counts; equal slices stay in order.
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    sorted_rows = rows[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (sorted_rows[1:] != sorted_rows[:-1]).any(axis=1)
    places, which = order[new], np.empty(len(rows), np.int64)
    which[order] = np.cumsum(new) - 1
    if not in_order:
        by_place = np.argsort(places)
        moved = np.empty(places.size, np.int64)
        moved[by_place] = np.arange(places.size)
        places, which = places[by_place], moved[which]
    return places.astype(np.int64), which, np.bincount(which, minlength=places.size).astype(np.int64)


def _unique(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values in the order of their first occurrence, and an index into them for each element.

    The kernel keeps values in an ordered tree, in which a NaN counts as equal to whatever it is compared with first:
    a NaN after other values is taken for the smallest of them, and all values after a leading NaN for that NaN.

    >>> [part.tolist() for part in _unique(np.float32([3, 1, np.nan, 3]))]
    [[3.0, 1.0], [0, 1, 1, 0]]
    """
    if not x.size:
        return x.copy(), np.zeros(0, np.int64)
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, np.bool_)
    if missing[0]:
        return x[:1].copy(), np.zeros(x.size, np.int64)
    if missing.any():
        # fmin passes over NaNs.
        x = np.where(missing, np.fmin.accumulate(x), x)
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return x[first[order]], place[which.reshape(-1)]


def _axis(call: Call) -> int | None:
    axis = call.node.attributes.get("axis")
    return None if axis is None else call.axis(int(str(axis)), call.input(0).rank)


def _results(call: Call) -> Sequence[str]:
    """What the outputs are: `indices` says which value each element is, `all` is that and what surrounds it."""
    return ("values", "which") if call.attribute("results") == "indices" else ("values", "first", "which", "counts")


def infer(call: Call) -> list[Shape]:
    """The number of different slices is in the values."""
    call.expect(1, len(call.outputs))
    source, axis, results = call.input(0), _axis(call), _results(call)
    if call.attribute("results") == "indices":
        call.rank(source, 1)
        call.expect(1, 2)
        if call.attribute("idx_out_type") != call.outputs[1].dtype:
            raise call.invalid(
                "BT-UNIQUE-TYPE",
                f"the indices' type is {call.attribute('idx_out_type')}, but their tensor is {call.outputs[1].dtype}",
            )
    count = -1
    if source.value is not None:
        count = len(_found(source.value, axis, False, bool(call.attribute("nans_differ")))["first"])
    elements = source.size if axis is None else source.shape[axis]
    values = (count,) if axis is None else (*source.shape[:axis], count, *source.shape[axis + 1 :])
    shapes = {"values": values, "first": (count,), "which": (elements,), "counts": (count,)}
    return [shapes[name] for name in results][: len(call.outputs)]


def lower(call: Call) -> Lowered:
    """Axis (-1: elements), order, what NaNs are, and the type of the indices."""
    axis = _axis(call)
    return Lowered(
        {
            "axis": -1 if axis is None else axis,
            "in_order": bool(call.attribute("sorted")),
            "nans_differ": bool(call.attribute("nans_differ")),
            "results": " ".join(_results(call)[: len(call.outputs)]),
            "type": call.outputs[-1].dtype if len(call.outputs) > 1 else "s64",
        },
        scratch=400 * call.input(0).size,
    )


def _found(x: np.ndarray, axis: int | None, in_order: bool, nans_differ: bool) -> dict[str, np.ndarray]:
    """Every result by name, values in the shape that they have."""
    if not nans_differ:
        values, which = _unique(x)
        return {"values": values, "first": values, "which": which}
    places, which, counts = _sliced(x, axis, in_order)
    values = x.reshape(-1)[places] if axis is None else np.take(x, places, axis=axis)
    return {"values": np.ascontiguousarray(values), "first": places, "which": which, "counts": counts}


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values, then what is asked for of them."""
    found = _found(inputs[0], None if step["axis"] < 0 else step["axis"], step["in_order"], step["nans_differ"])
    kind = data_type(step["type"]).numpy
    return [found[name] if name == "values" else found[name].astype(kind) for name in step["results"].split()]


OPERATOR = Operator("unique", (), infer, lower, reference, "different elements or slices")
