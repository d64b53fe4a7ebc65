"""Mutants that no input of any model can tell from the right arithmetic, each with the reason.

An entry is a claim: tests search for differences with many inputs, and fail when they find one or when an entry is no
longer needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Mutants that compute the same as the right arithmetic.

    Attributes:
        operators: as files call them; empty for all.
        pattern: a regular expression that the mutant's whole name matches.
        reason: why no input tells them apart.
        types: labels of the suite; empty for all.
        numerics: whose arithmetic is the right one; empty for all.
    """

    operators: tuple[str, ...]
    pattern: str
    reason: str
    types: tuple[str, ...] = ()
    numerics: tuple[str, ...] = ()

    def covers(self, operator: str, name: str, types: str, numerics: str) -> bool:
        return (
            (not self.operators or operator in self.operators)
            and (not self.types or types in self.types)
            and (not self.numerics or numerics in self.numerics)
            and re.fullmatch(self.pattern, name) is not None
        )


_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_MOVEMENT = (
    "RESHAPE",
    "SQUEEZE",
    "SPACE_TO_DEPTH",
    "PAD",
    "PADV2",
    "GATHER",
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    "TRANSPOSE",
    "SLICE",
    "CONCATENATION",
    "MAXIMUM",
    "MINIMUM",
)

_ONNX = ("onnxruntime",)
_PRODUCTS = ("QLinearConv", "QDQ Conv", "QLinearMatMul", "QDQ MatMul", "QGemm", "QDQ Gemm")
_AVERAGES = ("QLinearAveragePool", "QDQ AveragePool", "QLinearGlobalAveragePool", "QDQ GlobalAveragePool")
_WHOLE = ("QLinearGlobalAveragePool", "QDQ GlobalAveragePool")
_REAL = ("DequantizeLinear", "QDQ Relu", "QDQ MaxPool", "QDQ Tanh")

