"""Rows of `xnnpack`: convolutions and fully-connected layers."""

from __future__ import annotations

from ...records import replace
from ..litert.convolution import DEPTHWISE, PLANES
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
_IMAGES = (
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

_REAL = {"plain_range": "unlimited", "sum_of_products": "binary32_fused_from_bias"}
_DYNAMIC = {
    "accumulate": "s32_wrap",
    "quantize_asymmetric": "binary32_range_even",
    "byte_products": "exact",
    "scale_back": "binary32_rows_then_fused",
    "plain_range": "unlimited",
}
_PRODUCT = (("counts_within", (2, 2), (1, 1)), ("declared_rank", 2, 6, 0, 1))
_DYNAMIC_PRODUCT = (*_PRODUCT, ("first_zero_point_is_zero", 1))
_REAL_IMAGES = (
    ("counts_within", (3, 3), (1, 1)),
    ("declared_rank", 4, 4, 0, 1, "output"),
    ("declared_rank", 1, 1, 2),
    ("stored", 1, 2),
    ("halves_of_halves", 2, 1),
    CLAMPS,
)
SUBNORMAL = "the delegate takes subnormal binary32 numbers for zeros and makes none; bittrue keeps them"
_NANS = (
    "where NaN or an infinity enters, the bits of a NaN result follow the operands' order in the kernel's registers; "
    + SUBNORMAL
)
_FINITE = "NaN and infinities in dynamically quantized activations are refused: what they become is undefined"
_SYMMETRIC_WEIGHTS = (("scales_are_normal",), ("input_zero_points_are_zero", 1))

_ROWS: tuple[Row, ...] = (
    *(
        Row(
            "conv",
            ("f32 f32 f32 -> f32",),
            {**_REAL, "sum_of_products": "binary32_fused_from_bias_by_columns"},
            "run",
            when=(*layout, *_REAL_IMAGES, ("filters_of_one_channel", 25)),
            limit=_NANS,
        )
        for layout in (PLANES, DEPTHWISE)
    ),
    *(
        Row("conv", ("f32 f32 f32 -> f32",), _REAL, "run", when=(*layout, *_REAL_IMAGES), limit=_NANS)
        for layout in (PLANES, DEPTHWISE)
    ),
    Row(
        "fully_connected",
        ("f32 f32 f32|- -> f32",),
        _REAL,
        "run",
        when=(
            ("counts_within", (2, 3), (1, 1)),
            ("declared_rank", 2, 2, 1),
            ("stored", 1),
            ("constant_inputs", 2),
            ("halves_of_halves", 2, 1),
            CLAMPS,
        ),
        limit=_NANS,
    ),
    Row(
        "conv",
        ("f32 s8 f32 -> f32",),
        {**_DYNAMIC, "rows": "per_pixel", "row_sums": "exact"},
        "run",
        when=(*PLANES, ("weights_scaled_along", 0), *_REAL_IMAGES, ("filters_of_one_pixel",)),
        requires=_SYMMETRIC_WEIGHTS,
        limit=_FINITE,
    ),
    Row(
        "conv",
        ("f32 s8 f32 -> f32",),
        {**_DYNAMIC, "rows": "per_image"},
        "run",
        when=(*PLANES, ("weights_scaled_along", 0), *_REAL_IMAGES),
        requires=_SYMMETRIC_WEIGHTS,
        limit=_FINITE,
    ),
    *(
        Row(
            "fully_connected",
            (f"f32 {weights} f32|- -> f32",),
            {**_DYNAMIC, "row_sums": "exact", "plain_range": limits},
            "run",
            when=(
                ("counts_within", (2, 3), (1, 1)),
                ("declared_rank", 2, 2, 1),
                ("stored_in_file", 1),
                ("constant_inputs", 2),
                ("weights_in_rows",),
                ("packed_rows_fill_bytes",),
                CLAMPS,
            ),
            requires=_SYMMETRIC_WEIGHTS,
            limit=_FINITE,
        )
        # A range of activations that overflows makes every result NaN, which the kernels limit in two ways.
        for weights, limits in (("s8", "unlimited"), ("s4|s2", "lower_for_nan"))
    ),
    Row(
        "conv",
        ("s8 s8 s32 -> s8",),
        _SCALED,
        "run",
        when=(*PLANES, ("one_scale", 0, "output"), ("weights_scaled_along", 0), *_IMAGES),
        requires=_SYMMETRIC,
    ),
    Row(
        "conv",
        ("u8 u8 s32 -> u8",),
        _SCALED,
        "run",
        when=(*PLANES, ("one_scale", 0, 1, "output"), ("weights_scaled_along", 0), *_IMAGES),
        requires=(*_CHECKED, ("bias_is_scaled_like_weights",)),
    ),
    Row(
        "conv",
        ("s8 s8 s32 -> s8",),
        _SCALED,
        "run",
        when=(*DEPTHWISE, ("one_scale", 0, "output"), ("weights_scaled_along", 3), *_IMAGES),
        requires=_SYMMETRIC,
    ),
    Row(
        "conv",
        ("u8 u8 s32 -> u8",),
        _SCALED,
        "run",
        when=(*DEPTHWISE, ("one_scale", 0, 1, "output"), ("weights_scaled_along", 3), *_IMAGES),
        requires=(*_CHECKED, ("bias_is_scaled_like_weights",)),
    ),
    Row(
        "fully_connected",
        ("s8 s4|s2 s32 -> s8",),
        when=(*_LAYER, ("layer_weights_scaled",), ("packed_rows_fill_bytes",), ("bias_beyond", 1 << 26)),
        refuses="with packed weights the delegate's accumulator holds 16 times the sum, so that large "
        "biases wrap (from 2^26 on they are refused)",
    ),
    Row(
        "fully_connected",
        ("s8 s8|s4|s2 s32|- -> s8",),
        _SCALED,
        "run",
        when=(*_LAYER, ("layer_weights_scaled",), ("packed_rows_fill_bytes",)),
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
    *(
        Row(
            "conv_transpose",
            (f"{dtype} {dtype} s32|- - - - - - - s32 -> {dtype}",),
            _SCALED,
            "run",
            when=(
                ("counts_within", (10, 10), (1, 1)),
                ("stored_in_file", 9, 1),
                ("constant_inputs", 2),
                ("declared_rank", 4, 4, 0, 1, "output"),
                ("declared_rank", 1, 1, 2, 9),
                ("one_scale", *scaled, "output"),
                ("weights_scaled_along", 0),
                ("bias_scaled",),
                ("transposed_filter_fits",),
                CLAMPS,
            ),
            requires=(
                *QUANTIZED,
                ("input_zero_points_are_zero", *symmetric, 2),
                ("multiplier_below", 256.0),
                ("bias_is_scaled_like_weights",),
            ),
        )
        for dtype, scaled, symmetric in (("s8", (0,), (1,)), ("u8", (0, 1), ()))
    ),
    Row(
        "matmul",
        ("s8 s8 -> s8",),
        _SCALED,
        "run",
        when=(
            *_PRODUCT,
            ("one_scale", 0, 1, "output"),
            ("first_zero_point_is_zero", 1),
        ),
        requires=(*QUANTIZED, ("multiplier_below", 256.0)),
    ),
    Row(
        "conv_transpose",
        ("f32 f32 f32|- - - - - - - s32 -> f32",),
        _REAL,
        "run",
        when=(
            ("counts_within", (10, 10), (1, 1)),
            ("stored_in_file", 9),
            ("stored", 1),
            ("constant_inputs", 2),
            ("declared_rank", 4, 4, 0, 1, "output"),
            ("declared_rank", 1, 1, 2, 9),
            ("transposed_filter_fits",),
            CLAMPS,
        ),
        limit=_NANS,
    ),
    Row(
        "matmul",
        ("f32 f32 -> f32",),
        {"sum_of_products": "binary32_fused_from_bias"},
        "run",
        when=_PRODUCT,
        limit=_NANS,
    ),
    Row(
        "matmul",
        ("f32 s8 -> f32",),
        {slot: _DYNAMIC[slot] for slot in ("accumulate", "quantize_asymmetric", "scale_back")},
        "run",
        when=(*_DYNAMIC_PRODUCT, ("stored_in_file", 1)),
        limit=_FINITE,
    ),
    Row(
        "matmul",
        ("f32 s8 -> f32",),
        when=_DYNAMIC_PRODUCT,
        refuses="the delegate packs the second operand before it is computed, and results are zeros",
        advice="make the operand constant, or give it a zero point other than 0",
    ),
)


def _both_ways(row: Row) -> tuple[Row, ...]:
    """Products add a zero point below 0 in 32 bits to what the conversion gives: far below -2^31 that is the upper
    limit. Depthwise kernels saturate.
    """
    if row.rules != _SCALED or DEPTHWISE[0] in row.when:
        return (row,)
    rules = {**_SCALED, "store": "zero_point_then_clamp"}
    return replace(row, rules=rules, when=(*row.when, ("output_zero_point_outside", 0, 255))), row


ROWS = tuple(way for row in _ROWS for way in _both_ways(row))
