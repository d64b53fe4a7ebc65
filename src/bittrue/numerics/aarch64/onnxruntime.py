"""Numerics `onnxruntime@aarch64`: ONNX Runtime's CPU provider on aarch64 with dot products, without i8mm.

Layers of integers are as on x86-64 with VNNI. QLinearAdd has fixed point, QLinearMul one rounding less, and real
numbers are added in other orders: rows that were seen to differ, or that no model has tried, are inexact.
"""

from __future__ import annotations

from ...records import replace
from ..onnxruntime import ONNXRUNTIME
from .changes import Change, changed

_FOURS = {"real_softmax": ("binary32_polynomial_16_lanes", "binary32_polynomial_4_lanes")}
_JOINED = {"recurrence": ("binary32_polynomials", "binary32_polynomials_joined")}
_SCALED = {"scale_back": ("binary32_product_of_scales", "binary32_product_then_fused")}
_ALIKE = {"real_product": ("binary32_fused_blocks", "binary32_fused_blocks_alike")}
_NEIGHBOURS = {"real_sum": ("binary32_packets_4", "binary32_packets_of_neighbours")}
_NORMAL = {"real_normalization": ("binary32_lanes", "binary32_joined")}
_OPERATIONS = {"real_function": ("binary32_single_operations", "binary32_joined_operations")}
_ONCE = {"multiply_add": ("rounded_twice", "rounded_once")}
CHANGES = (
    *(
        Change(stem, _NORMAL)
        for stem in (
            *("batch_normalization", "group_normalization", "layer_normalization", "lp_normalization"),
            "mean_variance_normalization",
        )
    ),
    *(
        Change(stem, _OPERATIONS)
        for stem in (
            *("acos", "asin", "atan", "cos", "elu", "hard_sigmoid", "hard_swish", "log", "mish", "sin", "softplus"),
            "softsign",
        )
    ),
    Change(
        "div",
        {"real_divide": (None, "binary32_product_of_estimate")},
        inputs=("f32",),
        keeps=(("attribute_is", "reciprocal", None),),
    ),
    *(
        Change(stem, _ONCE)
        for stem in (
            *("affine_grid", "crop_and_resize", "deformable_conv", "determinant", "grid_sample", "inverse"),
            *("region_bins", "resize_antialiased", "resize_cubic", "resize_nearest"),
        )
    ),
    Change("resize_linear", {**_ONCE, "weighted": ("binary32_weights_in_order", "binary32_fused_weights_in_order")}),
    Change("resize_linear", _ONCE),
    Change("rotary_embedding", {"rotation": ("binary32_fused_vectors", "binary32_fused_fours")}),
    Change("deformable_conv", {**_ONCE, **_ALIKE}),
    *(Change(stem, _ALIKE) for stem in ("conv", "conv_transpose", "linear_attention", "mixture_of_experts")),
    Change("conv", {"real_product": ("binary32_fused_windows_of_7", "binary32_fused_blocks_alike")}),
    Change("gelu", {"real_gelu": ("binary32_fused_polynomials", "binary32_fused_polynomials_joined")}),
    *(Change(stem, _NEIGHBOURS) for stem in ("average_pool", "mean", "sum", "reduce_prod")),
    *(Change(stem, {**_FOURS, **_ALIKE}) for stem in ("attention",)),
    *(Change(stem, _FOURS) for stem in ("softmax", "log_softmax", "attention")),
    Change("convert", {"widen": ("quiet_by_16", "quiet")}, limit=None),
    Change("convert", {"half_nan": ("payload_by_8", "payload")}, limit=None),
    Change("lstm", {**_SCALED, **_JOINED}),
    *(Change(stem, {**_JOINED, **_ALIKE}) for stem in ("lstm", "gru", "rnn")),
    Change("matmul", _SCALED),
    Change("matmul", _ALIKE, inputs=("f32",)),
    Change("add", {"affine_sum": ("binary32_fused_even", "22_bits_away")}),
    Change("mul", {"affine_product": ("binary32_zero_point_even", "binary32_fused_zero_point_even")}),
    Change("softmax", {"affine_softmax": ("binary32_table_even", "binary32_table_even_limited")}),
    Change("dynamic_quantize_linear", limit="on aarch64 a NaN or an infinity among the inputs gives others", odd=True),
    Change(
        "average_pool",
        {"affine_average": ("binary32_in_order_even",) * 2},
        limit="on aarch64 an output scale that is NaN gives 0",
        odd=True,
    ),
)

# Images lie in planes: there are no blocks of channels.
_OF_BLOCKS = ("cast_halves", "fuse_reals", "mark_planes")

ONNXRUNTIME_AARCH64 = replace(
    ONNXRUNTIME,
    name="onnxruntime@aarch64",
    reproduces="ONNX Runtime 1.31 CPU provider, aarch64, session.qdqisint8allowed=1",
    verified=(
        "the aarch64 wheel of onnxruntime 1.31.1 under qemu-user (Cortex-A76), one thread: the conformance suite and"
        " recorded random models"
    ),
    rows=changed(ONNXRUNTIME, CHANGES, unseen_is_inexact=True, counted="onnxruntime@aarch64"),
    rewrites=tuple(f"{name}:0" if name in _OF_BLOCKS else name for name in ONNXRUNTIME.rewrites),
)
