"""Windows of pools in the words of operators whose padding is `same` or `valid`."""

from __future__ import annotations

from typing import Any

from ..graph import Attribute
from .expr import Expr


def padding_name(
    shape: tuple[int, ...], taps: Any, strides: Any, dilation: Any, pads: Any, out: tuple[int, ...]
) -> str | None:
    """`same` or `valid` where that means these pads (top, left, bottom, right) and extents; None where neither does."""
    found = {"same", "valid"}
    for at in (0, 1):
        extent, stride, reach = shape[at], strides[at], (taps[at] - 1) * dilation[at] + 1
        before, after = pads[at], pads[at + 2]
        same = -(-extent // stride)
        total = max(0, (same - 1) * stride + reach - extent)
        if (before, after, out[at]) != (total // 2, total - total // 2, same):
            found.discard("same")
        if before or after or extent < reach or out[at] != (extent - reach) // stride + 1:
            found.discard("valid")
    return min(found, default=None, key=lambda name: name != "valid")


def fitted(expr: Expr) -> dict[str, Attribute]:
    """Attributes of a pool over a picture with its channels last; empty where such an operator cannot say the same."""
    a, source = expr.attributes, expr.inputs[0].shape
    if a["layout"] != "NHWC" or a["dilation"] != (1, 1):
        return {}
    taps, strides = a["pool_size"], a["strides"]
    padding = padding_name(source[1:3], taps, strides, (1, 1), a["padding"], expr.shape[1:3])
    if padding is None:
        return {}
    return {
        "padding": padding,
        "filter_h": taps[0],
        "filter_w": taps[1],
        "stride_h": strides[0],
        "stride_w": strides[1],
        "activation": "none",
    }
