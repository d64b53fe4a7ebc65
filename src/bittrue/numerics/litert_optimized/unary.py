"""Rows of `litert-optimized`: activations and quantization."""

from __future__ import annotations

from ..litert.unary import LIBRARY
from ..table import Row

# Vector loops, and the scalar loops behind them.
_QUANTIZE = {
    "quantize": "binary32_reciprocal_even_wrap",
    "quantize_tail": "binary64_divide_away",
    "lanes": "blocks_of_8",
}
DEQUANTIZE = {
    "dequantize": "binary32_multiply_add",
    "dequantize_tail": "binary64_multiply",
    "lanes": "blocks_of_8",
}
_REQUANTIZE = {
    "scale_form": "binary64",
    "rescale": "q31_two_step_up_up",
    "rescale_tail": "q31_two_step_up_away",
    "lanes": "blocks_of_16",
    "store": "zero_point_then_clamp",
}

LANES = {"real_function": "binary32_rational_lanes_4"}
_OF_16_BITS = {"real_function": "operations_of_16_bits"}
_RUN = "run; docs/facts/litert.md 2.8"

_SIGMOID = {"sigmoid": "s16_polynomial_or_table_256"}

ROWS: tuple[Row, ...] = (
    Row("quantize", ("f32 -> s8|u8|s16",), _QUANTIZE, "run", when=(("per_tensor",),)),
    Row("quantize", ("s8|u8 -> s8|u8",), _REQUANTIZE, "run"),
    Row("dequantize", ("s8|u8|s4|u4|s2 -> f32",), DEQUANTIZE, "run", when=(("per_tensor",),)),
    Row(
        "dequantize",
        ("s16 -> f32",),
        DEQUANTIZE,
        "run",
        requires=(("input_zero_points_are_zero", 0),),
        when=(("per_tensor",),),
    ),
    Row(
        "logistic",
        ("s16 -> s16",),
        _SIGMOID,
        "run",
        requires=(("zero_points_are_zero",), ("output_is", 1 / 32768, 0)),
    ),
    Row(
        "tanh",
        ("s16 -> s16",),
        _SIGMOID,
        "run",
        requires=(("zero_points_are_zero",), ("output_is_power_of_two", -15)),
    ),
    Row(
        "leaky_relu",
        ("s16 -> s16",),
        {
            "scale_form": "binary32",
            "rescale": "q31_two_step_up_away",
            "sign": "before_rounding",
            "store": "zero_point_then_clamp",
        },
        "run; docs/facts/litert.md 2.3",
        requires=(("zero_points_are_zero",),),
    ),
    Row("round_to_integer", ("f32 -> f32",), {}, "run", when=(("attribute_is", "direction", "up"),)),
    Row(
        "round_to_integer",
        ("f32 -> f32",),
        {"real_function": "binary32_floor_or_next"},
        _RUN,
        when=(("attribute_is", "direction", "even"),),
    ),
    Row("logistic", ("f32 -> f32",), LANES, _RUN, limit=LIBRARY),
    *(Row(stem, ("T -> T",), _OF_16_BITS, _RUN, ("f16", "bf16"), limit=LIBRARY) for stem in ("logistic", "tanh")),
    *(Row(stem, ("f32 -> f32",), LANES, _RUN) for stem in ("hard_swish", "tanh")),
    Row("elu", ("s8 -> s8",), {"table": "binary32_reciprocal_256_away"}, "run"),
    Row("elu", ("f32 -> f32",), {"real_function": "binary32_elementary"}, "run"),
    Row("hadamard_rotation", ("f32 -> f32",), {}, "run; docs/facts/litert.md 2.3"),
    Row(
        "hadamard_rotation",
        ("* -> *",),
        evidence="run; docs/facts/litert.md 2.3",
        refuses="the kernel takes integers of 32 bits for real numbers, and refuses other types",
        advice="rotate real numbers",
    ),
)
