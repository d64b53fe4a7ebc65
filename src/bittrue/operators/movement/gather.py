"""gather and gather_nd: elements or slices picked by position along one axis, or by coordinates.

With `from_either_end`, negative positions count from the back. A position outside of the tensor is an error of the run.
Slices with scales by blocks (`block_axis`): see `gather_blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from . import embedding_lookup, gather_blocks, gather_boxes


def _axes(call: Call) -> tuple[int, int]:
    """Axis and number of batch axes, both counted from the front."""
    source, positions = call.input(0), call.input(1, "positions")
    axis = call.axis(call.attribute("axis"), source.rank)
    batch = int(call.attribute("batch_dims"))
    batch += positions.rank if batch < 0 else 0
    if source.rank == 0 or not 0 <= batch <= min(axis, positions.rank):
        raise call.invalid(
            "BT-GATHER", f"batch_dims {call.attribute('batch_dims')} does not fit axis {axis} of {list(source.shape)}"
        )
    if source.shape[:batch] != positions.shape[:batch]:
        raise call.invalid(
            "BT-GATHER", f"the first {batch} sizes of {list(source.shape)} and {list(positions.shape)} differ"
        )
    return axis, batch


def wrapped(step: Step, positions: np.ndarray, size: int) -> np.ndarray:
    """Positions counted from the front; a RunError for one outside of [-dimension, dimension)."""
    found = positions.astype(np.int64)
    bad = found[(found < -size) | (found >= size)]
    if bad.size:
        raise RunError(
            "BT-GATHER-POSITION", f"position {int(bad[0])} must lie in [{-size}, {size - 1}]", place=step.place
        )
    return np.where(found < 0, found + size, found)


def _of_table(call: Call) -> bool:
    """Whether rows of a table are picked, which may become real numbers."""
    return bool(call.node.attributes.get("table", False))


def _in_blocks(call: Call) -> bool:
    """Whether what is picked has scales by blocks, and becomes real numbers."""
    return "block_axis" in call.node.attributes


def _by_element(call: Call) -> bool:
    """Whether positions have the tensor's rank, and each one picks an element."""
    return bool(call.node.attributes.get("elements", False))


def _wraps(call: Call) -> bool:
    return bool(call.node.attributes.get("from_either_end", False))


def infer(call: Call) -> list[Shape]:
    """The axis gives way to the axes of the positions that are not batch axes; `elements`: the positions' shape."""
    if _in_blocks(call):
        return gather_blocks.infer(call)
    if _of_table(call):
        return embedding_lookup.infer(call)
    call.expect(2)
    if _by_element(call):
        return _infer_elements(call)
    axis, batch = _axes(call)
    source = call.input(0).shape
    return [bounded(call, source[:axis] + call.input(1).shape[batch:] + source[axis + 1 :])]


