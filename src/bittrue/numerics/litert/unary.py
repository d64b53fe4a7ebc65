"""Rows of `litert`: activations, tables, quantization and casts."""

from __future__ import annotations

from ..table import Row

_RESCALE = {"scale_form": "binary64", "rescale": "q31_two_step_up_away", "store": "zero_point_then_clamp"}
_RELU = {**_RESCALE, "scale_form": "binary32"}
_LEAKY = {**_RELU, "sign": "after_rounding"}
_RELU_RANGE = {**_RELU, "activation_range": "binary32_quotient_away"}
ROUNDED_DOWN = ("attribute_is", "direction", "down")
RELUS = ("attribute_is", "activation", "relu", "relu6")
_TABLE = {"table": "binary32_reciprocal_256_away"}
_TABLE_S16 = {"table": "binary32_reciprocal_513_linear_up"}
# Kernels that broadcast abort above rank 8.
_RANK = ("broadcast_rank_within", 8)
_SIGMOID = {"sigmoid": "s16_table_256_linear"}
_REAL = {"real_function": "binary32_elementary"}
LIBRARY = (
    "the runtime calls the C library of its machine; the bits here are those of glibc 2.36 for x86-64 processors with "
    "fused multiply-add"
)
_NUMBERS = ("s64", "s32", "u32", "s16", "u16", "u8", "s8", "bool", "f16", "bf16", "f32", "f64")

_MOVED = "s8|u8|s16|u16|s32|u32|s64|u64|f16|f32|f64"
_BINARY64 = (
    "sines, cosines and logarithms in binary64 are those of the C library of the machine, in the runtime as in "
    "bittrue; where NaNs meet, their payloads may differ"
)

