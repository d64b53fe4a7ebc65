"""Rows of `litert-optimized`: convolutions and fully-connected layers."""

from __future__ import annotations

from ...records import replace
from ..litert.convolution import DEPTHWISE, PLANES
from ..table import Row

_CONVOLUTION = {
    "accumulate": "s32_wrap",
    "scale_form": "binary64",
    "rescale": "q31_two_step_up_up",
    "store": "zero_point_then_clamp",
    "activation_range": "binary32_quotient_away",
}
_UNSIGNED = {**_CONVOLUTION, "scale_form": "binary32_product"}
_MATRIX = {**_UNSIGNED, "scale_form_per_axis": "binary64"}
# Convolutions in groups take the reference kernels: the rows of `litert` behind these.
_UNGROUPED = ("equal_sizes", 0, 3, 1, 3)
_SPLIT_LIMIT = "the kernel drops input elements that do not fill a row; bittrue refuses such shapes"
_PLANNED = "an output shape that is computed at run time must be the one that the file gives the output"
# Tried by hiding the processor's features from the runtime, 9 k values each.
_PROCESSOR = (
    "the runtime rounds so on processors with AVX-512, or with AVX2 and FMA; without AVX it rounds once "
    "(q31_one_step_up), with AVX alone by neither rule"
)
_LAYER_LIMIT = f"{_SPLIT_LIMIT}; {_PROCESSOR}"
_LAYER = (("bias_scale_within", 0.02), ("activation_is_clamp",))

_ROWS: tuple[Row, ...] = (
    Row(
        "conv",
        ("s8 s8|s4 s32 -> s8",),
        _CONVOLUTION,
        "run",
        requires=(("input_zero_points_are_zero", 1, 2),),
        when=(
            *PLANES,
            _UNGROUPED,
        ),
        limit=_PROCESSOR,
    ),
    Row(
        "conv",
        ("u8 u8 s32 -> u8",),
        _UNSIGNED,
        "run",
        requires=(("input_zero_points_are_zero", 2), ("bias_scale_within", 0.02)),
        when=(
            *PLANES,
            _UNGROUPED,
        ),
        limit=_PROCESSOR,
    ),
    Row(
        "conv",
        ("s16 s8|s4 s32 -> s16",),
        _CONVOLUTION,
        "run",
        requires=(("zero_points_are_zero",),),
        when=(
            *PLANES,
            _UNGROUPED,
        ),
        limit=_PROCESSOR,
    ),
    # The vector loop over channels rounds up, the scalar loop behind it away from zero.
    Row(
        "conv",
        ("s8 s8|s4 s32 -> s8",),
        _CONVOLUTION,
        "run",
        requires=(("input_zero_points_are_zero", 2),),
        when=(*DEPTHWISE, ("last_size_in_blocks", 1, 8)),
    ),
    Row(
        "conv",
        ("s8 s8|s4 s32 -> s8",),
        {**_CONVOLUTION, "rescale": "q31_two_step_up_away"},
        "run",
        requires=(("input_zero_points_are_zero", 2),),
        when=(*DEPTHWISE, ("last_size_below", 1, 8)),
    ),
    Row(
        "conv",
        ("s8 s8|s4 s32 -> s8",),
        {**_CONVOLUTION, "rescale_tail": "q31_two_step_up_away", "lanes": "blocks_of_8"},
        "run",
        requires=(("input_zero_points_are_zero", 2),),
        when=DEPTHWISE,
    ),
    Row(
        "conv",
        ("s8 s8|s4 - -> s8", "u8 u8 - -> u8", "f32 f32|s8 - -> f32"),
        when=DEPTHWISE,
        refuses="depthwise convolutions without a bias abort in these kernels, which read its shape unasked",
    ),
    Row(
        "conv_transpose",
        ("s8 s8 s32|- - - - - - - s32 -> s8",),
        {**_CONVOLUTION, "rescale_tail": "q31_two_step_up_away", "lanes": "blocks_of_8"},
        "run",
        requires=(("input_zero_points_are_zero", 2),),
        limit=_PLANNED,
    ),
    Row(
        "conv_transpose",
        ("u8 u8 s32|- - - - - - - s32 -> u8",),
        {**_UNSIGNED, "rescale_tail": "q31_two_step_up_away", "lanes": "blocks_of_16"},
        "run",
        requires=(("bias_scale_within", 0.02),),
        limit=_PLANNED,
    ),
    Row(
        "fully_connected",
        ("s8 s8|s4|s2 s32|- -> s8",),
        _MATRIX,
        "run",
        requires=_LAYER,
        limit=_LAYER_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32|- -> u8",),
        _MATRIX,
        "run",
        requires=_LAYER,
        limit=_LAYER_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 s32 -> s16",),
        _MATRIX,
        "run",
        requires=(("zero_points_are_zero", 0), *_LAYER),
        when=(("zero_point_is_zero", 1),),
        limit=_LAYER_LIMIT,
    ),
    Row(
        "fully_connected",
        ("s16 s8|s4|s2 - -> s16",),
        _MATRIX,
        "run",
        requires=(("zero_points_are_zero", 0), *_LAYER),
        when=(("zero_point_is_zero", 1), ("attribute_is", "bias_type", "f32", "s32")),
        limit=_LAYER_LIMIT,
    ),
    Row(
        "fully_connected",
        ("u8 u8 s32 -> s16",),
        {**_MATRIX, "store": "clamp_alone"},
        "run",
        requires=_LAYER,
        limit=_LAYER_LIMIT,
    ),
)

# The vector kernels' results with a zero point outside of its type are not those of the reference kernels.
ROWS = tuple(replace(row, requires=(("zero_points_fit",), *row.requires)) for row in _ROWS)
