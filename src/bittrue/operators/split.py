"""split, split_v, split_parts and unpack: one tensor cut along one axis into several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import Attribute
from .base import Call, Lowered, Operator, Shape, Step


def _axis(call: Call, position: int, rank: int) -> int:
    """The first number of a constant input."""
    values = call.integers(position, "axis")
    if not values or not rank:
        raise call.invalid("BT-SPLIT", f"axis {values} does not name an axis of a tensor of rank {rank}")
    return call.axis(values[0], rank)


def _outputs(call: Call, attribute: str) -> int:
    count = int(call.attribute(attribute))
    if count != len(call.outputs):
        raise call.invalid("BT-SPLIT", f"{attribute} is {count}, but the node has {len(call.outputs)} outputs")
    return count


def _split(call: Call) -> tuple[int, list[int]]:
    call.expect(2, None)
    source, count = call.input(1), _outputs(call, "num_splits")
    axis = _axis(call, 0, source.rank)
    if count < 1 or source.shape[axis] % count:
        raise call.invalid("BT-SPLIT", f"an extent of {source.shape[axis]} cannot be split into {count} equal parts")
    return axis, [source.shape[axis] // count] * count


def _split_v(call: Call) -> tuple[int, list[int]]:
    call.expect(3, None)
    source, count = call.input(0), _outputs(call, "num_splits")
    axis = _axis(call, 2, source.rank)
    call.rank(call.input(1, "sizes"), 1)
    sizes = call.integers(1, "sizes")
    extent = source.shape[axis]
    free = [at for at, size in enumerate(sizes) if size == -1]
    rest = extent - sum(size for size in sizes if size != -1)
    if len(sizes) != count or len(free) > 1 or any(size < -1 for size in sizes) or (rest < 0 if free else rest):
        raise call.invalid("BT-SPLIT", f"sizes {sizes} do not cut an extent of {extent} into {count} parts")
    return axis, [rest if size == -1 else size for size in sizes]


_PARTS = {"split": (1, _split), "split_v": (0, _split_v)}


def infer(call: Call) -> list[Shape]:
    """The input's shape with the part's extent along the axis."""
    position, parts = _PARTS[call.node.operator]
    axis, sizes = parts(call)
    shape = call.input(position).shape
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def lower(call: Call) -> Lowered:
    """The axis and the extents of the parts."""
    position, parts = _PARTS[call.node.operator]
    axis, sizes = parts(call)
    return Lowered(parameters={"input": position, "axis": axis, "sizes": tuple(sizes)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of each part."""
    x, before = inputs[step["input"]], (slice(None),) * step["axis"]
    results, start = [], 0
    for size in step["sizes"]:
        results.append(np.array(x[(*before, slice(start, start + size))], order="C"))
        start += size
    return results


def _parts(call: Call) -> tuple[int, list[int]]:
    """Axis and extents: those of the second input, else equal ones (`uneven`: all but the last, which has the rest)."""
    source, count = call.input(0), len(call.outputs)
    call.rank(source, 1, source.rank or 1)
    axis = call.axis(call.attribute("axis"), source.rank)
    extent = source.shape[axis]
    if call.has(1):
        call.rank(call.input(1, "sizes"), 1)
        sizes = call.integers(1, "sizes")
    elif call.attribute("uneven"):
        size = -(-extent // count)
        sizes = [size] * (count - 1) + [extent - size * (count - 1)]
    else:
        sizes = [extent // count] * count
    spare = not call.has(1) and call.attribute("uneven") and sizes[-1] <= 0
    if len(sizes) != count or min(sizes, default=0) < 0 or sum(sizes) != extent or spare:
        raise call.invalid("BT-SPLIT", f"sizes {sizes} do not cut an extent of {extent} into {count} parts")
    return axis, sizes


def infer_parts(call: Call) -> list[Shape]:
    """The input's shape with the part's extent along the axis."""
    call.expect((1, 2), None)
    axis, sizes = _parts(call)
    shape = call.input(0).shape
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def lower_parts(call: Call) -> Lowered:
    """The axis and the extents of the parts."""
    axis, sizes = _parts(call)
    parameters: dict[str, Attribute] = {"input": 0, "axis": axis, "sizes": tuple(sizes)}
    return Lowered(parameters, operator="split", inputs=(0,))


def infer_unpack(call: Call) -> list[Shape]:
    """The input's shape without the axis."""
    call.expect(1, None)
    source, count = call.input(0), _outputs(call, "num")
    axis = call.axis(call.attribute("axis"), source.rank)
    if not source.rank or not source.size or source.shape[axis] != count:
        raise call.invalid("BT-UNPACK", f"shape {list(source.shape)} cannot be unpacked into {count} along axis {axis}")
    return [source.shape[:axis] + source.shape[axis + 1 :]] * count


def lower_unpack(call: Call) -> Lowered:
    """The axis."""
    axis = call.axis(call.attribute("axis"), call.input(0).rank)
    return Lowered(parameters={"axis": axis, "count": len(call.outputs)})


def reference_unpack(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of each slice."""
    before = (slice(None),) * step["axis"]
    return [np.array(inputs[0][(*before, at)], order="C") for at in range(step["count"])]


OPERATORS = (
    Operator("split", (), infer, lower, reference, "equal parts along one axis", moves=True),
    Operator("split_v", (), infer, lower, reference, "parts of given extents along one axis", moves=True),
    Operator("split_parts", (), infer_parts, lower_parts, reference, "parts along one axis", moves=True),
    Operator(
        "unpack",
        (),
        infer_unpack,
        lower_unpack,
        reference_unpack,
        "slices along one axis, which is dropped",
        moves=True,
    ),
)
