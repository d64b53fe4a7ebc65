"""Layers with weights as models: CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....graph import data_type
from ....importers.tflite_schema import TYPES as TYPE_NUMBERS
from ..draft import Draft
from ..tflite import Operand, one_operator

Array = np.ndarray


@dataclass(frozen=True)
class LayerTypes:
    """Types of one label, and the versions of the operators that have them.

    Attributes:
        x, weights, bias: short type names; the output has the type of x.
        base: the rule of slot `rescale` that most of its runtimes use.
        versions: by operator.
    """

    x: str
    weights: str
    bias: str
    base: str
    versions: Mapping[str, int]

    @property
    def wide(self) -> bool:
        return self.bias == "s64"


_V8 = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 5, "TRANSPOSE_CONV": 3}
_VU = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 5, "TRANSPOSE_CONV": 3}
_V16 = {"CONV_2D": 4, "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 7, "TRANSPOSE_CONV": 4}
TYPES: Mapping[str, LayerTypes] = {
    "s8": LayerTypes("s8", "s8", "s32", "q31_two_step_up_away", _V8),
    "u8": LayerTypes("u8", "u8", "s32", "q31_two_step_up_away", _VU),
    "s16": LayerTypes("s16", "s8", "s64", "q15_one_step_up", _V16),
    "s16-s32": LayerTypes("s16", "s8", "s32", "q31_two_step_up_away", {**_V16, "FULLY_CONNECTED": 11}),
}
# Which dimension of the weights counts output channels.
_AXES = {"DEPTHWISE_CONV_2D": 3}


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer and what it is fed.

    Attributes:
        operator: as files call it.
        types: a label of `TYPES`.
        x, weights: quantized values; weights in the file's layout.
        bias: per output channel; None without one.
        input_scale, output_scale: binary32.
        weight_scale: one, or one per output channel.
        input_zero_point, weight_zero_point, output_zero_point: quantized values.
        activation, padding: enumerators.
        strides, dilations: of height and width.
        output_shape: of TRANSPOSE_CONV; of FULLY_CONNECTED whose dimensions are kept.
        options: further ones.
    """

    operator: str
    types: str
    x: Array
    weights: Array
    bias: Array | None
    input_scale: float
    weight_scale: float | Array
    output_scale: float
    input_zero_point: int = 0
    weight_zero_point: int = 0
    output_zero_point: int = 0
    activation: str = "NONE"
    padding: str = "VALID"
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    output_shape: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def channels(self) -> int:
        return int(self.weights.shape[_AXES.get(self.operator, 0)])


def model(layer: Layer) -> bytes:
    """The layer as a file."""
    types = TYPES[layer.types]
    x = Operand(types.x, layer.x.shape, layer.input_scale, layer.input_zero_point)
    # A lone scale with an axis would be read as one per channel by some runtimes.
    axis = _AXES.get(layer.operator, 0) if np.size(layer.weight_scale) > 1 else 0
    points = layer.weight_zero_point
    weights = Operand(
        types.weights, layer.weights.shape, layer.weight_scale, points, axis, data=layer.weights, name="weights"
    )
    bias = None
    if layer.bias is not None:
        scale = np.float32(layer.input_scale) * np.asarray(layer.weight_scale, np.float32)
        bias = Operand(types.bias, layer.bias.shape, scale, data=layer.bias, name="bias")
    shape = output_shape(layer)
    y = Operand(types.x, shape, layer.output_scale, layer.output_zero_point)
    inputs: list[Operand | None] = [x, weights, bias]
    if layer.operator == "TRANSPOSE_CONV":
        target = Operand("s32", (4,), data=np.array(shape, np.int32), name="output_shape")
        inputs = [target, weights, x, *([bias] if bias is not None else [])]
    elif layer.operator == "DEPTHWISE_CONV_2D" and bias is None:
        inputs = [x, weights]
    return one_operator(layer.operator, inputs, [y], _options(layer), types.versions[layer.operator])


def _options(layer: Layer) -> dict[str, Any]:
    found: dict[str, Any] = {"fused_activation_function": layer.activation}
    if layer.operator != "FULLY_CONNECTED":
        found.update(padding=layer.padding, stride_h=layer.strides[0], stride_w=layer.strides[1])
    if layer.operator in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        found.update(dilation_h_factor=layer.dilations[0], dilation_w_factor=layer.dilations[1])
    if layer.operator == "DEPTHWISE_CONV_2D":
        found["depth_multiplier"] = layer.channels // max(1, layer.x.shape[3])
    if layer.types == "s16-s32":
        # Kernels read the bias by what the options say.
        found["quantized_bias_type"] = TYPE_NUMBERS.index("s32")
    found.update(layer.options)
    return found


def output_shape(layer: Layer) -> tuple[int, ...]:
    """What the file gives the output."""
    if layer.output_shape:
        return layer.output_shape
    if layer.operator == "FULLY_CONNECTED":
        return (layer.x.size // layer.weights.shape[1], layer.channels)
    size = []
    for position in (0, 1):
        reach = (layer.weights.shape[1 + position] - 1) * layer.dilations[position] + 1
        free = layer.x.shape[1 + position] - (reach - 1 if layer.padding == "VALID" else 0)
        size.append(-(-free // layer.strides[position]))
    return (layer.x.shape[0], *size, layer.channels)


def draft(layer: Layer, aim: str, note: str, seeks: Mapping[str, Any] | None = None, rejects: str = "") -> Draft:
    """The layer as a case."""
    name = "input2" if layer.operator == "TRANSPOSE_CONV" else "input0"
    x = np.ascontiguousarray(layer.x, data_type(TYPES[layer.types].x).numpy)
    return Draft(aim, model(layer), {name: x}, note, rejects, seeks or {})


def limits(types: str) -> tuple[int, int]:
    """The lowest and the highest quantized value of x."""
    kind = data_type(TYPES[types].x)
    return kind.minimum, kind.maximum


def zero_point(types: str, signed: int) -> int:
    """An s8 zero point as one of another type: u8 values are 128 larger, s16 is symmetric."""
    return {"s8": signed, "u8": signed + 128}.get(TYPES[types].x, 0)
