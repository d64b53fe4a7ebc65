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

_PLAIN = {"plain_range": "type_limits"}
_ALIGNED = {
    "align": "left_20",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_ALIGNED_S16 = {**_ALIGNED, **_PLAIN, "align": "power_of_two_or_left_15"}
_MULTIPLIED = {
    "product": "exact_s32",
    "scale_form": "binary32",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_DIVIDED = {
    "divide": "q31_reciprocal_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_COMPARED = {"compare": "rescaled_left_8", "rescale": "q31_two_step_up_away"}
_RAW = {"compare": "raw"}
# Kernels that broadcast abort above rank 8; some recognise shapes that differ only in leading extents of 1.
_RANK = ("broadcast_rank_within", 8)
_RANK_ONES = ("broadcast_rank_within", 8, True)
_TWO_NANS = (
    "where both operands are NaN, the kernels keep the payload of one or the other, depending on the element's place "
    "in their vector loop; bittrue keeps the first one's"
)
_DIV_LIMIT = (
    "elements that need a right shift outside 0..31 (numerators small beside the divisor, many zeros among them) stop "
    "the run: the kernels shift by an undefined amount there"
)
_WIDTHS = ("s8", "u8", "s16", "s32", "u32", "s64", "f16", "f32", "f64", "bool")

# --- element-wise arithmetic and comparisons
_ELEMENTWISE: tuple[Row, ...] = (
    Row("add", ("s8 s8 -> s8",), _ALIGNED, "run; facts 2.2: 0.85 M values of real models", requires=(_RANK_ONES,)),
    Row("add", ("u8 u8 -> u8",), _ALIGNED, "run; facts 2.2: 1.87 M values of real models", requires=(_RANK_ONES,)),
    Row(
        "add",
        ("s16 s16 -> s16",),
        _ALIGNED_S16,
        "run; facts 2.2: 1.7 k values",
        requires=(("zero_points_are_zero",), _RANK_ONES),
    ),
    Row("add", ("T T -> T",), _PLAIN, "run", where=("s32", "s64"), requires=(_RANK_ONES,)),
    Row("add", ("f32 f32 -> f32",), _PLAIN, "run", requires=(_RANK_ONES,), limit=_TWO_NANS),
    Row(
        "sub",
        ("T T -> T",),
        _ALIGNED,
        "run; facts 2.2: 0.30 M values of real models",
        where=("s8", "u8"),
        requires=(("zero_points_fit",), _RANK_ONES),
    ),
    Row(
        "sub",
        ("s16 s16 -> s16",),
        _ALIGNED_S16,
        "run; facts 2.2: 1.7 k values",
        requires=(("zero_points_are_zero",), _RANK_ONES),
    ),
    Row("sub", ("T T -> T",), _PLAIN, "run", where=("s32", "s64", "f32"), requires=(_RANK,)),
    Row(
        "mul",
        ("T T -> T",),
        _MULTIPLIED,
        "run; facts 2.2: 0.19 M values of real models",
        where=("s8", "u8"),
        requires=(_RANK_ONES,),
    ),
    Row(
        "mul",
        ("s16 s16 -> s16",),
        {**_MULTIPLIED, **_PLAIN},
        "run; facts 2.2: 1.2 k values",
        requires=(("zero_points_are_zero",), _RANK_ONES),
    ),
    Row(
        "mul",
        ("s16 s16 -> s8|u8",),
        {
            "product": "q15_up_then_256_away",
            "store": "clamp_then_zero_point",
            "activation_range": "binary32_quotient_away",
        },
        "run; facts 2.2: 0.5 k values",
        requires=(("zero_points_fit",),),
    ),
    Row("mul", ("T T -> T",), _PLAIN, "run", where=("s32", "s64", "u32"), requires=(_RANK_ONES,)),
    Row("mul", ("f32 f32 -> f32",), _PLAIN, "run", requires=(_RANK_ONES,), limit=_TWO_NANS),
    Row(
        "div",
        ("T T -> T",),
        _DIVIDED,
        "run; facts 2.2: 23.8 k values",
        where=("s8", "u8", "s16"),
        requires=(_RANK_ONES,),
        limit=_DIV_LIMIT,
    ),
    Row("div", ("T T -> T",), _PLAIN, "run", where=("s32", "f32"), requires=(_RANK,)),
    *(
        Row(
            stem,
            ("T T -> T",),
            {},
            "run; facts 2.2: stored numbers, scales ignored",
            where=("s8", "u8", "s16", "s32", "s64", "f32"),
            requires=(_RANK,),
        )
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(stem, ("T T -> bool",), _COMPARED, "run; facts 2.2: 120 k values", where=("s8", "u8"), requires=(_RANK,))
        for stem in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
    ),
    Row("equal", ("s16 s16 -> bool",), _COMPARED, "run", requires=(_RANK,)),
    Row(
        "not_equal",
        ("s16 s16 -> bool",),
        _COMPARED,
        "run",
        requires=(("has_scale", 0), _RANK),
        limit="16-bit integers without a scale are refused: the kernel returns without writing its output",
    ),
    *(
        Row(stem, ("T T -> bool",), _RAW, "run", where=("bool", "s32", "s64", "f32"), requires=(_RANK,))
        for stem in ("equal", "not_equal")
    ),
    *(
        Row(stem, ("T T -> bool",), _RAW, "run", where=("s16", "s32", "s64", "f32"), requires=(_RANK,))
        for stem in ("greater", "greater_equal", "less", "less_equal")
    ),
    Row("floor_div", ("s32 s32 -> s32",), {}, "run", requires=(_RANK,)),
    Row(
        "floor_div",
        ("T T -> T",),
        {},
        "run",
        where=("s8", "s16"),
        requires=(_RANK,),
        limit="minimum / -1 stops the run: the kernel's result depends on the element's place in its vector loop",
    ),
    Row("floor_div", ("f32 f32 -> f32",), {}, "run", requires=(_RANK,), limit=_TWO_NANS),
    Row("floor_mod", ("T T -> T",), {}, "run", where=("s8", "s16"), requires=(_RANK,)),
    Row(
        "floor_mod",
        ("T T -> T",),
        {},
        "run; minimum mod -1 traps in the kernel and is refused",
        where=("s32", "s64"),
        requires=(_RANK,),
    ),
    Row("floor_mod", ("f32 f32 -> f32",), {}, "run", requires=(_RANK,), limit=_TWO_NANS),
    Row(
        "squared_difference",
        ("s8 s8 -> s8",),
        {**_ALIGNED, "align": "left_7"},
        "run; facts 2.2: 12 k values",
        requires=(("zero_points_fit",), _RANK),
    ),
    Row("squared_difference", ("T T -> T",), {}, "run", where=("s32", "f32"), requires=(_RANK,)),
    Row("logical_and", ("bool bool -> bool",), {}, "run", requires=(_RANK,)),
    Row("logical_or", ("bool bool -> bool",), {}, "run", requires=(_RANK,)),
    Row("logical_not", ("bool -> bool",), {}, "run"),
    Row("select", ("bool T T -> T",), {}, "run", where=_WIDTHS),
    Row("select_v2", ("bool T T -> T",), {}, "run", where=_WIDTHS, requires=(_RANK,)),
    Row(
        "pow",
        ("s32 s32 -> s32",),
        {},
        "run",
        requires=(_RANK,),
        limit="binary32 powers are not implemented: their last bit depends on the machine's math library; a single "
        "exponent above 0 is refused beyond rank 8 although the kernel does not broadcast it",
    ),
)

# --- reductions, pools, resizing, softmax and normalization
_FOLDED = {
    "accumulate": "s32_wrap",
    "scale_form": "binary64",
    "mean": "q31_count_folded_two_step_up_away",
    "store": "zero_point_then_clamp",
}
_SUM = {
    "accumulate": "s32_wrap",
    "scale_form": "binary64",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
}
_POOL = {"activation_range": "binary32_quotient_away"}
_AVERAGE = {**_POOL, "accumulate": "s32_wrap", "average": "integer_half_away"}
_FIXED_SOFTMAX = {"softmax": "exp_f5_sum_f12_reciprocal_away"}
_LOG_SOFTMAX = {"log_softmax": "exp_f5_sum_f12_logarithm_away"}
_ONE_THREAD = "with several threads the kernel adds parts of large tensors in another order"
_SUM_READS_BYTES = (
    "the reference kernel reads and writes this type's buffers as uint8 (facts 2.4; LiteRT issue 4079), so its results "
    "mean nothing; the formula meant, which is the one of uint8, is used"
)
_NAN_LANES = (
    "where NaN meets neighbours in memory the runtime's vector code gives positions that depend on lanes; "
    "here every number is beyond NaN, as in the runtime's scalar code"
)
_LONG_ROWS = "rows whose exponentials add up to 4096 or more are refused: the kernel's sum overflows"

_REDUCTIONS: tuple[Row, ...] = (
    Row("average_pool2d", ("T -> T",), _AVERAGE, "run; facts 2.4: 8 k values", where=("s8", "u8", "s16")),
    Row("average_pool2d", ("f32 -> f32",), {**_PLAIN, "average": "binary32_divide"}, "run"),
    Row("max_pool2d", ("T -> T",), _POOL, "run; facts 2.4", where=("s8", "u8", "s16")),
    Row("max_pool2d", ("f32 -> f32",), _PLAIN, "run"),
    Row("mean", ("T s32 -> T",), _FOLDED, "run; facts 2.4: 3.2 k values", where=("s8", "u8")),
    Row(
        "mean",
        ("s16 s32 -> s16",),
        _FOLDED,
        "run; facts 2.4: 3.2 k values",
        requires=(("zero_points_are_zero", 0),),
    ),
    Row("mean", ("f32 s32 -> f32",), {"mean": "binary32_divide"}, "run"),
    Row("mean", ("T s32 -> T",), {"mean": "integer_trunc"}, "run", where=("s32", "s64")),
    Row("sum", ("u8 s32 -> u8",), _SUM, "run; facts 2.4: 0.9 k values"),
    Row("sum", ("s8 s32 -> s8",), _SUM, "run on shifted uint8 models", limit=_SUM_READS_BYTES),
    Row(
        "sum",
        ("s16 s32 -> s16",),
        _SUM,
        "the same code as uint8 and int8",
        requires=(("zero_points_are_zero", 0),),
        limit=_SUM_READS_BYTES,
    ),
    Row("sum", ("f32 s32 -> f32",), {}, "run", limit=_ONE_THREAD),
    Row("sum", ("T s32 -> T",), {}, "run", where=("s32", "s64")),
    *(
        row
        for stem in ("reduce_max", "reduce_min")
        for row in (
            Row(stem, ("T s32 -> T",), {}, "run", where=("s8", "u8"), requires=(("same_parameters", 0),)),
            Row(
                stem,
                ("s16 s32 -> s16",),
                {},
                "run",
                requires=(("zero_points_are_zero", 0), ("same_parameters", 0)),
            ),
            Row(stem, ("T s32 -> T",), {}, "run", where=("s32", "s64", "f32")),
        )
    ),
    Row("reduce_prod", ("f32 s32 -> f32",), {}, "run", requires=(("input_has_no_scale",),), limit=_ONE_THREAD),
    Row("reduce_prod", ("T s32 -> T",), {}, "run", where=("s32", "s64"), requires=(("input_has_no_scale",),)),
    Row("reduce_any", ("bool s32 -> bool",), {}, "run"),
    Row("reduce_all", ("bool s32 -> bool",), {}, "run"),
    Row("arg_max", ("u8|s8|s32|bool s32|s64 -> s32|s64",), {}, "run; facts 2.4"),
    Row("arg_max", ("f32 s32|s64 -> s32|s64",), {}, "run", limit=_NAN_LANES),
    Row("arg_min", ("u8|s8|s32|bool s32|s64 -> s32|s64",), {}, "run; facts 2.4"),
    Row("arg_min", ("f32 s32|s64 -> s32|s64",), {}, "run", limit=_NAN_LANES),
    Row(
        "l2_normalization",
        ("s8 -> s8",),
        {"normalize": "q31_exponent_plus_7_two_step_up_away"},
        "run; facts 2.3: 3 k values",
        requires=(("output_is", 1 / 128, 0),),
    ),
    Row(
        "l2_normalization",
        ("u8 -> u8",),
        {"normalize": "q31_times_128_two_step_up_away"},
        "run; facts 2.3: 198 values",
        requires=(("output_is", 1 / 128, 128),),
    ),
    Row("l2_normalization", ("f32 -> f32",), {"normalize": "binary32_divide"}, "run"),
    Row(
        "softmax",
        ("s8 -> s8",),
        _FIXED_SOFTMAX,
        "run; facts 2.5: 7 k values and 13 nodes of real models",
        requires=(("output_is", 1 / 256, -128, 0.001),),
    ),
    Row("softmax", ("u8 -> u8",), _FIXED_SOFTMAX, "run; facts 2.5: 7 k values and nodes of real models"),
    Row("softmax", ("s8|u8 -> s16",), _FIXED_SOFTMAX, "run; facts 2.5: 7 k values", limit=_LONG_ROWS),
    Row(
        "softmax",
        ("s16 -> s16",),
        {"softmax": "tables_513_one_step_up"},
        "run; facts 2.5: 3.4 k values",
        requires=(("zero_points_are_zero",), ("output_is", 1 / 32768, 0, 0.001)),
        limit="refused, because undefined: scale times beta above 1.6e5, and rows whose sum overflows",
    ),
    Row(
        "log_softmax",
        ("s8 -> s8",),
        _LOG_SOFTMAX,
        "run; facts 2.5: 5.7 k values",
        requires=(("output_is", 1 / 16, 127),),
        limit=_LONG_ROWS,
    ),
    Row(
        "log_softmax",
        ("u8 -> u8",),
        _LOG_SOFTMAX,
        "run; facts 2.5: 5.7 k values",
        requires=(("output_is", 1 / 16, 255),),
        limit=_LONG_ROWS,
    ),
    Row(
        "resize_bilinear",
        ("T s32 -> T",),
        {"interpolate": "ten_bits_half_away"},
        "run; facts 2.4: 16.6 k values",
        where=("s8", "s16"),
        limit="sizes for which the kernel reads beyond the picture are refused",
    ),
    Row(
        "resize_bilinear",
        ("u8 s32 -> u8",),
        {"interpolate": "binary32_products_half_up"},
        "run; facts 2.4: 21 k values",
    ),
    Row("resize_bilinear", ("f32 s32 -> f32",), {"interpolate": "binary32_products"}, "run"),
    Row(
        "resize_nearest",
        ("T s32 -> T",),
        {},
        "run; facts 2.4",
        where=("s8", "u8", "bool", "s16", "f16", "s32", "u32", "f32"),
    ),
)

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
        "unidirectional_sequence_lstm",
        (
            "s8 s8|- s8 s8 s8 s8|- s8 s8 s8 s16|- s16|- s16|- s32|- s32 s32 s32 s8|- s32|- s8 s16 "
            "s16|- s16|- s16|- s16|- -> s8",
        ),
        {
            "accumulate": "s32_wrap",
            "scale_form": "binary32",
            "rescale": "q31_two_step_up_away",
            "store": "zero_point_then_clamp",
            "gate": "s16_polynomial_newton",
            "layer_norm": "s32_newton_inverse_root",
        },
        "run; facts 2.6: 865 values; a whole model over several runs",
    ),
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

# --- data movement: elements are copied, parameters are ignored unless a condition says otherwise
_BYTES = ("s8", "u8", "bool")
_WIDE_TYPES = ("s16", "s32", "u32", "s64", "f16", "f32", "f64")
_EVERY = _BYTES + _WIDE_TYPES
_COMMON = ("s8", "u8", "s16", "s32", "s64", "f32")
_MOVED = "run; facts 2.7"


def _same_or_zero(operator: str, types: str, *positions: int, where: tuple[str, ...]) -> tuple[Row, ...]:
    """Rows for `where` whose inputs at `positions` share the output's parameters; s16 with zero point 0."""
    same = ("same_parameters", *positions)
    rows = (Row(operator, (types,), {}, _MOVED, where=tuple(t for t in where if t != "s16"), requires=(same,)),)
    if "s16" not in where:
        return rows
    zero = ("zero_points_are_zero", *positions)
    return (*rows, Row(operator, (types,), {}, _MOVED, where=("s16",), requires=(same, zero)))


_MOVEMENT = (
    Row("reshape", ("T s32|- -> T",), {}, _MOVED, where=("s4", *_EVERY)),
    Row("squeeze", ("T -> T",), {}, _MOVED, where=("s4", *_EVERY)),
    *_same_or_zero("expand_dims", "T s32|s64 -> T", 0, where=("s4", *_EVERY)),
    Row(
        "concatenation",
        ("s8... -> s8",),
        {"combine": "copy"},
        _MOVED,
        requires=(("same_parameters",),),
        limit="scalars need equal parameters here; the kernel does not compare those of constant scalars",
    ),
    Row("concatenation", ("u8... -> u8",), {"combine": "binary32_affine_away"}, _MOVED),
    Row("concatenation", ("s16... -> s16",), {"combine": "copy"}, _MOVED, requires=(("zero_points_are_zero",),)),
    Row(
        "concatenation",
        ("T... -> T",),
        {"combine": "copy"},
        _MOVED,
        where=("s4", "s32", "u32", "s64", "f16", "f32", "bool"),
    ),
    Row("space_to_depth", ("T -> T",), {}, _MOVED, where=("s8", "u8", "s32", "s64", "f32")),
    Row("depth_to_space", ("T -> T",), {}, _MOVED, where=("s8", "u8", "s32", "s64", "f32")),
    Row("pad", ("T s8|s16|s32|s64 T|- -> T",), {}, _MOVED, where=(*_COMMON, "f16", "bool")),
    Row("pad_v2", ("T s8|s16|s32|s64 T|- -> T",), {}, _MOVED, where=(*_COMMON, "f16", "bool")),
    *_same_or_zero("mirror_pad", "T s32|s64 -> T", 0, where=("s8", "u8", "s16")),
    Row("mirror_pad", ("T s32|s64 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:])),
    Row("gather", ("T s16|s32|s64 -> T",), {}, _MOVED, where=(*_COMMON, "f16", "bool")),
    Row("gather_nd", ("T s16|s32|s64 -> T",), {}, _MOVED, where=(*_COMMON, "f16", "bool")),
    *_same_or_zero("batch_to_space", "T s32 s32 -> T", 0, where=("s8", "u8", "s16")),
    Row("batch_to_space", ("T s32 s32 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:])),
    *_same_or_zero("space_to_batch", "T s32 s32 -> T", 0, where=("s8", "u8", "s16")),
    Row("space_to_batch", ("T s32 s32 -> T",), {}, _MOVED, where=("bool", *_WIDE_TYPES[1:])),
    Row(
        "transpose",
        ("T s32 -> T",),
        {},
        _MOVED,
        where=("s4", *_EVERY),
        limit="a permutation that names an axis twice, and rank 0, are refused: the kernel reads the wrong elements",
    ),
    Row("slice", ("T s32 s32 -> T", "T s64 s64 -> T"), {}, _MOVED, where=("s4", *_EVERY)),
    Row(
        "strided_slice",
        ("T s32 s32 s32 -> T",),
        {},
        _MOVED,
        where=_EVERY,
        limit="an axis that shrinks outside the tensor or backwards is refused: the kernel leaves the output unwritten",
    ),
    Row("shape", ("* -> s32|s64",), {}, _MOVED),
    Row("split", ("s32 T -> T...",), {}, _MOVED, where=_COMMON),
    Row("split_v", ("T s32|s64 s32 -> T...",), {}, _MOVED, where=_COMMON),
    Row("pack", ("T... -> T",), {}, _MOVED, where=(*_COMMON, "u32"), requires=(("same_parameters",),)),
    Row(
        "unpack",
        ("T -> T...",),
        {},
        _MOVED,
        where=("s8", "u8", "s16", "s32", "f16", "f32", "bool"),
        requires=(("same_parameters",),),
    ),
    Row("tile", ("T s32|s64 -> T",), {}, _MOVED, where=_EVERY),
    Row(
        "reverse_v2",
        ("T s32 -> T",),
        {},
        _MOVED,
        where=(*_COMMON, "f16", "bool"),
        limit="an empty list of axes is refused: undefined in the kernel",
    ),
    Row("broadcast_to", ("T s32|s64 -> T",), {}, _MOVED, where=_EVERY),
    *_same_or_zero("fill", "s32|s64 T -> T", 1, where=_EVERY),
    Row("range", ("T T T -> T",), {}, _MOVED, where=("s32", "s64", "f32")),
)

LITERT = Numerics(
    "litert",
    "ai-edge-litert 2.3.0, OpResolverType.BUILTIN_REF, x86-64",
    "every tensor of every shared model and Hypothesis-built single-operator models, byte for byte",
    _CONVOLUTIONS + _ELEMENTWISE + _REDUCTIONS + _UNARY + _MOVEMENT,
)
