"""Rows of `mxnet`: convolutions and fully-connected layers, alone and fused."""

from __future__ import annotations

from ..table import Row

_RUN = "run: random layers, with and without bias; docs/facts/mxnet.md 1 to 3"
_FUSED = "run: random fused layers in all forms; docs/facts/mxnet.md 2"
_SUMS = {"accumulate": "s32_wrap"}
_LAYER = {**_SUMS, "rescale": "binary32_add_multiply_even", "store": "clamp_then_zero_point"}
_RANGED = "s8|u8 s8 f32 f32 f32 f32 - f32 f32 -> s8|u8"
_VNNI = "exact with VNNI; processors without it add pairs of products in 16 bits"

ROWS = (
    Row(
        "finish_sums",
        ("s32 s8|f32 -> s32",),
        {"add_bias": "s32_sum"},
        _RUN,
        when=(("attribute_is", "biased", False),),
    ),
    Row("finish_sums", ("s32 s8|f32 -> s32",), {"add_bias": "binary32_sum"}, _RUN),
    Row(
        "conv",
        ("u8 s8 -> s32",),
        {"accumulate": "s16_pairs_s32_wrap"},
        _RUN + "; one kernel adds pairs of neighbouring channels in 16 bits",
        when=(
            ("attribute_is", "fused", False),
            ("size_in_blocks", 1, 1, 4),
            ("size_in_blocks", 1, 0, 4),
            ("size_not_in_blocks", 1, 0, 16),
        ),
    ),
    Row("conv", ("u8|s8 s8 -> s32",), _SUMS, f"{_RUN}; {_VNNI}"),
    Row("flatten", ("u8|s8 -> u8|s8",), {}, "rows of fully-connected layers"),
    Row(
        "fold_normalization", ("f32 f32 f32 f32 f32 -|f32 -> f32 f32",), {"fold_normalization": "binary64_root"}, _FUSED
    ),
    Row("matmul", ("u8|s8 s8 -> s32",), _SUMS, f"{_RUN}; {_VNNI}"),
    Row("conv", (_RANGED,), _LAYER, _FUSED),
    Row(
        "matmul",
        (_RANGED,),
        {**_LAYER, "rescale": "binary32_add_multiply_twice_even"},
        _FUSED,
        when=(("attribute_is", "relu", True),),
    ),
    Row("matmul", (_RANGED,), _LAYER, _FUSED),
    Row(
        "finish_sums",
        ("s32 f32 s8|u8 f32 f32 f32 f32 f32 f32 f32 -> s8|u8|s32",),
        {"layer_sum": "fused_multiply_even"},
        _FUSED,
    ),
    Row("finish_sums", ("s32 f32 - f32 f32 f32 -> f32",), {}, _FUSED),
    Row("range_weights", ("f32 -|f32 f32 f32 -> s8 f32 f32",), {"quantized_weights": "binary32_half_levels"}, _FUSED),
    Row(
        "range_weights",
        ("s8 -|s8 f32 f32 f32 f32 -|f32 -|f32 -> s8 f32 f32",),
        {"quantized_bias": "binary32_rescale_away"},
        _FUSED,
        when=(("attribute_is", "fused", True),),
    ),
    Row(
        "range_weights",
        ("s8 s8 f32 f32 f32 f32 f32 f32 -> s8 f32 f32",),
        {"quantized_bias": "binary32_rescale_trunc"},
        _RUN,
    ),
    Row("transpose", ("s8 s64 -> s8",), {}, "weights are turned before anything runs"),
)
