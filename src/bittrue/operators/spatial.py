"""Windows over one to three spatial axes of channels-first tensors: strides, dilations, pads, auto_pad, ceil_mode.

Shared by convolutions and pools whose attributes are lists with one entry per spatial axis. A 1-D tensor is worked on
as a picture of height 1, so steps speak of height and width, and of depth where there are three axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Attribute
from .base import Call, Shape, Step
from .geometry import LARGEST, Window

_LETTERS = "dhw"
_NAMES = {"d": "depth", "h": "height", "w": "width"}
# Names of the padding before and after a picture, by axis.
_SIDES = {"d": ("pad_front", "pad_back"), "h": ("pad_top", "pad_bottom"), "w": ("pad_left", "pad_right")}
_ONE = Window(1, 1, 1, 1, 0, 0, 1)


def _list(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    """Attribute `name` with `count` entries; the empty list means `default` everywhere."""
    given = tuple(int(v) for v in call.attribute(name)) or (default,) * count
    if len(given) != count:
        raise call.invalid("BT-WINDOW", f"attribute '{name}' has {len(given)} entries, expected {count}")
    return given


def _same_pads(extent: int, reach: int, stride: int, lower: bool, pooling: bool) -> tuple[int, int]:
    """What the windows lack, the odd one after the picture (or before it); negative where they leave something out."""
    total = (-(-extent // stride) - 1) * stride + reach - extent
    # One more than half of what is left out stays behind the picture; pools halve it like what is lacking.
    before = int((total + lower + (total < 0 and not pooling)) / 2)
    return before, total - before


def _out(span: int, stride: int, extent: int, before: int, ceil: bool) -> int:
    """Windows in a padded axis, `span` positions longer than the reach of one.

    Quotients truncate like C's, so a window that just does not fit still gives one output where `span` > -stride.
    """
    if not ceil:
        return (span // stride if span >= 0 else -(-span // stride)) + 1
    out = -(-span // stride) + 1
    # The last window has to begin inside of the picture or of the padding before it.
    return out - 1 if (out - 1) * stride >= extent + before else out


def spatial_windows(
    call: Call, shape: Shape, taps: Sequence[int], *, pooling: bool = False, crops: bool = False
) -> tuple[Window, ...]:
    """One window per spatial axis of a tensor [N, C, ...] of `shape`, with `taps` positions per axis.

    Attributes read: `strides`, `dilations`, `pads` (all that are before, then all that are after; empty lists mean 1,
    1 and 0), `auto_pad` (NOTSET, VALID, SAME_UPPER, SAME_LOWER), and `ceil_mode` when `pooling`.

    reach = (taps - 1) * dilation + 1; out = (extent + before + after - reach) / stride + 1, floor, or ceil without
    windows that begin behind the picture. SAME: before + after = (ceil(extent / stride) - 1) * stride + reach - extent,
    the odd one after (UPPER) or before (LOWER); negative pads leave elements out: not for pools unless they `crops`.
    Pools find these pads for reach = taps, whatever the dilation, and ask for pads smaller than taps. A convolution's
    window has to fit.

    Raises InvalidModelError for lists of other lengths and values that no kernel accepts. Source:
    docs/facts/onnxruntime.md 2.6, verified by running.
    """
    count = len(shape) - 2
    if not 1 <= count <= len(_LETTERS):
        raise call.unsupported("BT-SHAPE-RANK", f"{count} spatial axes (shape {list(shape)}), 1 to 3 are possible")
    if len(taps) != count:
        raise call.invalid("BT-WINDOW", f"windows over {len(taps)} axes, but the tensor has {count}")
    strides, dilations = _list(call, "strides", count, 1), _list(call, "dilations", count, 1)
    auto = str(call.attribute("auto_pad"))
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.invalid("BT-WINDOW", f"attribute 'auto_pad' is '{auto}'")
    pads = _list(call, "pads", 2 * count, 0) if auto == "NOTSET" else (0,) * (2 * count)
    ceil = bool(call.attribute("ceil_mode")) if pooling else False
    lowest = -LARGEST if auto.startswith("SAME") and (crops or not pooling) else 0
    found = []
    for axis, (extent, size, stride, dilation) in enumerate(zip(shape[2:], taps, strides, dilations, strict=True)):
        name = _NAMES[_LETTERS[axis - count]]
        for what, value in (("extent", extent), ("filter extent", size), ("stride", stride), ("dilation", dilation)):
            if not 1 <= value < 2**31:
                raise call.invalid("BT-WINDOW", f"{name} {what} must be at least 1, found {value}")
        reach = (size - 1) * dilation + 1
        before, after = pads[axis], pads[axis + count]
        if auto.startswith("SAME"):
            lower = auto == "SAME_LOWER"
            before, after = _same_pads(extent, size if pooling else reach, stride, lower, pooling)
        if min(before, after) < lowest or max(before, after) > LARGEST:
            raise call.invalid(
                "BT-WINDOW", f"{name} is padded by {before} and {after}, {lowest} to {LARGEST} is possible"
            )
        if pooling and max(before, after) >= size:
            raise call.invalid(
                "BT-WINDOW", f"{name} is padded by {before} and {after}, a pool of {size} takes at most {size - 1}"
            )
        for what, value in (("stride", stride), ("dilation", dilation)):
            if value > LARGEST:
                raise call.invalid("BT-WINDOW", f"{name} {what} is {value}, at most {LARGEST} is possible")
        out = _out(extent + before + after - reach, stride, extent, before, ceil)
        if out < (0 if pooling else 1) or (not pooling and extent + before + after < reach):
            raise call.invalid(
                "BT-WINDOW",
                f"a window that reaches over {reach} does not fit {name} {extent} padded to {extent + before + after}",
            )
        found.append(Window(extent, size, stride, dilation, before, after, out))
    return tuple(found)


def spatial_parameters(windows: Sequence[Window]) -> dict[str, Attribute]:
    """The geometry as step parameters, named as 2-D convolutions name theirs; a third axis in front ends in ``_d``.

    Pads are the declared ones; what windows reach beyond them (ceil_mode) is for the operator to fill.
    """
    axes = dict(zip(_LETTERS[-len(windows) :], windows, strict=True))
    axes.setdefault("h", _ONE)
    parameters: dict[str, Attribute] = {}
    for letter, one in axes.items():
        before, after = _SIDES[letter]
        parameters |= {
            f"filter_{letter}": one.taps,
            f"stride_{letter}": one.stride,
            f"dilation_{letter}": one.dilation,
            before: one.before,
            after: one.after,
            f"out_{letter}": one.out,
        }
    return parameters


def step_windows(step: Step, shape: Shape) -> tuple[Window, ...]:
    """Depth, height and width of a step's windows over a tensor of `shape`; axes that it has not are of extent 1."""
    extents = (1,) * (5 - len(shape)) + tuple(shape[2:])
    found = []
    for letter, extent in zip(_LETTERS, extents, strict=True):
        if f"filter_{letter}" not in step.parameters:
            found.append(_ONE)
            continue
        before, after = _SIDES[letter]
        taps, stride, dilation = (step[f"{what}_{letter}"] for what in ("filter", "stride", "dilation"))
        found.append(Window(extent, taps, stride, dilation, step[before], step[after], step[f"out_{letter}"]))
    return tuple(found)