CLAIMS: tuple[Claim, ...] = (
    Claim(
        ("DynamicQuantizeLinear",),
        r"to_integer=even_wrap",
        "the scale is a 255th of the data's own range: quotients stay within 255, far from 32 bits; a range that gives "
        "the scale 0 has no defined result",
        numerics=_ONNX,
    ),
    Claim(
        (*_MOVEMENT, "QDQ Relu"),
        r"(input quantized values read|quantized values read and stored) as unsigned bytes",
        "bytes are moved, not computed with: what they are called on the way changes none of them",
    ),
    Claim(
        ("CONV_2D", "DEPTHWISE_CONV_2D"),
        r"two steps, ties up then ties away",
        "that is the specified rounding in other words",
        types=("s8",),
        numerics=("litert",),
    ),
    Claim(
        (),
        r"store=zero_point_(half_up|away|half_away)_then_clamp",
        "the rescaled value is an integer already: rounding it again, or adding 1/2 and cutting off, changes nothing",
        numerics=("litert",),
    ),
    Claim(
        (),
        r"store=clamp_then_zero_point",
        "clamp(v, low - z, high - z) + z = clamp(v + z, low, high) as long as v + z fits 32 bits; the specified "
        "arithmetic is undefined beyond",
        numerics=("litert",),
    ),
    Claim(
        (*_LAYERS, "AVERAGE_POOL_2D", "MEAN", "SUM"),
        r"accumulate=s64|accumulator (wraps|saturates) at 32 bits",
        "sums that leave 32 bits are undefined in the specified runtime (signed overflow in C++): no test may hold one",
    ),
    Claim(
        _LAYERS,
        r"products wrap at 16 bits",
        "|(x - z) w| <= 255 * 128 = 32,640 fits 16 bits",
    ),
    Claim(
        (*_LAYERS, "MEAN", "SUM", "QUANTIZE"),
        r"scale_form=given_binary64",
        "scales of the file format are binary32 numbers: widened or given as binary64 they are the same",
    ),
    Claim(
        ("MEAN", "SUM", "QUANTIZE"),
        r"scale_form=binary32_product",
        "with one input scale there is no product: the quotient is formed in binary64 either way",
    ),
    Claim(
        ("MUL",),
        r"scale_form=binary32_step_by_step",
        "a quotient of binary32 numbers rounded to binary64 and then to binary32 is the binary32 quotient, since "
        "53 >= 2 * 24 + 2",
    ),
    Claim(
        ("AVERAGE_POOL_2D", "MEAN", "SUM"),
        r"accumulate=s16_pairs_s32_wrap",
        "the rule is about products; sums of quantized values have none",
    ),
    Claim(
        ("AVERAGE_POOL_2D", "MAX_POOL_2D"),
        r"output zero point .* where it is added, though not in the clamp",
        "pools work on quantized values as they are: the zero point plays a part in the clamp alone",
    ),
    Claim(
        ("AVERAGE_POOL_2D",),
        r"dilation [hw] one too small",
        "windows of this operator are not dilated: one less is a dilation of 0",
    ),
    Claim(
        ("AVERAGE_POOL_2D", "QDQ MaxPool"),
        r"dilation [hw] is 0",
        "with a dilation of 0 windows have a place only where they have one tap along the axis, and a tap alone has no "
        "distance to another",
    ),
    Claim(
        ("MAX_POOL_2D",),
        r"arithmetic of (onnx|snps_caffe|mxnet).*",
        "a maximum has no arithmetic: numerics differ in the clamp, and these have none, so they run models without "
        "an activation alone",
    ),
    Claim(
        ("QDQ MaxPool",),
        r"arithmetic of (single-rounding|caffe2).*",
        "a maximum has no arithmetic, and nothing is clamped where no activation is fused",
        numerics=_ONNX,
    ),
    Claim(
        ("AVERAGE_POOL_2D",),
        r"exact result, ties away, zero point added before rounding",
        "that is the specified rounding in other words: quantized values are averaged with their zero point, ties away "
        "from 0",
    ),
    Claim(
        ("MEAN", "SUM"),
        r"keep_dims is (True|False)",
        "it says which axes the result has; the bytes are the same",
    ),
    Claim(
        ("QUANTIZE",),
        r"quantize=binary32_divide_away_sum",
        "the sum with the zero point is exact below 2^24, and beyond both are saturated",
    ),
    Claim(
        ("QUANTIZE",),
        r"quantize=binary32_divide_away_limited|arithmetic of litert@aarch64",
        "they part for NaN and beyond 32 bits alone, where C++ leaves the conversion undefined: no test may hold one",
        numerics=("litert",),
    ),
    Claim(
        ("FULLY_CONNECTED",),
        r"binary64 product, ties away",
        "the product of two binary32 scales is exact in binary64, so the quotient is rounded once however it is formed",
    ),
    Claim(
        ("ADD", "MUL", "MAXIMUM", "MINIMUM"),
        r"operands swapped",
        "the operation is commutative, each operand keeps its own parameters",
    ),
    Claim(
        ("LOGISTIC",),
        r"table=binary32_divide_256_away|arithmetic of tvm-qnn.*",
        "the output's scale is 1/256 by specification: dividing by it and multiplying by its inverse are both exact",
    ),
    Claim(
        ("TANH",),
        r"table=binary32_divide_256_away",
        "the output's scale is 1/128 by specification: dividing by it and multiplying by its inverse are both exact",
    ),
    Claim(
        ("LOGISTIC", "TANH"),
        r"computed in binary32, ties away",
        "the table is made of these very numbers, and the output's scale is a power of two",
    ),
    Claim(
        ("SOFTMAX",),
        r"low one too small",
        "no share is below 0, which is stored as -128",
    ),
    Claim(
        ("L2_NORMALIZATION",),
        r"low one too small",
        "no element of a vector of length 1 is below -1, which is stored as -128",
    ),
    Claim(
        ("DEQUANTIZE",),
        r"dequantize=(binary32_multiply|exact_multiply_odd)|arithmetic of tvm-qnn.*",
        "(q - z) s has at most 33 bits: exact in binary64, so that every way rounds once",
    ),
    Claim(
        ("LOG_SOFTMAX",),
        r"high one too large",
        "no logarithm of a share is above 0, which is stored as 127",
    ),
    Claim(
        ("LOG_SOFTMAX",),
        r"multiplier (truncated|rounded) to \d+ bits",
        "for 8-bit inputs the multiplier went into the table of differences; nothing reads it again",
    ),
    Claim(
        ("CONCATENATION",),
        r"combine=(binary32_.*|exact_even)|arithmetic of tvm-qnn.*",
        "all operands have the output's scale and zero point by specification: rescaling them by 1 is copying",
    ),
    Claim(
        ("RESHAPE", "SQUEEZE"),
        r"input passed through.*",
        "that is what the operator does: no byte moves",
    ),
    Claim(
        ("PAD", "PADV2", "SLICE", "CONCATENATION"),
        r"input passed through.*",
        "it fits only where nothing is padded, cut or joined, and then it is right",
    ),
    Claim(
        _MOVEMENT,
        r"computed in binary32, ties (even|away)",
        "((q - z) s) / s is off q - z by less than 255 * 2^-22 and rounds back to it",
    ),
    Claim(
        ("MAX_POOL_2D",),
        r"computed in binary32, ties away",
        "((q - z) s) / s rounds back to q - z, and the clamp's ends are rounded with ties away from zero, too",
    ),
    Claim(
        ("BATCH_TO_SPACE_ND",),
        r"output zero point .*",
        "nothing is padded: no number is made from the zero point",
    ),
    Claim(
        ("ARG_MAX",),
        r"quantized values below 0 cut to 0",
        "positions are never negative",
    ),
    Claim(
        (*_PRODUCTS, *_AVERAGES),
        r"accumulate=binary32|accumulator rounded to binary32",
        "rescaling begins with rounding the sum to binary32",
        numerics=_ONNX,
    ),
    Claim(
        (*_PRODUCTS, *_AVERAGES, "ConvInteger", "MatMulInteger"),
        r"accumulate=s64|accumulator (wraps|saturates) at 32 bits",
        "sums that leave 32 bits are undefined: the operators' specification says what must not happen before, and "
        "nothing of what comes out",
        numerics=_ONNX,
    ),
    Claim(
        _AVERAGES,
        r"accumulate=s16_pairs_s32_wrap",
        "the rule is about products; sums of quantized values have none",
        numerics=_ONNX,
    ),
    Claim(
        _PRODUCTS,
        r"scale_form=binary32_(product|step_by_step)",
        "a quotient of binary32 numbers rounded to binary64 and then to binary32 is the binary32 quotient, since "
        "53 >= 2 * 24 + 2",
        numerics=_ONNX,
    ),
    Claim(
        (*_PRODUCTS, *_AVERAGES),
        r"rescale=binary32_add_multiply_(twice_)?even",
        "these operators have no number to add and no second factor: 0 is added, and 1 multiplied by",
        numerics=_ONNX,
    ),
    Claim(
        (*_PRODUCTS, *_AVERAGES),
        r"rescale=binary32_multiply_even_wide",
        "products beyond 32 bits, be they saturated or not, lie beyond the clamp, which comes before the zero point",
        numerics=_ONNX,
    ),
    Claim(
        (*_LAYERS, "MUL"),
        r"scale_form=binary32_(product|step_by_step)|rescale=binary32_add_multiply_(twice_)?even"
        r"|rescale=binary32_multiply_even_wide",
        "as for integer layers of ONNX, whose rescaling is the same: one rounding to binary32 however the multiplier "
        "is formed, nothing to add, and a clamp before the zero point",
        numerics=("xnnpack",),
    ),
    Claim(
        _LAYERS,
        r"accumulate=binary32|accumulator rounded to binary32",
        "rescaling begins with rounding the sum to binary32",
        numerics=("xnnpack",),
    ),
    Claim(
        ("ADD", "MUL", "CONV_2D", "FULLY_CONNECTED"),
        r"store=(clamp_alone|saturate_s16_then_clamp)|clamp before the zero point.*",
        "zero points of 16-bit values are 0: nothing is added, and 16 bits are what the clamp leaves at most",
        types=("s16",),
        numerics=("litert",),
    ),
    Claim(
        _WHOLE,
        r"result in (NCHW|NHWC) order|height and width of the result swapped|result flipped left to right",
        "height and width of the result are 1: no element moves",
        numerics=_ONNX,
    ),
    Claim(
        _WHOLE,
        r"input read column by column",
        "an average over the whole image does not care about the order",
        numerics=_ONNX,
    ),
    Claim(
        _AVERAGES,
        r"keep_dims is (True|False)",
        "it says which axes the result has; the bytes are the same",
        numerics=_ONNX,
    ),
    Claim(
        _AVERAGES,
        r"axes\[0\] one too large|axes\[1\] one too small",
        "the result's shape admits one axis for two only where the other one's dimension is 1",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Relu",),
        r"low one too small",
        "no result is below 0, which is stored as the zero point, a quantized value",
        numerics=_ONNX,
    ),
    Claim(
        ("QLinearLeakyRelu", "QDQ LeakyRelu", "QLinearSigmoid", "QDQ Sigmoid"),
        r"not fused",
        "the table is made of these very numbers",
        numerics=_ONNX,
    ),
    Claim(
        _REAL,
        r"dequantize=(exact_multiply_odd|binary64_multiply)",
        "(q - z) s has at most 33 bits: exact in binary64, so that every way rounds once",
        types=("s8", "u8"),
        numerics=_ONNX,
    ),
    Claim(
        _REAL,
        r"narrow=.*",
        "results of binary32 are not made narrower",
        numerics=_ONNX,
    ),
    Claim(
        (*_REAL, "QuantizeLinear"),
        r"zero_points=zero",
        "it wants zero points of 0, and where they are, it changes nothing",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"dequantize=(exact_multiply_odd|binary64_multiply)|arithmetic of onnx",
        "(q - z) s has at most 33 bits: exact in binary64, so that every way rounds once; difference and quotient are "
        "those of binary32 in both tables",
        types=("s8", "u8"),
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"plain_range=lower_for_nan",
        "QuantizeLinear gives the lower end for NaN, as for -infinity",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"axis one too (large|small)|block_size one too large",
        "operands and result of this operator have one scale each, for which axes and blocks mean nothing; those of "
        "DequantizeLinear and QuantizeLinear are held by these operators' own cases",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"saturate one too (large|small)",
        "it is about 8-bit floats, which these models have none of",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"arithmetic of onnxruntime(-avx2|@aarch64)",
        "these tables part in integer products and in sums and functions of real numbers: a difference of two and a "
        "quotient are rounded the same everywhere",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"plain_range=(open_limits|unlimited_by_signs)",
        "no activation is fused into a difference: all these rules leave it every value",
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ Sub",),
        r"zero_points=zero",
        "it wants zero points of 0, and where they are, it changes nothing",
        numerics=_ONNX,
    ),
    Claim(
        ("QLinearConcat", "QDQ Concat"),
        r"input quantized values read as unsigned bytes",
        "predicted only where no part is rescaled, and there bytes are copied: tables of the others have no entries "
        "for quantized values beyond the type",
        types=("s8",),
        numerics=_ONNX,
    ),
    Claim(
        ("DynamicQuantizeLinear",),
        r"dynamic_range=binary32_over_255|arithmetic of onnx",
        "the formula is the same, but undefined for NaN, infinities and nothing but zeros",
        numerics=_ONNX,
    ),
    Claim(
        ("QuantizeLinear", "QDQ Relu", "QDQ MaxPool", "QDQ Sub", "QDQ Tanh"),
        r"binary32 result, ties even",
        "that is the runtime's rounding in other words: its quotient in binary32 is the exact one, rounded",
        numerics=_ONNX,
    ),
    Claim(
        ("DequantizeLinear", "QDQ Relu", "QDQ MaxPool"),
        r"arithmetic of onnx",
        "(q - z) s rounded once, and the same quotient: the specification's rows compute what the runtime's do",
        types=("s8", "u8"),
        numerics=_ONNX,
    ),
    Claim(
        ("QuantizeLinear",),
        r"to_integer=clamp_even|arithmetic of onnx",
        "they part beyond 32 bits alone, where the runtime's conversion is undefined: no test may hold one",
        types=("s8", "u8"),
        numerics=_ONNX,
    ),
    Claim(
        ("QLinearSoftmax", "QDQ Softmax"),
        r"low one too large|saturates to \[-127, 127\]",
        "shares are never below 0: for unsigned values the runtime has no lower end that could be another",
        types=("u8",),
        numerics=_ONNX,
    ),
    Claim(
        ("QDQ MaxPool",),
        r"storage_order one too (large|small)",
        "it is about positions of the largest quantized values, which nothing asks for",
        numerics=_ONNX,
    ),
)


def claim_of(operator: str, name: str, types: str = "s8", numerics: str = "litert") -> Claim | None:
    """The claim that covers a mutant; None where there is none."""
    return next((claim for claim in CLAIMS if claim.covers(operator, name, types, numerics)), None)
