"""Numerics `litert@aarch64`: the reference kernels of ai-edge-litert 2.3 on aarch64.

Compilers for aarch64 join products and sums, conversions to integers limit, and NaN becomes 0.
"""

from __future__ import annotations

from ...records import replace
from ..litert import LITERT
from ..litert.convolution import CUBES, DEPTHWISE, PLANES
from .changes import Change, changed

LIMITED = tuple(
    Change(
        "quantize",
        {slot: (rule, f"{rule}_limited") for slot, rule in rules.items()},
    )
    for rules in (
        {"quantize": "binary32_divide_away"},
        {"quantize": "binary32_reciprocal_even_wrap", "quantize_tail": "binary64_divide_away"},
    )
)
_INTERPOLATED = tuple(
    Change("resize_linear", {"interpolate": (f"binary32_{rule}", f"binary32_fused_{rule}")})
    for rule in ("products", "products_half_up", "weights", "weights_half_up")
)
_ONE_ROUNDING = {"sum_of_products": ("binary32_in_order", "binary32_fused_in_order")}
_EIGHTS = {"sum_of_products": ("binary32_in_order", "binary32_eights_then_fused")}
_JOINED = {"multiply_add": ("rounded_twice", "rounded_once")}
AWAY = {
    "quantize_symmetric": ("binary32_range_over_127_by_eights", "binary32_range_over_127_away"),
    "quantize_asymmetric": ("binary32_range_over_255_by_eights", "binary32_range_over_255_away"),
}
HYBRID = {**AWAY, "byte_products": ("low_end_negated_by_sixteens", "exact")}
_ACTIVATION = {"activation": ("binary32_rational_lanes_4", "binary32_fused_rational_lanes_4")}
_BASIC = {"dot": ("binary32_lanes_4_by_halves", "binary32_fused_lanes_4_or_in_order"), **_ACTIVATION}
_CELL = {**_BASIC, **_JOINED, "gate_normalization": ("binary32_in_order", "binary32_fused_16_lanes")}
_VECTOR = {"dot": ("binary32_lanes_4_in_order", "binary32_fused_lanes_4_in_pairs"), **_ACTIVATION}
_ROWS = {"row_product": ("s8_vectors_binary32_scale", "s8_fused_binary32_scale")}


def _by(way: str) -> tuple[tuple[object, ...], ...]:
    return (("hybrid_product_is", way),)


_OVERRUN = (
    "on aarch64, with 16 batches or more and a projection to more outputs than there are cells, products overrun a "
    "buffer of the runtime, and results mean nothing"
)

# What all kernels share.
SHARED = (
    Change("lstm", {**_CELL, **_ROWS}, limit=_OVERRUN, odd=True),
    *(Change("lstm", rules) for rules in (_CELL, _BASIC)),
    Change("rnn", {**_VECTOR, "row_product": ("s8_vectors_binary32_scale", "s8_fused_binary32_scale_by_rows")}),
    Change("svdf", {**_VECTOR, **_ROWS}),
    *(Change(stem, _VECTOR) for stem in ("rnn", "svdf")),
    # A product of several rows is rounded once.
    Change(
        "lstm",
        {"rescale": ("q31_two_step_up_up", "q31_one_step_up_shift_wraps")},
        ("u8",),
        keeps=(("one_long_row", 2, 8),),
    ),
    Change(
        "fully_connected",
        {
            **AWAY,
            "byte_products": ("low_end_negated_by_sixteens", "pairs_wrap_by_sixteens"),
            "row_sums": ("s16_lanes_of_eight", "exact"),
            "scale_back": ("binary32_product_of_scales", "binary32_product_then_fused"),
        },
        ways=(
            (_by("fours"), {"byte_products": "exact", "scale_back": "binary32_product_of_scales"}),
            (_by("matrix"), {"byte_products": "exact"}),
        ),
    ),
    Change("gelu", {"real_gelu": ("binary32_rational_lanes_4", "binary32_fused_rational_lanes_4")}),
    *(Change(stem, _JOINED) for stem in ("atan2", "fake_quant", "rfft2d", "audio_spectrogram", "mfcc")),
    Change("conv_transpose", {"quantize_asymmetric": AWAY["quantize_asymmetric"], **_JOINED}),
)
NORM = Change("lp_normalization", {"normalize": ("binary32_divide", "binary32_divide_by_eights_then_fused")})
FUSED = (
    Change("conv", _EIGHTS, when=PLANES),
    # Weights of a single filter alone lie side by side.
    Change(
        "conv",
        _ONE_ROUNDING,
        when=CUBES,
        ways=(((("last_size_below", 1, 2),), {"sum_of_products": "binary32_eights_then_fused"}),),
    ),
    *(Change(stem, _ONE_ROUNDING) for stem in ("conv", "conv_transpose")),
    *(Change(stem, _EIGHTS) for stem in ("fully_connected", "local_response_normalization")),
    Change(
        "matmul",
        {"sum_of_products": (None, "binary32_eights_then_fused"), "quantize_symmetric": (None, None)},
        ("f32",),
    ),
    Change("matmul", AWAY, ("f32",)),
    Change(
        "lp_pool",
        {"sum_of_products": (None, "binary32_eights_then_fused"), "average": ("binary32_divide",) * 2},
    ),
    NORM,
    Change("conv", HYBRID, when=PLANES),
    Change("conv", {"quantize_asymmetric": AWAY["quantize_asymmetric"]}, when=DEPTHWISE),
)
_TABLE = {"table": ("binary32_reciprocal_513_linear_up", "binary32_reciprocal_513_fused_linear_up")}
_TRUTHS = (
    "on aarch64 truth values are stored as 0 and 1: of bytes that are neither the lowest bit counts, but for an operand"
    " that does not change within a row and the first element of a reduction over all axes, which count when they are"
    " not 0; here the bytes are combined as on x86-64"
)
_BEYOND = (
    "on aarch64 results beyond 32 bits, as only scales make them whose quotient is far above 1, are limited; here they "
    "become the lowest number as on x86-64"
)
CHANGES = (
    *LIMITED,
    *_INTERPOLATED,
    *(Change(stem, _TABLE) for stem in ("exp", "gelu", "log", "rsqrt")),
    *(Change(stem, {"beyond_32_bits": ("lowest", "limited")}) for stem in ("div", "power")),
    *(Change(stem, inputs=("bool",), limit=_TRUTHS, odd=True) for stem in ("bitwise_and", "bitwise_or", "bitwise_not")),
    *(Change(stem, inputs=("bool",), limit=_TRUTHS, odd=True) for stem in ("reduce_max", "reduce_min")),
    Change("fully_connected", {"rescale": ("binary64_multiply_away",) * 2}, limit=_BEYOND, odd=True),
)

LITERT_AARCH64 = replace(
    LITERT,
    name="litert@aarch64",
    reproduces="ai-edge-litert 2.3.0, OpResolverType.BUILTIN_REF, aarch64",
    verified="the aarch64 wheel under qemu-user (Cortex-A76): the conformance suite and recorded random models",
    rows=changed(LITERT, (*CHANGES, *SHARED, *FUSED)),
)