def is_possible(one: Window) -> bool:
    """Whether `spatial_windows` gives such a window for some attributes."""
    if not (1 <= one.taps < 2**31 and 1 <= one.stride <= LARGEST and 1 <= one.dilation <= LARGEST):
        return False
    if not (-LARGEST <= one.before <= LARGEST and -LARGEST <= one.after <= LARGEST and one.extent >= 1):
        return False
    span = one.extent + one.before + one.after - one.reach
    return one.out in {_out(span, one.stride, one.extent, one.before, ceil) for ceil in (False, True)}


def padded(x: np.ndarray, windows: Sequence[Window], value: object) -> np.ndarray:
    """x[..., D, H, W] with `value` around it, as far as the windows reach; negative pads cut something off."""
    pads = [(0, 0)] * (x.ndim - 3)
    for one in windows:
        reached = (one.out - 1) * one.stride + one.reach if one.out else one.reach
        pads.append((max(0, one.before), max(0, reached - one.extent - one.before)))
    inside: list[Any] = [slice(max(0, -one.before), None) for one in windows]
    x = x[(..., *inside)]
    return np.pad(x, pads, constant_values=value) if any(map(any, pads)) else x  # type: ignore[call-overload]


def sliding(x: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """A view [..., D', H', W', taps_d, taps_h, taps_w] of all windows of what `padded` returns."""
    reach = [one.reach for one in windows]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(-3, -2, -1))
    index: list[Any] = [slice(0, (one.out - 1) * one.stride + 1, one.stride) for one in windows]
    index += [slice(None, None, one.dilation) for one in windows]
    return view[(..., *index)]


def spatial_shape(windows: Sequence[Window]) -> Shape:
    """Output extents, in order."""
    return tuple(one.out for one in windows)


def spatial_bytes(windows: Sequence[Window], planes: int, item: int) -> int:
    """Bytes of `planes` padded pictures with `item` bytes per element."""
    size = planes * item
    for one in windows:
        size *= max(one.extent + one.before + one.after, (one.out - 1) * one.stride + one.reach)
    return size
