"""Rows of `litert`: convolutions and fully-connected layers."""

from __future__ import annotations

from ..table import Row
from .movement import TABLE

# Which operator of files a convolution is.
PLANES = (("attribute_is", "filter_layout", "OSI"),)
DEPTHWISE = (("attribute_is", "filter_layout", "ISO"),)
CUBES = (("attribute_is", "filter_layout", "SIO"),)

_CONVOLUTION = {
    "accumulate": "s32_wrap",
    "scale_form": "binary64",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_WIDE = {**_CONVOLUTION, "accumulate": "s64", "rescale": "q15_one_step_up"}
_UNSIGNED = {**_CONVOLUTION, "scale_form": "binary32_product"}
_MATRIX = {**_CONVOLUTION, "rescale": "binary64_multiply_away"}

_SPLIT_LIMIT = "the kernel drops input elements that do not fill a row; bittrue refuses such shapes"
_PLAIN = {"plain_range": "type_limits"}
_IN_ORDER = {**_PLAIN, "sum_of_products": "binary32_in_order"}
_TWO_NANS = "where both operands of a sum or product are NaN, kernels keep the payload of one or the other"
# No fused activation: the range is the type's.
_PRODUCT = _UNSIGNED
_PER_TENSOR = "parameters per axis are refused; kernels take the multiplier for 0 and store the zero point"
# The result's shape is the last operand; scales belong to tensors.
_STATED = "- - - - - - s32"
TRANSPOSED = (f"f32 f32 f32|- {_STATED} -> f32",)
_PLANNED = "an output shape that is computed at run time must be the one that the file gives the output"
_CONFUSED = (
    "the kernels do not check these types: they read weights or bias, or write the output, as if it had another type, "
    "or refuse"
)

ROWS: tuple[Row, ...] = (
    Row(
        "conv",
        ("s8 s8|s4 s32 -> s8",),
        _CONVOLUTION,
        "run, in whole models, too; docs/facts/litert.md 2.1",
        when=PLANES,
        requires=(("input_zero_points_are_zero", 1, 2),),
    ),
    Row(
        "conv",
        ("u8 u8 s32 -> u8",),
        _UNSIGNED,
        "run, in whole models, too; docs/facts/litert.md 2.1",
        when=PLANES,
        requires=(("input_zero_points_are_zero", 2), ("bias_scale_within", 0.02)),
    ),
    Row(
        "conv",
        ("s16 s8|s4 s64 -> s16",),
        _WIDE,
        "run; docs/facts/litert.md 2.1",
        when=PLANES,
        requires=(("zero_points_are_zero",),),
    ),
    Row(
        "conv",
        ("s16 s8|s4 s32 -> s16",),
        _CONVOLUTION,
        "run; docs/facts/litert.md 2.1",
        when=PLANES,
        requires=(("zero_points_are_zero",),),
    ),
    Row(
        "conv",
        ("s8 s8|s4 s32|- -> s8",),
        _CONVOLUTION,
        "run, in whole models, too; docs/facts/litert.md 2.1",
        when=DEPTHWISE,
        requires=(("input_zero_points_are_zero", 2),),
    ),
    Row(
        "conv",
        ("u8 u8 s32|- -> u8",),
        _UNSIGNED,
        "run, in whole models, too; docs/facts/litert.md 2.1",
        when=DEPTHWISE,
        requires=(("input_zero_points_are_zero", 2), ("bias_scale_within", 0.02)),
    ),
    Row(
        "conv",
        ("s16 s8 s64|- -> s16",),
        _WIDE,
        "run; docs/facts/litert.md 2.1",
        when=DEPTHWISE,
        requires=(("zero_points_are_zero", 0, 2),),
    ),
    Row(
        "fully_connected",
        ("s8 s8|s4|s2 s32|- -> s8",),
        _MATRIX,
        "run; docs/facts/litert.md 2.1",
        requires=(("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32|- -> u8",),
        _MATRIX,
        "run; docs/facts/litert.md 2.1",
        requires=(("products_fit", 0, 1), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 s64|- -> s16",),
        {**_MATRIX, "accumulate": "s64"},
        "run; docs/facts/litert.md 2.1",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 s32 -> s16",),
        _MATRIX,
        "run; docs/facts/litert.md 2.1",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s16 s64|s32|- -> s16",),
        {**_WIDE, "scale_form": "binary32_product", "scale_form_per_axis": "binary64"},
        "run; docs/facts/litert.md 2.1",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32 -> s16",),
        {**_MATRIX, "store": "clamp_then_zero_point"},
        "run",
        requires=(("products_fit", 0, 1), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "conv_transpose",
        (f"s8 s8 s32|- {_STATED} -> s8",),
        _CONVOLUTION,
        "run; docs/facts/litert.md 2.1",
        requires=(("input_zero_points_are_zero", 2),),
        limit=_PLANNED,
    ),
    Row(
        "conv_transpose",
        (f"u8 u8 s32|- {_STATED} -> u8",),
        _UNSIGNED,
        "run; docs/facts/litert.md 2.1",
        requires=(("bias_scale_within", 0.02),),
        limit=_PLANNED,
    ),
    Row(
        "conv_transpose",
        (f"s16 s8 s64|- {_STATED} -> s16",),
        _WIDE,
        "run; docs/facts/litert.md 2.1",
        requires=(("zero_points_are_zero", 0, 2),),
        limit="a declared 32-bit accumulator without a bias is refused; kernels run it. " + _PLANNED,
    ),
    Row(
        "conv_transpose",
        (f"s16 s8 s32 {_STATED} -> s16",),
        _CONVOLUTION,
        "run",
        requires=(("zero_points_are_zero", 0, 2),),
        limit=_PLANNED,
    ),
    Row("conv_transpose", TRANSPOSED, _IN_ORDER, "run", limit=f"{_TWO_NANS}. {_PLANNED}"),
    Row("matmul", ("s8 s8 -> s8",), _PRODUCT, "run; docs/facts/litert.md 2.1", limit=_PER_TENSOR),
    Row("matmul", ("s8 s8 -> s32",), {"accumulate": "s32_wrap"}, "run"),
    Row(
        "matmul",
        ("s16 s16|s8 -> s16",),
        {**_PRODUCT, "accumulate": "s64", "rescale": "q15_one_step_up"},
        "run; docs/facts/litert.md 2.1",
        requires=(("zero_points_are_zero",),),
        limit=_PER_TENSOR,
    ),
    Row("matmul", ("f32 f32 -> f32",), {}, "run", limit=_TWO_NANS),
    Row("conv", ("f32 f32 f32|- -> f32",), _IN_ORDER, "run", when=CUBES, limit=_TWO_NANS),
    Row(
        "gather",
        ("T s32 -> T",),
        {},
        "run",
        when=TABLE,
        where=("f32", "f16", "f64", "s8", "u8", "s16", "s32", "u32", "s64", "bool"),
        limit="a table without rows is refused; the kernel leaves the output as it was",
    ),
    Row("gather", ("s8|u8|s4|s2 s32 -> f32|f16",), {}, "run", when=TABLE),
    # DENSIFY: the importer has made the constant dense.
    Row("identity", ("T -> T",), {}, "run", where=("f32", "f16", "s8"), requires=(("known", 0),)),
    # What the rows above leave of these types.
    Row(
        "conv",
        ("u8 s8|s4|s2|s16|u4 s32 -> u8", "s16 s2|s16|u4 s32|s64 -> s16", "f32 s2 f32 -> f32"),
        when=PLANES,
        refuses=_CONFUSED,
    ),
    Row(
        "conv",
        ("u8 s4 s32|- -> u8", "s16 u8|s4|s2|s16|u4 s64|- -> s16"),
        when=DEPTHWISE,
        refuses=_CONFUSED,
    ),
    Row("fully_connected", ("s8|u8|s16 s8|u8|s4|s2|s16|u4 s32|s64|s16|- -> s8|u8|s16",), refuses=_CONFUSED),
)
