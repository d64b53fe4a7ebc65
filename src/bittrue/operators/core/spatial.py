"""Windows over one to three axes of channels-first tensors: their attributes, padded images, views of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Call, Shape
from .geometry import Window, windows


def spatial_windows(call: Call, shape: Shape, taps: Sequence[int], *, pooling: bool = False) -> tuple[Window, ...]:
    """One window per spatial axis of a tensor [N, C, ...] of `shape`, with `taps` positions per axis.

    Attributes read: `strides`, `dilations`, `pads` (all that are before, then all that are after; empty lists mean 1,
    1 and 0), `auto_pad` (NOTSET, VALID, SAME_UPPER, SAME_LOWER), and `ceil_mode` when `pooling`. SAME leaves elements
    out where windows do; pools find these pads for undilated taps, and ask for pads smaller than taps. A convolution's
    window has to fit.

    Raises InvalidModelError for lists of other lengths and values that no kernel accepts.
    """
    if not 3 <= len(shape) <= 5:
        raise call.unsupported(
            "BT-SHAPE-RANK", f"{len(shape) - 2} spatial axes (shape {list(shape)}), 1 to 3 are possible"
        )
    auto, pads = str(call.attribute("auto_pad")), tuple(call.attribute("pads"))
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.invalid("BT-WINDOW", f"attribute 'auto_pad' is '{auto}'")
    if auto.startswith("SAME"):
        padding = f"{auto.lower()}_{'of_taps' if pooling else 'cropping'}"
    else:
        padding = "explicit_below_taps" if pooling else "explicit"
    size = "floor"
    if pooling:
        size = "ceil_clipped" if call.attribute("ceil_mode") else "truncated_or_none"
    return windows(
        call,
        shape[2:],
        taps,
        call.attribute("strides"),
        call.attribute("dilations"),
        pads if auto == "NOTSET" else (),
        padding,
        size,
    )


def padded(x: np.ndarray, found: Sequence[Window], value: object) -> np.ndarray:
    """x[..., D, H, W] with `value` around it, as far as the windows reach; negative pads cut something off."""
    pads = [(0, 0)] * (x.ndim - 3)
    pads += [(max(0, one.before), max(0, one.reached - one.size - one.before)) for one in found]
    inside: list[Any] = [slice(max(0, -one.before), None) for one in found]
    x = x[(..., *inside)]
    return np.pad(x, pads, constant_values=value) if any(map(any, pads)) else x  # type: ignore[call-overload]


def sliding(x: np.ndarray, found: Sequence[Window]) -> np.ndarray:
    """A view [..., D', H', W', taps_d, taps_h, taps_w] of all windows of what `padded` returns."""
    reach = [one.reach for one in found]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(-3, -2, -1))
    index: list[Any] = [slice(0, (one.out - 1) * one.stride + 1, one.stride) for one in found]
    index += [slice(None, None, one.dilation) for one in found]
    return view[(..., *index)]
