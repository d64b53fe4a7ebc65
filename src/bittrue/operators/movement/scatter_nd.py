"""scatter_nd: slices put at coordinates, or combined with what is there: a tensor, zeros, or one default value.

Inputs: tensor, coordinates, updates; without a tensor: its shape, and the default unless it is zero. Slices act one
after the other, in order. `coordinates` are those of `slices`, of single `elements`, or positions `along_axis`, of the
tensor's rank, one per update.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES, Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from .gather import along, merged
from .put import combine


def _elements(call: Call, target: Shape) -> bool:
    """Whether a list of positions, or rows of coordinates of all axes, has one element each, or one for all."""
    indices, values = call.input(1, "coordinates"), call.input(2, "updates")
    call.rank(indices, 0, 2)
    call.rank(values, 0, 1)
    if call.has(4) and call.input(4, "default").size != 1:
        raise call.invalid("BT-SCATTER", f"the default must be one value, found shape {list(call.input(4).shape)}")
    count = indices.shape[0] if indices.rank else 1
    depth = indices.shape[1] if indices.rank == 2 else 1
    return depth == len(target) <= 4 and not (values.rank and values.shape[0] != count)


def _slices(call: Call, target: Shape) -> bool:
    """Whether [..., k] coordinates address the first k axes, and updates are [..., the other axes]."""
    indices, updates = call.input(1, "coordinates"), call.input(2, "updates")
    if not indices.rank or indices.shape[-1] > len(target) or not (updates.rank or call.has(0)):
        return False
    return updates.shape == (*indices.shape[:-1], *target[indices.shape[-1] :])


def _along_axis(call: Call, target: Shape) -> bool:
    """Whether positions and updates have one shape, within the tensor's but along the axis."""
    positions, updates = call.input(1, "positions"), call.input(2, "updates")
    axis = call.axis(call.attribute("axis"), len(target)) if target else 0
    within = all(a == axis or size <= target[a] for a, size in enumerate(positions.shape[: len(target)]))
    return positions.rank == len(target) and positions.shape == updates.shape and within


_FITS = {"slices": _slices, "elements": _elements, "along_axis": _along_axis}


def infer(call: Call) -> list[Shape]:
    """The tensor's shape, or the fourth input."""
    call.expect((3, 5))
    if call.has(0):
        target = call.input(0).shape
    else:
        call.rank(call.input(3, "shape"), 1)
        target = bounded(call, call.integers(3, "shape"))
    fits = _FITS[str(call.attribute("coordinates"))]
    if (call.has(0) and not target) or not fits(call, target):
        found = [list(call.input(position).shape) for position in (1, 2)]
        raise call.invalid("BT-SCATTER", f"coordinates {found[0]} and updates {found[1]} do not fit {list(target)}")
    return [target]


def lower(call: Call) -> Lowered:
    """Sizes of the axes that coordinates address, number of slices and their size, and what is there before."""
    target, indices = call.output.shape, call.input(1).shape
    if call.attribute("coordinates") == "along_axis":
        axis = call.axis(call.attribute("axis"), len(target))
        work, scratch = call.output.size + call.input(1).size, 64 * call.input(1).size
        return Lowered({"axis": axis, "reduction": call.attribute("reduction")}, work=work, scratch=scratch)
    elements = call.attribute("coordinates") == "elements"
    depth = len(target) if elements else indices[-1]
    count = math.prod(indices[:1] if elements else indices[:-1])
    parameters: dict[str, Attribute] = {
        "sizes": target[:depth],
        "count": count,
        "inner": math.prod(target[depth:]),
        "shape": target,
        "type": call.output.dtype,
        "wraps": bool(call.attribute("wraps")),
        "reduction": call.attribute("reduction"),
        "into": "tensor" if call.has(0) else "default" if call.has(4) else "zeros",
    }
    inputs = (1, 2, 0) if call.has(0) else (1, 2, 4) if call.has(4) else (1, 2)
    size = call.output.size
    return Lowered(
        parameters, inputs=inputs, work=size + call.input(2).size, scratch=24 * call.input(1).size + 64 * size
    )


def _put_along(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """out[i, positions[i, j, ...], ...] = updates[i, j, ...] for axis 1."""
    out = inputs[0].copy()
    places = along(step, inputs[1], out.shape)
    if inputs[1].size:
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), out.shape).reshape(-1)
        combine(out.reshape(-1), flat, inputs[2].reshape(-1), step["reduction"])
    return [out]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Slice by slice."""
    if "axis" in step.parameters:
        return _put_along(step, inputs)
    count, inner, updates = step["count"], step["inner"], inputs[1]
    flat = merged(step, inputs[0], count, step["sizes"])
    if step["into"] == "tensor":
        out = inputs[2].copy()
    else:
        value = inputs[2].reshape(()) if step["into"] == "default" else 0
        out = np.full(step["shape"], value, DATA_TYPES[step["type"]].numpy)
    if updates.size and flat.size:
        places = (flat[:, None] * inner + np.arange(inner)).reshape(-1)
        combine(out.reshape(-1), places, np.broadcast_to(updates.reshape(-1), places.shape), step["reduction"])
    return [out]


OPERATOR = Operator("scatter_nd", (), infer, lower, reference, "slices put, or added, by coordinates")
