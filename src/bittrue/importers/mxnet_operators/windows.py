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
    attributes: dict[str, Attribute] = {
        "kernel": kernel,
        "strides": source.integers("stride"),
        "pads": source.integers("pad"),
        "size": _SIZES[source.text("pooling_convention", "valid", tuple(_SIZES))],
        "whole": source.flag("global_pool"),
    }
    counted = source.flag("count_include_pad", True)
    stem = "convention_max_pool"
    if kind == "avg":
        stem, attributes = "convention_average_pool", {**attributes, "count_include_pad": counted}
    (output,) = source.emit(stem, [source.inputs[0]], [dtype], ["_output"], attributes)
    source.keeps_shape(output, 0)
    return output
