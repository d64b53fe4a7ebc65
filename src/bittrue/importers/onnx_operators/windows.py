"""Attributes of ONNX's convolutions and pools."""

from __future__ import annotations

from ...graph import Attribute
from .base import Source


def window_attributes(source: Source) -> dict[str, Attribute]:
    """`kernel_shape`, `strides`, `dilations`, `pads` (empty where absent: the rank decides) and `auto_pad`."""
    attributes: dict[str, Attribute] = {
        name: source.integers(name, ()) or () for name in ("kernel_shape", "strides", "dilations", "pads")
    }
    return {**attributes, "auto_pad": source.text("auto_pad", "NOTSET")}
