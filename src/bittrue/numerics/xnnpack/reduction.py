"""Rows of `xnnpack`: reductions, pools and resizing."""

from __future__ import annotations

from ..table import Row
from .matrix import CLAMPS, QUANTIZED, SUBNORMAL

_SCALED = ("one_scale", 0, "output")
_AXES = (("counts_within", (2, 2), (1, 1)), ("stored_in_file", 1), ("input_rank_at_most", 1, 1), ("not_empty", 1))
_AFFINE = {
    "accumulate": "s32_wrap",
    "scale_form": "binary32",
    "mean": "binary32_affine_even",
    "store": "clamp_then_zero_point",
}
_PARTS = {"order": "parts_in_16_lanes"}
_EXTREME = {"extreme": "parts_in_16_lanes"}
_LANES = (
    "the bits of processors with AVX-512, where vectors have 16 lanes; on AVX2 43 % of sums and means along the last "
    f"axis differ, and extremes where NaN or zeros of both signs are among them ('xnnpack-avx2'); {SUBNORMAL}"
)
_WRAPPED = (
    "without AVX-512 (run on AVX2), a row of s8 of more than 8,192 values is added up in 32 lanes of 16 bits, which "
    "wrap (docs/facts/xnnpack.md 3.17, and 'xnnpack-avx2'); here all sums are exact"
)
_POOLS = (("counts_within", (1, 1), (1, 1)), ("windows_overlap",), CLAMPS)
_NO_WINDOW = "a window does not fit the image: the delegate gives pixels that are no maximum or average of anything"
_ZEROS = (
    "which of two zeros of other signs is kept, and whether NaN stays (of one tap -infinity, too), follows the "
    "order of the delegate's comparisons"
)
_SAME = (*QUANTIZED, ("same_parameters", 0))

ROWS: tuple[Row, ...] = (
    *(
        Row(
            stem,
            ("T s32 -> T",),
            _AFFINE,
            "run",
            ("s8", "u8"),
            when=(*_AXES, _SCALED, ("not_empty", 0)),
            requires=QUANTIZED,
            limit=_WRAPPED,
        )
        for stem in ("mean", "sum")
    ),
    Row("max_pool", ("s8|u8|f32 -> s8|u8|f32",), when=(*_POOLS, ("output_is_empty",)), refuses=_NO_WINDOW),
    Row("average_pool", ("f32 -> f32",), when=(*_POOLS, ("output_is_empty",)), refuses=_NO_WINDOW),
    Row(
        "max_pool",
        ("T -> T",),
        {"activation_range": "binary32_sum_even"},
        "run",
        ("s8", "u8"),
        when=(*_POOLS, _SCALED),
        requires=_SAME,
    ),
    Row(
        "resize_linear",
        ("T s32 -> T",),
        {"interpolate": "eleven_bits_half_up"},
        "run",
        ("s8", "u8"),
        when=(
            ("counts_within", (2, 2), (1, 1)),
            ("declared_rank", 4, 4, 0, "output"),
            ("stored_in_file", 1),
            ("input_rank", 1, 1),
            _SCALED,
        ),
        requires=_SAME,
    ),
    Row(
        "resize_linear",
        ("f32 s32 -> f32",),
        {"interpolate": "binary32_differences"},
        "run",
        when=(
            ("counts_within", (2, 2), (1, 1)),
            ("declared_rank", 4, 4, 0, "output"),
            ("stored_in_file", 1),
            ("input_rank", 1, 1),
        ),
        limit=SUBNORMAL,
    ),
    Row("mean", ("f32 s32 -> f32",), {"mean": "binary32_reciprocal", **_PARTS}, "run", when=_AXES, limit=_LANES),
    Row("sum", ("f32 s32 -> f32",), _PARTS, "run", when=_AXES, limit=_LANES),
    *(
        Row(stem, ("f32 s32 -> f32",), _EXTREME, "run; docs/facts/xnnpack.md 3.16", when=_AXES, limit=_LANES)
        for stem in ("reduce_max", "reduce_min")
    ),
    Row(
        "average_pool",
        ("f32 -> f32",),
        {"plain_range": "unlimited"},
        "run",
        when=(*_POOLS, ("one_tap",)),
        limit=SUBNORMAL,
    ),
    Row(
        "average_pool",
        ("f32 -> f32",),
        {"plain_range": "lower_for_nan", "average": "binary32_reciprocal", "order": "nines_by_columns"},
        "run",
        when=_POOLS,
        limit=SUBNORMAL,
    ),
    Row(
        "max_pool",
        ("f32 -> f32",),
        {"plain_range": "unlimited"},
        "run",
        when=_POOLS,
        limit=f"{_ZEROS}; {SUBNORMAL}",
    ),
)
