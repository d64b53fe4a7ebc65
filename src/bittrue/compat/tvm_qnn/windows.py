"""Windows of layers and pools, and which of them the words `same` and `valid` say."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import Attribute
from ...operators.core.geometry import Window, WindowError, window
from . import checks
from .expr import Expr


def placed(
    function: str,
    parameter: str,
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    size: str = "floor",
) -> list[Window]:
    """The windows over height and width; InputError, about `parameter`, where there are none."""
    axes = zip(sizes, taps, strides, dilation, zip(pads[:2], pads[2:], strict=True), strict=True)
    try:
        return [window(*axis, "explicit", size) for axis in axes]
    except WindowError as error:
        raise checks.wrong(function, parameter, str(error), code="BT-QNN-SHAPE") from None


# Rules for padding and size of layers that a step of its own pads.
NO_PADDING = "explicit", "truncated_sum"


def padding_rules(
    shape: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    out: Sequence[int],
) -> tuple[str, str] | None:
    """The rules for padding and size, without padding or the same as ever, that mean these pads (top, left, bottom,
    right) and dimensions; None where neither do.
    """
    for rules in (NO_PADDING, ("same_upper", "floor")):
        try:
            found = [window(*one, padding=rules[0]) for one in zip(shape, taps, strides, dilation, strict=True)]
        except WindowError:
            continue
        sides = (*(one.before for one in found), *(one.after for one in found))
        if sides == tuple(pads) and [one.out for one in found] == list(out):
            return rules
    return None


def pool_attributes(expr: Expr) -> dict[str, Attribute]:
    """The windows of a pool in the form that all pools have."""
    a = expr.attributes
    return {
        "kernel": a["pool_size"],
        "strides": a["strides"],
        "dilations": a["dilation"],
        "pads": a["padding"],
        "padding": "explicit",
        "size": "ceil_hanging" if a["ceil_mode"] else "floor",
        "channels_last": a["layout"] == "NHWC",
        "activation": "none",
    }
