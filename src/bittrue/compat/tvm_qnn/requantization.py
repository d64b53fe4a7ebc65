"""Requantizations as nodes, for all that make some."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .expr import Expr
from .writer import Writer, quantization

Pair = tuple[np.ndarray, np.ndarray]
# How exact steps round and compute, whatever the configuration says.
EXACT: dict[str, Attribute] = {"rounding": "UPWARD", "compute_dtype": "int64"}


def rounding_of(expr: Expr) -> dict[str, Attribute]:
    """What the node says about requantization; what it leaves open is not written."""
    return {name: expr.attributes[name] for name in ("rounding", "compute_dtype") if expr.attributes[name] != "None"}


def pair(expr: Expr, prefix: str) -> Pair:
    """Scale and zero point of an operand or of the result."""
    return expr.parameters[f"{prefix}_scale"], expr.parameters[f"{prefix}_zero_point"]


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
    index = writer.quantized(index, quantization(*given, axis))
    shape = writer.tensors[index].shape
    return writer.node("quantize", source, (index,), dtype, shape, rounding, quantization(*wanted), name)
