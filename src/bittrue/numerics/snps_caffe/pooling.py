"""Rows of `snps_caffe`: Pooling, ResizeBilinear, SpatialBatchingPooling."""

from __future__ import annotations

from ..table import Row

_SCALE = "-|f64 -|s32"
_ONE = (f"f32|u8|s8 {_SCALE} {_SCALE} -> f32|u8|s8",)
_RESIZED = (f"f32|u8|s8 s32 f32 {_SCALE} {_SCALE} -> f32|u8|s8",)
_RUN = "run: recorded cases of the built system; docs/facts/snps_caffe.md"
_UNQUANTIZED = ("attribute_is", "quantized", False)
_FULL = (("windows_have_elements",),)
_EMPTY = "windows without an element, for which the runtime divides by 0, are refused"


def _method(*names: str) -> tuple[object, ...]:
    return ("attribute_is", "quantize_method", *names)


_EVEN = {"window_levels": "binary32_over_product_even"}
_LERP = {"interpolate": "binary32_differences_unlimited"}

ROWS: tuple[Row, ...] = (
    Row(
        "average_pool",
        _ONE,
        {"window_levels": "binary32_quotient"},
        f"{_RUN} 6",
        when=(_UNQUANTIZED,),
        requires=_FULL,
        limit=_EMPTY,
    ),
    Row(
        "average_pool",
        _ONE,
        {"window_levels": "q31_two_step_then_away"},
        f"{_RUN} 6",
        when=(_method("tflite"),),
        requires=_FULL,
        limit=_EMPTY,
    ),
    Row(
        "average_pool",
        _ONE,
        {"window_levels": "binary32_over_product_away"},
        f"{_RUN} 6",
        when=(_method("caffe2"), ("attribute_is", "counted", "inside")),
        requires=_FULL,
        limit=_EMPTY,
    ),
    Row("average_pool", _ONE, _EVEN, f"{_RUN} 6", requires=_FULL, limit=_EMPTY),
    Row(
        "max_pool",
        ("f32|u8|s8 -> f32",),
        {},
        f"{_RUN} 6 and 8",
        limit="windows over a grid of images that read past the image are refused",
    ),
    Row("max_pool", ("T -> T",), {}, f"{_RUN} 6", where=("u8", "s8"), requires=_FULL),
    Row("resize_linear", _RESIZED, _LERP, f"{_RUN} 8", when=(_UNQUANTIZED,)),
    Row("resize_linear", _RESIZED, {**_LERP, "levels": "whole_away"}, f"{_RUN} 8"),
)

# What the system's document says differently.
DOCUMENT_ROWS: tuple[Row, ...] = (
    Row(
        "average_pool",
        _ONE,
        _EVEN,
        "read: QUANTIZED_OP.md, AveragePool c, halves toward even",
        when=(_method("caffe2"), ("attribute_is", "quantized", True)),
        requires=_FULL,
        limit=_EMPTY,
    ),
    Row(
        "resize_linear",
        _RESIZED,
        {**_LERP, "levels": "binary32_divide_away"},
        "read: QUANTIZED_OP.md, ResizeBilinear ~: dequantize, interpolate, quantize",
        when=(_method("tflite"), ("attribute_is", "quantized", True)),
    ),
)
