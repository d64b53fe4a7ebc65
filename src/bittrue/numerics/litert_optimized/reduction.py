"""Rows of `litert-optimized`: reductions, resizing, softmax and normalization."""

from __future__ import annotations

from ..litert.unary import LIBRARY
from ..table import Row

_AWAY = {"softmax": "binary32_table_away"}
_LOGARITHM = {"log_softmax": "binary32_table_even"}

# Means over height and width, dimensions kept: vectors of channels, and scalars behind them.
_IMAGE = {
    "accumulate": "s32_wrap",
    "mean": "binary32_real_two_step_up_up",
    "mean_tail": "binary32_real_two_step_up_away",
    "lanes": "blocks_of_16",
    "store": "zero_point_then_clamp",
}
_SUM = {"accumulate": "s32_wrap", "mean": "binary32_affine_away", "store": "zero_point_then_clamp"}
_NOTHING = "without elements to add, this kernel leaves its output as it was"
_FIRST = {"start": "first_element"}
_NAN_SIGN = "where several NaNs meet, or NaN meets an infinity times 0, the sign bit of the resulting NaN may differ"

_NANS = "where several NaNs or infinities meet in a row, the results' NaN may have the bits of another one"

ROWS: tuple[Row, ...] = (
    Row("softmax", ("s8 -> s8",), _AWAY, "run", requires=(("output_is", 1 / 256, -128, 0.001),)),
    Row("softmax", ("u8 -> u8",), {"softmax": "binary32_table_half_up"}, "run"),
    Row("softmax", ("s8|u8 -> s16",), _AWAY, "run"),
    *(
        Row(
            stem,
            ("f32 -> f32",),
            {"real_softmax": "binary32_rational_lanes_4"},
            "run; docs/facts/litert.md 2.8",
            limit=f"{LIBRARY}; {_NANS}",
        )
        for stem in ("softmax", "log_softmax")
    ),
    Row(
        "lp_pool",
        ("f32 -> f32",),
        {"average": "binary32_reciprocal", "plain_range": "type_limits"},
        "run; docs/facts/litert.md 2.8",
    ),
    Row("log_softmax", ("s8 -> s8",), _LOGARITHM, "run", requires=(("output_is", 1 / 16, 127),)),
    Row("log_softmax", ("u8 -> u8",), _LOGARITHM, "run", requires=(("output_is", 1 / 16, 255),)),
    Row(
        "mean",
        ("T s32 -> T",),
        _IMAGE,
        "run",
        where=("s8", "u8"),
        when=(("reduces", 4, 1, 2), ("attribute_is", "keep_dims", True)),
    ),
    Row(
        "mean",
        ("f32 s32 -> f32",),
        {"mean": "binary32_divide", "order": "four_lanes_twice"},
        "run",
        when=(("reduces_rows",),),
    ),
    Row("mean", ("f32 s32 -> f32",), {"mean": "binary32_divide", **_FIRST}, "run"),
    Row("sum", ("T s32 -> T",), _SUM, "run", where=("s8", "u8"), when=(("not_empty", 0),)),
    Row(
        "sum",
        ("s16 s32 -> s16",),
        _SUM,
        "run",
        requires=(("zero_points_are_zero", 0),),
        when=(("not_empty", 0),),
    ),
    Row("sum", ("T s32 -> T",), where=("s8", "u8", "s16"), refuses=_NOTHING),
    Row("sum", ("f32 s32 -> f32",), _FIRST, "run"),
    *(
        Row(stem, ("f32 s32 -> f32",), {"extreme": "last_unless_beyond"}, "run")
        for stem in ("reduce_max", "reduce_min")
    ),
    Row("reduce_prod", ("f32 s32 -> f32",), _FIRST, "run", requires=(("input_has_no_scale",),)),
    Row("resize_linear", ("u8 s32 -> u8",), {"interpolate": "binary32_weights_half_up"}, "run"),
    Row(
        "resize_linear",
        ("f32 s32 -> f32",),
        {"interpolate": "binary32_halves"},
        "run",
        when=(("doubles_image",),),
        limit=_NAN_SIGN,
    ),
    Row("resize_linear", ("f32 s32 -> f32",), {"interpolate": "binary32_weights"}, "run", limit=_NAN_SIGN),
    Row(
        "resize_nearest",
        ("T s32 -> T",),
        {},
        "run",
        where=("s8", "u8", "bool"),
        requires=(("images_are_not_empty",),),
    ),
)
