"""Mappings of matrix products and convolutions on integers."""

from __future__ import annotations

from ...graph import Attribute
from .base import MICROSOFT, Mappers, Source
from .windows import window_attributes


def _qlinear_matmul(source: Source) -> None:
    source.emit("qlinear_matmul", source.type(7))


def _convolution(source: Source) -> dict[str, Attribute]:
    if source.has("auto_pad") and source.has("pads") and source.text("auto_pad", "NOTSET") != "NOTSET":
        raise source.invalid(
            "BT-ONNX-ATTRIBUTE", "has both 'auto_pad' and 'pads'", "the runtime refuses it, too; remove one of them"
        )
    last = bool(source.integer("channels_last", 0)) if source.domain == MICROSOFT else False
    return {**window_attributes(source), "groups": source.integer("group", 1), "channels_last": last}


def _qlinear_conv(source: Source) -> None:
    source.emit("qlinear_conv", source.type(7), _convolution(source))


def _conv_integer(source: Source) -> None:
    source.emit("conv_integer", "s32", _convolution(source))


MAPPERS: Mappers = {
    ("", "ConvInteger"): _conv_integer,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    (MICROSOFT, "QLinearConv"): _qlinear_conv,
}
