"""Rows of `tvm-qnn`: the operators of relay.qnn themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ...records import replace
from ..table import Row
from .variants import BEYOND_32_BITS, RUN, Variant, variants

_CODES = ("s8", "u8", "s16", "u16", "s32")
_STORED = "|".join(_CODES)
_NARROW = (
    "what the system computes for processors without SSE 4.2: data and weights less their zero points, modulo "
    "2^16; for those with it, and other targets, tvm-qnn-float32 has the sums of whole differences"
)
_PAIRS = (
    "with SSE 4.2 and without VNNI, sums of two products of bytes saturate at 16 bits in convolutions of one group "
    "with channels first (two channels of a tap; not where they are dilated and weights have a zero point) and in "
    "products of batches whose sizes are multiples of 16 and 4"
)
_MIXED = "with SSE 4.2 terms of 16 and 32 bits do not compile, so that zero points other than 0 are refused there"
_MOVED = ("s8", "u8", "s16", "u16", "s32", "s64", "f32")


def _requantize(variant: Variant, per_channel: bool) -> Row:
    return Row(
        "quantize",
        (f"{_STORED}|s64 -> {_STORED}",),
        {**variant.centering(), "scale_form": "binary64", **variant.rescaling(per_channel)},
        f"{RUN}, op/requantize.cc",
        when=(("input_per_axis", 0),) if per_channel else (),
    )


def _with_operands(variant: Variant, row: Row, point: int, known: bool) -> Row:
    """The row for scales and zero points that are operands; `known`: the output's, at `point`, is a constant."""
    types = tuple(pattern.replace(" ->", " f32 s32 f32 s32 ->") for pattern in row.types)
    when = (*row.when, ("constant_inputs", point)) if known else row.when
    return replace(row, types=types, rules=row.rules if known else {**row.rules, **variant.storing_apart()}, when=when)


def _requantize_operands(variant: Variant, per_channel: bool, known: bool) -> Row:
    when = (("input_rank", 3, 1),) if per_channel else ()
    return _with_operands(variant, replace(_requantize(variant, per_channel), when=when), 2, known)


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
        f"{RUN}, op/leaky_relu.cc",
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
        f"{RUN}, op/softmax.cc",
        when=(("attribute_is", "by_shifts", True),),
    )


# Registers of sums, by the type of the result.
_REGISTERS = {"s16": "s16_wrap", "s32": "s32_wrap", "s64": "s64"}


def _products(own: Variant, operator: str, types: str, results: tuple[str, ...], source: str) -> Iterator[Row]:
    """Sums of products. Without SSE 4.2 both differences are 16 bits wide; with it, they are not looked at."""
    for result in results:
        rules = {"accumulate": _REGISTERS[result]}
        evidence = f"{RUN}, {source}"
        limit = _PAIRS if own.sse else ""
        if result == "s16":
            limit = "; ".join(text for text in (limit, _MIXED) if text)
        if not own.sse:
            leave = ("differences_leave_16_bits", (0, 4), (1, 6))
            # Products of batches have no such form.
            when = (leave, ("input_rank", 0, 2)) if operator == "matmul" else (leave,)
            yield Row(
                operator,
                (types,),
                {"center": "s16_wrap", **rules},
                f"{evidence} and legalizations.py",
                where=(result,),
                when=when,
                limit=_NARROW,
            )
        yield Row(operator, (types,), rules, evidence, where=(result,), limit=limit)


