"""Numerics `xnnpack@aarch64`: ai-edge-litert 2.3 with the XNNPACK delegate on aarch64.

Unsigned layers and products are requantized in fixed point: one rounding, ties up. Signed ones are as on x86-64.
"""

from __future__ import annotations

from ...records import replace
from ..litert.convolution import PLANES
from ..xnnpack import XNNPACK
from ..xnnpack.matrix import SUBNORMAL
from . import litert_optimized
from .changes import Change, changed

_FIXED = {"rescale": ("binary32_multiply_even", "q31_one_step_up")}
_TABLES = {"real_function": ("binary32_fused", "binary32_fused_tables")}
_CHAINS = {"sum_of_products": ("binary32_fused_from_bias", "binary32_fused_in_chains")}
_CHAINS_OF_TAPS = {
    "sum_of_products": ("binary32_fused_from_bias_by_columns", "binary32_fused_by_columns_in_chains"),
}
_DYNAMIC = {
    "scale_back": ("binary32_rows_then_fused", "binary32_product_of_scales"),
    "quantize_asymmetric": ("binary32_range_even", "binary32_range_even_then_away"),
}
_BY_SIGNS = {"extreme": (None, "nan_else_by_signs")}
_CHOSEN_BY_SIGNS = {"extreme": ("last_unless_beyond", "nan_else_by_signs")}
_HALVES = {"real_function": ("binary32_short", "binary16_fused_flushed")}
# Rows of the delegate say how many operands and results they take.
_ONE, _TWO = ((("counts_within", (n, n), (1, 1)),) for n in (1, 2))
_ARISING = "a NaN that arises has its sign bit clear on aarch64"
_SUBNORMAL_HALVES = (
    "the delegate takes subnormal binary16 numbers for zeros and makes none on aarch64, and a NaN that arises has its "
    "sign bit clear there; bittrue keeps them, and sets it"
)
_SUBNORMAL_UP = "on aarch64 a subnormal number above 0 becomes 0 where 1 is the integer above it"
_BEYOND = "on aarch64 sums that are beyond 32 bits times their scale become the other end of the type"
_OVERFLOWING_ROWS = (
    "on aarch64 rows whose range overflows give 0; in one model with a fused activation that begins at 0, results that "
    "are -0 here were 0"
)
_ZERO_UNDER_SLOPE = "on aarch64 -0 under a slope below 0 gives 0, and subnormal numbers are zeros"
CHANGES = (
    *(Change(stem, _DYNAMIC, limit=_OVERFLOWING_ROWS, odd=True) for stem in ("conv", "fully_connected")),
    Change("matmul", _DYNAMIC),
    *(Change(stem, _CHOSEN_BY_SIGNS, inputs=("f32",), when=_TWO, limit=None) for stem in ("maximum", "minimum")),
    Change("relu", _BY_SIGNS, inputs=("f32",), when=_ONE),
    Change("leaky_relu", {"slope": ("scaled_below_zero", "scaled_by_sign_bit")}),
    Change("prelu", inputs=("f32",), limit=_ZERO_UNDER_SLOPE, odd=True),
    *(
        Change(stem, {"plain_range": ("unlimited", "unlimited_by_signs")}, when=_TWO, limit=_ARISING, odd=True)
        for stem in ("add", "sub", "mul", "div")
    ),
    Change("average_pool", {"plain_range": ("lower_for_nan", "unlimited_by_signs")}),
    Change("average_pool", {"plain_range": ("unlimited",) * 2, **_BY_SIGNS}),
    Change(
        "max_pool",
        {"plain_range": ("unlimited", "unlimited_by_signs"), "extreme": (None, "windows_nan_else_by_signs")},
        limit=SUBNORMAL,
        odd=True,
        exact=True,
    ),
    # Square roots are those of the processor there, and reciprocal ones quotients by them: rounded correctly.
    *(
        Change(stem, {"real_function": ("binary32_refined_lines", None)}, limit=SUBNORMAL, odd=True)
        for stem in ("sqrt", "rsqrt")
    ),
    *(Change(stem, _HALVES, limit=None) for stem in ("cos", "logistic", "sin", "tanh")),
    Change("gelu", {"real_gelu": ("binary32_short", "binary16_fused_flushed")}),
    Change("softmax", {"real_softmax": ("binary32_short_8_lanes", "binary16_fused_8_lanes")}),
    *(
        Change(
            stem, {"plain_range": ("open_limits", "unlimited_by_signs")}, ("f16",), limit=_SUBNORMAL_HALVES, odd=True
        )
        for stem in ("add", "mul")
    ),
    *(
        Change(stem, _CHOSEN_BY_SIGNS, ("f16",), when=_TWO, limit=_SUBNORMAL_HALVES, odd=True)
        for stem in ("maximum", "minimum")
    ),
    Change("round_to_integer", inputs=("f32",), when=_ONE, limit=_SUBNORMAL_UP, odd=True),
    Change("quantize", {"quantize": ("binary32_reciprocal_even", "binary32_reciprocal_even_limited")}),
    *(Change(stem, {"order": ("parts_in_16_lanes", "parts_in_4_lanes")}, limit=None) for stem in ("mean", "sum")),
    *(
        Change(stem, {"extreme": ("parts_in_16_lanes", "rows_nan_else_by_signs")}, limit=None)
        for stem in ("reduce_max", "reduce_min")
    ),
    Change("conv", _CHAINS, when=PLANES),
    Change("conv", _CHAINS_OF_TAPS),
    *(Change(stem, _CHAINS) for stem in ("conv_transpose", "fully_connected", "matmul")),
    *litert_optimized.CHANGES,
    Change(
        "fully_connected",
        {"rescale": ("binary32_multiply_even",) * 2},
        outputs=("s8",),
        limit=_BEYOND,
        odd=True,
    ),
    *(Change(stem, _FIXED, outputs=("u8",)) for stem in ("conv", "conv_transpose", "fully_connected")),
    Change("mul", _FIXED, outputs=litert_optimized.BYTES),
    Change("softmax", {"real_softmax": ("binary32_fused_16_lanes", "binary32_fused_4_lanes")}, limit=None),
    *(Change(stem, _TABLES, inputs=("f32",), limit=None) for stem in ("elu", "exp", "log", "logistic", "neg")),
    Change("resize_linear", {"interpolate": ("binary32_differences", "binary32_fused_differences")}),
    *(Change(stem, {"mean": ("binary32_affine_even", "binary32_fused_affine_even")}) for stem in ("mean", "sum")),
)


XNNPACK_AARCH64 = replace(
    XNNPACK,
    name="xnnpack@aarch64",
    reproduces="ai-edge-litert 2.3.0, OpResolverType.BUILTIN (default XNNPACK delegate), aarch64, one thread",
    verified="the aarch64 wheel under qemu-user (Cortex-A76): the conformance suite and recorded random models",
    rows=changed(XNNPACK, CHANGES),
    limit="",
)
