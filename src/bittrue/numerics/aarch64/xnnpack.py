"""Numerics `xnnpack@aarch64`: ai-edge-litert 2.3 with the XNNPACK delegate on aarch64.

Unsigned layers and products are requantized in fixed point: one rounding, ties up. Signed ones are as on x86-64.
"""

from __future__ import annotations

from ...records import replace
from ..xnnpack import XNNPACK
from . import litert_optimized
from .changes import Change, changed

_FIXED = {"rescale": ("binary32_multiply_even", "q31_one_step_up")}
_TABLES = {"real_function": ("binary32_fused", "binary32_fused_tables")}
CHANGES = (
    *litert_optimized.CHANGES,
    *(Change(stem, _FIXED, outputs=("u8",)) for stem in ("conv", "conv_transpose", "fully_connected")),
    Change("mul", _FIXED, outputs=litert_optimized.BYTES),
    Change("softmax", {"real_softmax": ("binary32_fused_16_lanes", "binary32_fused_4_lanes")}, limit=None),
    *(Change(stem, _TABLES, inputs=("f32",), limit=None) for stem in ("elu", "logistic")),
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
