"""Rows of the default engine: QNNPACK, which rescales in fixed point, and Caffe2's own loops."""

from __future__ import annotations

from ..litert.convolution import DEPTHWISE, PLANES
from ..table import Row

_RUN = "run: recorded vectors, and random operators against PyTorch 1.8.1"
_LAYER = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "rescale": "q31_two_step_up_away",
    "store": "clamp_then_zero_point",
    "activation_range": "binary32_quotient_away",
}
_BYTES = "u8 u8 s32 -> u8"
# QNNPACK's own bounds of f32(f32(input scale * weight scale) / output scale).
_BELOW_ONE = (("multiplier_below", 1.0),)
_SAME = (("same_parameters", 0),)

_LAYERS = (
    Row("conv", (_BYTES,), _LAYER, _RUN, when=PLANES, requires=_BELOW_ONE),
    Row("conv", (_BYTES,), _LAYER, _RUN, when=DEPTHWISE, requires=_BELOW_ONE),
    Row("fully_connected", (_BYTES,), _LAYER, _RUN, requires=_BELOW_ONE),
    Row("conv_transpose", (_BYTES,), _LAYER, _RUN, requires=_BELOW_ONE),
)
_ELEMENTS = (
    Row(
        "add",
        ("u8 u8 -> u8",),
        {
            "align": "shared_22_bits_away",
            "store": "clamp_then_zero_point",
            "activation_range": "binary32_quotient_away",
        },
        _RUN,
        requires=(("equal_shapes",), ("scale_ratios_within", 2.0**-14, 2.0**8), ("activation_leaves_range",)),
    ),
    Row(
        "relu",
        ("u8 -> u8",),
        {key: rule for key, rule in _LAYER.items() if key != "accumulate"},
        _RUN,
        requires=_SAME,
    ),
    Row(
        "leaky_relu",
        ("u8 -> u8",),
        {"table": "binary32_ratio_256_even"},
        _RUN,
        requires=(("alpha_within_unit",), ("scale_ratios_within", 2.0**-8, 2.0**8)),
    ),
    Row(
        "logistic",
        ("u8 -> u8",),
        {"table": "binary32_divide_256_even"},
        _RUN,
        requires=(("output_is", 1 / 256, 0),),
    ),
    Row("quantize", ("f32 -> u8",), {"quantize": "binary32_divide_even"}, _RUN),
    Row("dequantize", ("u8 -> f32",), {"dequantize": "binary32_multiply"}, _RUN),
)
_WINDOWS = (
    Row(
        "average_pool",
        ("u8 -> u8",),
        {
            "accumulate": "s32_wrap",
            "window_average": "q24_all_taps_away",
            "activation_range": "binary32_quotient_away",
        },
        _RUN,
        requires=(
            ("window_has_several_taps", False),
            ("scale_ratios_within", 2.0**-8, 2.0**8),
        ),
    ),
    Row(
        "max_pool",
        ("u8 -> u8",),
        {"activation_range": "binary32_quotient_away"},
        _RUN,
        requires=(("window_has_several_taps", True), *_SAME),
    ),
    Row(
        "softmax",
        ("u8 -> u8",),
        {"softmax": "counted_table_half_up"},
        _RUN,
        requires=(("output_is", 1 / 256, 0),),
    ),
)
_BOXES = Row(
    "roi_align",
    ("u8 f32 -> u8",),
    {
        "corner_weights": "binary32_times_255_even",
        "accumulate": "s32_wrap",
        "rescale": "q31_two_step_up_away",
        "store": "clamp_then_zero_point",
    },
    _RUN,
    limit="boxes that are not finite, or name an image that is not there, are refused; the runtime reads elsewhere",
)
_MOVED = (
    Row("concatenation", ("u8... -> u8",), {"combine": "copy"}, _RUN, requires=_SAME),
    *(
        Row(stem, (f"u8{rest} -> u8",), {}, _RUN, requires=_SAME)
        for stem, rest in (
            ("flatten", ""),
            ("reshape", " s32|s64|-"),
            ("squeeze", ""),
            ("transpose", " s32|s64|-"),
        )
    ),
    Row("slice_axes", ("u8 s64 s64 s64|- -> u8",), {}, _RUN, requires=(*_SAME, ("slices_one_axis",))),
    Row("resize_nearest", ("u8 - f32 -> u8",), {"nearest": "ties_within_a_millionth"}, _RUN, requires=_SAME),
    Row("shape", ("u8 -> s64",), {}, "the definition"),
    Row("transpose", ("f32 s64 -> f32",), {}, "the definition"),
)

ROWS: tuple[Row, ...] = (*_LAYERS, *_ELEMENTS, *_WINDOWS, _BOXES, *_MOVED)
