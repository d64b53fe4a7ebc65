"""Rows of `tvm-qnn`: the operators of relay.qnn themselves."""

from __future__ import annotations

from ..table import Row
from .variants import READ, Variant, variants

_CODES = ("s8", "u8", "s16", "u16", "s32")
_STORED = "|".join(_CODES)
_MOVED = ("s8", "u8", "s16", "u16", "s32", "s64", "f32")


def _requantize(variant: Variant, per_channel: bool) -> Row:
    return Row(
        "quantize",
        ("s8|u8|s16|s32|s64 -> s8|u8|s16|s32",),
        {**variant.centering(), "scale_form": "binary64", **variant.rescaling(per_channel)},
        f"{READ}, op/requantize.cc; 226 check values",
        when=(("input_per_axis", 0),) if per_channel else (),
    )


def _leaky_relu(variant: Variant) -> Row:
    return Row(
        "leaky_relu",
        ("T -> T",),
        {
            **variant.centering(),
            "scale_form": "binary64",
            **variant.rescaling(),
            "slope_rescale": "q31_shift_or_one_step_up",
            "table": "binary32_divide_256_away",
        },
        f"{READ}, op/leaky_relu.cc; a check value",
        where=("s8", "u8"),
        when=(("attribute_is", "requantized", True),),
    )


def _softmax(variant: Variant) -> Row:
    return Row(
        "softmax",
        ("s8 -> s8",),
        {
            "shifted_softmax": "binary_powers_s32",
            **variant.centering(),
            "scale_form": "binary64",
            **variant.rescaling(),
        },
        f"{READ}, op/softmax.cc; no check values",
        when=(("attribute_is", "by_shifts", True),),
    )


def rows(own: Variant) -> tuple[Row, ...]:
    """All of them."""
    return (
        # One scale per slice first: those rows have a condition, even the last one.
        *variants(own, lambda v: _requantize(v, True)),
        *variants(own, lambda v: _requantize(v, False)),
        *variants(own, _leaky_relu),
        *variants(own, _softmax),
        *(
            Row(
                stem,
                ("T -> T",),
                {"table": "binary32_divide_256_away", "table_function": "binary32_steps"},
                f"{READ}, canonicalizations.py; 16 check values",
                where=("s8", "u8"),
                when=(("attribute_is", "in_steps", True),),
                limit="exp, tanh, erf and log are rounded to nearest; those of NumPy and SciPy, which make the tables"
                " there, may differ in the last place and by that in a quantized value",
            )
            for stem in ("abs", "erf", "exp", "hard_swish", "log", "logistic", "rsqrt", "sqrt", "tanh")
        ),
        Row(
            "average_pool",
            ("s32 -> s8|u8",),
            {"accumulate": "s32_wrap", "average": "integer_trunc"},
            f"{READ}, op/avg_pool2d.cc and topi/nn/pooling.h; no check values",
            requires=(("padded_windows_begin_inside",),),
        ),
        Row(
            "quantize",
            (f"f32 -> {_STORED}",),
            {"quantize": "binary32_divide_away_sum"},
            f"{READ}, op/quantize.cc; 6 check values",
            limit="NaN and, for int32, numbers of 2^31 and more have no rule there",
        ),
        *(
            Row(
                "quantize",
                (f"f32 f32 s32 -> {result}",),
                {"zero_points": "used", "quotient": "binary32", "to_integer": "away_sum_clamp"},
                f"{READ}, op/quantize.cc: scales that are computed; no check values",
                limit="NaN and, for int32, numbers of 2^31 and more have no rule there",
            )
            for result in _CODES
        ),
        Row(
            "dequantize",
            (f"{_STORED} -> f32",),
            {"dequantize": "binary32_multiply"},
            f"{READ}, op/dequantize.cc; 8 check values",
        ),
        Row(
            "dequantize",
            (f"{_STORED} f32 s32 -> f32|f16",),
            {"zero_points": "used", "dequantize": "binary32_multiply", "narrow": "even_saturate"},
            f"{READ}, op/dequantize.cc; a check value",
        ),
        *(
            Row(
                "conv_transpose",
                ("s8|u8|s16|u16 s8|u8 - - s32 - s32 -> T",),
                {"accumulate": "s32_wrap" if result == "s32" else "s64"},
                f"{READ}, op/convolution_transpose.cc and qnn/op/legalizations.py; no check values",
                where=(result,),
            )
            for result in ("s32", "s64")
        ),
        *(
            Row(
                stem,
                ("f32 f32 s32 -> f32",),
                {},
                f"{READ}, op/simulated_quantize.cc and topi/nn/qnn.py; no check values",
                when=(("attribute_is", "in_reals", True),),
            )
            for stem in ("quantize", "dequantize")
        ),
        *(
            Row(
                "conv",
                ("s8|u8|s16 s8|u8|s16 - - s32 - s32 -> T",),
                {"accumulate": "s32_wrap" if result == "s32" else "s64"},
                f"{READ}, op/convolution.cc; 3 check values",
                where=(result,),
            )
            for result in ("s32", "s64")
        ),
        *(
            Row(
                "matmul",
                ("s8|u8|s16|u16 s8|u8 - - s32 - s32 -> T",),
                {"accumulate": "s32_wrap" if result == "s32" else "s64"},
                f"{READ}, op/dense.cc and op/batch_matmul.cc; 19 check values",
                where=(result,),
            )
            for result in ("s32", "s64")
        ),
        Row("concatenation", ("s32... -> s32",), {"combine": "copy"}, f"{READ}, op/concatenate.cc; 4 check values"),
        Row("sub", ("s32 s32 -> s32",), {"plain_range": "type_limits"}, f"{READ}, op/add.cc"),
        Row("mul", ("s32 s32 -> s32",), {"plain_range": "type_limits"}, f"{READ}, op/mul.cc"),
        Row("add", ("T T -> T",), {"plain_range": "type_limits"}, f"{READ}, nn.bias_add", where=("s32", "s64")),
        *(Row("clip", ("T T|- T|- -> T",), {}, f"{READ}, clip on quantized values", where=(t,)) for t in _CODES),
        Row("transpose", ("T s32|s64 -> T",), {}, f"{READ}, values are moved only", where=_MOVED),
        Row("reshape", ("T s32|- -> T",), {}, f"{READ}, values are moved only", where=_MOVED),
    )
