"""Windows and groups of convolutions, forward and transposed, whatever their arithmetic.

Attributes `padding` and `size` name rules of windows where `auto_pad` does not say it all; with `depthwise`, there are
as many groups as input channels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ..core.base import Call, Shape, Step
from ..core.geometry import LARGEST, Window, meeting, numbers, spatial_shape, transposed_windows, windows
from ..core.spatial import spatial_windows


def channels_first(call: Call, shape: Shape) -> Shape:
    """`shape` as [N, C, spatial...]."""
    return (shape[0], shape[-1], *shape[1:-1]) if call.attribute("channels_last") else shape


_MOST = 2**31 - 1
# Orders of the axes of filters, by whether the convolution is transposed; the first one is meant where none is named.
_LAYOUTS = {False: ("OIS", "OSI", "SIO", "ISO"), True: ("IOS", "OSI", "SOI")}


def _axes(layout: str) -> tuple[int, int, slice]:
    """Where output channels, input channels and taps are; what is behind the taps counts from the end."""
    spatial, last = layout.index("S"), len(layout) - 1
    outputs, inputs = (at - (at > spatial) * len(layout) for at in (layout.index("O"), layout.index("I")))
    return outputs, inputs, slice(spatial, spatial - last or None)


_AXES = {layout: _axes(layout) for layouts in _LAYOUTS.values() for layout in layouts}


def filter_layout(call: Call, transposed: bool = False) -> str:
    """The order of the filters' axes, see `weights_order`; a typed error for an order that nothing has."""
    layouts = _LAYOUTS[transposed]
    layout = str(call.node.attributes.get("filter_layout", layouts[0]))
    if layout not in layouts:
        raise call.invalid("BT-NODE-ATTRIBUTE", f"attribute 'filter_layout' is '{layout}', expected {sorted(layouts)}")
    return layout


def filter_sizes(call: Call, transposed: bool = False) -> tuple[int, int, Shape]:
    """Output and input channels of the filters, one of them of a group, and their taps."""
    found: tuple[int, int, Shape] | None = call.found.get(("filters", transposed))
    if found is None:
        outputs, inputs, taps = _AXES[filter_layout(call, transposed)]
        shape = call.input(1, "weights").shape
        found = call.found["filters", transposed] = shape[outputs], shape[inputs], shape[taps]
    return found


def image_layout(call: Call, groups: int) -> dict[str, Attribute]:
    """Parameters of a step of images with channels last: groups, and the order of the filters' axes."""
    return {"groups": groups, "channels_last": True, "filter_layout": filter_layout(call)}


def check_image(call: Call) -> None:
    """A typed error for images without two axes, without channels, or whose channels are not last."""
    source, (filters, *_) = call.input(0), filter_sizes(call)
    call.rank(source, 4)
    if min(source.shape[3], filters) < 1:
        raise call.invalid("BT-CONV-CHANNELS", f"there are {source.shape[3]} input and {filters} output channels")
    if not call.attribute("channels_last"):
        raise call.unsupported("BT-NODE-ATTRIBUTE", "filters of this order are for images with channels last")


def check_bias(call: Call, channels: int, position: int = 2) -> None:
    """The bias, when present, has one value per output channel."""
    if call.has(position) and call.input(position).size != channels:
        size = call.input(position).size
        raise call.invalid("BT-BIAS-LENGTH", f"bias has {size} values for {channels} output channels")


def listed_windows(call: Call, sizes: Sequence[int], taps: Sequence[int]) -> tuple[Window, ...]:
    """Windows by the attributes `strides`, `dilations`, `pads` and the rules `padding` and `size`."""
    lists = call.attribute("strides"), call.attribute("dilations"), call.attribute("pads")
    # Kernels of three axes keep strides in 32 bits.
    most = LARGEST if len(taps) < 3 else _MOST
    return windows(call, sizes, taps, *lists, str(call.attribute("padding")), str(call.attribute("size")), most)


def convolution_windows(call: Call) -> tuple[tuple[Window, ...], int]:
    """The windows and the number of groups; a typed error where channels, groups and kernel do not fit together."""
    found: tuple[tuple[Window, ...], int] | None = call.found.get("windows")
    if found is None:
        found = call.found["windows"] = _convolution_windows(call)
    return found


