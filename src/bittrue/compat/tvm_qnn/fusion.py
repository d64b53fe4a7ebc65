"""Nodes that belong together: a layer, its bias, its requantization and its clamp as one operator.

What comes out are the operators that graphs of other formats have, so that a graph built here runs in any numerics.
Every group gives the bytes of its nodes one by one under the numerics of `bittrue.qnn`, else it is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...graph import Attribute, Quantization, data_type
from .expr import Expr
from .lowering import LOWERINGS
from .plain_lowering import FUNCTIONS, function_attributes
from .windows import NO_PADDING, padding_rules
from .writer import ONE_VALUE, Writer, quantization


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that become one operator.

    Attributes:
        inputs: operands from outside.
        inside: identities (`id`) of the nodes that are computed nowhere else: all of the group but the last one, and
            constants that it takes in another form.
        emit: writes the operator and gives its output.
    """

    inputs: Sequence[Expr]
    inside: Collection[int]
    emit: Callable[[Writer, Sequence[int]], int]


# What a fused activation leaves of the real numbers.
_INTERVALS: dict[str, tuple[float, float | None]] = {
    "relu": (0.0, None),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
}
# Types of data, kernel and result that a layer is written for.
# Bytes less such a zero point have 16 bits.
_SMALL_POINT = 1 << 14
_LAYERS = {("s8", "s8"), ("u8", "u8"), ("u8", "s8"), ("s16", "s8")}
# Operators with one scale and zero point per operand and a clamp of their own.
_CLAMPED = {
    "qnn.add": "add",
    "qnn.subtract": "sub",
    "qnn.mul": "mul",
}


def activation_of(clip: Expr, scale: np.ndarray, zero_point: np.ndarray) -> str | None:
    """The activation that leaves exactly the interval of `clip` on a tensor with these parameters; None: no one does.

    Bounds are rounded as the frontend of the system rounds them: to even, in binary64.

    >>> clip = Expr("clip", (), (1,), "s8", attributes={"a_min": -128, "a_max": -68})
    >>> activation_of(clip, np.float32(0.1), np.int32(-128))
    'relu6'
    """
    kind, point = data_type(clip.dtype), int(zero_point)
    low, high = (int(str(clip.attributes[end])) for end in ("a_min", "a_max"))
    found = max(low, kind.minimum), min(high, kind.maximum)
    if found == (kind.minimum, kind.maximum):
        return "none"
    for name, (lower, upper) in _INTERVALS.items():
        ends = [None if bound is None else round(bound / float(scale)) + point for bound in (lower, upper)]
        least = max(kind.minimum, ends[0] or 0) if ends[0] is not None else kind.minimum
        most = kind.maximum if ends[1] is None else min(kind.maximum, ends[1])
        if (least, most) == found:
            return name
    return None


def _single(expr: Expr, uses: Mapping[int, int], kept: Collection[int]) -> bool:
    """Whether one other node reads it, and nothing else."""
    return uses.get(id(expr), 0) == 1 and id(expr) not in kept


def _scalar(*arrays: np.ndarray) -> bool:
    return all(array.ndim == 0 for array in arrays)


def find_group(last: Expr, uses: Mapping[int, int], kept: Collection[int]) -> Group | None:
    """The largest group that ends in `last`; None where it stands alone.

    `uses`: how many operands each node is, by identity; `kept`: outputs of the graph, which stay.
    """
    before = last.inputs[0] if last.operator == "clip" else last
    if before.computed:
        return None
    if last.operator == "clip" and _single(before, uses, kept):
        if before.operator == "qnn.requantize":
            activation = activation_of(last, *_wanted(before)) if _scalar(*_wanted(before)) else None
            return None if activation is None else _layer(before, last, activation, uses, kept)
        if before.operator in _CLAMPED and _per_tensor(before):
            activation = activation_of(last, *_wanted(before))
            return None if activation is None else _clamped(before, last, activation)
    if last.operator == "qnn.requantize":
        return _layer(last, last, "none", uses, kept) or _mean(last, uses, kept)
    if last.operator == "qnn.quantize" and last.parameters:
        return _of_reals(last, uses, kept)
    return None