def rows(own: Variant) -> tuple[Row, ...]:
    """All of them."""
    return (
        # One scale per slice first: those rows have a condition, even the last one.
        *variants(own, lambda v: _requantize(v, True)),
        *variants(own, lambda v: _requantize(v, False)),
        *variants(own, lambda v: _requantize_operands(v, True, True)),
        *variants(own, lambda v: _requantize_operands(v, True, False)),
        *variants(own, lambda v: _requantize_operands(v, False, True)),
        *variants(own, lambda v: _requantize_operands(v, False, False)),
        *(
            row
            for make in (_leaky_relu, _softmax)
            for row in (
                *variants(own, make),
                *variants(own, lambda v, make=make: _with_operands(v, make(v), 4, True)),  # type: ignore[misc]
                *variants(own, lambda v, make=make: _with_operands(v, make(v), 4, False)),  # type: ignore[misc]
            )
        ),
        *(
            Row(
                stem,
                ("T -> T",),
                {"table": "binary32_divide_256_away", "table_function": "binary32_steps"},
                f"{RUN}, canonicalizations.py",
                where=("s8", "u8"),
                when=(("attribute_is", "in_steps", True),),
                limit="exp, tanh, erf and log are rounded to nearest; those of NumPy and SciPy, which make the tables"
                " there, may differ in the last place and by that in a quantized value; where a function has no value"
                " (NaN), the largest one stands, as there",
            )
            for stem in ("abs", "erf", "exp", "hard_swish", "log", "logistic", "rsqrt", "sqrt", "tanh")
        ),
        Row(
            "average_pool",
            ("s32 -> s8|u8|s32",),
            {"accumulate": "s32_wrap", "average": "integer_trunc"},
            f"{RUN}, op/avg_pool2d.cc and topi/nn/pooling.h",
            requires=(("padded_windows_begin_inside",),),
        ),
        # One constant scale is part of the compiled code, whose simplifier multiplies by its inverse; vectors divide.
        *(
            Row(
                "quantize",
                (f"f32 -> {_STORED}",),
                {"quantize": rule},
                f"{RUN}, op/quantize.cc and arith/rewrite_simplify.cc",
                when=when,
                limit="NaN and, for int32, numbers of 2^31 and more have no rule there",
            )
            for rule, when in (
                ("binary32_reciprocal_away_sum", (("attribute_is", "one_scale", True),)),
                ("binary32_reciprocal_away_sum", (("per_tensor",),)),
                ("binary32_divide_away_sum", ()),
            )
        ),
        *(
            Row(
                "quantize",
                (f"f32 f32 s32 -> {result}",),
                {"zero_points": "used", "quotient": "binary32", "to_integer": "away_sum_clamp"},
                f"{RUN}, op/quantize.cc: scales that are computed",
                limit="NaN and, for int32, numbers of 2^31 and more have no rule there",
            )
            for result in _CODES
        ),
        Row(
            "dequantize",
            (f"{_STORED} -> f32",),
            {"dequantize": "binary32_multiply"},
            f"{RUN}, op/dequantize.cc",
        ),
        Row(
            "dequantize",
            (f"{_STORED} f32 s32 -> f32|f16",),
            {"zero_points": "used", "dequantize": "binary32_multiply", "narrow": "even_saturate"},
            f"{RUN}, op/dequantize.cc",
        ),
        *(
            Row(
                "conv_transpose",
                ("s8|u8|s16|u16 s8|u8 - - s32 - s32 -> T",),
                {"accumulate": rule},
                f"{RUN}, op/convolution_transpose.cc and qnn/op/legalizations.py",
                where=(result,),
            )
            for result, rule in _REGISTERS.items()
        ),
        *(
            Row(
                stem,
                ("f32 f32 s32 -> f32",),
                {},
                f"{RUN}, op/simulated_quantize.cc and topi/nn/qnn.py",
                when=(("attribute_is", "in_reals", True),),
            )
            for stem in ("quantize", "dequantize")
        ),
        *_products(own, "conv", "s8|u8|s16 s8|u8|s16 - - s32 - s32 -> T", ("s32", "s64", "s16"), "op/convolution.cc"),
        *_products(
            own, "matmul", "s8|u8|s16|u16 s8|u8 - - s32 - s32 -> T", ("s32", "s64"), "op/dense.cc, op/batch_matmul.cc"
        ),
        Row("concatenation", ("T... -> T",), {"combine": "copy"}, f"{RUN}, op/concatenate.cc", where=("u16", "s32")),
        Row(
            "concatenation",
            ("T... -> T",),
            {"combine": "copy"},
            f"{RUN}, op/concatenate.cc: zero points that are computed",
            where=("s8", "u8", "s16"),
            when=(("attribute_is", "requantized", True),),
        ),
        Row("sub", ("s32 s32 -> s32",), {"plain_range": "type_limits"}, f"{RUN}, op/add.cc"),
        Row("mul", ("s32 s32 -> s32",), {"plain_range": "type_limits"}, f"{RUN}, op/mul.cc", limit=BEYOND_32_BITS),
        Row("add", ("T T -> T",), {"plain_range": "type_limits"}, f"{RUN}, nn.bias_add", where=("s32", "s64")),
        *(
            Row(stem, ("f32 f32 -> f32",), {"plain_range": "unlimited"}, f"{RUN}, one operation in binary32")
            for stem in ("add", "mul")
        ),
        *(Row("clip", ("T T|- T|- -> T",), {}, f"{RUN}, clip on quantized values", where=(t,)) for t in _CODES),
        Row("transpose", ("T s32|s64 -> T",), {}, f"{RUN}, values are moved only", where=_MOVED),
        Row("reshape", ("T s32|- -> T",), {}, f"{RUN}, values are moved only", where=_MOVED),
    )