def _convolution_windows(call: Call) -> tuple[tuple[Window, ...], int]:
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(source, 3, 5)
    call.rank(weights, source.rank)
    shape = channels_first(call, source.shape)
    filters, depth, taps = filter_sizes(call)
    channels = shape[1]
    if call.node.attributes.get("depthwise"):
        groups = channels
    elif "groups" in call.node.attributes or not depth or filter_layout(call) != "OSI":
        groups = int(call.attribute("groups"))
    else:
        # The shapes say it.
        groups = channels // depth
    if groups < 1 or channels != depth * groups:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{channels} input channels are no {groups} groups of {depth} filter channels"
        )
    if filters % groups:
        raise call.invalid("BT-CONV-CHANNELS", f"{filters} filters cannot be split into {groups} groups")
    kernel = tuple(call.attribute("kernel_shape"))
    if kernel and kernel != taps:
        raise call.invalid(
            "BT-CONV-KERNEL", f"kernel_shape is {list(kernel)}, but the weights have shape {list(weights.shape)}"
        )
    if "padding" not in call.node.attributes:
        return spatial_windows(call, shape, taps), groups
    return listed_windows(call, shape[2:], taps), groups


# Where convolutions have a tensor of the result's shape that their sums begin with.
ADDEND = 9


def check_vector(call: Call, channels: int) -> None:
    """The bias, when present, is a vector of one value per output channel."""
    if call.has(2) and call.input(2).shape != (channels,):
        raise call.invalid(
            "BT-BIAS-LENGTH", f"bias has shape {list(call.input(2).shape)} for {channels} output channels"
        )


def convolution_shape(call: Call) -> list[Shape]:
    """[N, O, sizes of the windows], or with the channels last; a typed error for a bias of another length."""
    windows, _ = convolution_windows(call)
    batch, filters, inner = call.input(0).shape[0], filter_sizes(call)[0], spatial_shape(windows)
    if filter_layout(call) == "OIS":
        check_vector(call, filters)
    else:
        check_bias(call, filters)
    shape = (batch, *inner, filters) if call.attribute("channels_last") else (batch, filters, *inner)
    if call.has(ADDEND) and call.input(ADDEND).shape != shape:
        raise call.invalid(
            "BT-CONV-SUM",
            f"the sums begin with a tensor of shape {list(call.input(ADDEND).shape)}, expected {list(shape)}",
        )
    return [shape]


# Where transposed convolutions have the result's shape, or with `auto_pad` their pads, if an operand says it.
OUTPUT_SHAPE = PADS = 9


def _planned_shape(call: Call, rank: int) -> Shape:
    """The result's shape that an operand gives; what the file says of the result where only running tells."""
    operand = call.input(OUTPUT_SHAPE, "output shape")
    call.rank(operand, 1)
    known = operand.value is not None
    shape = tuple(call.integers(OUTPUT_SHAPE, "output shape")) if known else call.output.tensor.shape
    if len(shape) != rank or min(shape) < 0:
        raise call.invalid("BT-SHAPE-OUTPUT", f"the output shape must be {rank} dimensions, found {list(shape)}")
    return shape


def _stated_geometry(call: Call, sizes: Shape, taps: Shape) -> tuple[Window, ...]:
    """Windows of the convolution that turns a result of the stated shape into an input of `sizes`."""
    x, filters = call.input(0), filter_sizes(call, True)[0]
    shape = _planned_shape(call, x.rank)
    batch, *inner, channels = shape if call.attribute("channels_last") else (shape[0], *shape[2:], shape[1])
    if (batch, channels) != (x.shape[0], filters):
        raise call.invalid(
            "BT-SHAPE-OUTPUT", f"output shape {list(shape)} has not the batch {x.shape[0]} and the {filters} filters"
        )
    found = listed_windows(call, inner, taps)
    if spatial_shape(found) != sizes:
        raise call.invalid(
            "BT-SHAPE-OUTPUT",
            f"an output of {list(inner)} belongs to an input of {list(spatial_shape(found))}, found {list(sizes)}",
            "export the model again; the output shape contradicts the input's",
        )
    return found