def _mean(last: Expr, uses: Mapping[int, int], kept: Collection[int]) -> Group | None:
    """cast, mean and requantize as frontends write the mean of quantized values."""
    mean = last.inputs[0]
    if mean.operator != "mean" or not _single(mean, uses, kept) or not _per_tensor(last):
        return None
    cast = mean.inputs[0]
    if cast.operator != "cast" or not _single(cast, uses, kept) or cast.inputs[0].dtype != last.dtype:
        return None

    def emit(writer: Writer, inputs: Sequence[int]) -> int:
        given = quantization(last.parameters["input_scale"], last.parameters["input_zero_point"])
        axes = writer.constant(np.array(mean.attributes["axes"], np.int32), "s32", "axes")
        attributes: dict[str, Attribute] = {"keep_dims": mean.attributes["keep_dims"], **_rounding(last)}
        operands = (writer.quantized(inputs[0], given), axes)
        result = quantization(*_wanted(last))
        return writer.node("mean", "mean", operands, last.dtype, last.shape, attributes, result, last.name)

    return Group(cast.inputs, (id(mean), id(cast)), emit)


def _of_reals(last: Expr, uses: Mapping[int, int], kept: Collection[int]) -> Group | None:
    """dequantize, a function of real numbers and quantize."""
    function = last.inputs[0]
    if function.operator not in FUNCTIONS or not _single(function, uses, kept) or not _per_tensor(last):
        return None
    real = function.inputs[0]
    # Without parameters they are operands.
    if (
        real.operator != "qnn.dequantize"
        or not real.parameters
        or not _single(real, uses, kept)
        or real.inputs[0].dtype != last.dtype
    ):
        return None
    most = 16 if function.operator == "nn.softmax" else 8
    if not _scalar(*real.parameters.values()) or data_type(last.dtype).bits > most or last.dtype == "u16":
        return None

    def emit(writer: Writer, inputs: Sequence[int]) -> int:
        given = quantization(real.parameters["input_scale"], real.parameters["input_zero_point"])
        source, result = writer.quantized(inputs[0], given), quantization(*_wanted(last))
        stem, attributes = FUNCTIONS[function.operator], function_attributes(function)
        return writer.node(stem, function.operator, (source,), last.dtype, last.shape, attributes, result, last.name)

    return Group(real.inputs, (id(function), id(real)), emit)


def _wanted(expr: Expr) -> tuple[np.ndarray, np.ndarray]:
    return expr.parameters["output_scale"], expr.parameters["output_zero_point"]


def _per_tensor(expr: Expr) -> bool:
    return _scalar(*expr.parameters.values()) and data_type(expr.dtype).bits <= 16


def _clamped(inner: Expr, clip: Expr, activation: str) -> Group:
    def emit(writer: Writer, inputs: Sequence[int]) -> int:
        index = LOWERINGS[inner.operator](writer, inner, inputs)
        node = writer.nodes[-1]
        if node.outputs != (index,) or node.operator != _CLAMPED[inner.operator]:
            return LOWERINGS["clip"](writer, clip, (index,))
        writer.nodes[-1] = replace(node, attributes={**node.attributes, "activation": activation})
        return index

    return Group(inner.inputs, (id(inner),), emit)


def _layer(
    requantize: Expr, last: Expr, activation: str, uses: Mapping[int, int], kept: Collection[int]
) -> Group | None:
    """conv2d or dense, with or without a bias, and what `last` ends."""
    inside = [] if last is requantize else [id(requantize)]
    layer, bias = requantize.inputs[0], None
    if layer.operator == "nn.bias_add" and _single(layer, uses, kept):
        inside.append(id(layer))
        axis = layer.attributes["axis"]
        layer, bias = layer.inputs[0], layer.inputs[1]
        if axis != _channel_axis(layer):
            return None
    if layer.operator not in ("qnn.conv2d", "qnn.dense") or not _single(layer, uses, kept):
        return None
    inside.append(id(layer))
    if not _fits(layer, requantize, bias):
        return None
    kernel = layer.inputs[1]
    inputs = [layer.inputs[0], kernel] + ([] if bias is None else [bias])
    # Constants are written anew, in the form of the operator.
    for given in inputs[1:]:
        if given.value is not None and _single(given, uses, kept):
            inside.append(id(given))

    def emit(writer: Writer, indices: Sequence[int]) -> int:
        return _emit_layer(writer, layer, requantize, bias, activation, last.name, list(indices))

    held = tuple(given for given in inputs if id(given) not in inside)
    if len(held) == len(inputs):
        return Group(inputs, inside, emit)
    return Group(held, inside, _with_constants(inputs, inside, emit))


