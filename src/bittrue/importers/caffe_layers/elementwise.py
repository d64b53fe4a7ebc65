"""Mappings of layers on single numbers and their sums: Bias, Concat, Eltwise, Power, ReLU, Sigmoid, Softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Attribute
from .base import METHODS, MOST_AXES, Chain, Layer, Mappers

_INFINITE = float("inf")
_OPERATIONS = {0: "mul", 1: "add", 2: "maximum", 3: "div", 4: "minimum"}
_SUM = 1


def _is_quantized(scale: float, zero_point: int) -> bool:
    return scale != 1 or zero_point != 0


def _ends(layer: Layer, saturate: int) -> dict[str, Attribute]:
    low, high = layer.saturation(saturate)
    return {"low": low, "high": high}


def _quantized_result(layer: Layer, parameter: Any) -> tuple[str, dict[str, Attribute]]:
    """Type and limits of layers that limit quantized results only: integers unless the output scale is 1."""
    if not _is_quantized(parameter.output_scale, parameter.output_zero_point):
        return "f32", _ends(layer, 0)
    return layer.result_type(parameter.saturate, parameter.output_scale != 1), _ends(layer, parameter.saturate)


def _real(layer: Layer, index: int) -> int:
    """The tensor in binary32."""
    if layer.builder.tensors[index].dtype == "f32":
        return index
    return layer.emit("cast", "f32", {}, inputs=(index,), top=None, role="real")


def _bias(layer: Layer) -> None:
    """The sum with a second bottom or a learned array, which lies along the axes from `axis` on."""
    parameter = layer.proto.bias_param
    layer.expect((1, 2))
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    inputs = list(layer.bottoms)
    if len(inputs) == 1:
        if not -1 <= parameter.num_axes <= MOST_AXES:
            raise layer.invalid("BT-CAFFE-BIAS", f"num_axes is {parameter.num_axes}")
        learned = layer.learned[0].values.ndim if parameter.num_axes == -1 and layer.learned else parameter.num_axes
        inputs.append(layer.constant(layer.learn(0, (-1,) * max(0, learned), "bias"), "bias"))
    scales = layer.scales_of(parameter, "input", "bias", "output")
    if not scales:
        first, second = (_real(layer, index) for index in inputs)
        layer.emit("add", "f32", inputs=(first, _along(layer, second, first, parameter.axis)))
        return
    dtype, limits = _quantized_result(layer, parameter)
    attributes = {**limits, "quantize_method": METHODS[parameter.quantize_method]}
    beside = _along(layer, inputs[1], inputs[0], parameter.axis)
    layer.emit("add", dtype, attributes, inputs=(inputs[0], beside, *scales))


def _along(layer: Layer, index: int, other: int, axis: int | None) -> int:
    """The tensor in a shape that lies along the axes of another one from `axis` on, or in the other's shape."""
    known: dict[str, Attribute] = {} if axis is None else {"axis": axis}
    dtype = layer.builder.tensors[index].dtype
    return layer.emit("reshape", dtype, known, inputs=(index, None, other), top=None, role="aligned")


def _blobwise(layer: Layer, parameter: Any) -> list[tuple[float, int]]:
    """A scale and a zero point for each bottom."""
    count, found = len(layer.bottoms), []
    for name, default in (("input_scale", 1.0), ("input_zero_point", 0)):
        given = list(getattr(parameter, name)) or [default] * count
        if len(given) < count:
            raise layer.invalid(
                "BT-CAFFE-SCALES", f"{len(given)} of {name} for {count} bottoms", "give one for every bottom"
            )
        found.append(given[:count])
    return list(zip(*found, strict=True))


def _eltwise(layer: Layer) -> None:
    """The sum of the first two bottoms where it is quantized, else an operation on all of them as they are."""
    parameter, count = layer.proto.eltwise_param, len(layer.bottoms)
    layer.expect((1, None))
    pairs, output = _blobwise(layer, parameter), (parameter.output_scale, parameter.output_zero_point)
    quantized = any(_is_quantized(*one) for one in (*pairs, output))
    coefficients, operation = list(parameter.coeff), _OPERATIONS[parameter.operation]
    if count == 1 and (operation in ("maximum", "minimum") or (quantized and operation == "add")):
        raise layer.invalid("BT-NODE-ARITY", "the system reads two bottoms here, found one")
    if operation == "div" and count != 2:
        raise layer.invalid("BT-NODE-ARITY", f"a quotient has two bottoms, found {count}")
    if coefficients and (len(coefficients) != count or parameter.operation != _SUM):
        raise layer.invalid("BT-CAFFE-COEFFICIENTS", f"{len(coefficients)} coefficients for {count} bottoms")
    element_by_element = count == 2 and operation in ("mul", "div", "add" if quantized else "")
    if layer.in_place and not (element_by_element and layer.tops[0] == layer.proto.bottom[0]):
        raise layer.unsupported(
            "BT-CAFFE-IN-PLACE",
            "an Eltwise layer in place: the system clears a bottom first",
            "give its top another name",
        )
    if quantized and operation == "add":
        attributes = {
            **_ends(layer, parameter.saturate),
            "side_by_side": True,
            "quantize_method": METHODS[parameter.quantize_method],
        }
        inputs = (*layer.bottoms[:2], *layer.scales(*pairs[:2], output))
        layer.emit("add", layer.result_type(parameter.saturate, True), attributes, inputs=inputs)
        return
    _of_reals(layer, operation, coefficients or [1.0] * count)