def check_shape_input(step: Step, inputs: Sequence[np.ndarray | None]) -> None:
    """RunError unless the result's shape of this run is the planned one."""
    given = inputs[OUTPUT_SHAPE] if len(inputs) > OUTPUT_SHAPE else None
    batch, channels, *inner = step["output_shape"]
    planned = [batch, *inner, channels] if step["channels_last"] else [batch, channels, *inner]
    if given is not None and given.tolist() != planned:
        raise RunError(
            "BT-RUN-SHAPE",
            f"the output shape is {given.tolist()} in this run, planned for {planned}",
            place=step.place,
            advice="shapes are planned ahead of the run; export the model with a constant output shape",
        )


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
    filters, depth, taps = filter_sizes(call, True)
    given = tuple(int(v) for v in call.attribute("kernel_shape")) or taps
    if taps != given or groups < 1 or depth != shape[1] or shape[1] % groups:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{shape[1]} channels in {groups} groups do not meet weights {list(w.shape)}"
        )
    if "auto_pad" not in call.node.attributes:
        return _channels_last_geometry(call, shape, filters, taps)
    check_vector(call, filters * groups)
    strides, dilations = _list(call, "strides", count, 1), _list(call, "dilations", count, 1)
    more, pads = _list(call, "output_padding", count, 0), _list(call, "pads", 2 * count, 0)
    if call.has(PADS):
        pads = tuple(call.integers(PADS, "pads"))
        if len(pads) != 2 * count or min(pads) < 0:
            raise call.invalid("BT-WINDOW", f"pads {list(pads)} are not two for each of {count} axes")
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


def _channels_last_geometry(call: Call, shape: Shape, filters: int, taps: Shape) -> tuple[Window, ...]:
    """Of one group, with its result's shape stated or following from pads; a result may be empty."""
    if min(shape[1:]) < 1 or filters < 1:
        raise call.invalid("BT-CONV-CHANNELS", f"an input of shape {list(shape)} and {filters} filters have none of 0")
    if call.has(OUTPUT_SHAPE):
        found = _stated_geometry(call, shape[2:], taps)
    else:
        count, strides = len(taps), tuple(call.attribute("strides"))
        more, pads = numbers(call, "output_padding", count, 0), numbers(call, "pads", 2 * count, 0)
        if max(strides) > LARGEST or any(map(int.__gt__, more, strides)):
            raise call.invalid(
                "BT-WINDOW", f"strides {strides} and output_padding {more}: at most {LARGEST}, and at most the stride"
            )
        found = transposed_windows(call, shape[2:], taps, strides, (), pads, more, least=0)
    check_bias(call, filters)
    return found


def transposed_shape(call: Call) -> Shape:
    """[N, O, sizes of the result]."""
    found = transposed_geometry(call)
    channels = filter_sizes(call, True)[0] * int(call.attribute("groups"))
    return (call.input(0).shape[0], channels, *(one.size for one in found))


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
    step: Step, tap: Sequence[int], sizes: Sequence[int], reached: Sequence[int], top: int = 0
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Elements of an image of `sizes` that a tap takes to the result, and where they go in one of `reached`.

    The image begins at line `top`.
    """
    tops = (top, *(0,) * (len(tap) - 1))
    geometry = zip(sizes, reached, step["strides"], step["dilations"], step["before"], tap, tops, strict=True)
    met = [meeting(e, r, s, first * s + t * d - before) for e, r, s, d, before, t, first in geometry]
    return tuple(of for of, _ in met), tuple(to for _, to in met)


def spread(
    step: Step,
    x: np.ndarray,
    weights: np.ndarray,
    dtype: type,
    times: Callable[[np.ndarray, np.ndarray], np.ndarray],
    most_bytes: int | None = None,
) -> np.ndarray:
    """Filters times channels; the plane of every tap is added to the positions that it meets, tap by tap.

    Args:
        x, weights: [N, C, spatial...] and [C, O / groups, spatial...].
        dtype: of the sums.
        times: the product of two matrices.
        most_bytes: of products held at a time, where the order of the sums does not matter.
    """
    shape, groups, taps = tuple(step["output_shape"]), step["groups"], weights.shape[2:]
    depth, each = weights.shape[0] // groups, weights.shape[1]
    matrices = weights.reshape(groups, depth, each * math.prod(taps)).swapaxes(1, 2)
    out = np.zeros((len(x), groups, each, *shape[2:]), dtype)
    lines = x.shape[2]
    if most_bytes is not None:
        line = matrices.shape[1] * math.prod(x.shape[3:]) * out.itemsize
        lines = max(1, min(lines, most_bytes // max(1, line)))
    images = x.reshape(x.shape[0], groups, depth, *x.shape[2:])
    for n, g, top in itertools.product(range(len(x)), range(groups), range(0, x.shape[2], max(1, lines))):
        part = images[n, g, :, top : top + lines]
        planes = times(np.ascontiguousarray(matrices[g]), part.reshape(depth, math.prod(part.shape[1:])))
        planes = planes.reshape(each, *taps, *part.shape[1:])
        for tap in np.ndindex(*taps):
            of, to = tap_slices(step, tap, part.shape[1:], shape[2:], top)
            out[n, g][(slice(None), *to)] += planes[(slice(None), *tap, *of)]
    return out.reshape(len(x), *shape[1:])
