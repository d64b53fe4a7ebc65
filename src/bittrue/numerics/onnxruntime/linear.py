"""Rows of `onnxruntime`: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

from ..table import Row

_RUN = "run: random models, ties, one-ulp-off ties and every zero point; docs/facts/onnxruntime.md 1.2"
_RUN_8 = "run: all quantized values, every binade, both sides of every tie; docs/facts/onnxruntime.md 1.3"
_EIGHT = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
_CONTRIBUTED = ("attribute_is", "domain", "com.microsoft")
# Opsets up to 26 load; `precision` is read by nobody: the quotient is binary32, for binary16 operands, too.
_QUANTIZE_REQUIRES = (("refuse_block_size_per_tensor",), ("version_at_most", 25))
_DIVIDE = {"zero_points": "used", "quotient": "binary32"}
# Rounded numbers are limited as floats by vectors, as wrapping 32-bit integers by scalar loops.
_BY_VECTORS = {**_DIVIDE, "to_integer": "clamp_even"}
_BY_SCALARS = {**_DIVIDE, "to_integer": "even_wrap"}
_BY_PAIRS = {**_BY_VECTORS, "to_integer_tail": "even_wrap"}

_QUANTIZE = (
    Row(
        "quantize",
        ("f32 f32 -|T -> T",),
        _BY_SCALARS,
        _RUN,
        where=("u8", "s8", "u16", "s16", "u4", "s4"),
        when=(("blocks_interleave",),),
        requires=_QUANTIZE_REQUIRES,
        limit="an empty tensor stays empty; the runtime crashes on it",
    ),
    Row(
        "quantize",
        ("f32 f32 -|T -> T",),
        _BY_VECTORS,
        _RUN,
        where=("u8", "s8", "u16", "s16"),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f32 f32 -|T -> T",),
        _BY_PAIRS,
        _RUN + "; half bytes at the ends of what shares a scale go by scalars",
        where=("u4", "s4"),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f16 f16 -|T -> T",),
        _BY_PAIRS,
        _RUN + "; operands are widened by inserted casts",
        where=("u4", "s4"),
        when=(_CONTRIBUTED,),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f16 f16 -|T -> T",),
        _BY_VECTORS,
        _RUN + "; operands are widened by inserted casts",
        where=("u8", "s8", "u16", "s16"),
        when=(_CONTRIBUTED,),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f16 f16 -|T -> T", "f32 f32 -|u2 -> u2", "f32 f32 -|s2 -> s2"),
        _BY_SCALARS,
        _RUN,
        where=("u8", "s8", "u16", "s16", "u4", "s4", "u2", "s2"),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f32 f32 -|T -> T", "f16 f16 -|T -> T"),
        {"zero_points": "ignored", "quotient": "binary32", "narrow": "even_overflow_by_carry"},
        _RUN_8,
        where=_EIGHT,
        when=(("attribute_is", "saturate", 0),),
        requires=_QUANTIZE_REQUIRES,
    ),
    Row(
        "quantize",
        ("f32 f32 -|T -> T", "f16 f16 -|T -> T"),
        {"zero_points": "ignored", "quotient": "binary32", "narrow": "even_saturate_nan_ones"},
        _RUN_8,
        where=_EIGHT,
        requires=_QUANTIZE_REQUIRES,
    ),
)

_DEQUANTIZE = tuple(
    Row(
        "dequantize",
        ("T f32|f16 -|T -> f32|f16",),
        {"zero_points": zero_points, "dequantize": "binary32_multiply", "narrow": "even_overflow"},
        _RUN,
        where=types,
        requires=_QUANTIZE_REQUIRES,
        limit=limit,
    )
    for zero_points, types, limit in (
        ("used", ("u8", "s8", "u16", "s16", "s32", "u4", "s4", "u2", "s2"), ""),
        (
            "zero",
            _EIGHT,
            "the sign of NaN times NaN is that of the first one; the runtime's compiler chose case by case",
        ),
    )
)

ROWS: tuple[Row, ...] = (
    *_QUANTIZE,
    *_DEQUANTIZE,
    Row(
        "dynamic_quantize_linear",
        ("f32 -> u8 f32 u8",),
        {"dynamic_range": "binary32_over_255_by_eights", "quotient": "binary32", "to_integer": "clamp_even"},
        "run on one thread: random tensors with and without NaN and infinities; docs/facts/onnxruntime.md 1.4",
        limit="with several threads, what a NaN does depends on how the runtime divides the tensor among them",
    ),
)
