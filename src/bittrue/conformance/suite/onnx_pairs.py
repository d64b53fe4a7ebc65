"""An operator on quantized values in its two ONNX forms: com.microsoft's own, and between DequantizeLinear and
QuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .onnx_model import MICROSOFT, OnnxModel

GROUP = "QDQ "


@dataclass(frozen=True, eq=False)
class Codes:
    """A quantized operand: an input of the model, or a constant."""

    values: np.ndarray
    scale: float
    zero_point: int
    constant: bool = False


def quantized(
    operator: str,
    dtype: str,
    operands: Sequence[Codes],
    result: tuple[tuple[int, ...], float, int],
    attributes: dict[str, Any] | None = None,
    *,
    opset: int = 13,
    result_first: bool = False,
    more: dict[str, Any] | None = None,
) -> tuple[bytes, dict[str, np.ndarray]]:
    """The model and its inputs.

    Args:
        operator: ``"QLinearAdd"`` or ``"QDQ Add"``.
        dtype: of all quantized values.
        result: shape, scale and zero point.
        result_first: the operator takes the result's parameters before its operands.
        more: attributes of com.microsoft's form alone.
    """
    model = OnnxModel(opset)
    names, inputs = [], {}
    for number, operand in enumerate(operands):
        letter = "abcdefgh"[number] if len(operands) > 1 else "x"
        if operand.constant:
            name = model.constant(operand.values, dtype, letter)
        else:
            name = model.input(letter, dtype, operand.values.shape)
            inputs[letter] = operand.values
        names += [
            name,
            model.constant(np.float32(operand.scale), name=f"{letter}_scale"),
            model.constant(operand.zero_point, dtype, f"{letter}_zero_point"),
        ]
    shape, scale, zero_point = result
    last = [model.constant(np.float32(scale), name="y_scale"), model.constant(zero_point, dtype, "y_zero_point")]
    if operator.startswith(GROUP):
        real = [model.node("DequantizeLinear", names[i : i + 3]) for i in range(0, len(names), 3)]
        made = model.node(operator.removeprefix(GROUP), real, attributes=attributes)
        model.node("QuantizeLinear", [made, *last], ["y"])
    else:
        order = [*last, *names] if result_first else [*names, *last]
        model.node(operator, order, ["y"], {**(attributes or {}), **(more or {})}, MICROSOFT)
    return model.output("y", dtype, shape).write(), inputs
