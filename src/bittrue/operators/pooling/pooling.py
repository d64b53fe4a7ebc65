"""What all pools share: their attributes, their windows, and how images lie in memory.

Attributes: `kernel` (a size for every spatial axis; empty: the whole image), `strides`, `dilations`, `pads` (all before
the image, then all behind it; empty lists mean 1, 1 and 0), `padding` and `size` (rules of `geometry`) and
`channels_last`. Some have also `whole` (the window is the image, once the kernel has been found to make windows),
`unfit` (``"empty"``: windows without taps, or that do not fit, are no error but leave nothing) and `activation`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...graph import Attribute
from ...rules import plain_range
from ..core.accumulator import fused_range
from ..core.base import Call, Shape, Step
from ..core.geometry import (
    Window,
    WindowError,
    counts,
    spatial_parameters,
    spatial_shape,
    step_windows,
    tap_count,
    window,
    windows,
)

_MOST = 2**31 - 1
# Axes whose windows have names; more of them are one axis of a window that is the whole image.
_NAMED = 3


def _sizes(shape: Shape, channels_last: bool) -> Shape:
    return shape[1:-1] if channels_last else shape[2:]


def _joined(sizes: Shape) -> Shape:
    return sizes if len(sizes) <= _NAMED else (math.prod(sizes),)


def pool_windows(call: Call) -> tuple[Window, ...]:
    """The window along every spatial axis. Raises InvalidModelError for numbers that make no windows."""
    x, kernel = call.input(0), tuple(int(v) for v in call.attribute("kernel"))
    if len(kernel) > _NAMED:
        raise call.unsupported("BT-SHAPE-RANK", f"{len(kernel)} spatial axes, 1 to {_NAMED} are possible")
    call.rank(x, *((len(kernel) + 2,) * 2 if kernel else (3, 8)))
    sizes = _joined(_sizes(x.shape, bool(call.attribute("channels_last"))))
    padding, size = str(call.attribute("padding")), str(call.attribute("size"))
    if call.node.attributes.get("unfit") == "empty":
        return _fitting(call, sizes, kernel, padding, size)
    strides, dilations, pads = (call.attribute(name) for name in ("strides", "dilations", "pads"))
    found = windows(call, sizes, kernel or sizes, strides, dilations, pads, padding, size, _MOST)
    return windows(call, sizes, sizes) if call.node.attributes.get("whole") else found


def _fitting(call: Call, sizes: Shape, kernel: Shape, padding: str, size: str) -> tuple[Window, ...]:
    """Where windows do not fit the width, there is no height either, but not the other way round."""
    strides = [int(v) for v in call.attribute("strides")]
    if min(strides) < 1:
        raise call.invalid("BT-WINDOW", f"strides are {strides}, at least 1 is possible")
    found = []
    for axis, name in ((1, "width"), (0, "height")):
        taps, dimension, stride = kernel[axis], sizes[axis], strides[axis]
        if taps < 1 or (size == "truncated_sum" and taps >= dimension + 2 * stride):
            break
        try:
            given = Window(0, taps, stride, 1, 0, 0, 0)
            found.append(
                window(dimension, taps, stride, 1, padding=padding, size=size, most=_MOST) if dimension else given
            )
        except WindowError as error:
            raise call.invalid("BT-WINDOW", f"{name}: {error}") from None
    nothing = Window(0, 1, 1, 1, 0, 0, 0)
    across, down = (*found, nothing, nothing)[:2]
    return down, across


def result_shape(call: Call, found: Sequence[Window]) -> Shape:
    """The shape of what has one element per window and channel."""
    shape, last = call.input(0).shape, bool(call.attribute("channels_last"))
    axes = len(_sizes(shape, last))
    out = spatial_shape(found) if axes <= _NAMED else (1,) * axes
    return (shape[0], *out, shape[-1]) if last else (*shape[:2], *out)


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] gives [N, C, ...'], and [N, ..., C] gives [N, ...', C], for each output."""
    call.expect(1, None)
    return [result_shape(call, pool_windows(call))] * len(call.outputs)


def step_geometry(call: Call, found: Sequence[Window]) -> dict[str, Attribute]:
    """The windows and the layout as step parameters."""
    return {**spatial_parameters(found), "channels_last": bool(call.attribute("channels_last"))}


def counted(call: Call) -> str:
    """Which taps of a window count: see `Window.counts`."""
    return str(call.node.attributes.get("counted", "inside"))


def most_taps(found: Sequence[Window]) -> int:
    """Taps of a window that can lie in the image."""
    return math.prod(min(one.taps, one.size) for one in found)


