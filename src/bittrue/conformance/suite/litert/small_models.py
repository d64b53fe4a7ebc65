"""The smallest sensible s8 model of every operator of the specification, in parts that can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....check.specification import SPECIFICATION
from ..draft import distinct
from ..tflite import Operand


@dataclass(frozen=True)
class Parts:
    """What `one_operator` makes a model of.

    Attributes:
        inputs, outputs: in the operator's order.
        options: of the operator; None for those without a table.
        version: of the operator.
    """

    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    options: Mapping[str, Any] | None = field(default_factory=dict)
    version: int = 2

    def input(self, position: int, **changes: Any) -> Parts:
        """With another input."""
        changed = replace(self.inputs[position], **changes)
        return replace(self, inputs=(*self.inputs[:position], changed, *self.inputs[position + 1 :]))

    def output(self, **changes: Any) -> Parts:
        """With another first output."""
        return replace(self, outputs=(replace(self.outputs[0], **changes), *self.outputs[1:]))

    def option(self, **changes: Any) -> Parts:
        """With other options."""
        return replace(self, options={**(self.options or {}), **changes})


def _quantized(*shape: int, scale: Any = 0.5, zero_point: Any = 3, **more: Any) -> Operand:
    return Operand("s8", shape, scale, zero_point, **more)


def _numbers(*values: Any, dtype: str = "s32", shape: tuple[int, ...] | None = None) -> Operand:
    array = np.array(values, np.int64 if dtype == "s64" else np.int32)
    return Operand(
        dtype, array.shape if shape is None else shape, data=array if shape is None else array.reshape(shape)
    )


def _layer(
    weights: tuple[int, ...], axis: int, given: tuple[int, ...], result: tuple[int, ...], **options: Any
) -> Parts:
    scales = np.linspace(0.01, 0.03, weights[axis]).astype(np.float32)
    x = _quantized(*given)
    w = _quantized(*weights, scale=scales, zero_point=0, axis=axis, data=distinct("s8", weights).clip(-127, 127))
    bias = Operand(
        "s32", (weights[axis],), scales * np.float32(0.5), data=np.arange(weights[axis], dtype=np.int32) * 100 - 50
    )
    return Parts((x, w, bias), (_quantized(*result, scale=0.7),), options, 3)


_WINDOW = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
_IMAGE, _TABLE = (1, 4, 4, 2), (2, 8)
_MODELS: Mapping[str, Parts] = {
    **dict.fromkeys(
        ("ADD", "SUB", "MUL"), Parts((_quantized(2, 3), _quantized(2, 3)), (_quantized(2, 3, scale=0.75),))
    ),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), Parts((_quantized(2, 3), _quantized(2, 3)), (_quantized(2, 3),))),
    **dict.fromkeys(
        ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"),
        Parts((_quantized(2, 3), _quantized(2, 3)), (Operand("bool", (2, 3)),)),
    ),
    **dict.fromkeys(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D"),
        Parts((_quantized(*_IMAGE),), (_quantized(1, 3, 3, 2),), {**_WINDOW, "filter_width": 2, "filter_height": 2}),
    ),
    "CONV_2D": _layer((3, 2, 2, 2), 0, _IMAGE, (1, 3, 3, 3), **_WINDOW),
    "DEPTHWISE_CONV_2D": _layer((1, 2, 2, 2), 3, _IMAGE, (1, 3, 3, 2), **_WINDOW, depth_multiplier=1),
    "FULLY_CONNECTED": replace(_layer((3, 8), 0, _TABLE, (2, 3)), version=4),
    "CONCATENATION": Parts((_quantized(2, 3), _quantized(2, 5)), (_quantized(2, 8),), {"axis": 1}),
    "RESHAPE": Parts((_quantized(2, 6), _numbers(3, 4)), (_quantized(3, 4),), {"new_shape": (3, 4)}, 1),
    "SQUEEZE": Parts((_quantized(1, 6, 1),), (_quantized(6),), {"squeeze_dims": ()}, 1),
    "RESIZE_BILINEAR": Parts((_quantized(*_IMAGE), _numbers(8, 8)), (_quantized(1, 8, 8, 2),)),
    "SPACE_TO_DEPTH": Parts((_quantized(*_IMAGE),), (_quantized(1, 2, 2, 8),), {"block_size": 2}),
    "PAD": Parts((_quantized(2, 3), _numbers((0, 1), (2, 0))), (_quantized(3, 5),)),
    "PADV2": Parts(
        (_quantized(2, 3), _numbers((0, 1), (2, 0)), _quantized(1, data=np.array([7]))), (_quantized(3, 5),)
    ),
    "GATHER": Parts((_quantized(4, 3), _numbers(3, 0)), (_quantized(2, 3),), {"axis": 0}),
    "BATCH_TO_SPACE_ND": Parts(
        (_quantized(4, 2, 2, 3), _numbers(2, 2), _numbers((0, 0), (0, 0))), (_quantized(1, 4, 4, 3),)
    ),
    "SPACE_TO_BATCH_ND": Parts(
        (_quantized(1, 4, 4, 3), _numbers(2, 2), _numbers((0, 0), (0, 0))), (_quantized(4, 2, 2, 3),)
    ),
    "TRANSPOSE": Parts((_quantized(2, 3, 4), _numbers(2, 0, 1)), (_quantized(4, 2, 3),)),
    "SLICE": Parts((_quantized(4, 5), _numbers(1, 2), _numbers(2, 3)), (_quantized(2, 3),)),
    **dict.fromkeys(
        ("MEAN", "SUM"), Parts((_quantized(2, 3, 4), _numbers(1)), (_quantized(2, 4, scale=0.6),), {"keep_dims": False})
    ),
    "ARG_MAX": Parts(
        (_quantized(2, 8), Operand("s32", (), data=np.array(1, np.int32))),
        (Operand("s32", (2,)),),
        {"output_type": "INT32"},
    ),
    "SHAPE": Parts((_quantized(2, 3),), (Operand("s32", (2,)),), {"out_type": "INT32"}, 1),
    "QUANTIZE": Parts((_quantized(2, 8),), (_quantized(2, 8, scale=0.3, zero_point=-5),)),
}


def small_model(operator: str) -> Parts:
    """A model of the operator that every conforming device may run."""
    if operator in _MODELS:
        return _MODELS[operator]
    fixed = SPECIFICATION[operator].fixed
    assert fixed is not None
    options = {"beta": 1.0} if operator == "SOFTMAX" else None if operator in ("LOGISTIC", "TANH") else {}
    return Parts(
        (_quantized(*_TABLE),), (_quantized(*_TABLE, scale=fixed.scale, zero_point=fixed.zero_point),), options
    )
