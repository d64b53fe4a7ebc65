"""split: one tensor cut along one axis into several, which keep the axis or, of one position each, lose it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step


def _axis(call: Call, rank: int) -> int:
    """The attribute, or the first number of the third input."""
    if not call.has(2):
        return call.axis(call.attribute("axis"), rank)
    values = call.integers(2, "axis")
    if not values or not rank:
        raise call.invalid("BT-SPLIT", f"axis {values} does not name an axis of a tensor of rank {rank}")
    return call.axis(values[0], rank)


def _given(call: Call, size: int) -> list[int]:
    """The second input; one -1 is what is left where `open_size` says so."""
    call.rank(call.input(1, "sizes"), 1)
    sizes = call.integers(1, "sizes")
    if call.attribute("open_size") and sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = size - sum(sizes) - 1
    return sizes


def _equal(call: Call, dimension: int) -> list[int]:
    """Equal parts; `uneven`: the last one has the rest."""
    count = len(call.outputs)
    if not call.attribute("uneven"):
        return [dimension // count] * count
    size = -(-dimension // count)
    sizes = [size] * (count - 1) + [dimension - size * (count - 1)]
    if sizes[-1] <= 0:
        raise call.invalid("BT-SPLIT", f"a dimension of {dimension} cannot be cut into {count} parts of {size}")
    return sizes


def _parts(call: Call) -> tuple[int, list[int]]:
    """Axis and sizes."""
    source, count = call.input(0), len(call.outputs)
    call.rank(source, 1, source.rank or 1)
    if call.attribute("count") != count or not count:
        raise call.invalid("BT-SPLIT", f"{call.attribute('count')} parts are asked for, but there are {count} outputs")
    axis = _axis(call, source.rank)
    size = source.shape[axis]
    sizes = _given(call, size) if call.has(1) else _equal(call, size)
    if len(sizes) != count or min(sizes, default=0) < 0 or sum(sizes) != size:
        raise call.invalid("BT-SPLIT", f"sizes {sizes} do not cut a dimension of {size} into {count} parts")
    if not call.attribute("keeps_axis") and (size != count or not source.size):
        raise call.invalid("BT-SPLIT", f"shape {list(source.shape)} has not {count} slices along axis {axis}")
    return axis, sizes


def infer(call: Call) -> list[Shape]:
    """The input's shape with the part's dimension along the axis, or without it."""
    call.expect((1, 3), None)
    axis, sizes = _parts(call)
    shape = call.input(0).shape
    kept = call.attribute("keeps_axis")
    return [(*shape[:axis], *((size,) if kept else ()), *shape[axis + 1 :]) for size in sizes]


def lower(call: Call) -> Lowered:
    """The axis, the sizes, and whether the parts have the axis."""
    axis, sizes = _parts(call)
    parameters: dict[str, Attribute] = {
        "axis": axis,
        "sizes": tuple(sizes),
        "keeps_axis": bool(call.attribute("keeps_axis")),
    }
    return Lowered(parameters, inputs=(0,))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of each part."""
    x, before = inputs[0], (slice(None),) * step["axis"]
    results, start = [], 0
    for size in step["sizes"]:
        place = slice(start, start + size) if step["keeps_axis"] else start
        results.append(np.array(x[(*before, place)], order="C"))
        start += size
    return results


OPERATOR = Operator("split", (), infer, lower, reference, "parts along one axis", moves=True)
