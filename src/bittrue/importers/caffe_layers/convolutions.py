"""Mappings of Convolution, ConvolutionDepthwise, Deconvolution and InnerProduct."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Attribute
from .base import METHODS, Layer, Mappers

_S32 = 1 << 31


def _count(layer: Layer, spatial: int, values: Any, name: str, default: int | None) -> list[int]:
    """A repeated field that is given once, or once per axis, or not at all."""
    given = [int(value) for value in values]
    if not given and default is not None:
        return [default] * spatial
    if len(given) not in (1, spatial):
        raise layer.invalid("BT-WINDOW", f"{name} is given {len(given)} times for {spatial} spatial axes")
    return given * spatial if len(given) == 1 else given


def _by_axis(layer: Layer, spatial: int, name: str, short: str, default: int | None) -> list[int]:
    """`name`, or its forms for height and width; the runtime refuses a network that gives both."""
    parameter = layer.proto.convolution_param
    high, wide = f"{short}_h", f"{short}_w"
    if not parameter.HasField(high) and not parameter.HasField(wide):
        return _count(layer, spatial, getattr(parameter, name), name, default)
    if spatial != 2 or len(getattr(parameter, name)):
        raise layer.invalid("BT-WINDOW", f"{high} and {wide} go with two spatial axes, and without {name}")
    return [int(getattr(parameter, high)), int(getattr(parameter, wide))]


def _kernel_axes(layer: Layer) -> int:
    """Spatial axes of the learned filters."""
    if not layer.learned:
        layer.learn(0, (-1, -1, -1, -1), "weights")
    return layer.learned[0].values.ndim - 2


def _window(layer: Layer) -> dict[str, Attribute]:
    """Kernel, strides, dilations, pads, and how the runtime counts windows; it finds some pads itself."""
    parameter = layer.proto.convolution_param
    spatial = _kernel_axes(layer)
    if not 1 <= spatial <= 3 or parameter.axis != 1:
        raise layer.unsupported(
            "BT-CONV-AXES", f"a convolution over {spatial} axes with channels on axis {parameter.axis}"
        )
    pads = _by_axis(layer, spatial, "pad", "pad", 0)
    before, after = pads, pads
    sides = [parameter.pad_t, parameter.pad_l, parameter.pad_b, parameter.pad_r]
    if any(sides):
        if spatial != 2 or parameter.pad or parameter.pad_h or parameter.pad_w or parameter.pad_type:
            raise layer.invalid(
                "BT-WINDOW",
                "pad_l, pad_r, pad_t and pad_b go with two spatial axes, and without pad, pad_h, pad_w, pad_type",
            )
        before, after = sides[:2], sides[2:]
    if parameter.HasField("pad_type") and (parameter.pad or parameter.pad_h or parameter.pad_w):
        raise layer.invalid("BT-WINDOW", "pad_type goes without pad, pad_h and pad_w")
    if parameter.pad_type > 1:
        raise layer.invalid("BT-WINDOW", f"pad_type {parameter.pad_type} is none of 0 and 1")
    strides = _by_axis(layer, spatial, "stride", "stride", 1)
    taps = _by_axis(layer, spatial, "kernel_size", "kernel", None)
    dilations = _count(layer, spatial, parameter.dilation, "dilation", 1)
    padding, size = "explicit_or_cropping", "truncated"
    nd = parameter.force_nd_im2col or spatial != 2
    if nd and any(sides):
        # Such windows begin with the image, wherever its padding lies; only their number goes by it.
        before, after = [0] * spatial, [sum(both) for both in zip(before, after, strict=True)]
    if layer.type == "Deconvolution":
        reaches = ((k - 1) * d + 1 for k, d in zip(taps, dilations, strict=True))
        if parameter.pad_type and not nd and any(r > s for r, s in zip(reaches, strides, strict=True)):
            raise layer.unsupported(
                "BT-WINDOW", "pad_type 1 in a Deconvolution whose windows overlap: the runtime reads past its memory"
            )
    elif parameter.pad_type:
        padding, size = (
            "same_after" if nd else "same_upper_as_undilated" if max(dilations) > 1 else "same_upper",
            "floor",
        )
    return {
        "kernel_shape": tuple(taps),
        "strides": tuple(strides),
        "dilations": tuple(dilations),
        "pads": (*before, *after),
        "auto_pad": "NOTSET",
        "padding": padding,
        "size": size,
        "channels_last": False,
    }


def _stored(array: np.ndarray, *types: type) -> np.ndarray:
    """Integers in the first type that holds all of them; other arrays stay binary32."""
    if np.isfinite(array).all() and (np.rint(array) == array).all():
        for dtype in types:
            limits = np.iinfo(dtype)
            if not array.size or (limits.min <= float(array.min()) and float(array.max()) <= limits.max):
                return array.astype(dtype)
    return array


def _weights(array: np.ndarray) -> np.ndarray:
    return _stored(np.ascontiguousarray(array), np.int8, np.uint8)


def _bias(array: np.ndarray | None) -> np.ndarray | None:
    """32 bits where they hold it: 2^31 as binary32 is none of them."""
    if array is None or (array.size and float(np.abs(array).max()) >= _S32):
        return array
    return _stored(array, np.int32)


def _operands(
    layer: Layer,
    parameter: Any,
    weights: np.ndarray,
    bias: np.ndarray | None,
    scales: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    points: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
) -> list[int | None]:
    """Constants behind x: weights and bias, then scale and zero point of x, weights and output.

    `scales` and `points`: of weights and output per channel, where they are used.
    """

    def point(scalar: int, several: np.ndarray | None, role: str) -> np.ndarray:
        if several is None:
            return np.asarray(scalar, np.int32)
        stored = _stored(several, np.int32)
        if stored.dtype != np.int32:
            raise layer.invalid("BT-QUANT-ZERO-POINT", f"{role} holds numbers that are not whole, or not of 32 bits")
        return stored

    wide = [None if array is None else array.astype(np.float64) for array in scales]
    values: dict[str, np.ndarray | None] = {
        "weights": _weights(weights),
        "bias": _bias(bias),
        "input_scale": np.asarray(parameter.input_scale, np.float64),
        "input_zero_point": np.asarray(parameter.input_zero_point, np.int32),
        "weight_scale": np.asarray(parameter.weight_scale, np.float64) if wide[0] is None else wide[0],
        "weight_zero_point": point(parameter.weight_zero_point, points[0], "weight zero point"),
        "output_scale": np.asarray(parameter.output_scale, np.float64) if wide[1] is None else wide[1],
        "output_zero_point": point(parameter.output_zero_point, points[1], "output zero point"),
    }
    return [None if value is None else layer.constant(value, role) for role, value in values.items()]


def _emit(
    layer: Layer,
    stem: str,
    operands: list[int | None],
    attributes: dict[str, Attribute],
    parameter: Any,
    rescales: bool,
) -> None:
    """One node per bottom. A result is of 8 bits where all of it is whole."""
    low, high = layer.saturation(parameter.saturate)
    known = [layer.builder.tensors[index].dtype for index in operands[:2] if index is not None]
    attributes = {
        **attributes,
        "low": low,
        "high": high,
        "rescales": rescales,
        "quantize_method": METHODS.get(parameter.quantize_method, ""),
    }
    for position, bottom in enumerate(layer.bottoms):
        whole = rescales or (layer.dtype(position) != "f32" and "f32" not in known)
        dtype = layer.result_type(parameter.saturate, whole)
        layer.emit(stem, dtype, attributes, inputs=(bottom, *operands), top=position)


def _check(layer: Layer, blobs: int) -> None:
    layer.expect((1, None), (1, None))
    if len(layer.bottoms) != len(layer.tops):
        raise layer.invalid("BT-NODE-ARITY", f"{len(layer.bottoms)} bottom blobs and {len(layer.tops)} top blobs")
    if layer.in_place:
        raise layer.unsupported("BT-CAFFE-IN-PLACE", f"a {layer.type} layer in place", "give its top a name of its own")
    if layer.learned and len(layer.learned) != blobs:
        raise layer.invalid(
            "BT-CAFFE-WEIGHTS",
            f"the weight file holds {len(layer.learned)} blobs, the layer has {blobs}",
            "the weight file belongs to another network",
        )


def _quantized(parameter: Any) -> bool:
    return bool(parameter.input_scale != 1.0 or parameter.weight_scale != 1.0 or parameter.output_scale != 1.0)


def _blob_count(parameter: Any) -> int:
    several = parameter.per_channel_scale_weight, parameter.per_channel_scale_output
    return 1 + bool(parameter.bias_term) + 2 * sum(map(bool, several))


def _convolution(layer: Layer) -> None:
    """Parameters per channel: blobs 2 and 3 are of the weights, 4 and 5 of the output."""
    parameter = layer.proto.convolution_param
    outputs, weight_wise, output_wise = (
        parameter.num_output,
        bool(parameter.per_channel_scale_weight),
        bool(parameter.per_channel_scale_output),
    )
    _check(layer, _blob_count(parameter))
    if parameter.submanifold_sparse:
        raise layer.unsupported("BT-CAFFE-SPARSE", "submanifold_sparse convolutions")
    if output_wise and not weight_wise:
        raise layer.invalid("BT-QUANT-AXIS", "per_channel_scale_output needs per_channel_scale_weight")
    if weight_wise and not parameter.bias_term:
        raise layer.invalid(
            "BT-CAFFE-WEIGHTS",
            "scales per channel without a bias: the runtime reads other blobs than those, and dies",
            "add a bias of zeros",
        )
    attributes = _window(layer)
    attributes |= {"groups": parameter.group, "per_channel": weight_wise}
    weights = layer.learn(0, (outputs, -1, *attributes["kernel_shape"]), "weights")  # type: ignore[misc]
    bias = layer.learn(1, (outputs,), "bias") if parameter.bias_term else None
    several = [layer.learn(i, (outputs,), "scales and zero points per channel") for i in range(2, 2 + 2 * weight_wise)]
    more = [layer.learn(i, (outputs,), "scales and zero points per channel") for i in range(4, 4 + 2 * output_wise)]
    ignored = METHODS.get(parameter.quantize_method) == "caffe2"
    scales = (
        several[0] if several and not ignored else None,
        more[0] if more and not ignored else None,
    )
    points = (
        several[1] if several and not parameter.weight_zero_point else None,
        more[1] if more and not parameter.output_zero_point else None,
    )
    operands = _operands(layer, parameter, weights, bias, scales, points)
    _emit(layer, "conv", operands, attributes, parameter, _quantized(parameter) or weight_wise)


def _depthwise(layer: Layer) -> None:
    """A filter per channel on real numbers: scales, zero points and saturate are read and never used."""
    parameter = layer.proto.convolution_param
    _check(layer, _blob_count(parameter))
    plain = type(parameter)()
    attributes = _window(layer)
    weights = layer.learn(0, (parameter.num_output, 1, *attributes["kernel_shape"]), "weights")  # type: ignore[misc]
    bias = layer.learn(1, (parameter.num_output,), "bias") if parameter.bias_term else None
    attributes |= {"groups": 1, "depthwise": True, "per_channel": False}
    _emit(layer, "conv", _operands(layer, plain, weights, bias), attributes, plain, False)


def _deconvolution(layer: Layer) -> None:
    """Filters are [channels, outputs / group, ...]; parameters per channel are not used."""
    parameter = layer.proto.convolution_param
    _check(layer, _blob_count(parameter))
    attributes = _window(layer)
    pads = attributes["pads"]
    sides = any((parameter.pad_t, parameter.pad_l, parameter.pad_b, parameter.pad_r))
    ones = {*attributes["kernel_shape"], *attributes["strides"]} == {1}  # type: ignore[misc]
    if sides and ones:
        raise layer.invalid(
            "BT-WINDOW",
            f"pads {pads} around filters of one tap: the runtime writes past its result",
            "use pad_h and pad_w",
        )
    group, outputs = parameter.group, parameter.num_output
    if group < 1 or outputs % group:
        raise layer.invalid("BT-CONV-GROUPS", f"{outputs} outputs in {group} groups")
    weights = layer.learn(0, (-1, outputs // group, *attributes["kernel_shape"]), "weights")  # type: ignore[misc]
    bias = layer.learn(1, (outputs,), "bias") if parameter.bias_term else None
    attributes |= {"groups": group, "output_padding": (), "output_shape": ()}
    operands = _operands(layer, parameter, weights, bias)
    _emit(layer, "conv_transpose", operands, attributes, parameter, _quantized(parameter))


def _inner_product(layer: Layer) -> None:
    """Weights [outputs, inputs], or turned with `transpose`."""
    parameter = layer.proto.inner_product_param
    layer.expect(1)
    _check(layer, 1 + bool(parameter.bias_term))
    outputs = parameter.num_output
    if parameter.transpose:
        weights = layer.learn(0, (-1, outputs), "weights").T
    else:
        weights = layer.learn(0, (outputs, -1), "weights")
    bias = layer.learn(1, (outputs,), "bias") if parameter.bias_term else None
    operands = _operands(layer, parameter, weights, bias)
    attributes: dict[str, Attribute] = {"axis": parameter.axis}
    _emit(layer, "fully_connected", operands, attributes, parameter, _quantized(parameter))


MAPPERS: Mappers = {
    "Convolution": _convolution,
    "ConvolutionDepthwise": _depthwise,
    "Deconvolution": _deconvolution,
    "InnerProduct": _inner_product,
}
