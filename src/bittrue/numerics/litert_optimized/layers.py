"""Rows of `litert-optimized`: layers on real numbers, and hybrid ones, whose weights alone are integers.

Products of real numbers follow the tiles of a library of matrix templates; a library of matrix kernels makes those
whose filters lie transposed (over three axes). Products of two tensors (`matmul`) are the rows of `litert`, and so are
convolutions in groups.
"""

from __future__ import annotations

from ..litert.convolution import CUBES, DEPTHWISE, PLANES, TRANSPOSED
from ..litert.floating import HYBRID, NOT_FINITE, QUANTIZED_ASYMMETRIC
from ..table import Row

# Terms whose sums are not cut, on processors whose first cache for data has 32 KiB or more.
MOST_TERMS = 680
_TILES = {"sum_of_products": "binary32_in_tiles", "plain_range": "type_limits"}
_UNGROUPED = ("equal_sizes", 0, 3, 1, 3)
_ONE_BLOCK = (("sums_in_one_block", MOST_TERMS),)
_SHALLOW = (("last_size_below", 1, MOST_TERMS + 1),)
# Dilated ones take the reference kernels: the rows of `litert` behind these.
_UNDILATED = ("attribute_is", "dilations", (), (1, 1), (1, 1, 1))
_NANS = (
    "where NaNs of different bits meet in one sum, the runtime's vectors keep one of them; here it is mostly the first"
)
_PLANNED = "an output shape that is computed at run time must be the one that the file gives the output"
_DEEP = (
    f"the kernels cut sums of more than {MOST_TERMS} terms (1,016 with 48 KiB of first cache for data) into blocks "
    "whose sizes follow that cache; here they are not cut, and last bits differ for most results. "
)
_NO_BIAS = "without a bias this kernel reads memory that is not there, and ends the process"
_RUN = "run; docs/facts/litert.md 2.9"

ROWS: tuple[Row, ...] = (
    Row("conv", ("f32 f32 f32 -> f32",), _TILES, _RUN, when=(*PLANES, _UNGROUPED, *_ONE_BLOCK), limit=_NANS),
    Row("conv", ("f32 f32 f32 -> f32",), _TILES, _RUN, when=(*PLANES, _UNGROUPED), limit=_DEEP + _NANS, inexact=True),
    Row(
        "conv",
        ("f32 f32 f32 -> f32",),
        {"sum_of_products": "binary32_from_bias_inside", "plain_range": "upper_for_nan_behind_fours"},
        _RUN,
        when=DEPTHWISE,
        limit=_NANS,
    ),
    Row("conv", ("f32 f32|s8 - -> f32",), when=DEPTHWISE, refuses=_NO_BIAS, advice="add a bias of zeros"),
    Row(
        "fully_connected",
        ("f32 f32 f32|- -> f32",),
        _TILES,
        _RUN,
        requires=(("activation_is_clamp",),),
        when=_ONE_BLOCK,
        limit=_NANS,
    ),
    Row(
        "fully_connected",
        ("f32 f32 f32|- -> f32",),
        _TILES,
        _RUN,
        requires=(("activation_is_clamp",),),
        limit=_DEEP + _NANS,
        inexact=True,
    ),
    Row(
        "conv_transpose",
        TRANSPOSED,
        _TILES,
        _RUN,
        when=(_UNDILATED, *_SHALLOW),
        limit=f"{_NANS}. {_PLANNED}",
    ),
    Row(
        "conv_transpose",
        TRANSPOSED,
        _TILES,
        _RUN,
        when=(_UNDILATED,),
        limit=f"{_DEEP}{_NANS}. {_PLANNED}",
        inexact=True,
    ),
    Row(
        "conv",
        ("f32 f32 f32|- -> f32",),
        {"sum_of_products": "binary32_fused_from_bias", "plain_range": "upper_for_nan"},
        _RUN,
        when=CUBES,
        limit=_NANS,
    ),
    Row(
        "fully_connected",
        ("f32 s4 f32|- -> f32",),
        {
            "accumulate": "s32_wrap",
            "quantize_symmetric": "binary64_range_over_127_away",
            "weights_offset": "seven_apart",
            "scale_back": "binary32_rows_first",
            "plain_range": "open_limits",
        },
        _RUN,
        requires=(("activation_is_clamp",),),
        when=(("four_bits_in_blocks",),),
        limit=NOT_FINITE,
    ),
    Row(
        "conv",
        ("f32 s8|s4 f32 -> f32",),
        {**HYBRID, "row_sums": "s16_lanes_of_eight"},
        _RUN,
        when=(*PLANES, _UNGROUPED),
        limit=NOT_FINITE,
    ),
    Row(
        "conv",
        ("f32 s8 f32 -> f32",),
        {
            **QUANTIZED_ASYMMETRIC,
            "scale_back": "binary32_one_by_one_by_fours",
            "plain_range": "lower_for_nan_by_fours",
        },
        _RUN,
        when=DEPTHWISE,
        limit=NOT_FINITE,
    ),
)
