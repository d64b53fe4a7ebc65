"""Windows and groups of convolutions, forward and transposed, whatever their arithmetic.

Attributes `padding` and `size` name rules of windows where `auto_pad` does not say it all; with `depthwise`, there are
as many groups as input channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Shape, Step
from ..core.geometry import Window, meeting, spatial_shape, transposed_windows, windows
from ..core.spatial import spatial_windows


def channels_first(call: Call, shape: Shape) -> Shape:
    """`shape` as [N, C, spatial...]."""
    return (shape[0], shape[-1], *shape[1:-1]) if call.attribute("channels_last") else shape


def convolution_windows(call: Call) -> tuple[tuple[Window, ...], int]:
    """The windows and the number of groups; a typed error where channels, groups and kernel do not fit together."""
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(source, 3, 5)
    call.rank(weights, source.rank)
    shape = channels_first(call, source.shape)
    channels, filters, depth = shape[1], weights.shape[0], weights.shape[1]
    groups = channels if call.node.attributes.get("depthwise") else int(call.attribute("groups"))
    if groups < 1 or channels != depth * groups:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{channels} input channels are no {groups} groups of {depth} filter channels"
        )
    if filters % groups:
        raise call.invalid("BT-CONV-CHANNELS", f"{filters} filters cannot be split into {groups} groups")
    kernel = tuple(call.attribute("kernel_shape"))
    if kernel and kernel != weights.shape[2:]:
        raise call.invalid(
            "BT-CONV-KERNEL", f"kernel_shape is {list(kernel)}, but the weights have shape {list(weights.shape)}"
        )
    if "padding" not in call.node.attributes:
        return spatial_windows(call, shape, weights.shape[2:]), groups
    lists = call.attribute("strides"), call.attribute("dilations"), call.attribute("pads")
    padding, size = str(call.attribute("padding")), str(call.attribute("size"))
    return windows(call, shape[2:], weights.shape[2:], *lists, padding, size), groups


def convolution_shape(call: Call) -> list[Shape]:
    """[N, O, sizes of the windows], or with the channels last; a typed error for a bias of another length."""
    windows, _ = convolution_windows(call)
    if call.has(2) and call.input(2).shape != call.input(1).shape[:1]:
        raise call.invalid(
            "BT-BIAS-LENGTH",
            f"bias has shape {list(call.input(2).shape)} for {call.input(1).shape[0]} output channels",
        )
    batch, filters, inner = call.input(0).shape[0], call.input(1).shape[0], spatial_shape(windows)
    return [(batch, *inner, filters) if call.attribute("channels_last") else (batch, filters, *inner)]


def _list(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    given = tuple(int(v) for v in call.attribute(name)) or (default,) * count
    if len(given) != count or any(not 0 <= abs(v) < 2**31 for v in given):
        raise call.invalid("BT-WINDOW", f"attribute '{name}' is {list(given)}, expected {count} small numbers")
    return given


def transposed_geometry(call: Call) -> tuple[Window, ...]:
    """Windows that gaps are left out of: those of the convolution that would turn the result into x."""
    x, w = call.input(0), call.input(1, "weights")
    call.rank(x, 3, 5)
    call.rank(w, x.rank)
    shape = channels_first(call, x.shape)
    count, groups = x.rank - 2, int(call.attribute("groups"))
    taps = tuple(int(v) for v in call.attribute("kernel_shape")) or w.shape[2:]
    if taps != w.shape[2:] or groups < 1 or w.shape[0] != shape[1] or shape[1] % groups:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{shape[1]} channels in {groups} groups do not meet weights {list(w.shape)}"
        )
    if call.has(2) and call.input(2).shape != (w.shape[1] * groups,):
        raise call.invalid("BT-BIAS-LENGTH", f"bias has shape {list(call.input(2).shape)}")
    strides, dilations = _list(call, "strides", count, 1), _list(call, "dilations", count, 1)
    more, pads = _list(call, "output_padding", count, 0), _list(call, "pads", 2 * count, 0)
    auto, wanted = str(call.attribute("auto_pad")), tuple(call.attribute("output_shape"))
    if min(more) < 0:
        raise call.invalid("BT-WINDOW", f"output_padding {list(more)} begins at 0")
    if any(extra >= max(both) for extra, *both in zip(more, strides, dilations, strict=True)):
        raise call.invalid("BT-WINDOW", f"output_padding {list(more)} reaches strides and dilations")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.invalid("BT-WINDOW", f"attribute 'auto_pad' is '{auto}'")
    padding = auto.lower() if auto.startswith("SAME") else "same_lower" if wanted else "explicit"
    return transposed_windows(
        call, shape[2:], taps, strides, dilations, pads if auto == "NOTSET" else (), more, padding, wanted
    )


def transposed_shape(call: Call) -> Shape:
    """[N, O, sizes of the result]."""
    found = transposed_geometry(call)
    channels = call.input(1).shape[1] * int(call.attribute("groups"))
    return (call.input(0).shape[0], channels, *(one.extent for one in found))


def transposed_parameters(call: Call) -> dict[str, Attribute]:
    """The geometry as step parameters; `output_shape` has the channels first."""
    found = transposed_geometry(call)
    return {
        "strides": tuple(one.stride for one in found),
        "dilations": tuple(one.dilation for one in found),
        "before": tuple(one.before for one in found),
        "groups": int(call.attribute("groups")),
        "channels_last": bool(call.attribute("channels_last")),
        "output_shape": transposed_shape(call),
    }


def tap_slices(
    step: Step, tap: Sequence[int], extents: Shape, reached: Shape
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Elements of [channels, *dimensions] that a tap takes to the result, and where they go in [channels, *reached]."""
    geometry = zip(extents, reached, step["strides"], step["dilations"], step["before"], tap, strict=True)
    of, to = zip(*(meeting(e, r, s, t * d - before) for e, r, s, d, before, t in geometry), strict=True)
    return (slice(None), *of), (slice(None), *to)


def spread(
    step: Step, x: np.ndarray, weights: np.ndarray, dtype: type, times: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Filters times channels; the plane of every tap is added to the positions that it meets, tap by tap.

    Args:
        x, weights: [N, C, spatial...] and [C, O / groups, spatial...].
        dtype: of the sums.
        times: the product of two matrices.
    """
    shape, groups, taps = tuple(step["output_shape"]), step["groups"], weights.shape[2:]
    depth, each = weights.shape[0] // groups, weights.shape[1]
    matrices = weights.reshape(groups, depth, -1).swapaxes(1, 2)
    out = np.zeros((shape[0], groups, each, *shape[2:]), dtype)
    for n, g in np.ndindex(shape[0], groups):
        planes = times(np.ascontiguousarray(matrices[g]), x[n].reshape(groups, depth, -1)[g])
        planes = planes.reshape(each, *taps, *x.shape[2:])
        for tap in np.ndindex(*taps):
            of, to = tap_slices(step, tap, x.shape[2:], shape[2:])
            out[n, g][to] += planes[(slice(None), *tap)][of]
    return out.reshape(shape)
