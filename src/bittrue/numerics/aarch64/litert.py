"""Numerics `litert@aarch64`: the reference kernels of ai-edge-litert 2.3 on aarch64.

Compilers for aarch64 join products and sums, conversions to integers limit, and NaN becomes 0.
"""

from __future__ import annotations

from ...records import replace
from ..litert import LITERT
from ..litert.convolution import PLANES
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
FUSED = (
    Change("conv", _ONE_ROUNDING, when=PLANES, limit="on aarch64 2 of 11 models with such a node gave other bits"),
    *(Change(stem, _ONE_ROUNDING) for stem in ("conv", "conv_transpose")),
    Change("fully_connected", _EIGHTS),
)
_TABLE = (
    "on aarch64 the table has other entries: in 2 of 2 models of all inputs 128 and 6,482 of 65,536 results differ, "
    "the first of them by one"
)
CHANGES = (*LIMITED, *_INTERPOLATED, Change("gelu", inputs=("s16",), limit=_TABLE))

LITERT_AARCH64 = replace(
    LITERT,
    name="litert@aarch64",
    reproduces="ai-edge-litert 2.3.0, OpResolverType.BUILTIN_REF, aarch64",
    verified="the aarch64 wheel under qemu-user (Cortex-A76): the conformance suite and recorded random models",
    rows=changed(LITERT, (*CHANGES, *FUSED)),
)
