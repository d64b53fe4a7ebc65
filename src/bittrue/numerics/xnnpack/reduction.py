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
_LANES = (
    "the delegate adds binary32 numbers in as many sums as its vectors have lanes, which differs between processors, "
    "so last bits differ for most results of many summands; bittrue adds them in order. " + SUBNORMAL
)
_SAME = (*QUANTIZED, ("same_parameters", 0))

ROWS: tuple[Row, ...] = (
    *(
        Row(stem, ("T s32 -> T",), _AFFINE, "run", ("s8", "u8"), when=(*_AXES, _SCALED), requires=QUANTIZED)
        for stem in ("mean", "sum")
    ),
    Row(
        "max_pool2d",
        ("T -> T",),
        {"activation_range": "binary32_sum_even"},
        "run",
        ("s8", "u8"),
        when=(("counts_within", (1, 1), (1, 1)), _SCALED, ("windows_overlap",), CLAMPS),
        requires=_SAME,
    ),
    Row(
        "resize_bilinear",
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
        "resize_bilinear",
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
    Row("mean", ("f32 s32 -> f32",), {"mean": "binary32_divide"}, "run", when=_AXES, limit=_LANES),
    Row("sum", ("f32 s32 -> f32",), {}, "run", when=_AXES, limit=_LANES),
    Row(
        "average_pool2d",
        ("f32 -> f32",),
        {"plain_range": "unlimited", "average": "binary32_divide"},
        "run",
        when=(("counts_within", (1, 1), (1, 1)), ("windows_overlap",), CLAMPS),
        limit=(
            "the delegate adds nine pixels at a time in pairs of its own and multiplies by a reciprocal; bittrue adds "
            "them in order and divides, so last bits differ for about half of all results. " + SUBNORMAL
        ),
    ),
    Row(
        "max_pool2d",
        ("f32 -> f32",),
        {"plain_range": "unlimited"},
        "run",
        when=(("counts_within", (1, 1), (1, 1)), ("windows_overlap",), CLAMPS),
        limit=SUBNORMAL,
    ),
)
