"""Mappings of data movement: shapes, joining, cutting, borders, casts."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Tensor, data_type
from ..onnx_tensors import type_name
from .base import MICROSOFT, Mapper, Mappers, Source


def _same_type(operator: str, **attributes: str | int | bool) -> Mapper:
    """A mapping for operators without attributes whose result has the type of their first input."""

    def mapper(source: Source) -> None:
        source.emit(operator, source.type(0), attributes)

    return mapper


def with_operand(source: Source, position: int, name: str) -> list[int | None]:
    """The inputs, with the list of integers that older versions give as attribute `name` at `position`."""
    inputs = list(source.inputs)
    listed = source.integers(name)
    if listed is None:
        return inputs
    if source.present(position):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'{name}' is given as attribute and as input {position}")
    inputs += [None] * (position + 1 - len(inputs))
    inputs[position] = source.constant(np.array(listed, np.int64), name)
    return inputs


def _transpose(source: Source) -> None:
    if any(axis < 0 for axis in source.integers("perm") or ()):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "'perm' counts from the front")
    source.emit("transpose", source.type(0), inputs=with_operand(source, 1, "perm"))


def _reshape(source: Source) -> None:
    zeros = "alone" if source.flag("allowzero", False, False) else "copied"
    source.emit("reshape", source.type(0), {"zeros": zeros})


def _flatten(source: Source) -> None:
    axis = source.integer("axis", 1)
    if source.version < 11 and axis < 0:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"axis {axis} counts from the end, which version 11 began")
    source.emit("flatten", source.type(0), {"axis": axis})


def _squeeze(source: Source) -> None:
    source.emit("squeeze", source.type(0), inputs=with_operand(source, 1, "axes"))


def _unsqueeze(source: Source) -> None:
    source.emit("expand_dims", source.type(0), inputs=with_operand(source, 1, "axes"))


def _dropout(source: Source) -> None:
    """Inference: the tensor itself, and a mask."""
    source.real("ratio", 0.5)
    source.integer("seed", 0)
    flagged = source.present(2)
    if flagged and source.tensor(2).is_constant:
        flagged = bool(source.tensor(2).values().any())
    kept = source.outputs[1] if len(source.outputs) > 1 else ""
    operator, inputs = ("inference", source.ordered(0, 2)) if flagged else ("identity", source.ordered(0))
    source.emit(operator, source.type(0), inputs=inputs, outputs=source.outputs[:1])
    if kept:
        shape = source.temporary("s64", "shape")
        source.emit("shape", "s64", {"of": "dimensions"}, inputs=source.inputs[:1], outputs=[shape])
        # Older versions leave the mask open; it is zeros in practice.
        dtype = "bool" if source.version >= 10 else source.type(0)
        value = np.full((), source.version >= 12, data_type(dtype).numpy)
        source.emit("fill", dtype, inputs=[source.index(shape), source.constant(value, "kept")], outputs=[kept])


def _concat(source: Source) -> None:
    if not source.has("axis"):
        raise source.invalid("BT-ONNX-ATTRIBUTE", "attribute 'axis' is missing")
    source.emit("concatenation", source.type(0), {"axis": source.integer("axis", 0), "activation": "none"})


def _split(source: Source) -> None:
    inputs = with_operand(source, 1, "split")
    counted = source.integer("num_outputs", 0) if source.version >= 18 else 0
    sized = len(inputs) > 1 and inputs[1] is not None
    if source.version >= 18 and sized == source.has("num_outputs"):
        raise source.invalid("BT-SPLIT", "either the input 'split' or the attribute 'num_outputs' must be given")
    if source.version >= 18 and not sized and counted != len(source.outputs):
        raise source.invalid("BT-SPLIT", f"'num_outputs' is {counted}, but there are {len(source.outputs)} outputs")
    attributes: dict[str, Attribute] = {
        "axis": source.integer("axis", 0),
        "count": len(source.outputs),
        "keeps_axis": True,
        "open_size": False,
        "uneven": source.version >= 18,
    }
    source.emit("split", [source.type(0)] * len(source.outputs), attributes, inputs=inputs)


def _slice(source: Source) -> None:
    if source.version >= 10:
        source.emit("slice_axes", source.type(0))
        return
    lists = [source.integers(name) for name in ("starts", "ends", "axes")]
    if lists[0] is None or lists[1] is None:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "attributes 'starts' and 'ends' are needed")
    operands = [
        None if values is None else source.constant(np.array(values, np.int64), name)
        for name, values in zip(("starts", "ends", "axes"), lists, strict=True)
    ]
    source.emit("slice_axes", source.type(0), inputs=[*source.inputs[:1], *operands])


_MODES = ("constant", "reflect", "edge", "wrap")


def _pad(source: Source) -> None:
    mode = source.text("mode", "constant")
    # Runtimes know "wrap" in every version.
    if mode not in _MODES:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is not among {list(_MODES)}")
    attributes: dict[str, Attribute] = {"mode": mode, "widths": "list_or_row" if source.version < 13 else "list"}
    if source.version >= 11:
        source.emit("pad", source.type(0), attributes)
        return
    widths = source.integers("pads")
    if widths is None:
        raise source.invalid("BT-ONNX-ATTRIBUTE", "attribute 'pads' is missing")
    dtype = source.tensor(0).type.numpy
    value = np.float32(source.real("value", 0.0)).astype(dtype)
    operands = [source.constant(np.array(widths, np.int64), "pads"), source.constant(value, "value")]
    source.emit("pad", source.type(0), attributes, inputs=[*source.inputs[:1], *operands])


def _shape(source: Source) -> None:
    attributes: dict[str, Attribute] = {"of": "dimensions", "start": source.integer("start", 0)}
    if source.has("end"):
        attributes["end"] = source.integer("end", 0)
    source.emit("shape", "s64", attributes)


def _size(source: Source) -> None:
    source.emit("shape", "s64", {"of": "elements"})


def _constant_of_shape(source: Source) -> None:
    value = source.get("value", None, Tensor)
    filled = np.zeros((), np.float32) if value is None else value.values()
    if filled.size != 1:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"'value' must hold one number, found {filled.size}")
    dtype = "f32" if value is None else value.dtype
    source.emit("fill", dtype, inputs=[*source.inputs[:1], source.constant(filled.reshape(()), "value")])


def _where(source: Source) -> None:
    source.emit("select", source.type(1), {"broadcasts": True, "keeps_declared_shape": False})


# What ONNX Runtime names the casts that it inserts around nodes without a kernel for binary16.
_INSERTED = "InsertedPrecisionFreeCast_"


def _cast(source: Source) -> None:
    _emit_cast(source, type_name(source.integer("to", 0), source.place))


def _cast_like(source: Source) -> None:
    _emit_cast(source, source.type(1))


def _emit_cast(source: Source, dtype: str) -> None:
    rounding = source.text("round_mode", "up")
    known = ("up", "down", "nearest") if dtype == "f8e8m0" else ("up",)
    if source.op_type == "Cast" and rounding not in known:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"round_mode '{rounding}' is none of a cast to {dtype}")
    attributes: dict[str, Attribute] = {"saturate": source.flag("saturate", True), "round_mode": rounding}
    if source.op_type == "CastLike":
        # A definition, which runtimes put in place when they have folded constants.
        attributes["computed"] = True
    if not attributes["saturate"] and not dtype.startswith(("f8", "f6", "f4")):
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", f"'saturate' is 0, which only casts to floats of 8 bits and less know, not {dtype}"
        )
    tensor = source.inputs[0] if source.inputs else None
    if source.label.startswith(_INSERTED) and tensor is not None and not source.builder.tensors[tensor].is_constant:
        # It knows them by their names again in files that it has saved.
        attributes["inserted"] = True
    source.emit("convert", dtype, attributes, inputs=source.inputs[:1])


def _bit_cast(source: Source) -> None:
    source.emit("bitcast", type_name(source.integer("to", 0), source.place))


def _expand_dims(source: Source) -> None:
    """One axis, which counts axes of the result, or of the input where it is negative."""
    if source.tensor(1).is_constant and source.tensor(1).values().size != 1:
        raise source.invalid("BT-NODE-INPUT", "the axis must be one number")
    source.emit("expand_dims", source.type(0))


def _range(source: Source) -> None:
    """The step may be missing."""
    start, limit, step = (*source.inputs, None)[:3]
    if step is None:
        step = source.constant(np.ones((), source.tensor(0).type.numpy), "step")
    source.emit("range", source.type(0), {"counting": "binary64_or_nothing"}, inputs=[start, limit, step])


def _pad_of_operands(source: Source) -> None:
    mode = source.text("mode", "constant")
    if mode not in _MODES:
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is not among {list(_MODES)}")
    source.emit("pad", source.type(0), {"mode": mode, "widths": "list_or_row"})


def _block(operator: str) -> Mapper:
    def mapper(source: Source) -> None:
        attributes: dict[str, int | bool] = {"block_size": source.integer("blocksize", 0), "channels_first": True}
        if operator == "depth_to_space":
            mode = source.text("mode", "DCR")
            if mode not in ("DCR", "CRD"):
                raise source.invalid("BT-ONNX-ATTRIBUTE", f"mode '{mode}' is neither DCR nor CRD")
            attributes["columns_first"] = mode == "CRD"
        elif source.version >= 28:
            attributes["columns_first"] = source.text("mode", "DCR") == "CRD"
        source.emit(operator, source.type(0), attributes)

    return mapper


MAPPERS: Mappers = {
    ("", "BitCast"): _bit_cast,
    ("", "Cast"): _cast,
    ("", "CastLike"): _cast_like,
    ("", "Concat"): _concat,
    ("", "ConstantOfShape"): _constant_of_shape,
    ("", "DepthToSpace"): _block("depth_to_space"),
    ("", "Dropout"): _dropout,
    ("", "Expand"): _same_type("broadcast_to", both_ways=True),
    ("", "Flatten"): _flatten,
    ("", "Pad"): _pad,
    ("", "Range"): _same_type("range", counting="binary64_or_nothing"),
    ("", "Reshape"): _reshape,
    ("", "Shape"): _shape,
    ("", "Size"): _size,
    ("", "Slice"): _slice,
    ("", "SpaceToDepth"): _block("space_to_depth"),
    ("", "Split"): _split,
    ("", "Squeeze"): _squeeze,
    ("", "Tile"): _same_type("tile"),
    ("", "Transpose"): _transpose,
    ("", "Unsqueeze"): _unsqueeze,
    ("", "Where"): _where,
    (MICROSOFT, "ExpandDims"): _expand_dims,
    (MICROSOFT, "Pad"): _pad_of_operands,
    (MICROSOFT, "Range"): _range,
}
