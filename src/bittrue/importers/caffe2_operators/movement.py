"""Operators that only move bytes, and joining, where the server engine also rescales."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import SERVER, Mapper, Mappers, Source, in_u8

_LARGEST = 2**63 - 1


def _flatten(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    axis = source.integer("axis", 1)
    if axis < 0:
        raise source.invalid("BT-SHAPE-AXIS", f"axis {axis} is below 0", "the runtime refuses it, too")
    source.emit("flatten", "u8", source.requested(), {"axis": axis})


def _reshape(source: Source) -> None:
    if len(source.outputs) not in (1, 2):
        raise source.invalid("BT-NODE-ARITY", f"{len(source.outputs)} outputs, 1 or 2 are defined")
    source.expect((1, 2), len(source.outputs))
    in_u8(source, 0)
    shape = source.integers("shape")
    if len(source.inputs) == 2:
        shape = source.integers_of(1, "new shape")
    if shape is None:
        raise source.invalid("BT-CAFFE2-ARGUMENT", "argument 'shape' is missing")
    target = source.constant(np.array(shape, np.int64), "shape")
    source.emit("reshape", "u8", source.requested(), {"zeros": "copied"}, inputs=[source.inputs[0], target])
    if len(source.outputs) == 2:
        source.emit("shape", "s64", None, {"of": "dimensions"}, inputs=source.inputs[:1], output=1)


def _transpose(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    axes = source.integers("axes")
    inputs = list(source.inputs)
    if axes:
        inputs.append(source.constant(np.array(axes, np.int64), "axes"))
    source.emit("transpose", "u8", source.requested(), inputs=inputs)


def _places(values: list[int]) -> np.ndarray:
    """Places that count -1 as behind the last element, as such that count it as the last one."""
    return np.array([_LARGEST if value == -1 else value + 1 if value < 0 else value for value in values], np.int64)


def _slice(source: Source) -> None:
    source.expect((1, 3))
    in_u8(source, 0)
    axes: list[int] | None = None
    if len(source.inputs) == 3:
        starts, ends = source.integers_of(1, "starts"), source.integers_of(2, "ends")
    elif all(source.has(name) for name in ("dim", "start_idx", "end_idx")):
        axes = [source.integer("dim", 0)]
        starts, ends = [source.integer("start_idx", 0)], [source.integer("end_idx", -1)]
    else:
        found = source.integers("starts"), source.integers("ends")
        if found[0] is None or found[1] is None or len(source.inputs) != 1:
            raise source.invalid("BT-CAFFE2-ARGUMENT", "arguments 'starts' and 'ends' are needed")
        starts, ends = found[0], found[1]
    inputs: list[int | None] = [
        source.inputs[0],
        source.constant(_places(starts), "starts"),
        source.constant(_places(ends), "ends"),
    ]
    if axes is not None:
        inputs.append(source.constant(np.array(axes, np.int64), "axes"))
    source.emit("slice_axes", "u8", source.requested(), inputs=inputs)


def _concat(source: Source) -> None:
    source.expect((1, 1 << 16), len(source.outputs))
    in_u8(source, *range(len(source.inputs)))
    if len(source.outputs) > 2:
        raise source.invalid("BT-NODE-ARITY", f"{len(source.outputs)} outputs, at most 2 are defined")
    order = source.text("order", "")
    axis = source.integer("axis", {"NHWC": 3, "NCHW": 1}.get(order, 0))
    if source.integer("add_axis", 0):
        raise source.unsupported("BT-CAFFE2-ARGUMENT", "add_axis is not read")
    source.emit("concatenation", "u8", source.requested(), {"axis": axis, "activation": "none"})
    if len(source.outputs) == 2:
        # The dimensions along the axis, which the runtime leaves unwritten here: nobody may read them.
        source.builder.blobs.pop(source.outputs[1], None)


def _shuffle(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    source.channels_last()
    for name in ("kernel", "stride", "pad"):
        source.integer(name, 1)
    groups = source.integer("group", 1)
    if groups < 2 and not source.engine:
        raise source.invalid("BT-CAFFE2-GROUPS", f"{groups} groups cannot be shuffled", "the runtime refuses it, too")
    if groups < 1:
        raise source.invalid("BT-CAFFE2-GROUPS", f"{groups} groups must be at least 1")
    parameters = source.quantization(0)
    asked = source.requested()
    split = source.constant(np.array([0, 0, 0, groups, -1], np.int64), "split")
    parts = source.emit(
        "reshape", "u8", parameters, {"zeros": "copied"}, inputs=[source.inputs[0], split], inner="groups"
    )
    order = source.constant(np.array([0, 1, 2, 4, 3], np.int64), "order")
    turned = source.emit("transpose", "u8", parameters, inputs=[parts, order], inner="turned")
    shape = source.constant(np.array([0, 0, 0, -1], np.int64), "shape")
    # The server engine keeps the input's parameters.
    result = parameters if source.engine == SERVER else asked
    source.emit("reshape", "u8", result, {"zeros": "copied"}, inputs=[turned, shape])


def _gather(source: Source) -> None:
    source.expect(2)
    in_u8(source, 0)
    if source.tensor(1).dtype not in ("s32", "s64"):
        raise source.unsupported("BT-NODE-TYPE", f"input 1 (positions) is {source.tensor(1).dtype}, not s32 or s64")
    source.requested()
    # Slices along the first axis, in the input's parameters whatever the arguments ask for.
    source.emit("gather", "u8", source.quantization(0), {"axis": 0, "batch_dims": 0})


def _resize(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    source.text("order", "NHWC")
    factors = [1.0, source.real("height_scale", 1.0), source.real("width_scale", 1.0), 1.0]
    if not all(0 < factor < np.inf for factor in factors):
        raise source.invalid("BT-RESIZE-SIZE", f"factors {factors[1:3]} must be finite and above 0")
    attributes: dict[str, Attribute] = {
        "transformation": "asymmetric",
        "nearest": "floor",
        "policy": "stretch",
        "always": True,
    }
    inputs = [source.inputs[0], None, source.constant(np.array(factors, np.float32), "factors")]
    source.emit("resize_nearest", "u8", source.requested(), attributes, inputs=inputs)


def _to_channels(*order: int) -> Mapper:
    def mapper(source: Source) -> None:
        source.expect(1)
        tensor = source.tensor(0)
        if tensor.dtype != "f32":
            raise source.unsupported("BT-NODE-TYPE", f"input 0 is {tensor.dtype}, only real numbers (f32) are moved")
        axes = source.constant(np.array(order, np.int64), "order")
        source.emit("transpose", "f32", None, inputs=[source.inputs[0], axes])

    return mapper


MAPPERS: Mappers = {
    "Int8ChannelShuffle": _shuffle,
    "Int8Concat": _concat,
    "Int8Flatten": _flatten,
    "Int8Gather": _gather,
    "Int8Reshape": _reshape,
    "Int8ResizeNearest": _resize,
    "Int8Slice": _slice,
    "Int8Transpose": _transpose,
    "NCHW2NHWC": _to_channels(0, 2, 3, 1),
    "NHWC2NCHW": _to_channels(0, 3, 1, 2),
}