def _scaled(layer: Layer, index: int, coefficient: float, position: int) -> int:
    if coefficient and (not math.isfinite(coefficient) or abs(math.frexp(coefficient)[0]) != 0.5):
        raise layer.unsupported(
            "BT-COEFFICIENT",
            f"coefficient {coefficient!r} of input {position} is no power of two",
            "whether its product is rounded before the sum depends on the processor; scale the layer before",
        )
    if coefficient == 1:
        return index
    factor = layer.constant(np.float32(coefficient), "coefficient")
    return layer.emit("mul", "f32", {}, inputs=(index, factor), top=None, role="scaled")


def _of_reals(layer: Layer, operation: str, coefficients: Sequence[float]) -> None:
    """From left to right, in binary32; the second bottom lies along the axes of the first, further ones have its shape.

    Sums begin with zero.
    """
    parameter = layer.proto.eltwise_param
    whole = all(layer.dtype(position) != "f32" for position in range(len(coefficients))) and operation != "div"
    whole = whole and all(float(one).is_integer() for one in coefficients)
    parts = [
        _scaled(layer, _real(layer, index), float(one), position)
        for position, (index, one) in enumerate(zip(layer.bottoms, coefficients, strict=True))
    ]
    chain = Chain(layer, parts[0])
    if operation == "add" and (layer.dtype() == "f32" or coefficients[0] <= 0 or len(parts) == 1):
        chain.then("add", layer.constant(np.float32(0), "zero"))
    if operation == "mul" and len(parts) == 1:
        chain.then("mul", layer.constant(np.float32(1), "one"))
    for position, part in enumerate(parts[1:], 1):
        beside = _along(layer, part, parts[0], parameter.axis if position == 1 else None)
        known: dict[str, Attribute] = {"limited": parameter.saturate != 0} if operation == "div" else {}
        # A third number is compared with what there is, the other way round.
        chain.then(operation, beside, known=known, first=position == 1 or operation in ("add", "mul"))
    chain.limit(parameter.saturate, layer.result_type(parameter.saturate, whole))
    chain.write()


def _constant_result(layer: Layer, value: float) -> None:
    """The same number everywhere, whatever the bottom holds."""
    layer.emit("relu", "f32", {**_ends(layer, 0), "slope": 0.0, "most": value, "least": value})


def _power(layer: Layer) -> None:
    """(scale * x + shift) ^ power; where the layer limits its result, scale * x is rounded: x is quantized."""
    parameter = layer.proto.power_param
    layer.expect(1)
    power, scale, shift = (np.float32(getattr(parameter, name)) for name in ("power", "scale", "shift"))
    with np.errstate(all="ignore"):
        ignores_input = power * scale == 0
    if ignores_input:
        # Nothing is limited then.
        if power not in (0, 1):
            raise layer.unsupported("BT-CAFFE-POWER", f"a scale of 0 and a power of {power}", "remove the layer")
        _constant_result(layer, 1.0 if power == 0 else float(shift))
        return
    saturate, rounds = parameter.saturate, parameter.saturate != 0
    # A shift that is an integer is the zero point.
    point = int(shift) if rounds and np.isfinite(shift) and shift == np.rint(shift) and abs(shift) < 2**31 else 0
    chain = Chain(layer, layer.bottoms[0] if rounds else _real(layer, layer.bottoms[0]))
    limited = power == 1 and shift == point
    if rounds:
        with np.errstate(all="ignore"):
            operands = layer.scales((float(np.float64(1) / np.float64(scale)), point), (1.0, 0))
        known: dict[str, Attribute] = {
            **_ends(layer, saturate if limited else 0),
            "multiplies": True,
            "quantize_method": METHODS[parameter.quantize_method],
        }
        chain.then("quantize", *operands, known=known, dtype=layer.result_type(saturate, limited))
    else:
        chain.then("mul", layer.constant(scale, "factor"))
    if shift != point:
        chain.then("add", layer.constant(shift, "shift"))
    if power != 1:
        chain.then("power", layer.constant(power, "exponent"))
    if not limited:
        chain.limit(saturate, "f32")
    chain.write()


