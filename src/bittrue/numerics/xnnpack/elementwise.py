"""Rows of `xnnpack`: element-wise operators."""

from __future__ import annotations

from ..litert.elementwise import NOT_ROUNDED
from ..litert.unary import ROUNDED_DOWN
from ..litert_optimized.unary import DEQUANTIZE
from ..table import Row
from .matrix import CLAMPS, QUANTIZED, SUBNORMAL

_RANGE = {"store": "clamp_then_zero_point", "activation_range": "binary32_sum_even"}
_BINARY = (("counts_within", (2, 2), (1, 1)), ("declared_rank", 0, 6, 0, 1))
_UNARY = (("counts_within", (1, 1), (1, 1)), ("declared_rank", 0, 6, 0))
_ALL_SCALED = ("one_scale", 0, 1, "output")
_ONE_SCALED = ("one_scale", 0, "output")
_ADDED = {**_RANGE, "align": "shared_21_bits_even"}
_TABLE = {"table": "binary32_reciprocal_sum_256_even"}
_Q8 = {"rescale": "q8_one_step_up", "store": "clamp_then_zero_point"}

_REAL = ("f32 f32 -> f32",)
_UNLIMITED = {"plain_range": "unlimited"}
_OPEN = {"plain_range": "open_limits"}
_CHOICE = {"extreme": "last_unless_beyond"}
_TWO_NANS = (
    "where both operands are NaN, the kernels keep the payload of one or the other; bittrue keeps the first one's; "
    + SUBNORMAL
)

_AVX512 = (
    "the bits of processors with AVX-512; on AVX2 the logistic function of 32 % of normal numbers, elu of 12 % and "
    "37 % of softmaxes have other last bits: those of 'xnnpack-avx2'"
)
_ENDS_OF_LOG = (
    "the bits of processors with AVX-512; with AVX2 ('xnnpack-avx2') numbers near the largest one, infinity and NaN "
    "give some 88 to 89, and of numbers below 0 the NaN has other bits"
)
_MAKERS = (
    "the estimate of 1 / (1 + e) is that of AMD's processors; with the tables that an emulator has for Intel's, which "
    "were not run, 3,540 of 63,488 arguments have another last bit"
)
_OF_NANS = "where both operands are NaN, either one's payload may stay"
_HALF = {"real_function": "binary32_short"}
_LOST_AXES = (
    "beside a constant of one element and a higher rank, with a fused activation, the delegate's result has the other "
    "operand's rank, which is not reproduced; the elements are the same"
)
_LIMITED_NUMBER = (("constant_number_has_more_axes",), ("attribute_is", "activation", "relu", "relu6", "relu_n1_to_1"))
_SUM_SCALED = (*_BINARY, _ALL_SCALED, ("scale_ratio_within", 2.0**-10, 256.0, False, 0, 1))
_PRODUCT_SCALED = (*_BINARY, _ALL_SCALED, ("scale_product_within", 2.0**-16, 256.0))
_NANS = "where several NaNs meet in a row, the sign of the result's follows the order of the kernel's sums"