def _with_constants(
    inputs: Sequence[Expr], inside: Collection[int], emit: Callable[[Writer, Sequence[int]], int]
) -> Callable[[Writer, Sequence[int]], int]:
    """Constants inside of the group are written when it is; unread tensors remain otherwise."""

    def all_inputs(writer: Writer, held: Sequence[int]) -> int:
        given = iter(held)
        found = [
            writer.constant(expr.value, expr.dtype, expr.name or "constant")
            if id(expr) in inside and expr.value is not None
            else next(given)
            for expr in inputs
        ]
        return emit(writer, found)

    return all_inputs


def _channel_axis(layer: Expr) -> int:
    return 1 if layer.operator == "qnn.dense" or layer.attributes.get("data_layout") == "NCHW" else 3


def _fits(layer: Expr, requantize: Expr, bias: Expr | None) -> bool:
    """Whether the operator of one piece computes the same bytes."""
    data, kernel, *computed = layer.inputs
    p, q = layer.parameters, requantize.parameters
    if computed or (data.dtype, kernel.dtype) not in _LAYERS or requantize.dtype != data.dtype:
        return False
    # Sums of 64 bits are for 16-bit data; the numerics says what becomes of them.
    if layer.dtype != ("s64" if data.dtype == "s16" else "s32"):
        return False
    # The operator forms the scale of its sum by itself, as a binary32 product.
    product = p["input_scale"] * p["kernel_scale"]
    if q["input_scale"].shape != product.shape or q["input_scale"].tobytes() != product.tobytes():
        return False
    if product.ndim and requantize.attributes["axis"] != _channel_axis(layer):
        return False
    if q["input_zero_point"].any() or not _scalar(q["output_scale"], q["output_zero_point"]):
        return False
    points, several = p["kernel_zero_point"], p["kernel_scale"].ndim > 0
    # Differences of 16 bits may wrap, which is the numerics' to say of layers that stand alone; so are zero points that
    # the type does not hold.
    kind = data_type(data.dtype)
    low, high = (0, 0) if data.dtype == "s16" else (kind.minimum, kind.maximum)
    if not low <= int(p["input_zero_point"]) <= high or (abs(points.astype(np.int64)) > _SMALL_POINT).any():
        return False
    if points.any() and (several or points.ndim):
        return False
    if several and kernel.dtype == "u8":
        return False
    if layer.operator == "qnn.conv2d":
        depthwise = _depthwise(layer)
        # Depthwise filters have no zero point but those of bytes, and a bias of their own type.
        if depthwise and points.any() and kernel.dtype != "u8":
            return False
        if kernel.value is None and depthwise:
            return False
    return bias is None or bias.dtype == layer.dtype


def other_product(requantize: Expr) -> str:
    """Why a layer and its requantization stay apart where only the last bit of a scale is in the way; else nothing.

    Products of Python floats are those of binary64, scales are binary32 numbers.

    >>> from bittrue import qnn
    >>> layer = qnn.dense(qnn.var("x", (1, 4), "uint8"), np.ones((2, 4), np.uint8), 0, 0, 0.1, 0.05, 2)
    >>> print(other_product(qnn.requantize(layer, 0.1 * 0.05, 0, 0.2, 3, out_dtype="uint8")))
    input_scale is 0.005 and the product of the scales in binary32 is 0.0050000004: write np.float32(a) * np.float32(b)
    """
    layer = requantize.inputs[0]
    while layer.operator == "nn.bias_add":
        layer = layer.inputs[0]
    if requantize.operator != "qnn.requantize" or layer.operator not in ("qnn.conv2d", "qnn.dense"):
        return ""
    scale, product = (
        np.atleast_1d(value)
        for value in (
            requantize.parameters["input_scale"],
            layer.parameters["input_scale"] * layer.parameters["kernel_scale"],
        )
    )
    if (
        scale.shape != product.shape
        or (scale == product).all()
        or (abs(scale - product) > 2 * np.spacing(product)).any()
    ):
        return ""
    at = int(np.argmax(scale != product))
    return (
        f"input_scale is {scale[at]!s} and the product of the scales in binary32 is {product[at]!s}: "
        "write np.float32(a) * np.float32(b)"
    )


def _depthwise(layer: Expr) -> bool:
    groups = int(str(layer.attributes["groups"]))
    channels = layer.inputs[0].shape[1 if layer.attributes["data_layout"] == "NCHW" else 3]
    return groups > 1 and groups == channels


def _rounding(requantize: Expr) -> dict[str, Attribute]:
    given = requantize.attributes
    return {name: given[name] for name in ("rounding", "compute_dtype") if given[name] != "None"}


