"""Attributes of windows, for pools of real numbers and of quantized values."""

from __future__ import annotations

from ...graph import Attribute
from .base import Source

# Windows that leave positions over are refused by `same`, and get one more window by `full`.
_SIZES = {"valid": "floor", "full": "ceil", "same": "exact"}


def pool(source: Source, dtype: str, kernel: tuple[int, ...]) -> int:
    """The pool of input 0; an empty `kernel` is for windows that are the whole image."""
    source.ignore("cudnn_off", "p_value")
    kind = source.text("pool_type", "max", ("max", "avg"))
    whole, pads = source.flag("global_pool"), source.integers("pad")
    size = _SIZES[source.text("pooling_convention", "valid", tuple(_SIZES))]
    attributes: dict[str, Attribute] = {
        "kernel": kernel,
        "strides": source.integers("stride"),
        "dilations": (),
        "pads": (*pads, *pads),
        "padding": "explicit" if whole else "explicit_below_taps",
        "size": "floor" if whole else size,
        "whole": whole,
        "channels_last": False,
    }
    counted = source.flag("count_include_pad", True)
    stem = "max_pool"
    if kind == "avg":
        stem, attributes = "average_pool", {**attributes, "counted": "taps" if counted else "inside"}
    (output,) = source.emit(stem, [source.inputs[0]], [dtype], ["_output"], attributes)
    source.keeps_shape(output, 0)
    return output
