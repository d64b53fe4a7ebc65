"""Rows of a table, by position, whose narrow integers become real numbers on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...graph import Attribute, data_type
from ..core.base import Call, Lowered, Shape, Step
from ..core.indexing import bounded

# Elements of a byte, and the factor by which kernels enlarge them before they multiply.
_PER_BYTE = {"s8": 1, "u8": 1, "s4": 2, "s2": 4}
_ENLARGED = {"s8": 1, "u8": 1, "s4": 16, "s2": 64}


def infer(call: Call) -> list[Shape]:
    """A table [R, ...] and positions [N] give [N, ...]."""
    call.expect(2)
    table, positions = call.input(0, "table"), call.input(1, "positions")
    call.rank(positions, 1)
    if table.rank < 2:
        raise call.invalid("BT-SHAPE-RANK", f"the table must have rank 2 or more, found shape {list(table.shape)}")
    if not table.shape[0]:
        raise call.invalid("BT-EMBEDDING", "the table has no rows, so that nothing defines the output")
    return [bounded(call, (*positions.shape, *table.shape[1:]))]


def _scales(call: Call) -> np.ndarray:
    """One binary32 scale for all rows or one per row; 0 without parameters."""
    table = call.input(0)
    quantization = table.tensor.quantization
    if quantization is None:
        return np.zeros(1, np.float32)
    if call.output.dtype == "f32" and quantization.zero_points[0] != 0:
        raise call.invalid(
            "BT-QUANT-ZERO-POINT", f"'{table.name}' must have zero point 0, found {int(quantization.zero_points[0])}"
        )
    if quantization.per_axis and (quantization.axis != 0 or quantization.scales.size != table.shape[0]):
        count = quantization.scales.size
        raise call.invalid("BT-QUANT-AXIS", f"'{table.name}' has {count} scales, expected one per row or one for all")
    return quantization.scales.astype(np.float32)


def lower(call: Call) -> Lowered:
    """Where rows begin, and what they are multiplied by."""
    table = call.input(0)
    enlarged = _ENLARGED[table.dtype]
    parameters: dict[str, Attribute] = {
        "rows": table.shape[0],
        "columns": math.prod(table.shape[1:]),
        "shape": call.output.shape,
        "type": call.output.dtype,
        # A row whose elements begin inside of a byte is read from that byte's first element on.
        "per_byte": _PER_BYTE[table.dtype],
        "enlarged": enlarged,
    }
    return Lowered(parameters, {"scales": _scales(call) / np.float32(enlarged)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """f32(q * enlarged) * f32(scale / enlarged), rounded once more for a 16-bit output."""
    table, positions = inputs[0], inputs[1].astype(np.int64)
    bad = (positions < 0) | (positions >= step["rows"])
    if bad.any():
        raise RunError(
            "BT-GATHER-POSITION",
            f"position {int(positions[bad][0])} must be between 0 and {step['rows'] - 1}",
            place=step.place,
            advice="positions are neither wrapped nor clamped",
        )
    columns, per_byte = step["columns"], step["per_byte"]
    begins = positions * columns // per_byte * per_byte
    # Kernels read every type as a signed one.
    flat = table.reshape(-1).view(np.int8)
    values = flat[begins[:, None] + np.arange(columns)].astype(np.float32) * np.float32(step["enlarged"])
    scales = step.arrays["scales"]
    with np.errstate(all="ignore"):
        real = values * (scales if scales.size == 1 else scales[positions][:, None])
        return [real.astype(data_type(step["type"]).numpy).reshape(step["shape"])]
