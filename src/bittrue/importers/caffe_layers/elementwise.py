"""Mappings of layers on single numbers and their sums: Bias, Concat, Eltwise, Power, ReLU, Sigmoid, Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Attribute
from .base import METHODS, MOST_AXES, Layer, Mappers

_INFINITE = float("inf")
_OPERATIONS = {0: "product", 1: "sum", 2: "largest", 3: "quotient", 4: "smallest"}
_SUM = 1


def _is_quantized(scale: float, zero_point: int) -> bool:
    return scale != 1 or zero_point != 0


def _scales(parameter: Any, *names: str) -> dict[str, Attribute]:
    """`{name}_scale` and `{name}_zero_point`."""
    return {
        f"{name}_{what}": getattr(parameter, f"{name}_{what}") for name in names for what in ("scale", "zero_point")
    }


def _ends(layer: Layer, saturate: int) -> dict[str, Attribute]:
    low, high = layer.saturation(saturate)
    return {"low": low, "high": high}


def _quantized_result(layer: Layer, parameter: Any) -> tuple[str, dict[str, Attribute]]:
    """Type and limits of layers that limit quantized results only: integers unless the output scale is 1."""
    if not _is_quantized(parameter.output_scale, parameter.output_zero_point):
        return "f32", _ends(layer, 0)
    return layer.result_type(parameter.saturate, parameter.output_scale != 1), _ends(layer, parameter.saturate)


def _bias(layer: Layer) -> None:
    """bias_levels of a bottom and a second one or a learned array."""
    parameter = layer.proto.bias_param
    layer.expect((1, 2))
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    inputs = list(layer.bottoms)
    if len(inputs) == 1:
        if not -1 <= parameter.num_axes <= MOST_AXES:
            raise layer.invalid("BT-CAFFE-BIAS", f"num_axes is {parameter.num_axes}")
        learned = layer.learned[0].values.ndim if parameter.num_axes == -1 and layer.learned else parameter.num_axes
        inputs.append(layer.constant(layer.learn(0, (-1,) * max(0, learned), "bias"), "bias"))
    dtype, limits = _quantized_result(layer, parameter)
    attributes = {
        **_scales(parameter, "input", "bias", "output"),
        **limits,
        "axis": parameter.axis,
        "quantize_method": METHODS[parameter.quantize_method],
    }
    layer.emit("bias_levels", dtype, attributes, inputs=inputs)


def _blobwise(layer: Layer, parameter: Any) -> tuple[list[float], list[int]]:
    """A scale and a zero point for each bottom."""
    count, found = len(layer.bottoms), []
    for name, default in (("input_scale", 1.0), ("input_zero_point", 0)):
        given = list(getattr(parameter, name)) or [default] * count
        if len(given) < count:
            raise layer.invalid(
                "BT-CAFFE-SCALES", f"{len(given)} of {name} for {count} bottoms", "give one for every bottom"
            )
        found.append(given[:count])
    return found[0], found[1]


def _eltwise(layer: Layer) -> None:
    """add_n of the first two bottoms for quantized sums, else combine_levels of all of them."""
    parameter, count = layer.proto.eltwise_param, len(layer.bottoms)
    layer.expect((1, None))
    scales, zero_points = _blobwise(layer, parameter)
    quantized = _is_quantized(parameter.output_scale, parameter.output_zero_point) or any(
        _is_quantized(*one) for one in zip(scales, zero_points, strict=True)
    )
    coefficients, operation = list(parameter.coeff), _OPERATIONS[parameter.operation]
    if count == 1 and (operation in ("largest", "smallest") or (quantized and operation == "sum")):
        raise layer.invalid("BT-NODE-ARITY", "the system reads two bottoms here, found one")
    if coefficients and (len(coefficients) != count or parameter.operation != _SUM):
        raise layer.invalid("BT-CAFFE-COEFFICIENTS", f"{len(coefficients)} coefficients for {count} bottoms")
    element_by_element = count == 2 and operation in ("product", "quotient", "sum" if quantized else "")
    if layer.in_place and not (element_by_element and layer.tops[0] == layer.proto.bottom[0]):
        raise layer.unsupported(
            "BT-CAFFE-IN-PLACE",
            "an Eltwise layer in place: the system clears a bottom first",
            "give its top another name",
        )
    limits = _ends(layer, parameter.saturate)
    if quantized and operation == "sum":
        attributes = {
            **{
                f"{name}_{what}": values[position]
                for position, name in enumerate(("first", "second"))
                for what, values in (("scale", scales), ("zero_point", zero_points))
            },
            **_scales(parameter, "output"),
            **limits,
            "quantize_method": METHODS[parameter.quantize_method],
        }
        dtype = layer.result_type(parameter.saturate, True)
        layer.emit("add_n", dtype, attributes, inputs=layer.bottoms[:2])
        return
    coefficients = coefficients or [1.0] * count
    whole = all(layer.dtype(position) != "f32" for position in range(count)) and operation != "quotient"
    whole = whole and all(float(one).is_integer() for one in coefficients)
    attributes = {**limits, "operation": operation, "axis": parameter.axis}
    attributes |= {f"coefficient_{position}": float(one) for position, one in enumerate(coefficients)}
    layer.emit("combine_levels", layer.result_type(parameter.saturate, whole), attributes)


def _constant_result(layer: Layer, value: float) -> None:
    """The same number everywhere, whatever the bottom holds."""
    attributes = {
        **{f"{name}_scale": 1.0 for name in ("input", "output")},
        **{f"{name}_zero_point": 0 for name in ("input", "output")},
        **_ends(layer, 0),
        "slope": 0.0,
        "most": value,
        "least": value,
    }
    layer.emit("relu", "f32", attributes)


def _power(layer: Layer) -> None:
    """scale_levels, rounded where the layer limits its result; with an exponent, power_levels and limits behind it."""
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
    rounds = parameter.saturate != 0
    attributes: dict[str, Attribute] = {
        "factor": float(scale),
        "addend": float(shift),
        "rounds": rounds,
        "quantize_method": METHODS[parameter.quantize_method],
    }
    if power == 1:
        dtype = layer.result_type(parameter.saturate, rounds and float(shift).is_integer())
        layer.emit("scale_levels", dtype, {**attributes, **_ends(layer, parameter.saturate)})
        return
    inside = layer.emit("scale_levels", "f32", {**attributes, **_ends(layer, 0)}, top=None, role="scaled")
    ends = _ends(layer, parameter.saturate)
    layer.emit("power_levels", "f32", {**ends, "exponent": float(power)}, inputs=(inside,))


def _relu(layer: Layer) -> None:
    """leaky_levels where both ends are quantized and there is a slope, else relu."""
    parameter = layer.proto.relu_param
    if len(layer.bottoms) > 1:
        raise layer.unsupported("BT-CAFFE-RELU", "a ReLU layer whose maximum is a second bottom")
    layer.expect(1)
    quant_in = _is_quantized(parameter.input_scale, parameter.input_zero_point)
    quant_out = _is_quantized(parameter.output_scale, parameter.output_zero_point)
    scales, slope = _scales(parameter, "input", "output"), float(parameter.negative_slope)
    if slope != 0 and quant_in and quant_out:
        attributes = {**scales, **_ends(layer, parameter.saturate), "slope": slope}
        layer.emit("leaky_levels", layer.result_type(parameter.saturate, True), attributes)
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
    layer.emit("relu", dtype, {**scales, **limits, "slope": slope, "most": most, "least": least})


def _sigmoid(layer: Layer) -> None:
    parameter = layer.proto.sigmoid_param
    layer.expect(1)
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    dtype, limits = _quantized_result(layer, parameter)
    layer.emit("logistic", dtype, {**_scales(parameter, "input", "output"), **limits})


def _softmax(layer: Layer) -> None:
    parameter = layer.proto.softmax_param
    layer.expect(1)
    layer.refuse_in_place(_is_quantized(parameter.input_scale, parameter.input_zero_point))
    dtype, limits = _quantized_result(layer, parameter)
    layer.emit("softmax", dtype, {**_scales(parameter, "input", "output"), **limits, "axis": parameter.axis})


def _concat(layer: Layer) -> None:
    """Each bottom in the result's levels, side by side; a single bottom is the result."""
    parameter = layer.proto.concat_param
    layer.expect((1, None))
    if parameter.HasField("axis") and parameter.HasField("concat_dim"):
        raise layer.invalid("BT-CAFFE-CONCAT", "axis and concat_dim are both given")
    axis = parameter.concat_dim if parameter.HasField("concat_dim") else parameter.axis
    scales, zero_points = _blobwise(layer, parameter)
    if len(layer.bottoms) == 1:
        layer.alias(0, layer.bottoms[0])
        return
    layer.refuse_in_place(True)
    parts = list(zip(scales, zero_points, strict=True))
    kinds = {layer.dtype(position) for position in range(len(parts))}
    if _is_quantized(parameter.output_scale, parameter.output_zero_point) or any(_is_quantized(*one) for one in parts):
        dtype = layer.result_type(parameter.saturate, parameter.output_scale != 1)
        output = {**_scales(parameter, "output"), **_ends(layer, parameter.saturate)}
        attributes: list[dict[str, Attribute]] = [
            {"input_scale": scale, "input_zero_point": zero_point, **output} for scale, zero_point in parts
        ]
        stems = ["quantize"] * len(parts)
    else:
        dtype = kinds.pop() if len(kinds) == 1 else "f32"
        attributes = [_ends(layer, 0)] * len(parts)
        stems = ["" if layer.dtype(position) == dtype else "limit_levels" for position in range(len(parts))]
    inputs = [
        layer.emit(stem, dtype, given, inputs=(bottom,), top=None, role=f"part{position}") if stem else bottom
        for position, (stem, given, bottom) in enumerate(zip(stems, attributes, layer.bottoms, strict=True))
    ]
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
