"""Requantizations as nodes, for all that make some."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute, Quantization
from .expr import Expr
from .writer import Writer, quantization

# A scale and a zero point; a zero point that runs compute is the index of its tensor.
Pair = tuple[np.ndarray, np.ndarray | int]
# How exact steps round and compute, whatever the configuration says.
EXACT: dict[str, Attribute] = {"rounding": "UPWARD", "compute_dtype": "int64"}


def rounding_of(expr: Expr) -> dict[str, Attribute]:
    """What the node says about requantization; what it leaves open is not written."""
    return {name: expr.attributes[name] for name in ("rounding", "compute_dtype") if expr.attributes[name] != "None"}


def pair(expr: Expr, prefix: str, inputs: Sequence[int] = ()) -> Pair:
    """Scale and zero point of an operand or of the result, whose tensors are `inputs`."""
    name = f"{prefix}_zero_point"
    late = name in expr.computed
    point = inputs[expr.computed.index(name) - len(expr.computed)] if late else expr.parameters[name]
    return expr.parameters[f"{prefix}_scale"], point


def described(given: Pair, axis: int | None = None) -> Quantization | None:
    """What a tensor carries; None where runs compute the zero point."""
    scale, point = given
    return None if isinstance(point, int) else quantization(scale, point, axis)


def operands_of(writer: Writer, *pairs: Pair) -> list[int]:
    """Scales and zero points as tensors."""
    found = []
    for scale, point in pairs:
        found.append(writer.constant(scale, "f32", "scale"))
        found.append(point if isinstance(point, int) else writer.constant(point, "s32", "zero_point"))
    return found


def requantized(
    writer: Writer,
    index: int,
    given: Pair,
    wanted: Pair,
    dtype: str,
    rounding: dict[str, Attribute],
    axis: int = -1,
    name: str = "",
    source: str = "qnn.requantize",
) -> int:
    """Tensor `index` with scale and zero point `given` brought to those `wanted`, as `dtype`."""
    shape, carried, result = writer.tensors[index].shape, described(given, axis), described(wanted)
    if carried is None or result is None:
        operands = (index, *operands_of(writer, wanted, given))
        return writer.node("quantize", source, operands, dtype, shape, {**rounding, "axis": axis}, name=name)
    index = writer.quantized(index, carried)
    return writer.node("quantize", source, (index,), dtype, shape, rounding, result, name)
