"""Rows of `litert`: reductions, pools, resizing, softmax and normalization."""

from __future__ import annotations

from ..table import Row

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
TRUTH_VALUES = ("attribute_is", "truth_values", True)
_PLAIN = {"plain_range": "type_limits"}
_POOL = {"activation_range": "binary32_quotient_away"}
_AVERAGE = {**_POOL, "accumulate": "s32_wrap", "average": "integer_half_away"}
_FIXED_SOFTMAX = {"softmax": "exp_f5_sum_f12_reciprocal_away"}
_REAL_SOFTMAX = {"real_softmax": "binary32_in_order"}
_LIBRARY = (
    "the runtime calls the C library of its machine; the bits here are those of glibc 2.36 for x86-64 processors with "
    "fused multiply-add"
)
_LOG_SOFTMAX = {"log_softmax": "exp_f5_sum_f12_logarithm_away"}
_ONE_THREAD = "with several threads the kernel adds parts of large tensors in another order"
_SUM_READS_BYTES = (
    "the reference kernel reads and writes this type's buffers as uint8 (docs/facts/litert.md 2.4; LiteRT issue 4079), "
    "so its results mean nothing; the formula meant, which is the one of uint8, is used"
)
_NAN_LANES = (
    "where NaN meets neighbours in memory the runtime's vector code gives positions that depend on lanes; "
    "here every number is beyond NaN, as in the runtime's scalar code"
)
_LONG_ROWS = "rows whose exponentials add up to 4096 or more are refused: the kernel's sum overflows"

