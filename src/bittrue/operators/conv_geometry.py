"""Windows and groups of convolutions with weights [O, C / groups, spatial...], whatever their arithmetic.

Attributes `padding` and `size` name rules of windows where `auto_pad` does not say it all; with `depthwise`, there are
as many groups as input channels.
"""

from __future__ import annotations

from .base import Call, Shape
from .geometry import Window, spatial_shape, windows
from .spatial import spatial_windows


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