def lower(call: Call) -> Lowered:
    """The tensor as [batch, outer, axis, inner] and the positions as [batch, count]; or the axis alone."""
    if _in_blocks(call):
        return gather_blocks.lower(call)
    if _of_table(call):
        table = call.input(0)
        if table.dtype != call.output.dtype:
            return embedding_lookup.lower(call)
        if table.tensor.quantization is not None and table.quantization.per_axis:
            raise call.invalid("BT-QUANT-PER-AXIS", f"'{table.name}' has several scales, which only real outputs take")
    if _by_element(call):
        axis = call.axis(call.attribute("axis"), call.input(0).rank)
        return Lowered({"axis": axis}, scratch=24 * call.input(1).size)
    axis, batch = _axes(call)
    source, positions = call.input(0).shape, call.input(1).shape
    sizes = [math.prod(part) for part in (source[:batch], source[batch:axis], source[axis + 1 :], positions[batch:])]
    return Lowered(
        parameters={
            "batch": sizes[0],
            "outer": sizes[1],
            "dimension": source[axis],
            "inner": sizes[2],
            "count": sizes[3],
            "wraps": _wraps(call),
            "shape": call.output.shape,
        },
        scratch=16 * call.input(1).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Picked along axis 2 of [batch, outer, axis, inner]; or out[i, j, ...] = in[i, positions[i, j, ...], ...]."""
    if "block_axis" in step.parameters:
        return gather_blocks.reference(step, inputs)
    if "enlarged" in step.parameters:
        return embedding_lookup.reference(step, inputs)
    if "axis" in step.parameters:
        return [np.ascontiguousarray(inputs[0][along(step, inputs[1], inputs[0].shape)])]
    x = inputs[0].reshape(step["batch"], step["outer"], step["dimension"], step["inner"])
    positions = inputs[1].astype(np.int64).reshape(step["batch"], step["count"])
    # From the front, an upper bound is only met when something is read, a negative position never passes.
    read = step["wraps"] or step["batch"] * step["outer"]
    positions = _checked(step, positions, step["dimension"] if read else None)
    if not math.prod(step["shape"]):
        return [np.empty(step["shape"], x.dtype)]
    if step["batch"] == 1:
        picked = np.take(x[0], positions[0], axis=1)
    else:
        picked = np.take_along_axis(x, positions[:, None, :, None], axis=2)
    return [picked.reshape(step["shape"])]


def _checked(step: Step, positions: np.ndarray, size: int | None) -> np.ndarray:
    """Positions counted from the front; None: they may be as large as they like."""
    if step["wraps"] and size is not None:
        return wrapped(step, positions, size)
    bad = positions < 0
    if size is not None:
        bad = bad | (positions >= size)
    if bad.any():
        limit = "at least 0" if size is None else f"between 0 and {size - 1}"
        raise RunError(
            "BT-GATHER-POSITION",
            f"position {int(positions[bad][0])} must be {limit}",
            advice="positions are neither wrapped nor clamped",
        )
    return positions


def _infer_elements(call: Call) -> list[Shape]:
    """The positions' shape, which is within the tensor's but along the axis."""
    source, positions = call.input(0), call.input(1, "positions")
    call.rank(source, 1, max(1, source.rank))
    call.rank(positions, source.rank)
    axis = call.axis(call.attribute("axis"), source.rank)
    beyond = [a for a in range(source.rank) if a != axis and positions.shape[a] > source.shape[a]]
    if beyond:
        raise call.invalid(
            "BT-GATHER",
            f"positions of shape {list(positions.shape)} reach beyond shape {list(source.shape)} at axis {beyond[0]}",
        )
    return [positions.shape]


def along(step: Step, positions: np.ndarray, shape: Shape) -> tuple[np.ndarray, ...]:
    """Coordinates in `shape` of elements at `positions` along the step's axis, at their own place elsewhere."""
    axis = step["axis"]
    grids: list[np.ndarray] = list(np.indices(positions.shape, sparse=True))
    grids[axis] = wrapped(step, positions, shape[axis])
    return tuple(grids)


def _boxes(call: Call) -> bool:
    """Whether coordinates are corners of boxes, which are moved inside, and not of slices."""
    return bool(call.node.attributes.get("boxes", False))


def _batch_axes(call: Call) -> int:
    return int(str(call.node.attributes.get("batch_dims", 0)))


def infer_nd(call: Call) -> list[Shape]:
    """[batch, ..., k] positions pick slices of the axes after the batch axes and the k that follow them; or boxes."""
    if _boxes(call):
        return gather_boxes.infer(call)
    call.expect(2)
    source, positions, batch = call.input(0), call.input(1, "positions"), _batch_axes(call)
    depth = positions.shape[-1] if positions.rank else 0
    if (
        not 0 <= batch < min(source.rank, positions.rank)
        or batch + depth > source.rank
        or source.shape[:batch] != positions.shape[:batch]
    ):
        raise call.invalid(
            "BT-GATHER",
            f"positions of shape {list(positions.shape)} with {batch} batch axes cannot address {list(source.shape)}",
        )
    if not _wraps(call) and positions.size and not source.size:
        raise call.invalid("BT-GATHER", "positions cannot address an empty tensor")
    if not _wraps(call) and depth == 0 and 0 not in positions.shape[:-1] and positions.value is None:
        raise call.invalid("BT-GATHER", "empty positions must be a constant")
    return [bounded(call, positions.shape[:-1] + source.shape[batch + depth :])]


def lower_nd(call: Call) -> Lowered:
    """Dimensions that positions address, behind how many batches, and the shape of the result; or boxes."""
    if _boxes(call):
        return gather_boxes.lower(call)
    source, positions, batch = call.input(0).shape, call.input(1).shape, _batch_axes(call)
    return Lowered(
        {
            "batch": math.prod(source[:batch]),
            "sizes": source[batch : batch + positions[-1]],
            "count": math.prod(positions[batch:-1]),
            "inner": math.prod(source[batch + positions[-1] :]),
            "wraps": _wraps(call),
            "shape": call.output.shape,
        },
        scratch=24 * call.input(1).size,
    )


def merged(step: Step, positions: np.ndarray, rows: int, sizes: Sequence[int]) -> np.ndarray:
    """[rows, k] coordinates as positions in the merged axes of `sizes`."""
    columns = positions.astype(np.int64).reshape(rows, len(sizes))
    flat = np.zeros(rows, np.int64)
    for axis, size in enumerate(sizes):
        flat = flat * size + _checked(step, columns[:, axis], size)
    return flat


def reference_nd(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows of the tensor with its addressed axes merged into one, batch by batch; or boxes."""
    if "vector" in step.parameters:
        return gather_boxes.reference(step, inputs)
    sizes, batch, count = step["sizes"], step["batch"], step["count"]
    nothing = not math.prod(step["shape"])
    # From either end, positions are only met when something is read.
    if not (nothing and step["wraps"]):
        flat = merged(step, inputs[1], batch * count, sizes)
    if nothing:
        return [np.empty(step["shape"], inputs[0].dtype)]
    rows = inputs[0].reshape(batch * math.prod(sizes), step["inner"])
    first = np.repeat(np.arange(batch) * math.prod(sizes), count)
    return [np.take(rows, flat + first, axis=0).reshape(step["shape"])]


OPERATORS = (
    Operator(
        "gather",
        ("dequantize", "narrow"),
        infer,
        lower,
        reference,
        "slices or elements picked along one axis",
        moves=True,
    ),
    Operator("gather_nd", (), infer_nd, lower_nd, reference_nd, "slices or boxes picked by coordinates", moves=True),
)
