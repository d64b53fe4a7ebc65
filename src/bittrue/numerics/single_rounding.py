"""Numerics `single-rounding`: builds of TensorFlow Lite for Microcontrollers with TFLITE_SINGLE_ROUNDING.

The switch replaces the two roundings of every 32-bit rescaling by one, ties up. These builds differ from the desktop's
reference kernels in more than the switch: fully-connected layers are requantized in fixed point, logistic and tanh of
8 bits have no tables, RELU6 does not rescale, 16-bit additions know no powers of two.

Evidence: "recorded" = vectors of tflite-micro 90b983c (2026-08-20), compiled with the switch for x86-64, which the
tests replay; the operator tests ran against that build as well (docs/facts/single_rounding.md).
"""

from __future__ import annotations

from ..records import replace
from .litert import LITERT, elementwise
from .litert.convolution import DEPTHWISE, PLANES
from .litert.elementwise import BROADCAST, NOT_ROUNDED, OF_DIVISOR, STORED
from .litert.movement import DIMENSIONS, MIRRORED, NO_TABLE, ONE_VALUE, PAD_RANK, SLICES
from .litert.reduction import TRUTH_VALUES
from .litert.unary import RELUS, ROUNDED_DOWN
from .table import Numerics, Row

_RUN = "run against tflite-micro built with the switch, and recorded"

