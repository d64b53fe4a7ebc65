"""Convolutions, fully-connected layers, pools, normalization and softmax."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Quantization
from .base import SERVER, Mapper, Mappers, Source, in_u8

# What the server engine takes where a scale, or one over it, is no number.
_DEFAULT_SCALE = np.float32(0.1)


def _pair(source: Source, single: str, several: str, default: int) -> tuple[int, int]:
    """Height and width: `x`, or `x_h` and `x_w`, or a list `xs`."""
    if source.has(single):
        return (source.integer(single, default),) * 2
    if source.has(f"{single}_h") and source.has(f"{single}_w"):
        return source.integer(f"{single}_h", default), source.integer(f"{single}_w", default)
    listed = source.integers(several)
    if listed is None:
        # A lone half means nothing to the runtime.
        return default, default
    if len(listed) != 2:
        raise source.unsupported("BT-CAFFE2-WINDOW", f"argument '{several}' has {len(listed)} numbers, only 2 are read")
    return listed[0], listed[1]


def _pads(source: Source) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    if source.integer("legacy_pad", 0) not in (0, 3):
        raise source.unsupported("BT-CAFFE2-WINDOW", "padding by legacy_pad is not read", "write the pads out")
    sides = [f"pad_{side}" for side in "tlbr"]
    if source.has("pad"):
        found = [source.integer("pad", 0)] * 4
    elif all(source.has(side) for side in sides):
        found = [source.integer(side, 0) for side in sides]
    else:
        found = source.integers("pads") or [0] * 4
    if len(found) != 4 or min(found) < 0:
        raise source.invalid("BT-CAFFE2-WINDOW", f"pads {found[:8]} must be four numbers of at least 0")
    return found[0], found[1], found[2], found[3]


def window(source: Source, *, dilated: bool = True) -> dict[str, Attribute]:
    """Strides, dilations and pads as attributes of channels-last windows."""
    source.channels_last()
    stride, dilation = _pair(source, "stride", "strides", 1), _pair(source, "dilation", "dilations", 1)
    if not dilated and dilation != (1, 1):
        raise source.unsupported("BT-CAFFE2-WINDOW", f"dilations {list(dilation)} are not read here")
    return {
        "strides": stride,
        "dilations": dilation,
        "padding": "explicit",
        "size": "floor",
        "pads": _pads(source),
    }


def fused(source: Source) -> tuple[str, Quantization]:
    """The activation that an operator's name ends in, and the parameters of its output.

    Server operators with a fused Relu spread the range above zero over all quantized values:
    scale = f32(f64(f32(Y_scale * (255 - zero point))) / 255), or 0.1 where that or one over it is no number; their zero
    point is 0.
    """
    asked = source.requested()
    if not source.type.endswith("Relu"):
        return "none", asked
    if source.engine != SERVER or source.type in _PLAIN_RELU:
        return "relu", asked
    with np.errstate(over="ignore", divide="ignore"):
        top = np.float32(asked.scales[0]) * np.float32(255 - int(asked.zero_points[0]))
        scale = np.float32(np.float64(top) / 255)
        usable = bool(scale) and bool(np.isfinite(np.float32(1) / scale))
    return "relu", source.parameters(float(scale if usable else _DEFAULT_SCALE), 0)


_PLAIN_RELU = frozenset({"Int8Relu", "Int8AveragePoolRelu", "Int8MaxPoolRelu"})


def _check_kernel(source: Source) -> None:
    """Kernel dimensions, where they are given, agree with the filters."""
    taps = _pair(source, "kernel", "kernels", 0)
    weights = source.tensor(1)
    if weights.is_constant and len(weights.shape) == 4 and tuple(weights.shape[1:3]) != taps:
        raise source.invalid(
            "BT-CAFFE2-WINDOW", f"the kernel is {list(taps)}, the filters have shape {list(weights.shape)}"
        )


def _list(source: Source, name: str, count: int, default: int, low: int) -> tuple[int, ...]:
    """`count` numbers of argument `name`."""
    found = source.integers(name) or [default] * count
    if len(found) != count or min(found) < low:
        raise source.invalid("BT-CAFFE2-WINDOW", f"'{name}' is {found[:8]}, expected {count} numbers from {low} on")
    return tuple(found)


def _spatial_convolution(source: Source, filters: np.ndarray) -> None:
    """Windows along three axes, which the server engine has; filters are [O, d, h, w, I]."""
    source.channels_last()
    if source.engine != SERVER:
        raise source.invalid("BT-CAFFE2-WINDOW", "filters of three axes, which engine DNNLOWP alone has")
    taps, groups = filters.shape[1:4], source.integer("group", 1)
    if _list(source, "kernels", 3, 0, 1) != taps:
        raise source.invalid("BT-CAFFE2-WINDOW", f"argument 'kernels' and filters {list(filters.shape)} do not fit")
    strides, dilations = (_list(source, name, 3, 1, 1) for name in ("strides", "dilations"))
    pads = _list(source, "pads", 6, 0, 0)
    pairs = filters.shape[4] == 1 and groups > 1 and groups % 8 == 0 and taps == (3, 3, 3) and set(pads) == {1}
    if pairs and set(dilations) == {1} and not ((filters >= 64) & (filters <= 192)).all():
        raise source.unsupported(
            "BT-CAFFE2-WINDOW",
            "depthwise filters of 3x3x3 are added up in pairs of 16 bits, and these can leave them",
            "weights from 64 to 192 cannot",
        )
    activation, parameters = fused(source)
    weights = source.constant(filters.transpose(0, 4, 1, 2, 3), "filters", source.tensor(1).quantization)
    attributes: dict[str, Attribute] = {
        "channels_last": True,
        "kernel_shape": taps,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "auto_pad": "NOTSET",
        "groups": groups,
    }
    # Zero point 0 makes the type's own end the Relu.
    assert activation == "none" or not parameters.zero_points.any()
    source.emit("conv", "u8", parameters, attributes, inputs=[source.inputs[0], weights, source.inputs[2]])


def _convolution(source: Source) -> None:
    source.expect(3)
    in_u8(source, 0, 1)
    weights = source.tensor(1)
    if weights.is_constant and len(weights.shape) == 5:
        _spatial_convolution(source, weights.values())
        return
    _check_kernel(source)
    activation, parameters = fused(source)
    attributes = {**window(source), "activation": activation, "kernel_shape": (), "channels_last": True}
    groups = source.integer("group", 1)
    if groups > 1 and weights.is_constant and len(weights.shape) == 4 and weights.shape[3] == 1:
        # One channel per group: filters [O, h, w, 1] as [1, h, w, O].
        filters, height, width, _ = weights.shape
        if filters % groups:
            raise source.invalid("BT-CONV-CHANNELS", f"{filters} filters cannot be split into {groups} groups")
        turned = weights.values().reshape(filters, height, width).transpose(1, 2, 0)[None]
        inputs = [source.inputs[0], source.constant(turned, "depthwise", weights.quantization), source.inputs[2]]
        attributes |= {
            "depth_multiplier": filters // groups,
            "groups": groups,
            "filter_layout": "ISO",
        }
        source.emit("conv", "u8", parameters, attributes, inputs=inputs)
        return
    attributes |= {"groups": groups, "filter_layout": "OSI", "bias_type": "s32"}
    source.emit("conv", "u8", parameters, attributes)


def _transposed(source: Source) -> None:
    source.expect(3)
    in_u8(source, 0, 1)
    _check_kernel(source)
    if source.integer("group", 1) != 1:
        raise source.invalid("BT-CONV-CHANNELS", "a transposed convolution has one group", "the runtime refuses others")
    adjust = _pair(source, "adj", "adjs", 0)
    attributes: dict[str, Attribute] = {
        **window(source, dilated=False),
        "output_padding": adjust,
        "kernel_shape": (),
        "groups": 1,
        "channels_last": True,
        "filter_layout": "OSI",
        "activation": "none",
        "bias_type": "s32",
    }
    weights = source.tensor(1)
    if not weights.is_constant or len(weights.shape) != 4:
        raise source.unsupported("BT-DYNAMIC", "the filters must be a constant of rank 4, filled by the init net")
    # [I, h, w, O] as [O, h, w, I].
    turned = source.constant(weights.values().transpose(3, 1, 2, 0), "filters", weights.quantization)
    inputs = [source.inputs[0], turned, source.inputs[2]]
    source.emit("conv_transpose", "u8", source.requested(), attributes, inputs=inputs)


def _fully_connected(source: Source) -> None:
    source.expect(3)
    in_u8(source, 0, 1)
    for axis in ("axis", "axis_w"):
        if source.integer(axis, 1) != 1:
            raise source.unsupported("BT-CAFFE2-ARGUMENT", f"'{axis}' other than 1 is not read")
    activation, parameters = fused(source)
    rows = source.emit("flatten", "u8", source.quantization(0), {"axis": 1}, inputs=source.inputs[:1], inner="rows")
    if source.engine == SERVER and source.integer("dequantize_output", 0):
        # Integers as biases are left out there.
        bias = source.inputs[2] if source.tensor(2).dtype == "f32" else None
        product: dict[str, Attribute] = {"transpose_b": True, "matrices": True, "constant": True}
        _real_product(source, (rows, source.inputs[1], bias), product, activation)
        return
    attributes: dict[str, Attribute] = {
        "activation": activation,
        "weights_format": "default",
        "keep_num_dims": False,
        "bias_type": "s32",
    }
    source.emit("fully_connected", "u8", parameters, attributes, inputs=[rows, *source.inputs[1:]])


def _real_product(
    source: Source, inputs: tuple[int, int, int | None], attributes: dict[str, Attribute], activation: str = "none"
) -> None:
    """A product whose sums become real numbers: f32(sum) * f32(Xs * Ws), plus a real bias before the one rounding."""
    first, second = source.quantization(0), source.quantization(1)
    points = [source.constant(given.zero_points.astype(np.uint8), "zero point") for given in (first, second)]
    factor = np.float32(first.scales[0]) * np.float32(second.scales[0])
    stem, extra = "dequantize", dict[str, Attribute]()
    given: tuple[int | None, ...]
    if inputs[2] is None:
        sums = source.parameters(float(factor), 0)
        summed = (*inputs, None, points[0], None, points[1])
        given = (source.emit("matmul", "s32", sums, attributes, inputs=summed, inner="sums"),)
    else:
        one, scale = (source.constant(np.array([value], np.float32), "scale") for value in (np.float32(1), factor))
        stem, given, extra = "matmul", (*inputs, one, points[0], scale, points[1]), attributes
    if activation == "none":
        source.emit(stem, "f32", None, extra, inputs=given)
    else:
        real = source.emit(stem, "f32", None, extra, inputs=given, inner="real")
        source.emit("relu", "f32", None, {"activation": activation}, inputs=(real,))


def _pool(operator: str, *, keeps: bool) -> Mapper:
    def mapper(source: Source) -> None:
        source.expect(1)
        in_u8(source, 0)
        activation = "relu" if source.type.endswith("Relu") else "none"
        parameters = source.requested()
        if keeps and source.engine == SERVER:
            # The arguments are ignored there.
            parameters = source.quantization(0)
        whole = bool(source.integer("global_pooling", 0))
        taps = (0, 0) if whole else _pair(source, "kernel", "kernels", 0)
        given = window(source, dilated=False)
        source.integer("group", 1)
        if whole and (given["strides"], given["pads"]) != ((1, 1), (0,) * 4):
            raise source.invalid("BT-CAFFE2-WINDOW", "global_pooling has stride 1 and no pads")
        attributes: dict[str, Attribute] = {
            **given,
            "kernel": () if whole else taps,
            "dilations": (),
            "channels_last": True,
            "activation": activation,
        }
        if keeps and not source.engine:
            # QNNPACK limits the positions of taps to the image.
            attributes["outside"] = "edge"
        source.emit(operator, "u8", parameters, attributes)

    return mapper


def _softmax(source: Source) -> None:
    source.expect(1)
    in_u8(source, 0)
    source.integer("axis", 1)
    source.text("order", "NHWC")
    source.emit("softmax", "u8", source.requested(), {"beta": 1.0, "axis": 1, "flattened": True})


def _normalization(source: Source) -> None:
    source.expect(5)
    in_u8(source, 0)
    source.channels_last()
    if not source.integer("is_test", 0):
        raise source.unsupported("BT-CAFFE2-TRAINING", "is_test must be set", "export the model for inference")
    activation, parameters = fused(source)
    attributes: dict[str, Attribute] = {"epsilon": source.real("epsilon", 1e-5), "activation": activation}
    source.emit("batch_normalization", "u8", parameters, {**attributes, "channels_last": True})


def _roi_align(source: Source) -> None:
    source.expect(2)
    in_u8(source, 0)
    source.channels_last("NHWC")
    attributes: dict[str, Attribute] = {
        "spatial_scale": source.real("spatial_scale", 1.0),
        "pooled_h": source.integer("pooled_h", 1),
        "pooled_w": source.integer("pooled_w", 1),
        "sampling_ratio": source.integer("sampling_ratio", -1),
    }
    source.emit("roi_align", "u8", source.requested(), attributes)


def _batch_product(source: Source) -> None:
    source.expect(2)
    in_u8(source, 0, 1)
    # Whether the second operand stays the same: a promise for the engine's speed, which chooses the kernel.
    constant = bool(source.integer("constant_B", 0))
    turned: dict[str, Attribute] = {
        f"transpose_{side}": bool(source.integer(f"trans_{side}", 0)) for side in ("a", "b")
    }
    # Vectors and unequal ranks need argument `broadcast`, which is not read.
    turned |= {"most_axes": 8, "constant": constant}
    parameters = source.requested()
    if source.integer("dequantize_output", 0):
        if not constant:
            raise source.unsupported(
                "BT-CAFFE2-ARGUMENT",
                "'dequantize_output' without 'constant_B' takes a path of real numbers",
                "set constant_B if the second operand stays the same",
            )
        _real_product(source, (source.inputs[0], source.inputs[1], None), turned)
        return
    source.emit("matmul", "u8", parameters, turned)


MAPPERS: Mappers = {
    "Int8AveragePool": _pool("average_pool", keeps=False),
    "Int8AveragePoolRelu": _pool("average_pool", keeps=False),
    "Int8BatchMatMul": _batch_product,
    "Int8Conv": _convolution,
    "Int8ConvRelu": _convolution,
    "Int8ConvTranspose": _transposed,
    "Int8FC": _fully_connected,
    "Int8FCRelu": _fully_connected,
    "Int8MaxPool": _pool("max_pool", keeps=True),
    "Int8MaxPoolRelu": _pool("max_pool", keeps=True),
    "Int8RoIAlign": _roi_align,
    "Int8Softmax": _softmax,
    "Int8SpatialBN": _normalization,
    "Int8SpatialBNRelu": _normalization,
}