ROWS: tuple[Row, ...] = (
    *(
        Row(stem, _REAL, _UNLIMITED, "run", when=(*_BINARY, CLAMPS, NOT_ROUNDED), limit=_TWO_NANS)
        for stem in ("add", "sub", "mul", "div")
    ),
    *(
        Row(
            stem,
            ("T T -> T",),
            where=("s8", "u8"),
            when=(*scaled, *_LIMITED_NUMBER),
            refuses=_LOST_AXES,
            advice="give both operands the same rank, or choose another numerics",
        )
        for stem, scaled in (("add", _SUM_SCALED), ("sub", _SUM_SCALED), ("mul", _PRODUCT_SCALED))
    ),
    *(
        Row(
            stem,
            ("T T -> T",),
            _ADDED,
            "run",
            where=("s8", "u8"),
            when=(*_SUM_SCALED, CLAMPS),
            requires=QUANTIZED,
        )
        for stem in ("add", "sub")
    ),
    Row(
        "mul",
        ("T T -> T",),
        {**_RANGE, "product": "exact_s32", "scale_form": "binary32", "rescale": "binary32_multiply_even"},
        "run",
        where=("s8", "u8"),
        when=(*_PRODUCT_SCALED, CLAMPS),
        requires=QUANTIZED,
    ),
    Row("logistic", ("T -> T",), _TABLE, "run", ("s8", "u8"), when=(*_UNARY, _ONE_SCALED), requires=QUANTIZED),
    Row("tanh", ("T -> T",), _TABLE, "run", ("s8", "u8"), when=(*_UNARY, _ONE_SCALED), requires=QUANTIZED),
    Row(
        "leaky_relu",
        ("T -> T",),
        {**_Q8, "scale_form": "binary32_quotient_first"},
        "run",
        ("s8", "u8"),
        when=(*_UNARY, _ONE_SCALED, ("slopes_within", 2.0**-8, 128.0, -127.99609375)),
        requires=QUANTIZED,
    ),
    Row(
        "leaky_relu",
        ("f32 -> f32",),
        {"slope": "scaled_below_zero"},
        "run",
        when=(*_UNARY, ("slopes_within", 2.0**-8, 128.0, -127.99609375)),
        limit=SUBNORMAL,
    ),
    Row("abs", ("f32 -> f32",), {}, "run", when=_UNARY, limit=SUBNORMAL),
    Row("round_to_integer", ("f32 -> f32",), {}, "run", when=(*_UNARY, ROUNDED_DOWN), limit=SUBNORMAL),
    Row("round_to_integer", ("f32 -> f32",), {}, "run", when=_UNARY, limit=SUBNORMAL),
    Row("relu", ("f32 -> f32",), {}, "run", when=(*_UNARY, CLAMPS), limit=SUBNORMAL),
    *(
        Row(stem, ("f32 -> f32",), {"real_function": "binary32_refined_lines"}, "run", when=_UNARY)
        for stem in ("sqrt", "rsqrt")
    ),
    *(
        Row(stem, ("f32 -> f32",), {"real_function": "binary32_fused"}, "run", when=_UNARY)
        for stem in ("tanh", "exp", "sin", "cos", "hard_swish", "neg")
    ),
    Row("log", ("f32 -> f32",), {"real_function": "binary32_fused"}, "run", when=_UNARY, limit=_ENDS_OF_LOG),
    *(
        Row(stem, ("f32 -> f32",), {"real_function": "binary32_fused"}, "run", when=_UNARY, limit=_AVX512)
        for stem in ("logistic", "elu")
    ),
    Row("gelu", ("f32 -> f32",), {"real_gelu": "binary32_fused"}, "run", when=_UNARY),
    Row(
        "softmax",
        ("f32 -> f32",),
        {"real_softmax": "binary32_fused_16_lanes"},
        "run",
        when=(("counts_within", (1, 1), (1, 1)), ("attribute_is", "beta", 1.0)),
        limit=f"{_AVX512}; {_NANS}",
    ),
    *(Row(stem, ("f16 -> f16",), _HALF, "run", when=_UNARY) for stem in ("tanh", "sin", "cos")),
    Row("logistic", ("f16 -> f16",), _HALF, "run", when=_UNARY, limit=_MAKERS),
    Row("gelu", ("f16 -> f16",), {"real_gelu": "binary32_short"}, "run", when=_UNARY),
    Row(
        "softmax",
        ("f16 -> f16",),
        {"real_softmax": "binary32_short_8_lanes"},
        "run",
        when=(("counts_within", (1, 1), (1, 1)), ("attribute_is", "beta", 1.0)),
        limit=_NANS,
    ),
    *(
        Row(
            stem,
            ("f32 f32 -> f32",),
            _CHOICE,
            "run",
            when=_BINARY,
            limit=SUBNORMAL,
        )
        for stem in ("maximum", "minimum")
    ),
    *(
        Row(
            stem,
            ("f16 f16 -> f16",),
            rules,
            "run",
            when=(*_BINARY, CLAMPS) if rules is _OPEN else _BINARY,
            limit=_OF_NANS if rules is _OPEN else "",
        )
        for stem, rules in (("add", _OPEN), ("mul", _OPEN), ("maximum", _CHOICE), ("minimum", _CHOICE))
    ),
    Row(
        "quantize",
        ("f32 -> s8|u8",),
        {"quantize": "binary32_reciprocal_even"},
        "run",
        when=(*_UNARY, _ONE_SCALED),
        requires=QUANTIZED,
    ),
    Row(
        "quantize",
        ("T -> T",),
        {**_Q8, "scale_form": "binary32"},
        "run",
        ("s8", "u8"),
        when=(*_UNARY, _ONE_SCALED, ("scale_ratio_within", 2.0**-8, 128.0, True, 0)),
        requires=QUANTIZED,
    ),
    # Constants that the delegate unpacks while it is prepared.
    Row("dequantize", ("s8 -> f32",), DEQUANTIZE, "run", when=(("per_tensor",), ("stored_in_file", 0))),
    Row(
        "dequantize",
        ("s8|u8 -> f32",),
        {"dequantize": "binary64_multiply"},
        "run",
        when=(*_UNARY, ("one_scale", 0)),
        requires=QUANTIZED,
    ),
)