ROWS: tuple[Row, ...] = (
    Row(
        "logistic",
        ("T -> T",),
        _TABLE,
        "run; docs/facts/litert.md 2.3",
        ("s8", "u8"),
        requires=(("output_is", 1 / 256, None),),
    ),
    Row(
        "logistic",
        ("s16 -> s16",),
        _SIGMOID,
        "run; docs/facts/litert.md 2.3",
        requires=(("zero_points_are_zero",), ("output_is", 1 / 32768, 0)),
    ),
    Row("tanh", ("T -> T",), _TABLE, "run; docs/facts/litert.md 2.3", ("s8", "u8")),
    Row(
        "tanh",
        ("s16 -> s16",),
        _SIGMOID,
        "run; docs/facts/litert.md 2.3",
        requires=(("zero_points_are_zero",), ("output_is_power_of_two", -15)),
    ),
    Row("logistic", ("T -> T",), _REAL, "run", ("f32", "f16", "bf16"), limit=LIBRARY),
    Row("tanh", ("T -> T",), _REAL, "run", ("f32", "f16", "bf16"), limit=LIBRARY),
    Row("exp", ("s8 -> s8",), _TABLE, "run"),
    Row("exp", ("s16 -> s16",), _TABLE_S16, "run", requires=(("zero_points_are_zero",),)),
    Row("exp", ("f32 -> f32",), _REAL, "run", limit=LIBRARY),
    Row("log", ("s8 -> s8",), _TABLE, "run"),
    Row("log", ("s16 -> s16",), _TABLE_S16, "run", requires=(("zero_points_are_zero",),)),
    Row("log", ("f32 -> f32",), _REAL, "run", limit=LIBRARY),
    Row(
        "elu",
        ("* -> *",),
        evidence="run: version 1 does not load",
        refuses="this runtime's reference resolver does not register ELU; its optimized one does",
        advice="use the runtime's optimised kernels, or RELU",
    ),
    Row(
        "hadamard_rotation",
        ("* -> *",),
        evidence="run",
        refuses="this runtime's reference resolver does not register aeq.hadamard_rotation; its optimized one does",
        advice="use the runtime's optimised kernels",
    ),
    Row("gelu", ("T -> T",), _TABLE, "run", ("s8", "u8")),
    Row("gelu", ("s16 -> s16",), _TABLE_S16, "run"),
    Row("gelu", ("T -> T",), {"real_gelu": "binary32_rational_lanes_4"}, "run", ("f32", "f16")),
    Row("sin", ("T -> T",), _REAL, "run", ("f32", "f16"), limit=LIBRARY),
    Row("cos", ("T -> T",), _REAL, "run", ("f32", "f16"), limit=LIBRARY),
    Row("relu", ("T -> T",), _RELU_RANGE, "run; docs/facts/litert.md 2.3", ("s8", "u8")),
    Row("relu", ("s16 -> s16",), _RELU_RANGE, "run", when=(RELUS,), requires=(("zero_points_are_zero",),)),
    Row("relu", ("f32 -> f32",), {}, "run"),
    Row(
        "hard_swish",
        ("T -> T",),
        {"hard_swish": "q15_gate_trunc"},
        "run: every input of 400 pairs of scales",
        ("s8", "u8"),
        requires=(("zero_points_fit_16_bits",),),
    ),
    Row("hard_swish", ("f32 -> f32",), {}, "run"),
    Row("leaky_relu", ("T -> T",), _LEAKY, "run; docs/facts/litert.md 2.3", ("s8", "u8")),
    Row("leaky_relu", ("s16 -> s16",), _LEAKY, "run; docs/facts/litert.md 2.3", requires=(("zero_points_are_zero",),)),
    Row("leaky_relu", ("f32 -> f32",), {"slope": "scaled_unless_above_zero"}, "run"),
    Row(
        "prelu",
        ("s8 s8 -> s8", "u8 u8 -> u8", "s16 s8 -> s16"),
        _RELU,
        "run",
        requires=(_RANK, ("products_fit", 0, 1)),
    ),
    Row("prelu", ("f32 f32 -> f32",), {}, "run", requires=(_RANK,)),
    Row(
        "prelu",
        ("s16 s16 -> s16",),
        refuses="the kernel does not check the type of alpha: it takes the bytes of its 16-bit numbers for 8-bit ones",
        advice="quantize alpha to s8",
    ),
    Row(
        "quantize",
        ("f32 -> s8|u8|s16|s4|u4",),
        {"quantize": "binary32_divide_away"},
        "run, NaN and infinities included; docs/facts/litert.md 2.3",
    ),
    Row("quantize", ("s16 -> s16",), _RESCALE, "run; docs/facts/litert.md 2.3", requires=(("zero_points_are_zero",),)),
    Row(
        "quantize",
        ("s8|u8 -> s8|u8|s16", "s16 -> s8|s32", "s32 -> s8|s16"),
        _RESCALE,
        "run; docs/facts/litert.md 2.3",
    ),
    Row("dequantize", ("s8|u8|s4|u4|s2 -> f32",), {"dequantize": "binary64_multiply"}, "run; docs/facts/litert.md 2.3"),
    Row(
        "dequantize",
        ("s16 -> f32",),
        {"dequantize": "binary64_multiply"},
        "run; docs/facts/litert.md 2.3",
        requires=(("input_zero_points_are_zero", 0),),
    ),
    Row("dequantize", ("f16 -> f32",), {}, "run"),
    Row(
        "cast",
        (f"{'|'.join(_NUMBERS)} -> {'|'.join(_NUMBERS)}", "s4|u4|s2 -> f32", "f32 -> s4|u4|s2"),
        {"cast": "truncate_saturate_nan_maximum"},
        "run: every pair of types",
    ),
    Row("sqrt", ("s8 -> s8",), {"square_root": "binary32_divide_trunc"}, "run; docs/facts/litert.md 2.3"),
    Row(
        "sqrt",
        ("s16 -> s16",),
        {"square_root": "binary32_divide_trunc"},
        "run",
        requires=(("zero_points_are_zero",),),
    ),
    Row("sqrt", ("f32 -> f32",), {}, "run"),
    Row("rsqrt", ("s8 -> s8",), {"inverse_root": "q31_newton_away"}, "run; docs/facts/litert.md 2.3"),
    Row(
        "rsqrt",
        ("s16 -> s16",),
        _TABLE_S16,
        "run",
        requires=(("zero_points_are_zero",),),
    ),
    Row("rsqrt", ("f32 -> f32",), {}, "run"),
    Row("abs", ("s8 -> s8",), _RELU, "run; docs/facts/litert.md 2.3"),
    Row("abs", ("s16 -> s16",), _RELU, "run", requires=(("zero_points_are_zero",),)),
    Row("abs", ("T -> T",), {}, "run", ("s32", "f32")),
    Row("neg", ("T -> T",), {}, "run; docs/facts/litert.md 2.3", ("s8", "s16", "s32", "s64", "f32", "f16", "bf16")),
    Row("sign", ("T -> T",), {}, "run", ("f32", "f64", "s32")),
    Row("fake_quant", ("f32 -> f32",), {"multiply_add": "rounded_twice"}, "run"),
    Row(
        "fake_quant",
        ("* -> *",),
        evidence="read",
        refuses="the kernel takes every tensor for 32-bit real numbers without looking and goes past its end",
    ),
    Row("bitcast", (f"{_MOVED} -> {_MOVED}",), {}, "run"),
    *(Row(stem, ("c64 -> f32",), {}, "run") for stem in ("complex_part", "abs")),
    Row("rfft2d", ("f32 s32 -> c64",), {"multiply_add": "rounded_twice"}, "run", limit=_BINARY64),
    Row("audio_spectrogram", ("f32 -> f32",), {"multiply_add": "rounded_twice"}, "run", limit=_BINARY64),
    Row("mfcc", ("f32 s32 -> f32",), {"multiply_add": "rounded_twice"}, "run", limit=_BINARY64),
    Row("round_to_integer", ("T -> T",), {}, "run", ("f32", "f16", "bf16"), when=(ROUNDED_DOWN,)),
    Row("fill", ("T -> T",), {}, "run", ("s32", "s64", "f32"), when=(("attribute_is", "like", True),)),
)
