"""Windows over height and width: output extents and padding, shared by convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Call

# Kernels keep strides, dilations and the padding before a picture in 16 bits and refuse more.
LARGEST = 32767


@dataclass(frozen=True)
class Window:
    """One spatial axis: `taps` positions `dilation` apart, moved by `stride`, after `before` padded positions."""

    extent: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    @property
    def reach(self) -> int:
        """Positions from the first to the last tap, both included."""
        return (self.taps - 1) * self.dilation + 1


def window(
    call: Call, axis: str, extent: int, taps: int, stride: int, dilation: int, padding: str | tuple[int, int]
) -> Window:
    """Output extent and padding of one spatial axis.

    reach = (taps - 1) * dilation + 1; out = ceil(extent / stride) for ``same``, (extent + stride - reach) / stride
    truncated for ``valid`` (so a window that does not fit may give an empty output);
    total = max(0, (out - 1) * stride + reach - extent), half of it (rounded down) before.
    Padding given as numbers of positions before and after: out = floor((extent + both - reach) / stride) + 1.
    Raises InvalidModelError for values that no kernel accepts. Source: docs/facts/litert.md 1.7, docs/facts/caffe2.md
    0, verified by running.
    """
    for name, value in (("extent", extent), ("filter extent", taps), ("stride", stride), ("dilation", dilation)):
        if not 1 <= value < 2**31:
            raise call.invalid("BT-WINDOW", f"{axis} {name} must be at least 1, found {value}")
    reach = (taps - 1) * dilation + 1
    if not isinstance(padding, str):
        before, after = padding
        if min(padding) < 0 or max(padding) > LARGEST or extent + before + after < reach:
            raise call.invalid(
                "BT-WINDOW",
                f"a window that reaches over {reach} does not fit {axis} {extent} with pads {list(padding)}",
            )
        return Window(extent, taps, stride, dilation, before, after, (extent + before + after - reach) // stride + 1)
    # int() of a quotient truncates like C; both numbers are far below 2^53.
    out = -(-extent // stride) if padding == "same" else int((extent + stride - reach) / stride)
    if out < 0:
        raise call.invalid(
            "BT-WINDOW", f"a window that reaches over {reach} does not fit {axis} {extent} with padding '{padding}'"
        )
    total = max(0, (out - 1) * stride + reach - extent)
    return Window(extent, taps, stride, dilation, total >> 1, total - (total >> 1), out)


def sides(call: Call, suffix: str) -> str | tuple[int, int]:
    """The padding of an axis: the attribute `padding`, or where that is ``explicit`` its part of `pads`.

    `pads` holds the positions at the top, left, bottom and right.
    """
    padding = str(call.attribute("padding"))
    if padding != "explicit":
        return padding
    pads = call.attribute("pads")
    if len(pads) != 4:
        raise call.invalid("BT-WINDOW", f"pads {list(pads)} must be four numbers")
    first = "hw".index(suffix)
    return int(pads[first]), int(pads[first + 2])


def windows(call: Call, height: int, width: int, taps_h: int, taps_w: int) -> tuple[Window, Window]:
    """The vertical and horizontal window of a convolution, from its stride, dilation and padding attributes."""

    def axis(name: str, extent: int, taps: int, suffix: str) -> Window:
        stride, dilation = call.attribute(f"stride_{suffix}"), call.attribute(f"dilation_{suffix}")
        found = window(call, name, extent, taps, stride, dilation, sides(call, suffix))
        for what, value in (("stride", stride), ("dilation", dilation), ("padding", found.before)):
            if value > LARGEST:
                raise call.invalid("BT-WINDOW", f"{name} {what} is {value}, at most {LARGEST} is possible")
        return found

    return axis("height", height, taps_h, "h"), axis("width", width, taps_w, "w")


def window_parameters(vertical: Window, horizontal: Window) -> dict[str, int]:
    """The geometry as step parameters."""
    return {
        "filter_h": vertical.taps,
        "filter_w": horizontal.taps,
        "stride_h": vertical.stride,
        "stride_w": horizontal.stride,
        "dilation_h": vertical.dilation,
        "dilation_w": horizontal.dilation,
        "pad_top": vertical.before,
        "pad_bottom": vertical.after,
        "pad_left": horizontal.before,
        "pad_right": horizontal.after,
        "out_h": vertical.out,
        "out_w": horizontal.out,
    }


def numbers(call: Call, name: str, count: int, low: int) -> tuple[int, ...]:
    """Attribute `name`: `count` numbers from `low` to the largest one that kernels accept."""
    given = tuple(int(v) for v in call.attribute(name))
    if len(given) != count or any(not low <= v <= LARGEST for v in given):
        raise call.invalid(
            "BT-WINDOW", f"attribute '{name}' is {list(given)[:8]}, expected {count} numbers from {low} to {LARGEST}"
        )
    return given


def meeting(stepped: int, other: int, stride: int, shift: int) -> tuple[slice, slice]:
    """Positions p < `stepped` with 0 <= p * stride + shift < `other`, and where those are; two empty slices for none.

    >>> meeting(4, 5, 2, -1)  # -1, 1, 3, 5
    (slice(1, 3, None), slice(1, 4, 2))
    """
    first = max(0, -(shift // stride))
    last = min(stepped, (other - 1 - shift) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(first * stride + shift, (last - 1) * stride + shift + 1, stride)


def padded_bytes(vertical: Window, horizontal: Window, channels: int, item: int = 8) -> int:
    """Bytes of one padded picture with `item` bytes per element."""
    height = vertical.extent + vertical.before + vertical.after
    width = horizontal.extent + horizontal.before + horizontal.after
    return height * width * channels * item