def _emit_layer(
    writer: Writer,
    layer: Expr,
    requantize: Expr,
    bias: Expr | None,
    activation: str,
    name: str,
    indices: list[int],
) -> int:
    p = layer.parameters
    several = p["kernel_scale"].ndim > 0
    kernel_axis = 3 if layer.operator == "qnn.conv2d" and _depthwise(layer) else 0
    points = np.asarray(0, np.int32) if several else p["kernel_zero_point"].reshape(-1)[:1].reshape(())
    weights = quantization(p["kernel_scale"], points, kernel_axis)
    source = writer.quantized(indices[0], quantization(p["input_scale"], p["input_zero_point"]))
    result = quantization(*_wanted(requantize))
    operands: list[int | None] = []
    scale = np.atleast_1d(p["input_scale"] * p["kernel_scale"])
    given = Quantization(scale, np.zeros(scale.size, np.int64), 0 if several else None)
    if bias is not None:
        operands.append(writer.quantized(indices[2], given))
    elif layer.operator == "qnn.conv2d":
        # Convolutions have a bias.
        zeros = np.zeros(layer.shape[_channel_axis(layer)], data_type(layer.dtype).numpy)
        operands.append(writer.constant(zeros, layer.dtype, "bias", given))
    attributes: dict[str, Attribute] = {"activation": activation, "bias_type": "f32", **_rounding(requantize)}
    if layer.operator == "qnn.dense":
        kernel = writer.quantized(indices[1], weights)
        attributes |= {"weights_format": "default", "keep_num_dims": False, "asymmetric_quantize_inputs": False}
        if bias is None:
            operands.append(None)
        return writer.node(
            "fully_connected",
            layer.operator,
            (source, kernel, *operands),
            requantize.dtype,
            layer.shape,
            attributes,
            result,
            name,
        )
    return _emit_conv2d(
        writer, layer, source, indices[1], weights, operands, attributes, result, requantize.dtype, name
    )


def _emit_conv2d(
    writer: Writer,
    layer: Expr,
    source: int,
    kernel: int,
    weights: Quantization,
    bias: list[int | None],
    attributes: dict[str, Attribute],
    result: Quantization,
    dtype: str,
    name: str,
) -> int:
    a = layer.attributes
    first = a["data_layout"] == "NCHW"
    if first:
        source = writer.transpose(source, (0, 2, 3, 1), layer.operator)
    depthwise = _depthwise(layer)
    # From [O, I, h, w]; depthwise kernels are [C * multiplier, 1, h, w].
    turned = writer.transpose(kernel, (1, 2, 3, 0) if depthwise else (0, 2, 3, 1), layer.operator)
    turned = writer.quantized(turned, weights)
    source, (padding, size) = _padded(writer, layer, source)
    attributes |= {
        "strides": tuple(a["strides"]),
        "dilations": tuple(a["dilation"]),
        "pads": (),
        "padding": padding,
        "size": size,
        "groups": a["groups"],
        "filter_layout": "ISO" if depthwise else "OSI",
        "kernel_shape": (),
        "channels_last": True,
    }
    shape = layer.shape
    if first:
        shape = (shape[0], *shape[2:], shape[1])
    if depthwise:
        del attributes["bias_type"]
        attributes["depth_multiplier"] = shape[3] // writer.tensors[source].shape[3]
    index = writer.node(
        "conv",
        layer.operator,
        (source, turned, *bias),
        dtype,
        shape,
        attributes,
        result,
        "" if first else name,
    )
    return writer.transpose(index, (0, 3, 1, 2), layer.operator) if first else index


def _padded(writer: Writer, layer: Expr, source: int) -> tuple[int, tuple[str, str]]:
    """The data, padded by an operator of its own where no rules say it, and the rules for padding and size."""
    tensor = writer.tensors[source]
    pads = list(layer.attributes["padding"])
    sizes, out = tensor.shape[1:3], layer.shape[2:] if layer.attributes["data_layout"] == "NCHW" else layer.shape[1:3]
    taps, strides, dilation = layer.inputs[1].shape[2:], layer.attributes["strides"], layer.attributes["dilation"]
    rules = padding_rules(sizes, taps, strides, dilation, pads, out)
    if rules is not None:
        return source, rules
    top, left, bottom, right = pads
    amounts = np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    shape = [size + int(sum(amount)) for size, amount in zip(tensor.shape, amounts, strict=True)]
    paddings = writer.constant(amounts, "s32", "paddings")
    operands = (source, paddings)
    index = writer.node("pad", layer.operator, operands, tensor.dtype, shape, ONE_VALUE, tensor.quantization)
    return index, NO_PADDING
