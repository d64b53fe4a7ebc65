"""BT406: zero points where the type has none: 32-bit integers and floats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...graph import data_type
from ..finding import Finding
from ..linear import linear_nodes
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each constant zero point that is not 0 beside s32 or float values."""
    for one in linear_nodes(subject):
        point = one.zero_point
        if point is None or not point.is_constant:
            continue
        is_float = not data_type(point.dtype).is_integer
        if point.dtype != "s32" and not is_float:
            continue
        values = np.asarray(point.values()).astype(np.float32 if is_float else np.int64).reshape(-1)
        wrong = np.flatnonzero(values != 0)
        if not wrong.size:
            continue
        found = values[wrong[0]].item()
        yield RULE.finding(
            f"zero point '{point.name}' of type {point.dtype} is {found}"
            + (f" in {wrong.size} of {values.size} places" if values.size > 1 else "")
            + ", expected 0",
            graph=one.graph,
            node=one.node,
            tensor=point,
            severity="warning" if is_float else "",
            place=f"element {wrong[0]}" if values.size > 1 else "",
            expected=0,
            found=found,
            advice="ONNX Runtime leaves it out: set it to 0"
            if is_float
            else "move it into the values: subtract it from the quantized values, and set it to 0",
        )


RULE = Rule(
    code="BT406",
    name="zero-point-not-zero",
    severity="error",
    what="The zero point of DequantizeLinear of int32 values is absent or 0. Zero points of float8 and float4 types are"
    " 0, too (a warning).",
    why="int32 values are biases and sums, whose scale is input scale * weight scale; integer layers have no place for"
    " a zero point there. For float types the formula has one, but runtimes do not add it.",
    enforced="onnx.checker does not look. ONNX Runtime 1.31 subtracts the zero point of int32 values against the text"
    " of the operator, and does not fuse the layer into an integer one any more; zero points of float8 are ignored"
    " (run: QuantizeLinear to float8 gives the same codes with 0 and 1).",
    fix="Subtract the zero point from the quantized values once and for all.",
    source="ONNX operators QuantizeLinear, DequantizeLinear 10 to 25 (read); ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)