ROWS: tuple[Row, ...] = (
    Row("average_pool", ("T -> T",), _AVERAGE, "run; docs/facts/litert.md 2.4", where=("s8", "u8", "s16")),
    Row("average_pool", ("f32 -> f32",), {**_PLAIN, "average": "binary32_divide"}, "run"),
    Row("max_pool", ("T -> T",), _POOL, "run; docs/facts/litert.md 2.4", where=("s8", "u8", "s16")),
    Row("max_pool", ("f32 -> f32",), _PLAIN, "run"),
    Row("mean", ("T s32 -> T",), _FOLDED, "run; docs/facts/litert.md 2.4", where=("s8", "u8")),
    Row(
        "mean",
        ("s16 s32 -> s16",),
        _FOLDED,
        "run; docs/facts/litert.md 2.4",
        requires=(("zero_points_are_zero", 0),),
    ),
    Row("mean", ("f32 s32 -> f32",), {"mean": "binary32_divide"}, "run"),
    Row("mean", ("T s32 -> T",), {"mean": "integer_trunc"}, "run", where=("s32", "s64")),
    Row("sum", ("u8 s32 -> u8",), _SUM, "run; docs/facts/litert.md 2.4"),
    Row("sum", ("s8 s32 -> s8",), _SUM, "run on shifted uint8 models", limit=_SUM_READS_BYTES, inexact=True),
    Row(
        "sum",
        ("s16 s32 -> s16",),
        _SUM,
        "the same code as uint8 and int8",
        requires=(("zero_points_are_zero", 0),),
        limit=_SUM_READS_BYTES,
        inexact=True,
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
    Row("reduce_prod", ("T s32 -> T",), {}, "run", where=("s32", "s64", "u8"), requires=(("input_has_no_scale",),)),
    Row(
        "reduce_prod",
        ("s8 s32 -> s8",),
        {"rescale": "q15_one_step_up"},
        "run; docs/facts/litert.md 2.4",
        limit="a tensor without elements that has outputs is refused: the kernel writes nothing",
    ),
    Row(
        "reduce_prod",
        ("s16 s32 -> s16",),
        {"rescale": "q15_one_step_up"},
        "run; docs/facts/litert.md 2.4",
        requires=(("zero_points_are_zero", 0),),
        limit="as for s8",
    ),
    *(Row(stem, ("bool s32 -> bool",), {}, "run", when=(TRUTH_VALUES,)) for stem in ("reduce_max", "reduce_min")),
    Row("arg_max", ("u8|s8|s32|bool s32|s64 -> s32|s64",), {}, "run; docs/facts/litert.md 2.4"),
    Row("arg_max", ("f32 s32|s64 -> s32|s64",), {}, "run", limit=_NAN_LANES),
    Row("arg_min", ("u8|s8|s32|bool s32|s64 -> s32|s64",), {}, "run; docs/facts/litert.md 2.4"),
    Row("arg_min", ("f32 s32|s64 -> s32|s64",), {}, "run", limit=_NAN_LANES),
    Row(
        "lp_normalization",
        ("s8 -> s8",),
        {"normalize": "q31_exponent_plus_7_two_step_up_away"},
        "run; docs/facts/litert.md 2.3",
        requires=(("output_is", 1 / 128, 0),),
    ),
    Row(
        "lp_normalization",
        ("u8 -> u8",),
        {"normalize": "q31_times_128_two_step_up_away"},
        "run; docs/facts/litert.md 2.3",
        requires=(("output_is", 1 / 128, 128),),
    ),
    Row("lp_normalization", ("f32 -> f32",), {"normalize": "binary32_divide"}, "run"),
    Row(
        "softmax",
        ("s8 -> s8",),
        _FIXED_SOFTMAX,
        "run, in whole models, too; docs/facts/litert.md 2.5",
        requires=(("output_is", 1 / 256, -128, 0.001),),
    ),
    Row("softmax", ("u8 -> u8",), _FIXED_SOFTMAX, "run, in whole models, too; docs/facts/litert.md 2.5"),
    Row("softmax", ("s8|u8 -> s16",), _FIXED_SOFTMAX, "run; docs/facts/litert.md 2.5", limit=_LONG_ROWS),
    Row(
        "softmax",
        ("s16 -> s16",),
        {"softmax": "tables_513_one_step_up"},
        "run; docs/facts/litert.md 2.5",
        requires=(("zero_points_are_zero",), ("output_is", 1 / 32768, 0, 0.001)),
        limit="refused, because undefined: scale times beta above 1.6e5, and rows whose sum overflows",
    ),
    Row("softmax", ("T -> T",), _REAL_SOFTMAX, "run", ("f32", "f16"), limit=_LIBRARY),
    Row("log_softmax", ("f32 -> f32",), _REAL_SOFTMAX, "run", limit=_LIBRARY),
    Row(
        "log_softmax",
        ("s8 -> s8",),
        _LOG_SOFTMAX,
        "run; docs/facts/litert.md 2.5",
        requires=(("output_is", 1 / 16, 127),),
        limit=_LONG_ROWS,
    ),
    Row(
        "log_softmax",
        ("u8 -> u8",),
        _LOG_SOFTMAX,
        "run; docs/facts/litert.md 2.5",
        requires=(("output_is", 1 / 16, 255),),
        limit=_LONG_ROWS,
    ),
    Row(
        "resize_linear",
        ("T s32 -> T",),
        {"interpolate": "ten_bits_half_away"},
        "run; docs/facts/litert.md 2.4",
        where=("s8", "s16"),
        limit="sizes for which the kernel reads beyond the image are refused",
    ),
    Row(
        "resize_linear",
        ("u8 s32 -> u8",),
        {"interpolate": "binary32_products_half_up"},
        "run; docs/facts/litert.md 2.4",
    ),
    Row(
        "resize_linear",
        ("f32 s32 -> f32",),
        {"interpolate": "binary32_products"},
        "run",
        limit="where several NaNs meet, or NaN meets an infinity times 0, the sign bit of the resulting NaN may differ",
    ),
    Row(
        "resize_nearest",
        ("T s32 -> T",),
        {},
        "run; docs/facts/litert.md 2.4",
        where=("s8", "u8", "bool", "s16", "f16", "s32", "u32", "f32"),
    ),
)
