"""Numerics `litert`: the reference kernels (BUILTIN_REF) of ai-edge-litert 2.3 on x86-64.

Evidence: "run" = the single-operator differential tests of tests/operators against ai-edge-litert 2.3.0 and, where
named, whole models; the counts in facts/litert.md are earlier, independent runs of the same formulas.
"""

from __future__ import annotations

from .table import Numerics, Row

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

_CONVOLUTIONS = (
    Row(
        "conv2d",
        ("s8 s8|s4 s32 -> s8",),
        _CONVOLUTION,
        "run; facts 2.1: 13.8 M values of real models",
        requires=(("input_zero_points_are_zero", 1, 2),),
    ),
    Row(
        "conv2d",
        ("u8 u8 s32 -> u8",),
        _UNSIGNED,
        "run; facts 2.1: 35.7 M values of real models",
        requires=(("input_zero_points_are_zero", 2), ("bias_scale_within", 0.02)),
    ),
    Row(
        "conv2d",
        ("s16 s8|s4 s64 -> s16",),
        _WIDE,
        "run; facts 2.1: 1.2 k values",
        requires=(("zero_points_are_zero",),),
    ),
    Row(
        "conv2d",
        ("s16 s8|s4 s32 -> s16",),
        _CONVOLUTION,
        "run; facts 2.1: 1.2 k values",
        requires=(("zero_points_are_zero",),),
    ),
    Row(
        "depthwise_conv2d",
        ("s8 s8|s4 s32|- -> s8",),
        _CONVOLUTION,
        "run; facts 2.1: 6.8 M values of real models",
        requires=(("input_zero_points_are_zero", 2),),
    ),
    Row(
        "depthwise_conv2d",
        ("u8 u8 s32|- -> u8",),
        _UNSIGNED,
        "run; facts 2.1: 20 M values of real models",
        requires=(("input_zero_points_are_zero", 2), ("bias_scale_within", 0.02)),
    ),
    Row(
        "depthwise_conv2d",
        ("s16 s8 s64|- -> s16",),
        _WIDE,
        "run; facts 2.1: 1.7 k values",
        requires=(("zero_points_are_zero", 0, 2),),
    ),
    Row(
        "fully_connected",
        ("s8 s8|s4 s32|- -> s8",),
        _MATRIX,
        "run; facts 2.1: 68 k values",
        requires=(("bias_scale_within", 0.02),),
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32|- -> u8",),
        {**_MATRIX, "scale_form": "binary64"},
        "run; facts 2.1: 8.3 k values",
        requires=(("bias_scale_within", 0.02),),
    ),
)

# --- element-wise arithmetic and comparisons
_ELEMENTWISE: tuple[Row, ...] = ()

# --- reductions, pools, resizing, softmax and normalization
_REDUCTIONS: tuple[Row, ...] = ()

# --- activations, tables, quantization, casts, recurrent layers
_UNARY: tuple[Row, ...] = ()

# --- data movement: bytes are copied, parameters are ignored unless a condition says otherwise
_MOVEMENT = (
    Row("reshape", ("T s32|- -> T",), {}, "run", where=("s8", "u8", "s16", "s32", "s64", "f32", "bool")),
    Row("squeeze", ("T -> T",), {}, "run", where=("s8", "u8", "s16", "s32", "s64", "f32", "bool")),
    Row("expand_dims", ("T s32|s64 -> T",), {}, "run", where=("s8", "u8", "s16", "s32", "s64", "f32", "bool")),
)

LITERT = Numerics(
    "litert",
    "ai-edge-litert 2.3.0, OpResolverType.BUILTIN_REF, x86-64",
    "every tensor of every shared model and Hypothesis-built single-operator models, byte for byte",
    _CONVOLUTIONS + _ELEMENTWISE + _REDUCTIONS + _UNARY + _MOVEMENT,
)
