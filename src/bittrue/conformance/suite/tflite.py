"""Writes .tflite models of one operator, by the schema that the importer reads them by.

The bytes are the same on every machine: tensors, buffers and fields are written in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np

from ...graph import data_type
from ...importers.flatbuffer import Field
from ...importers.tflite_schema import ENUMS, TYPES, UNIONS, fields
from ...importers.tflite_schema import operator as schema_operator

_PREPEND = {
    "bool": "PrependBoolSlot",
    "byte": "PrependInt8Slot",
    "ubyte": "PrependUint8Slot",
    "int": "PrependInt32Slot",
    "uint": "PrependUint32Slot",
    "long": "PrependInt64Slot",
    "ulong": "PrependUint64Slot",
    "float": "PrependFloat32Slot",
}
_VECTORS = {"ubyte": np.uint8, "int": np.int32, "long": np.int64, "float": np.float32, "bool": np.bool_}


@dataclass(frozen=True, eq=False)
class Operand:
    """One tensor of a model.

    Attributes:
        dtype: short type name, ``"s8"``.
        shape: its dimensions.
        scale: one number, or one per index of `axis`; None for tensors that are not quantized.
        zero_point: likewise.
        axis: of per-axis parameters.
        data: makes it a constant; values of narrow types take a byte each here and are packed in the file.
        name: in the file; by default ``"input0"``, ``"output0"`` ...
    """

    dtype: str
    shape: Sequence[int]
    scale: float | Sequence[float] | np.ndarray | None = None
    zero_point: int | Sequence[int] | np.ndarray = 0
    axis: int = 0
    data: np.ndarray | None = None
    name: str = ""


def one_operator(
    operator: str,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    options: Mapping[str, Any] | None = None,
    version: int = 1,
) -> bytes:
    """A model of one operator.

    Args:
        operator: the schema's name, ``"CONV_2D"``.
        inputs: in the operator's order, None for an absent one. Those without data are the model's inputs.
        outputs: the model's outputs.
        options: fields of the operator's options table under the schema's names (``stride_w``, ``padding``, ...);
            enumerators by name (``"SAME"``, ``"RELU6"``). None leaves the table out.
        version: of the operator.

    Raises:
        ValueError: the operator or a field is not in the schema.
    """
    number = ENUMS["BuiltinOperator"].index(operator)
    known = schema_operator(number)
    tensors: list[dict[str, Any]] = []
    # Buffer 0 is empty by convention.
    buffers: list[dict[str, Any]] = [{}]
    places: dict[str, list[int]] = {"input": [], "output": []}
    for side, operands in (("input", inputs), ("output", outputs)):
        for position, operand in enumerate(operands):
            if operand is None:
                places[side].append(-1)
                continue
            places[side].append(len(tensors))
            tensors.append(_tensor(operand, operand.name or f"{side}{position}", buffers))
    node: dict[str, Any] = {
        "inputs": np.array(places["input"], np.int32),
        "outputs": np.array(places["output"], np.int32),
    }
    if options is not None:
        if not known.options:
            raise ValueError(f"{operator} has no options")
        union = "builtin_options" if known.options in UNIONS["BuiltinOptions"] else "builtin_options_2"
        node[union] = (known.options, dict(options))
    free = [i for i, x in zip(places["input"], inputs, strict=True) if x is not None and x.data is None]
    model = {
        "version": 3,
        "operator_codes": [{"deprecated_builtin_code": min(number, 127), "version": version, "builtin_code": number}],
        "subgraphs": [
            {
                "tensors": tensors,
                "inputs": np.array(free, np.int32),
                "outputs": np.array(places["output"], np.int32),
                "operators": [node],
                "name": "main",
            }
        ],
        "description": "bittrue",
        "buffers": buffers,
    }
    builder = flatbuffers.Builder(4096)
    builder.Finish(_table(builder, "Model", model), b"TFL3")
    return bytes(builder.Output())


def _tensor(operand: Operand, name: str, buffers: list[dict[str, Any]]) -> dict[str, Any]:
    kind = data_type(operand.dtype)
    made: dict[str, Any] = {
        "shape": np.array(operand.shape, np.int32),
        "type": TYPES.index(kind.name),
        "name": name,
        "has_rank": True,
    }
    if operand.scale is not None:
        scales = np.atleast_1d(np.asarray(operand.scale, np.float32))
        points = np.broadcast_to(np.asarray(operand.zero_point, np.int64), scales.shape)
        made["quantization"] = {"scale": scales, "zero_point": points, "quantized_dimension": operand.axis}
    if operand.data is not None:
        values = np.asarray(operand.data, order="C")
        if values.shape != tuple(operand.shape):
            raise ValueError(f"data of shape {values.shape} for a tensor of shape {tuple(operand.shape)}")
        raw = _packed(values, kind.bits) if kind.is_packed else values.astype(kind.numpy).reshape(-1).view(np.uint8)
        made["buffer"] = len(buffers)
        buffers.append({"data": raw})
    return made


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Several small integers per byte, the first in the lowest bits."""
    per_byte = 8 // bits
    flat = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    flat = np.append(flat, np.zeros(-flat.size % per_byte, np.uint8)).reshape(-1, per_byte)
    return np.asarray((flat << (np.arange(per_byte) * bits)).sum(axis=1), np.uint8)


def _table(builder: Any, name: str, values: Mapping[str, Any]) -> int:
    """Writes a table and all that hangs on it; where it is."""
    known = fields(name)
    strangers = [field for field in values if field not in known]
    if strangers:
        raise ValueError(f"{name} has no field {', '.join(strangers)}; it has {', '.join(known)}")
    # What a table points at is written before it.
    below = {field: _below(builder, known[field], value) for field, value in values.items()}
    builder.StartObject(1 + max((field.slot + (field.kind == "union") for field in known.values()), default=-1))
    for field, value in values.items():
        row = known[field]
        if row.kind == "number":
            number = ENUMS[row.enum].index(value) if isinstance(value, str) else value
            plain = bool(number) if row.type == "bool" else float(number) if row.type == "float" else int(number)
            getattr(builder, _PREPEND[row.type])(row.slot, plain, row.default)
        elif row.kind == "union":
            builder.PrependUint8Slot(row.slot, UNIONS[row.type].index(value[0]), 0)
            builder.PrependUOffsetTRelativeSlot(row.slot + 1, below[field], 0)
        else:
            builder.PrependUOffsetTRelativeSlot(row.slot, below[field], 0)
    return int(builder.EndObject())


def _below(builder: Any, field: Field, value: Any) -> int:
    if field.kind == "text":
        return int(builder.CreateString(value))
    if field.kind == "table":
        return _table(builder, field.type, value)
    if field.kind == "union":
        return _table(builder, *value)
    if field.kind == "tables":
        places = [_table(builder, field.type, one) for one in value]
        builder.StartVector(4, len(places), 4)
        for place in reversed(places):
            builder.PrependUOffsetTRelative(place)
        return int(builder.EndVector())
    if field.kind == "numbers":
        if field.type == "ubyte":
            # Kernels read constants where they lie in the file.
            builder.StartVector(1, len(value), 16)
            builder.head = builder.head - len(value)
            builder.Bytes[builder.head : builder.head + len(value)] = np.asarray(value, np.uint8).tobytes()
            return int(builder.EndVector())
        return int(builder.CreateNumpyVector(np.ascontiguousarray(value, _VECTORS[field.type])))
    return 0
