"""Rows of `litert`: layers on real numbers, and hybrid ones, whose weights alone are integers."""

from __future__ import annotations

from ..table import Row
from .convolution import DEPTHWISE, PLANES

_REAL = {"sum_of_products": "binary32_in_order", "plain_range": "type_limits"}
HYBRID = {
    "accumulate": "s32_wrap",
    "quantize_symmetric": "binary32_range_over_127_by_eights",
    "quantize_asymmetric": "binary32_range_over_255_by_eights",
    "byte_products": "low_end_negated_by_sixteens",
    "scale_back": "binary32_product_of_scales",
    "plain_range": "type_limits",
}
QUANTIZED_ASYMMETRIC = {
    slot: HYBRID[slot] for slot in ("accumulate", "quantize_asymmetric", "scale_back", "plain_range")
}
_NANS = (
    "where NaNs of different bits meet in one sum, the runtime's unrolled loops keep the first or the last one; "
    "here it is mostly the first"
)
NOT_FINITE = "NaN and infinite activations are refused when the model runs: the kernel converts NaN to an integer"
_QUANTIZED = ("accumulate", "quantize_symmetric", "quantize_asymmetric", "scale_back")

ROWS: tuple[Row, ...] = (
    Row("conv", ("f32 f32 f32 -> f32",), _REAL, "run", when=PLANES, limit=_NANS),
    Row("conv", ("f32 f32 f32|- -> f32",), _REAL, "run", when=DEPTHWISE, limit=_NANS),
    Row(
        "fully_connected",
        ("f32 f32 f32|- -> f32",),
        _REAL,
        "run",
        requires=(("activation_is_clamp",),),
        limit=_NANS,
    ),
    Row(
        "conv",
        ("f32 s8|s4 f32 -> f32",),
        {**HYBRID, "scale_back_per_axis": "binary32_one_by_one"},
        "run",
        when=PLANES,
        limit=NOT_FINITE,
    ),
    Row(
        "conv",
        ("f32 s8 f32|- -> f32",),
        QUANTIZED_ASYMMETRIC,
        "run",
        when=DEPTHWISE,
        limit=NOT_FINITE,
    ),
    Row(
        "fully_connected",
        ("f32 s8|s4|s2 f32|- -> f32",),
        {**HYBRID, "row_sums": "s16_lanes_of_eight", "plain_range": "open_limits"},
        "run",
        requires=(("activation_is_clamp",),),
        limit=f"{NOT_FINITE}; fused tanh and sign_bit, which no converter emits here, are refused",
    ),
    Row("lp_pool", ("f32 -> f32",), {"average": "binary32_divide", "plain_range": "type_limits"}, "run"),
    Row(
        "local_response_normalization",
        ("f32 -> f32",),
        {"sum_of_products": "binary32_in_order"},
        "run",
        limit="the power is the machine's binary64 pow, whose last bit shows in one of 10^8 binary32 results",
    ),
    Row(
        "matmul",
        ("f32 s8 -> f32",),
        {slot: HYBRID[slot] for slot in _QUANTIZED},
        "run",
        limit=f"{NOT_FINITE}; with asymmetric_quantize_inputs, operands whose sums the kernel reads from a former run "
        "or from beyond their end are refused",
    ),
    Row(
        "conv_transpose",
        ("f32 s8 f32|- - - - - - - s32 -> f32",),
        {**{slot: HYBRID[slot] for slot in ("quantize_asymmetric", "plain_range")}, "multiply_add": "rounded_twice"},
        "run",
        limit=NOT_FINITE,
    ),
)
