"""Rows of `xnnpack`: convolutions and fully-connected layers."""

from __future__ import annotations

from ..table import Row

CLAMPS = ("attribute_is", "activation", "none", "relu", "relu6", "relu_n1_to_1")
QUANTIZED = (("scales_are_normal",), ("zero_points_fit",))
_SCALED = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "rescale": "binary32_multiply_even",
    "store": "clamp_then_zero_point",
    "activation_range": "binary32_sum_even",
}
_PICTURES = (
    ("counts_within", (3, 3), (1, 1)),
    ("declared_rank", 4, 4, 0, 1, "output"),
    ("declared_rank", 1, 1, 2),
    ("stored_in_file", 1, 2),
    ("bias_scaled",),
    CLAMPS,
)
_LAYER = (
    ("counts_within", (2, 3), (1, 1)),
    ("declared_rank", 2, 2, 1),
    ("one_scale", 0, "output"),
    ("stored_in_file", 1),
    ("constant_inputs", 2),
    ("bias_scaled",),
    CLAMPS,
)
# What makes the delegate give up, and the whole model with it.
_CHECKED = (*QUANTIZED, ("input_zero_points_are_zero", 2), ("multiplier_below", 256.0))
_SYMMETRIC = (*_CHECKED, ("input_zero_points_are_zero", 1), ("bias_is_scaled_like_weights",))

ROWS: tuple[Row, ...] = (
    Row(
        "conv2d",
        ("s8 s8 s32 -> s8",),
        _SCALED,
        "run",
        when=(("one_scale", 0, "output"), ("weights_scaled_along", 0), *_PICTURES),
        requires=_SYMMETRIC,
    ),
    Row(
        "conv2d",
        ("u8 u8 s32 -> u8",),
        _SCALED,
        "run",
        when=(("one_scale", 0, 1, "output"), ("weights_scaled_along", 0), *_PICTURES),
        requires=(*_CHECKED, ("bias_is_scaled_like_weights",)),
    ),
    Row(
        "depthwise_conv2d",
        ("s8 s8 s32 -> s8",),
        _SCALED,
        "run",
        when=(("one_scale", 0, "output"), ("weights_scaled_along", 3), *_PICTURES),
        requires=_SYMMETRIC,
    ),
    Row(
        "depthwise_conv2d",
        ("u8 u8 s32 -> u8",),
        _SCALED,
        "run",
        when=(("one_scale", 0, 1, "output"), ("weights_scaled_along", 3), *_PICTURES),
        requires=(*_CHECKED, ("bias_is_scaled_like_weights",)),
    ),
    Row(
        "fully_connected",
        ("s8 s8 s32|- -> s8",),
        _SCALED,
        "run",
        when=(*_LAYER, ("weights_scaled_along", 0), ("zero_point_is_zero", 1)),
        requires=(*_CHECKED, ("input_zero_points_are_zero", 1)),
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32|- -> u8",),
        _SCALED,
        "run",
        when=(*_LAYER, ("one_scale", 1)),
        requires=_CHECKED,
    ),
)
