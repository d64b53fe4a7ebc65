"""Mappings of layers over images: Pooling, ResizeBilinear, SpatialBatchingPooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Attribute
from .base import METHODS, Chain, Layer, Mappers

_MAX, _AVERAGE, _AVERAGE_WITHOUT_PADDING = 0, 1, 3
_FLOOR = 1


def _sides(layer: Layer, parameter: Any) -> dict[str, Attribute]:
    """kernel, strides and pads (top, left, bottom, right) of a pool."""

    def has(name: str) -> bool:
        return bool(parameter.HasField(name))

    def refuse(condition: bool, message: str) -> None:
        if condition:
            raise layer.invalid("BT-CAFFE-WINDOW", message, "the system stops there")

    for name in ("pad", "stride"):
        both = has(f"{name}_h") and has(f"{name}_w")
        either = has(f"{name}_h") or has(f"{name}_w")
        refuse(either and (has(name) or not both), f"{name} is {name}, or {name}_h and {name}_w")
    both = has("kernel_h") and has("kernel_w")
    if parameter.global_pooling:
        refuse(has("kernel_size") or has("kernel_h") or has("kernel_w"), "global pooling has no kernel")
        kernel: tuple[int, ...] = ()
    else:
        refuse(has("kernel_size") == both, "the kernel is kernel_size, or kernel_h and kernel_w")
        size = parameter.kernel_size
        kernel = (size, size) if has("kernel_size") else (parameter.kernel_h, parameter.kernel_w)
        refuse(min(kernel) < 1, "the kernel has no dimension")
    pad_h, pad_w = (parameter.pad_h, parameter.pad_w) if has("pad_h") else (parameter.pad, parameter.pad)
    stride = parameter.stride
    strides = (parameter.stride_h, parameter.stride_w) if has("stride_h") else (stride, stride)
    refuse(
        parameter.global_pooling and (pad_h, pad_w, *strides) != (0, 0, 1, 1), "global pooling has no pads and stride 1"
    )
    sides = parameter.pad_t, parameter.pad_l, parameter.pad_b, parameter.pad_r
    if any(sides):
        refuse(has("pad") or has("pad_h"), "pads are pad, pad_h and pad_w, or pad_l, pad_r, pad_t and pad_b")
    else:
        sides = pad_h, pad_w, pad_h, pad_w
        refuse(
            bool(kernel) and (pad_h or pad_w) and (pad_h >= kernel[0] or pad_w >= kernel[1]), "pads reach the kernel"
        )
    return {"kernel": kernel, "strides": strides, "pads": sides}


def _ends(layer: Layer, saturate: int) -> dict[str, Attribute]:
    low, high = layer.saturation(saturate)
    return {"low": low, "high": high}


def _is_quantized(parameter: Any) -> bool:
    return bool(parameter.output_scale != 1 or parameter.output_zero_point != 0)


def _pooling(layer: Layer) -> None:
    """average_pool, or max_pool with limits behind it."""
    parameter = layer.proto.pooling_param
    layer.expect(1)
    layer.refuse_in_place(True)
    same = parameter.pad_type
    if same not in (0, 1):
        raise layer.invalid("BT-CAFFE-WINDOW", f"pad_type is {same}")
    if parameter.HasField("pad_type") and any(
        (
            *(parameter.HasField(name) for name in ("pad", "pad_h", "pad_w")),
            *(getattr(parameter, f"pad_{side}") for side in "lrtb"),
        )
    ):
        raise layer.invalid("BT-CAFFE-WINDOW", "pads are pad_type, or other fields", "the system stops there")
    ceil = parameter.round_mode != _FLOOR if parameter.HasField("round_mode") else parameter.ceil_mode
    sides = _sides(layer, parameter)
    clipped = "_clipped" if any(sides["pads"]) else ""  # type: ignore[arg-type]
    size = "floor" if same else f"{'ceil' if ceil else 'floor'}_binary32{clipped}"
    attributes = {
        **sides,
        "dilations": (),
        "padding": "same_upper" if same else "explicit",
        "size": size,
        "channels_last": False,
    }
    if parameter.pool == _MAX:
        dtype, saturate = layer.dtype(), parameter.saturate
        low, high = layer.saturation(saturate)
        ends = {"s8": (-128, 127), "u8": (0, 255)}.get(dtype)
        if saturate == 0 or (ends is not None and low <= ends[0] and high >= ends[1]):
            layer.emit("max_pool", dtype, attributes)
            return
        chain = Chain(layer, layer.bottoms[0])
        chain.then("max_pool", dtype=dtype, known=attributes)
        chain.limit(saturate, layer.result_type(saturate, dtype != "f32"))
        chain.write()
        return
    if parameter.pool not in (_AVERAGE, _AVERAGE_WITHOUT_PADDING):
        raise layer.unsupported("BT-CAFFE-POOL", "stochastic pooling", "the system has it for training only")
    quantized = _is_quantized(parameter)
    attributes |= {
        **_ends(layer, parameter.saturate),
        "counted": "padded" if parameter.pool == _AVERAGE else "inside",
        "quantized": quantized,
        "quantize_method": METHODS[parameter.quantize_method],
    }
    inputs = (*layer.bottoms, *layer.scales_of(parameter, "input", "output"))
    layer.emit("average_pool", layer.result_type(parameter.saturate, quantized), attributes, inputs=inputs)


def _resize_bilinear(layer: Layer) -> None:
    parameter = layer.proto.resize_bilinear_param
    layer.expect(1)
    layer.refuse_in_place(True)
    if parameter.data_format not in ("NHWC", "NCHW"):
        raise layer.unsupported("BT-CAFFE-FORMAT", f"data_format '{parameter.data_format}'", "use NHWC or NCHW")
    if parameter.half_pixel_centers and parameter.pytorch_half_pixel:
        raise layer.invalid("BT-RESIZE-MODE", "half_pixel_centers and pytorch_half_pixel exclude each other")
    quantized = _is_quantized(parameter)
    half = "half_pixel" if parameter.half_pixel_centers else "pytorch_half_pixel"
    centres = parameter.half_pixel_centers or parameter.pytorch_half_pixel
    if parameter.align_corners and centres:
        raise layer.invalid("BT-RESIZE-MODE", "align_corners and half pixels exclude each other")
    transformation = "align_corners" if parameter.align_corners else half if centres else "asymmetric"
    attributes: dict[str, Attribute] = {
        **_ends(layer, parameter.saturate),
        "channels_last": parameter.data_format == "NHWC",
        "transformation": transformation,
        "quantized": quantized,
        "quantize_method": METHODS[parameter.quantize_method],
    }
    sizes, factors = [], []
    for side in ("height", "width"):
        given = parameter.HasField(f"output_{side}")
        size = getattr(parameter, f"output_{side}")
        if given and size < 1:
            raise layer.invalid("BT-RESIZE-SIZE", f"output_{side} is {size}")
        sizes.append(size if given else 0)
        factors.append(getattr(parameter, f"scale_{side}"))
    # Integers by the document, too, which quantizes with the output's scale.
    whole = parameter.output_scale != 1
    inputs = (
        *layer.bottoms,
        layer.constant(np.array(sizes, np.int32), "sizes"),
        layer.constant(np.array(factors, np.float32), "factors"),
        *layer.scales_of(parameter, "input", "output"),
    )
    layer.emit("resize_linear", layer.result_type(parameter.saturate, whole), attributes, inputs=inputs)


def _spatial_batching_pooling(layer: Layer) -> None:
    parameter = layer.proto.spatial_batching_pooling_param
    layer.expect(1)
    layer.refuse_in_place(True)
    if parameter.pool != _MAX:
        raise layer.unsupported("BT-CAFFE-POOL", "a SpatialBatchingPooling layer that does not take the largest number")
    if (parameter.input_scale, parameter.input_zero_point) != (parameter.output_scale, parameter.output_zero_point):
        raise layer.invalid("BT-CAFFE-POOL", "input and output have different scales", "the system stops there")
    sides = _sides(layer, parameter)
    declared = parameter.pad_t or parameter.pad_l or parameter.pad_b or parameter.pad_r
    grid = parameter.spatial_batching_h, parameter.spatial_batching_w
    batch = parameter.batch_h, parameter.batch_w
    if parameter.ceil_mode or not declared or min(grid) < 2 or min(batch) < 1:
        raise layer.unsupported(
            "BT-CAFFE-POOL",
            "a SpatialBatchingPooling layer with ceil_mode, without pad_l, pad_r, pad_t and pad_b, or without small "
            "images",
            "the system leaves their dimensions undefined; set ceil_mode: false, the pads, spatial_batching_h and "
            "spatial_batching_w of at least 2, batch_h and batch_w",
        )
    chain = Chain(layer, layer.bottoms[0])
    skip = parameter.skip_h, parameter.skip_w
    chain.then("max_pool", known={**sides, "grid": grid, "batch": batch, "skip": skip, "channels_last": False})
    chain.limit(parameter.saturate, layer.result_type(parameter.saturate, layer.dtype() != "f32"))
    chain.write()


MAPPERS: Mappers = {
    "Pooling": _pooling,
    "ResizeBilinear": _resize_bilinear,
    "SpatialBatchingPooling": _spatial_batching_pooling,
}
