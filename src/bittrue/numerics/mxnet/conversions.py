"""Rows of `mxnet`: quantize, quantize_v2, dequantize, requantize, and what becomes of ranges."""

from __future__ import annotations

from ..table import Row

_RUN = "run: random tensors and ranges, ties; docs/facts/mxnet.md 1"
_ASYMMETRIC = ("attribute_is", "version", "asymmetric")

ROWS = (
    Row(
        "quantize",
        ("f32 f32 f32 -> s8|u8",),
        {"range_quantize": "binary32_whole_levels_even"},
        _RUN,
        when=(("attribute_is", "version", "1"),),
    ),
    Row("quantize", ("f32 f32 f32 -> s8|u8",), {"range_quantize": "binary32_half_levels_even"}, _RUN),
    Row(
        "quantize",
        ("f32 f32 u8 -> u8",),
        {"zero_points": "used", "quotient": "binary32", "to_integer": "clamp_even"},
        "run: 300 random ranges, 180 000 numbers that are ties or next to one, NaN and infinities",
        when=(_ASYMMETRIC, ("input_rank", 0, 3)),
    ),
    Row(
        "quantize",
        ("f32 f32 u8 -> u8",),
        refuses="of other than three axes it takes the runtime's process down",
        when=(_ASYMMETRIC,),
    ),
    Row("dequantize", ("s8|u8 f32 f32 -> f32",), {"range_dequantize": "binary32_half_level_step"}, _RUN),
    Row(
        "quantize",
        ("s32 f32 f32 f32 f32 -> s8|u8",),
        {"range_requantize": "binary32_product_even"},
        _RUN,
    ),
    Row("identity", ("T -> T",), {}, "ranges and quantized values that pass through", where=("f32", "s8", "u8", "s32")),
    Row(
        "range_of",
        ("s32 f32 f32 -> f32 f32",),
        {},
        _RUN,
        limit="sums of -2147483648 are refused: the runtime takes the magnitude in 32 bits",
    ),
    Row("range_of", ("f32 -> f32 f32",), {}, _RUN, limit="the range of an empty tensor is refused"),
    Row("range_of", ("f32... -> f32 f32",), {}, _RUN),
)