_LAYER = {
    "accumulate": "s32_wrap",
    "scale_form": "binary64",
    "rescale": "q31_one_step_up",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_WIDE = {**_LAYER, "accumulate": "s64", "rescale": "q15_one_step_up"}
_MULTIPLIED = {slot: rule for slot, rule in _LAYER.items() if slot != "accumulate"} | {"product": "exact_s32"}
_MATRIX = {"scale_form": "binary32_product", "scale_form_per_axis": "binary64"}
_ALIGNED = {
    "align": "left_20",
    "rescale": "q31_one_step_up",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_RESCALE = {"scale_form": "binary64", "rescale": "q31_one_step_up", "store": "zero_point_then_clamp"}
_RELU = {**_RESCALE, "scale_form": "binary32", "activation_range": "binary32_quotient_away"}
_NO_ZERO = ("zero_points_are_zero",)
_SIGMOID_CHECKS = (_NO_ZERO, ("output_is_power_of_two", -15))
_COMMON = ("s8", "s16", "s32", "s64", "f32", "bool")
_UNSET_BORDER = "borders hold 0 here; the kernel fills them with a byte that it never sets"
_LIMIT_LONG = "rows whose exponentials add up to 4096 or more are refused: the kernel's sum overflows"

_LAYERS: tuple[Row, ...] = (
    Row("conv", ("s8 s8|s4 s32|- -> s8",), _LAYER, _RUN, when=PLANES, requires=(("input_zero_points_are_zero", 1, 2),)),
    Row("conv", ("s16 s8 s64|- -> s16",), _WIDE, _RUN, when=PLANES, requires=(_NO_ZERO,)),
    Row("conv", ("s16 s8 s32 -> s16",), _LAYER, _RUN, when=PLANES, requires=(_NO_ZERO,)),
    Row(
        "conv",
        ("s8 s8|s4 s32|- -> s8",),
        _LAYER,
        _RUN,
        when=DEPTHWISE,
        requires=(("input_zero_points_are_zero", 2),),
    ),
    Row("conv", ("s16 s8 s64|- -> s16",), _WIDE, _RUN, when=DEPTHWISE, requires=(_NO_ZERO,)),
    Row(
        "fully_connected",
        ("s8 s8|s4 s32|- -> s8",),
        {**_LAYER, **_MATRIX},
        _RUN,
        requires=(("bias_scale_within", 0.02), ("activation_is_clamp",)),
    ),
    Row(
        "fully_connected",
        ("s16 s8 s64|- -> s16",),
        {**_WIDE, **_MATRIX},
        _RUN,
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
    ),
    Row(
        "fully_connected",
        ("s16 s8 s32 -> s16",),
        {**_LAYER, **_MATRIX},
        _RUN,
        requires=(("zero_points_are_zero", 0), ("bias_scale_within", 0.02), ("activation_is_clamp",)),
    ),
)

_ELEMENTWISE: tuple[Row, ...] = (
    Row("add", ("s8 s8 -> s8",), _ALIGNED, _RUN),
    Row("add", ("s16 s16 -> s16",), {**_ALIGNED, "align": "left_15"}, _RUN),
    Row("sub", ("s8 s8 -> s8",), _ALIGNED, _RUN),
    Row("sub", ("s16 s16 -> s16",), {**_ALIGNED, "align": "left_15"}, _RUN),
    Row(
        "squared_difference", ("s8 s8 -> s8",), {**_ALIGNED, "align": "left_7"}, _RUN, requires=(("zero_points_fit",),)
    ),
    Row("mul", ("s8 s8 -> s8",), _MULTIPLIED, _RUN),
    Row("mul", ("s16 s16 -> s16",), _MULTIPLIED, _RUN, requires=(_NO_ZERO,)),
    *(Row(stem, ("T T -> T",), {}, _RUN, where=("s8", "s32", "f32")) for stem in ("maximum", "minimum")),
    *(
        row
        for stem in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
        for row in (
            Row(stem, ("s8 s8 -> bool",), {"compare": "rescaled_left_8", "rescale": "q31_one_step_up"}, _RUN),
            Row(stem, ("T T -> bool",), {"compare": "raw"}, _RUN, where=("s32", "s64", "f32")),
        )
    ),
)

_UNARY: tuple[Row, ...] = (
    Row(
        "logistic",
        ("s8 -> s8",),
        {"table": "f4_newton_256_one_step_up"},
        _RUN,
        requires=(("output_is", 1 / 256, -128),),
    ),
    Row("logistic", ("s16 -> s16",), {"sigmoid": "s16_table_256_linear"}, _RUN, requires=_SIGMOID_CHECKS),
    Row("tanh", ("s8 -> s8",), {"table": "f4_newton_256_one_step_up"}, _RUN),
    Row("tanh", ("s16 -> s16",), {"sigmoid": "s16_table_256_linear"}, _RUN, requires=_SIGMOID_CHECKS),
    Row(
        "leaky_relu",
        ("T -> T",),
        {**_RESCALE, "scale_form": "binary32", "sign": "after_rounding"},
        _RUN,
        where=("s8", "s16"),
    ),
    Row("relu", ("s8 -> s8",), _RELU, _RUN, when=(("attribute_is", "activation", "relu"),)),
    Row(
        "relu",
        ("s16 -> s16",),
        _RELU,
        _RUN,
        when=(("attribute_is", "activation", "relu"),),
        requires=(_NO_ZERO, ("differences_fit", False)),
    ),
    Row("relu", ("f32 -> f32",), {}, _RUN, when=(RELUS,)),
    Row("quantize", ("f32 -> s8|s16",), {"quantize": "binary32_divide_away"}, _RUN),
    Row("quantize", ("s8 -> s8|s16|s32", "s16 -> s8|s16|s32", "s32 -> s8|s16"), _RESCALE, _RUN),
    Row(
        "dequantize",
        ("s8|s16|u8 -> f32",),
        when=(("input_per_axis", 0),),
        refuses="the kernel takes the first scale for all slices of a tensor that has one per slice",
    ),
    Row("dequantize", ("s8|s16|u8 -> f32",), {"dequantize": "binary64_multiply"}, _RUN),
    Row("abs", ("s8 -> s8", "s16 -> s16"), {**_RESCALE, "scale_form": "binary32"}, _RUN),
    Row(
        "lp_normalization",
        ("s8 -> s8",),
        {"normalize": "q31_exponent_plus_7_one_step_up"},
        _RUN,
        requires=(("output_is", 1 / 128, 0),),
    ),
    Row("softmax", ("s8 -> s8|s16",), {"softmax": "exp_f5_sum_f12_reciprocal_away"}, _RUN, limit=_LIMIT_LONG),
)

_REDUCTIONS: tuple[Row, ...] = (
    Row(
        "average_pool",
        ("T -> T",),
        {"activation_range": "binary32_quotient_away", "accumulate": "s32_wrap", "average": "integer_half_away"},
        _RUN,
        where=("s8", "s16"),
    ),
    Row("max_pool", ("T -> T",), {"activation_range": "binary32_quotient_away"}, _RUN, where=("s8", "s16")),
    Row(
        "mean",
        ("T s32 -> T",),
        {
            "accumulate": "s32_wrap",
            "scale_form": "binary64",
            "mean": "q31_count_folded_one_step_up",
            "store": "zero_point_then_clamp",
        },
        _RUN,
        where=("s8", "s16"),
    ),
    Row("resize_linear", ("s8 s32 -> s8",), {"interpolate": "ten_bits_half_up"}, _RUN),
    Row("resize_nearest", ("T s32 -> T",), {}, _RUN, where=("s8", "s16", "f32")),
    *(
        Row(stem, ("s8 s32 -> s8",), {}, _RUN, requires=(("same_parameters", 0),))
        for stem in ("reduce_max", "reduce_min")
    ),
    *(Row(stem, ("s8 s32 -> s32",), {}, _RUN) for stem in ("arg_max", "arg_min")),
)

_MOVEMENT: tuple[Row, ...] = (
    Row("reshape", ("T s32|- -> T",), {}, _RUN, where=_COMMON),
    Row("squeeze", ("T -> T",), {}, _RUN, where=_COMMON, requires=(("rank_within", 0, 0, 8),)),
    Row("expand_dims", ("T s32 -> T",), {}, _RUN, where=("s8", "f32"), requires=(("one_element", 1),)),
    Row("concatenation", ("T... -> T",), {"combine": "copy"}, _RUN, where=("s8",), requires=(("same_parameters",),)),
    Row("concatenation", ("T... -> T",), {"combine": "copy"}, _RUN, where=("s16", "s32", "s64", "f32", "bool")),
    Row("pad", ("T s32|s64 -> T",), {}, _RUN, where=("s8", "s16", "f32"), when=MIRRORED),
    Row(
        "pad",
        ("T s32|s64 T|- -> T",),
        {},
        _RUN,
        where=("s8", "s16", "s32", "f32"),
        when=ONE_VALUE,
        requires=PAD_RANK,
    ),
    Row("transpose", ("T s32 -> T",), {}, _RUN, where=("s8", "s16", "f32")),
    Row("slice", ("T s32 s32 -> T",), {}, _RUN, where=("s8", "s16", "s32", "f32")),
    Row("strided_slice", ("T s32 s32 s32 -> T",), {}, _RUN, where=("s8", "s16", "s32", "f32", "bool")),
    Row("split", ("T -|s32 s32 -> T...",), {}, _RUN, where=("s8", "s16", "s32", "f32")),
    Row("pack", ("T... -> T",), {}, _RUN, where=("s8", "s16", "s32", "s64", "f32")),
    Row("split", ("T -> T...",), {}, _RUN, where=("s8", "s32", "f32")),
    Row("gather", ("T s32 -> T",), {}, _RUN, where=("s8", "f32"), when=NO_TABLE),
    Row("gather_nd", ("T s32 -> T",), {}, _RUN, where=("s8", "f32"), when=SLICES),
    Row("space_to_depth", ("T -> T",), {}, _RUN, where=("s8", "f32")),
    Row("depth_to_space", ("T -> T",), {}, _RUN, where=("s8", "f32")),
    Row("space_to_batch", ("f32 s32 s32 -> f32",), {}, _RUN, limit=_UNSET_BORDER),
    Row("batch_to_space", ("T s32 s32 -> T",), {}, _RUN, where=("s8", "f32")),
    Row("broadcast_to", ("T s32 -> T",), {}, _RUN, where=("s8", "s16", "s32", "f32")),
    Row("shape", ("* -> s32",), {}, _RUN, when=DIMENSIONS),
)

# Kernels that share their code with the desktop's: real numbers, and integers that the switch does not touch or
# touches only in their rescaling.
_SHARED = {
    "abs": ("f32 -> f32",),
    "add": ("f32 f32 -> f32",),
    "average_pool": ("f32 -> f32",),
    "matmul": ("f32 f32 -> f32", "s8 s8 -> s8", "s16 s16 -> s16"),
    "broadcast_args": ("s32 s32 -> s32", "s64 s64 -> s64"),
    "cos": ("f32 -> f32",),
    "cumsum": ("f32 s32 -> f32",),
    "equal": ("bool bool -> bool",),
    "exp": ("f32 -> f32",),
    "fully_connected": ("f32 f32 - -> f32", "f32 f32 f32 -> f32"),
    "hard_swish": ("f32 -> f32", "s8 -> s8"),
    "lp_normalization": ("f32 -> f32",),
    "lp_pool": ("f32 -> f32",),
    "leaky_relu": ("f32 -> f32",),
    "log": ("f32 -> f32",),
    "log_softmax": ("s8 -> s8",),
    "bitwise_and": ("bool bool -> bool",),
    "bitwise_not": ("bool -> bool",),
    "bitwise_or": ("bool bool -> bool",),
    "logistic": ("f32 -> f32",),
    "max_pool": ("f32 -> f32",),
    "mean": ("f32 s32 -> f32",),
    "mul": ("f32 f32 -> f32",),
    "not_equal": ("bool bool -> bool",),
    "prelu": ("f32 f32 -> f32", "s8 s8 -> s8", "s16 s8 -> s16"),
    "quantize": ("s8 -> u8", "u8 -> s8"),
    "reverse_v2": ("bool s32 -> bool", "s64 s32 -> s64"),
    "rsqrt": ("f32 -> f32",),
    "sin": ("f32 -> f32",),
    "sqrt": ("f32 -> f32",),
    "squared_difference": ("f32 f32 -> f32", "s32 s32 -> s32"),
    "sub": ("f32 f32 -> f32", "s32 s32 -> s32"),
    "tanh": ("f32 -> f32",),
    "conv_transpose": (
        "f32 f32 - - - - - - - s32 -> f32",
        "f32 f32 f32 - - - - - - s32 -> f32",
        "s8 s8 - - - - - - - s32 -> s8",
        "s8 s8 s32 - - - - - - s32 -> s8",
        "s16 s8 s64 - - - - - - s32 -> s16",
    ),
}
_SHARED_WHEN = (
    ("conv", *PLANES, "f32 f32 f32 -> f32"),
    ("conv", *DEPTHWISE, "f32 f32 f32 -> f32"),
    ("div", NOT_ROUNDED, "f32 f32 -> f32"),
    ("div", NOT_ROUNDED, "s32 s32 -> s32"),
    ("div", elementwise.ROUNDED_DOWN, "f32 f32 -> f32"),
    ("mul", elementwise.SQUARES, "f32 f32 -> f32"),
    ("reduce_min", TRUTH_VALUES, "bool s32 -> bool"),
    ("remainder", OF_DIVISOR, "f32 f32 -> f32"),
    ("round_to_integer", ROUNDED_DOWN, "f32 -> f32"),
    ("select", BROADCAST, "bool s8 s8 -> s8"),
)
_REFUSED = tuple(
    replace(row, rules={}, refuses="tflite-micro has no operators on stored values whatever the scales are")
    for row in STORED
)
_SWITCHED = {"q31_two_step_up_away": "q31_one_step_up"}


def _shared(operator: str, types: str, *when: tuple[object, ...]) -> Row:
    inputs, outputs = (side.split() for side in types.split("->"))
    row = next((row for row in LITERT.candidates(operator, inputs, outputs) if row.when == when), None)
    if row is None:
        raise LookupError(f"litert has no row for {operator} {types}")
    rules = {slot: _SWITCHED.get(rule, rule) for slot, rule in row.rules.items()}
    return replace(row, types=(types,), where=(), rules=rules, evidence=_RUN)


_COMMON_CODE = (
    *(_shared(operator, types, condition) for operator, condition, types in _SHARED_WHEN),
    *(_shared(operator, types) for operator, patterns in _SHARED.items() for types in patterns),
)

SINGLE_ROUNDING = Numerics(
    "single-rounding",
    "tflite-micro 90b983c, reference kernels, built with TFLITE_SINGLE_ROUNDING",
    "vectors recorded from that build on x86-64, and the operator tests while it was at hand",
    _REFUSED + _LAYERS + _ELEMENTWISE + _UNARY + _REDUCTIONS + _MOVEMENT + _COMMON_CODE,
)
