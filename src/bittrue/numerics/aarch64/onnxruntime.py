"""Numerics `onnxruntime@aarch64`: ONNX Runtime's CPU provider on aarch64 with dot products, without i8mm.

Layers of integers are as on x86-64 with VNNI. QLinearAdd has fixed point, QLinearMul one rounding less, and real
numbers are added in other orders: rows that were seen to differ, or that no model has tried, are inexact.
"""

from __future__ import annotations

from ...records import replace
from ..onnxruntime import ONNXRUNTIME
from .changes import Change, changed

CHANGES = (
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

ONNXRUNTIME_AARCH64 = replace(
    ONNXRUNTIME,
    name="onnxruntime@aarch64",
    reproduces="ONNX Runtime 1.31 CPU provider, aarch64, session.qdqisint8allowed=1",
    verified=(
        "the aarch64 wheel of onnxruntime 1.31.1 under qemu-user (Cortex-A76), one thread: the conformance suite and"
        " recorded random models"
    ),
    rows=changed(ONNXRUNTIME, CHANGES, unseen_is_inexact=True),
)