def _relu(layer: Layer) -> None:
    """leaky_relu in integers where both ends are quantized and there is a slope, else relu."""
    parameter = layer.proto.relu_param
    if len(layer.bottoms) > 1:
        raise layer.unsupported("BT-CAFFE-RELU", "a ReLU layer whose maximum is a second bottom")
    layer.expect(1)
    quant_in = _is_quantized(parameter.input_scale, parameter.input_zero_point)
    quant_out = _is_quantized(parameter.output_scale, parameter.output_zero_point)
    inputs, slope = (*layer.bottoms, *layer.scales_of(parameter, "input", "output")), float(parameter.negative_slope)
    if slope != 0 and quant_in and quant_out:
        attributes = {**_ends(layer, parameter.saturate), "alpha": slope}
        layer.emit("leaky_relu", layer.result_type(parameter.saturate, True), attributes, inputs=inputs)
        return
    layer.refuse_in_place(quant_in)
    most = min(6.0 if parameter.relu6 else _INFINITE, parameter.maximum if parameter.maximum > 0 else _INFINITE)
    least = parameter.minimum if parameter.minimum != 0 else -_INFINITE
    dtype, limits = _quantized_result(layer, parameter)
    if not quant_in and not quant_out and slope == 0 and layer.dtype() != "f32":
        # Integers stay what they are.
        low, high = (-128, 127) if layer.dtype() == "s8" else (0, 255)
        if all(end in (_INFINITE, -_INFINITE) or (end.is_integer() and low <= end <= high) for end in (most, least)):
            dtype = layer.dtype()
    layer.emit("relu", dtype, {**limits, "slope": slope, "most": most, "least": least}, inputs=inputs)


def _sigmoid(layer: Layer) -> None:
    parameter = layer.proto.sigmoid_param
    layer.expect(1)
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    dtype, limits = _quantized_result(layer, parameter)
    layer.emit("logistic", dtype, limits, inputs=(*layer.bottoms, *layer.scales_of(parameter, "input", "output")))


def _softmax(layer: Layer) -> None:
    parameter = layer.proto.softmax_param
    layer.expect(1)
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    dtype, limits = _quantized_result(layer, parameter)
    attributes = {**limits, "axis": parameter.axis, "rounds": parameter.output_scale != 1}
    layer.emit("softmax", dtype, attributes, inputs=(*layer.bottoms, *layer.scales_of(parameter, "input", "output")))


def _concat(layer: Layer) -> None:
    """Each bottom in the result's scale, side by side; a single bottom is the result."""
    parameter = layer.proto.concat_param
    layer.expect((1, None))
    if parameter.HasField("axis") and parameter.HasField("concat_dim"):
        raise layer.invalid("BT-CAFFE-CONCAT", "axis and concat_dim are both given")
    axis = parameter.concat_dim if parameter.HasField("concat_dim") else parameter.axis
    pairs, output = _blobwise(layer, parameter), (parameter.output_scale, parameter.output_zero_point)
    if len(layer.bottoms) == 1:
        layer.alias(0, layer.bottoms[0])
        return
    layer.refuse_in_place(True)
    kinds = {layer.dtype(position) for position in range(len(pairs))}
    if any(_is_quantized(*one) for one in (*pairs, output)):
        dtype = layer.result_type(parameter.saturate, parameter.output_scale != 1)
        known = {**_ends(layer, parameter.saturate), "multiplies": False}
        inputs = [
            layer.emit(
                "quantize", dtype, known, inputs=(bottom, *layer.scales(output, pair)), top=None, role=f"part{position}"
            )
            for position, (bottom, pair) in enumerate(zip(layer.bottoms, pairs, strict=True))
        ]
    else:
        dtype = kinds.pop() if len(kinds) == 1 else "f32"
        inputs = [index if dtype != "f32" else _real(layer, index) for index in layer.bottoms]
    layer.emit("concatenation", dtype, {"axis": axis, "activation": "none"}, inputs=inputs)


MAPPERS: Mappers = {
    "Bias": _bias,
    "Concat": _concat,
    "Eltwise": _eltwise,
    "Power": _power,
    "ReLU": _relu,
    "Sigmoid": _sigmoid,
    "Softmax": _softmax,
}
