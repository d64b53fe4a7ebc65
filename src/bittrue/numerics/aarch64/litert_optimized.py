"""Numerics `litert-optimized@aarch64`: the built-in kernels without delegates of ai-edge-litert 2.3 on aarch64.

Matrix products are requantized once, with ties up; those of bytes by a single vector in two steps, as on x86-64.
"""

from __future__ import annotations

from ...records import replace
from ..litert.convolution import CUBES, DEPTHWISE, PLANES
from ..litert_optimized import LITERT_OPTIMIZED
from . import litert
from .changes import Change, changed

_ONCE = {"rescale": ("q31_two_step_up_up", "q31_one_step_up_shift_wraps")}
BYTES = ("s8", "u8")
_VECTOR = (("multiplies_one_vector", 4, 8),)
_TILES = {"sum_of_products": ("binary32_in_tiles", "binary32_fused_in_tiles")}
_OF_CHANNELS = {
    "sum_of_products": ("binary32_from_bias_inside", "binary32_fused_from_bias_inside"),
    "plain_range": ("upper_for_nan_behind_fours", "by_signs_but_behind_fours"),
}
_OF_CUBES = {
    "sum_of_products": ("binary32_fused_from_bias", "binary32_fused_in_tiles"),
    "plain_range": ("upper_for_nan", "type_limits"),
}
_ASYMMETRIC = {"quantize_asymmetric": litert.AWAY["quantize_asymmetric"]}
_NAN_STAYS = {"plain_range": ("lower_for_nan_by_fours", "type_limits")}
_IN_EIGHTS = {"scale_back": ("binary32_one_by_one_by_fours", "binary32_product_of_scales"), **_NAN_STAYS, **_ASYMMETRIC}
_OFFSET = {
    "scale_back": ("binary32_rows_first", "binary32_rows_first_by_fours"),
    "weights_offset": ("seven_apart", "seven_apart_joined"),
}
_HYBRID = {**litert.HYBRID, "row_sums": ("s16_lanes_of_eight", "exact")}
_FLUSHED = "on aarch64 subnormal numbers are zeros in these products, and none arise; here they are kept"
CHANGES = (
    *(
        Change(stem, _TILES, limit=_FLUSHED, odd=True, exact=True)
        for stem in ("conv", "conv_transpose", "fully_connected")
    ),
    Change("conv", _OF_CHANNELS),
    Change("conv", _OF_CUBES, when=CUBES),
    Change(
        "conv",
        _IN_EIGHTS,
        when=DEPTHWISE,
        ways=(((("three_by_three_in_eights", False),), {"scale_back": "binary32_one_by_one_by_fours"}),),
    ),
    Change("conv", _HYBRID),
    Change("fully_connected", _OFFSET),
    *litert.CHANGES,
    *litert.SHARED,
    *litert.FUSED,
    Change("conv", _ONCE, BYTES, when=PLANES, keeps=_VECTOR),
    Change("conv", _ONCE, when=PLANES),
    Change("fully_connected", _ONCE, BYTES, keeps=_VECTOR),
    Change("fully_connected", _ONCE),
    *(
        Change("softmax", {"softmax": (rule, "u16_table_two_step_up")}, outputs=BYTES)
        for rule in ("binary32_table_away", "binary32_table_half_up")
    ),
    Change("dequantize", {"dequantize": ("binary32_multiply_add", "binary32_fused_multiply_add")}),
    Change("sum", {"mean": ("binary32_affine_away", "binary32_fused_affine_away")}),
    Change(
        "hard_swish",
        {
            "hard_swish": ("q15_gate_trunc", "q15_gate_down"),
            "hard_swish_tail": (None, "q15_gate_trunc"),
            "lanes": (None, "blocks_of_8"),
        },
    ),
    Change(
        "max_pool", {"plain_range": ("type_limits",) * 2, "extreme": (None, "nan_else_by_signs_in_pixels")}, ("f32",)
    ),
    litert.NORM,
    Change("lp_pool", {"average": ("binary32_reciprocal", "binary32_reciprocal_in_fours")}),
    Change("mean", {"order": ("four_lanes_twice", "four_lanes_twice_by_neighbours")}),
    *(
        Change(stem, {"real_function": ("binary32_rational_lanes_4", "binary32_fused_rational_lanes_4")})
        for stem in ("logistic", "tanh")
    ),
    *(
        Change(stem, {"real_softmax": ("binary32_rational_lanes_4", "binary32_fused_rational_lanes_4")})
        for stem in ("softmax", "log_softmax")
    ),
)

LITERT_OPTIMIZED_AARCH64 = replace(
    LITERT_OPTIMIZED,
    name="litert-optimized@aarch64",
    reproduces="ai-edge-litert 2.3.0, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, aarch64, one thread",
    verified="the aarch64 wheel under qemu-user (Cortex-A76): the conformance suite and recorded random models",
    rows=changed(LITERT_OPTIMIZED, CHANGES),
)