def image_scratch(call: Call) -> int:
    """Bytes that sums or maxima of one image need beside the tensors."""
    source = call.input(0)
    return 5 * 8 * (max(source.size, call.output.size) // max(1, source.shape[0]))


def limits(call: Call, wraps: bool = False) -> dict[str, Attribute]:
    """Between which values results are stored: `low`, `high` and, where they follow from it, `output_zero_point`.

    Only an activation with a bound needs the output's scale: zero points play no part in pooling. `wraps`: bounds
    outside of the type, which zero points outside of it give, wrap.
    """
    activation, output = str(call.node.attributes.get("activation", "none")), call.output
    if "plain_range" in call.rules:
        low, high = plain_range.RULES[call.rules["plain_range"]](activation, output.type.numpy)
        return {"low": low, "high": high}
    unbounded = activation in ("none", "tanh", "sign_bit")
    if "activation_range" in call.rules and not (output.tensor.quantization is None and unbounded):
        found = fused_range(call)
        if wraps:
            ends = np.array([found["low"], found["high"]], np.int64).astype(output.type.numpy)
            found.update({"low": int(ends[0]), "high": int(ends[1])})
        return found
    if not unbounded:
        raise call.unsupported(
            "BT-ACTIVATION", f"the fused activation '{activation}' has no rule here", "choose numerics of this format"
        )
    if not output.type.is_integer:
        return {"low": -math.inf, "high": math.inf}
    return {"low": output.type.minimum, "high": output.type.maximum}


class Images:
    """The images of a batch, one by one, with named spatial axes.

    Attributes:
        windows: of depth, height and width; axes that the tensor has not are of one element.
        axes: positions of depth, height and width in an image.
    """

    def __init__(self, step: Step, x: np.ndarray) -> None:
        self._last = bool(step["channels_last"])
        self._shape = x.shape
        sizes = _joined(_sizes(x.shape, self._last))
        self.windows = step_windows(step, sizes)
        self.axes = (0, 1, 2) if self._last else (1, 2, 3)
        self._x = x.reshape(self._whole(tuple(one.size for one in self.windows)))

    def _whole(self, spatial: Shape) -> Shape:
        if self._last:
            return (self._shape[0], *spatial, self._shape[-1])
        return (*self._shape[:2], *spatial)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self._x)

    def place(self, *spatial: Any) -> tuple[Any, ...]:
        """The index of places along depth, height and width, of all channels."""
        return spatial if self._last else (slice(None), *spatial)

    def along(self, axis: int, place: Any) -> tuple[Any, ...]:
        """The index of places along one of the axes."""
        return (*(slice(None),) * self.axes[axis], place)

    def channels(self, numbers: np.ndarray) -> np.ndarray:
        """What is given for every window, so that it broadcasts to all channels."""
        return numbers[..., None] if self._last else numbers[None]

    def counts(self, counted: str) -> np.ndarray:
        """How many taps of every window count, for all channels; one number where it is the same everywhere."""
        found = self.channels(counts(self.windows, counted))
        return found.flat[:1].reshape((1,) * 4) if found.size and (found == found.flat[0]).all() else found

    def sums(self, image: np.ndarray, dtype: type) -> np.ndarray:
        """Sums over all windows: integers along one axis after the other, binary32 numbers in the order of the taps."""
        if image.dtype.kind != "f":
            for axis in (2, 1, 0):
                image = self._along(axis, image, dtype)
            return image
        total = np.zeros(self.empty(image.dtype).shape[1:], image.dtype)
        down, rows, across = ([*met(one)] for one in self.windows)
        with np.errstate(all="ignore"):
            for taps in product(down, rows, across):
                total[self.place(*(to for to, _ in taps))] += image[self.place(*(positions for _, positions in taps))]
        return total

    def _along(self, axis: int, image: np.ndarray, dtype: type) -> np.ndarray:
        one = self.windows[axis]
        if one.taps == one.stride == 1 and one.out == one.size and not one.before:
            return image.astype(dtype, copy=False)
        shape = list(image.shape)
        shape[self.axes[axis]] = one.out
        total: np.ndarray = np.zeros(shape, dtype)
        for to, positions in met(one):
            total[self.along(axis, to)] += image[self.along(axis, positions)]
        return total

    def first(self, image: np.ndarray) -> np.ndarray:
        """An image with its channels first."""
        return np.moveaxis(image, -1, 0) if self._last else image

    def back(self, image: np.ndarray) -> np.ndarray:
        """What `first` gave, as it was."""
        return np.moveaxis(image, 0, -1) if self._last else image

    def planes(self) -> np.ndarray:
        """Channels of all images one after the other, [planes, D, H, W]."""
        x = np.moveaxis(self._x, -1, 1) if self._last else self._x
        return x.reshape(-1, *x.shape[2:])

    def of_planes(self, values: np.ndarray) -> np.ndarray:
        """A value for every window of `planes`, as `empty` has them."""
        spatial = tuple(one.out for one in self.windows)
        channels = self._shape[-1 if self._last else 1]
        found = values.reshape(self._shape[0], channels, *spatial)
        return np.ascontiguousarray(np.moveaxis(found, 1, -1)) if self._last else found

    def empty(self, dtype: np.dtype) -> np.ndarray:
        """Room for the results of all images, image by image."""
        return np.empty(self._whole(tuple(one.out for one in self.windows)), dtype)

    def result(self, out: np.ndarray) -> np.ndarray:
        """What `empty` gave room for, in the shape of the output."""
        axes = len(self._shape) - 2
        spatial = (1,) * axes if axes > _NAMED else tuple(one.out for one in self.windows[_NAMED - axes :])
        return out.reshape(self._whole(spatial))


def met(one: Window) -> Iterator[tuple[slice, slice]]:
    """For every tap that any window uses: (windows, positions in the image), in ascending order of the tap.

    Taps that only ever meet padding are skipped, so a huge kernel costs no more than the image.
    """
    return (found for found in map(one.met, one.taps_met()) if found[0].stop)


__all__ = [
    "Images",
    "counted",
    "image_scratch",
    "infer",
    "limits",
    "met",
    "most_taps",
    "pool_windows",
    "result_shape",
    "step_geometry",
    "tap_count",
]
