"""Rows of `litert-optimized`: element-wise arithmetic.

Vector loops keep sums in 16 bits and align inputs differently than the scalar loops behind them. A broadcast that does
not fit five nested loops takes the reference kernels: the rows of `litert`.
"""

from __future__ import annotations

from ..litert.elementwise import ALIGNED_S16, NOT_SQUARES, PLAIN, TWO_NANS
from ..table import Row

_ADDED = {
    "align_tail": "left_20",
    "rescale": "q31_two_step_up_away",
    "store": "wrap_s16_then_clamp",
    "store_tail": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_BOTH = {**_ADDED, "align": "left_20_exponent_first", "lanes": "blocks_of_16"}
_ONE = {**_ADDED, "align": "left_20_exponent_down", "lanes": "blocks_of_8"}
_PRODUCT = {
    "product": "exact_s32",
    "scale_form": "binary32",
    "rescale": "q31_two_step_up_away",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_SATURATED = {**_PRODUCT, "store": "saturate_s16_then_clamp", "store_tail": "zero_point_then_clamp"}
_WRAPPED = {**_SATURATED, "store": "wrap_s16_then_clamp"}
_ROWS, _SCALARS, _EITHER = (
    ("broadcast_form", "rows"),
    ("broadcast_form", "scalars"),
    ("broadcast_form", "rows", "scalars"),
)
_WITHIN = ("product_within_16_bits",)

ROWS: tuple[Row, ...] = (
    Row("add", ("s8 s8 -> s8",), _BOTH, "run", when=(_ROWS,)),
    Row("add", ("s8 s8 -> s8",), _ONE, "run", when=(_SCALARS,)),
    Row("add", ("u8 u8 -> u8",), _ONE, "run", when=(_EITHER,)),
    Row(
        "add",
        ("s16 s16 -> s16",),
        {
            **_ADDED,
            "align": "power_of_two_or_left_15_exponent_first",
            "align_tail": "left_15",
            "store": "zero_point_then_clamp",
            "lanes": "blocks_of_16",
            "plain_range": "type_limits",
        },
        "run",
        requires=(("zero_points_are_zero",), ("rank_without_scale_within", 8)),
        when=(("not_broadcast",),),
    ),
    # Five nested loops take any rank; scales that are powers of two go another way.
    Row(
        "sub",
        ("s16 s16 -> s16",),
        ALIGNED_S16,
        "run",
        requires=(("zero_points_are_zero",),),
        when=(_EITHER, ("attribute_is", "pot_scale_int16", False)),
    ),
    Row("add", ("f32 f32 -> f32",), PLAIN, "run", when=(_EITHER,), limit=TWO_NANS),
    Row("mul", ("f32 f32 -> f32",), PLAIN, "run", when=(NOT_SQUARES, _EITHER), limit=TWO_NANS),
    # Where nothing leaves 16 bits, vectors and scalars agree.
    Row("mul", ("T T -> T",), _PRODUCT, "run", where=("s8", "u8"), when=(_WITHIN, _EITHER)),
    Row(
        "mul",
        ("s8 s8 -> s8",),
        {**_SATURATED, "lanes": "blocks_of_16"},
        "run",
        when=(_EITHER,),
    ),
    Row(
        "mul",
        ("u8 u8 -> u8",),
        {**_SATURATED, "lanes": "blocks_of_8"},
        "run",
        when=(_ROWS,),
    ),
    Row(
        "mul",
        ("u8 u8 -> u8",),
        {**_WRAPPED, "lanes": "blocks_of_8"},
        "run",
        when=(_SCALARS,),
    ),
    # These broadcasts have no largest rank.
    *(Row(stem, ("s8 s8 -> s8",), {}, "run", when=(_EITHER,)) for stem in ("maximum", "minimum")),
)
