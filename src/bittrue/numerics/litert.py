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

_SPLIT_LIMIT = "the kernel drops input elements that do not fill a row; bittrue refuses such shapes"

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
        ("s8 s8|s4|s2 s32|- -> s8",),
        _MATRIX,
        "run; facts 2.1: 68 k values",
        requires=(("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32|- -> u8",),
        _MATRIX,
        "run; facts 2.1: 8.3 k values",
        requires=(("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 s64|- -> s16",),
        {**_MATRIX, "accumulate": "s64"},
        "run; facts 2.1: 2.4 k values",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 s32 -> s16",),
        _MATRIX,
        "run; facts 2.1",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s16 s64|s32|- -> s16",),
        {**_WIDE, "scale_form": "binary32_product", "scale_form_per_axis": "binary64"},
        "run; facts 2.1: 0.8 k values",
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32 -> s16",),
        {**_MATRIX, "store": "clamp_then_zero_point"},
        "run",
        requires=(("bias_scale_within", 0.02), ("activation_is_clamp",)),
        limit=_SPLIT_LIMIT,
    ),
)

# --- element-wise arithmetic and comparisons
_ELEMENTWISE: tuple[Row, ...] = ()

# --- reductions, pools, resizing, softmax and normalization
_REDUCTIONS: tuple[Row, ...] = ()

# --- activations, tables, quantization, casts, recurrent layers
_RESCALE = {"scale_form": "binary64", "rescale": "q31_two_step_up_away", "store": "zero_point_then_clamp"}
_RELU = {**_RESCALE, "scale_form": "binary32"}
_RELU_RANGE = {**_RELU, "activation_range": "binary32_quotient_away"}
_TABLE = {"table": "binary32_reciprocal_256_away"}
_SIGMOID = {"sigmoid": "s16_table_256_linear"}
_LIBM = "tanhf of the C library is not rounded correctly everywhere: 2 entries of 80 000 random tables differ by one"
_NUMBERS = ("s64", "s32", "u32", "s16", "u16", "u8", "s8", "bool", "f16", "bf16", "f32", "f64")

_UNARY: tuple[Row, ...] = (
    Row(
        "logistic",
        ("T -> T",),
        _TABLE,
        "run; facts 2.3: 15 k values",
        ("s8", "u8"),
        requires=(("output_is", 1 / 256, None),),
    ),
    Row(
        "logistic",
        ("s16 -> s16",),
        _SIGMOID,
        "run; facts 2.3: 1.3 M values",
        requires=(("zero_points_are_zero",), ("output_is", 1 / 32768, 0)),
    ),
    Row("tanh", ("T -> T",), _TABLE, "run; facts 2.3", ("s8", "u8"), limit=_LIBM),
    Row(
        "tanh",
        ("s16 -> s16",),
        _SIGMOID,
        "run; facts 2.3: 1.3 M values",
        requires=(("zero_points_are_zero",), ("output_is_power_of_two", -15)),
    ),
    *(
        row
        for stem in ("relu", "relu6")
        for row in (
            Row(stem, ("T -> T",), _RELU_RANGE, "run; facts 2.3: 12 k values", ("s8", "u8")),
            Row(stem, ("s16 -> s16",), _RELU_RANGE, "run", requires=(("zero_points_are_zero",),)),
            Row(stem, ("f32 -> f32",), {}, "run"),
        )
    ),
    *(
        row
        for stem in ("relu_n1_to_1", "relu_0_to_1")
        for row in (
            Row(stem, ("T -> T",), _RELU_RANGE, "run; facts 2.3: 12 k values", ("s8", "u8")),
            Row(stem, ("f32 -> f32",), {}, "run"),
        )
    ),
    Row("leaky_relu", ("T -> T",), _RELU, "run; facts 2.3: 12 k values", ("s8", "u8")),
    Row("leaky_relu", ("s16 -> s16",), _RELU, "run; facts 2.3", requires=(("zero_points_are_zero",),)),
    Row("leaky_relu", ("f32 -> f32",), {}, "run"),
    Row(
        "quantize",
        ("f32 -> s8|u8|s16|s4|u4",),
        {"quantize": "binary32_divide_away"},
        "run; facts 2.3: 80 k values, NaN and infinities included",
    ),
    Row("quantize", ("s16 -> s16",), _RESCALE, "run; facts 2.3", requires=(("zero_points_are_zero",),)),
    Row(
        "quantize",
        ("s8|u8 -> s8|u8|s16", "s16 -> s8|s32", "s32 -> s8|s16"),
        _RESCALE,
        "run; facts 2.3: 107 k values",
    ),
    Row("dequantize", ("s8|u8|s4|u4|s2 -> f32",), {"dequantize": "binary64_multiply"}, "run; facts 2.3: 40 k values"),
    Row(
        "dequantize",
        ("s16 -> f32",),
        {"dequantize": "binary64_multiply"},
        "run; facts 2.3",
        requires=(("input_zero_points_are_zero", 0),),
    ),
    Row("dequantize", ("f16 -> f32",), {}, "run"),
    Row(
        "cast",
        (f"{'|'.join(_NUMBERS)} -> {'|'.join(_NUMBERS)}", "s4|u4|s2 -> f32", "f32 -> s4|u4|s2"),
        {"cast": "truncate_saturate_nan_maximum"},
        "run: every pair of types",
    ),
    Row("sqrt", ("s8 -> s8",), {"square_root": "binary32_divide_trunc"}, "run; facts 2.3: 7.7 k values"),
    Row(
        "sqrt",
        ("s16 -> s16",),
        {"square_root": "binary32_divide_trunc"},
        "run",
        requires=(("zero_points_are_zero",),),
    ),
    Row("sqrt", ("f32 -> f32",), {}, "run"),
    Row("rsqrt", ("s8 -> s8",), {"inverse_root": "q31_newton_away"}, "run; facts 2.3: 7.7 k values"),
    Row(
        "rsqrt",
        ("s16 -> s16",),
        {"table": "binary32_reciprocal_513_linear_up"},
        "run",
        requires=(("zero_points_are_zero",),),
    ),
    Row("rsqrt", ("f32 -> f32",), {}, "run"),
    Row("abs", ("s8 -> s8",), _RELU, "run; facts 2.3"),
    Row("abs", ("s16 -> s16",), _RELU, "run", requires=(("zero_points_are_zero",),)),
    Row("abs", ("T -> T",), {}, "run", ("s32", "f32")),
    Row("neg", ("T -> T",), {}, "run; facts 2.3", ("s8", "s16", "s32", "s64", "f32", "f16")),
    Row("square", ("f32 -> f32",), {}, "run"),
    Row("floor", ("T -> T",), {}, "run", ("f32", "f16")),
    Row("zeros_like", ("T -> T",), {}, "run", ("s32", "s64", "f32")),
    Row("rank", ("* -> s32",), {}, "run"),
    Row(
        "svdf",
        ("s8 s8 s8 s32|- s8|s16 -> s8", "s8 s8 s16 s32|- s8 -> s8"),
        evidence="run: heap corruption, facts 4.3",
        refuses=(
            "SVDF with an int8 state or int8 weights_time is a microcontroller extension: this runtime's kernel takes "
            "both for int16 without a check and reads and writes past their ends"
        ),
    ),
)

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
