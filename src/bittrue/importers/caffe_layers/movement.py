"""Mappings of layers that move numbers, or do nothing: Dropout, Flatten, Input, Reshape, Silence, Split."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...graph import Attribute
from .base import Layer, Mappers


def _same(layer: Layer) -> None:
    """Every top is the bottom; nothing is computed."""
    layer.expect(1, (1, None))
    for top in range(len(layer.tops)):
        layer.alias(top, layer.bottoms[0])


def _dropout(layer: Layer) -> None:
    """The bottom itself, unless it scales or drops while testing."""
    layer.expect(1)
    parameter = layer.proto.dropout_param
    if not parameter.scale_train or parameter.sample_weights_test:
        raise layer.unsupported("BT-CAFFE-DROPOUT", "a Dropout layer that scales while testing", "remove the layer")
    layer.alias(0, layer.bottoms[0])


def _silence(layer: Layer) -> None:
    layer.expect((1, None), 0)


def _reshaped(layer: Layer, first: int, end: int, sizes: Iterable[int]) -> None:
    """Axes between two places (counted from behind where negative: -1 is behind the last one) get new dimensions."""
    layer.expect(1)
    target = layer.constant(np.asarray(list(sizes), np.int64), "shape")
    attributes: dict[str, Attribute] = {"first": first, "end": end, "zeros": "copied"}
    layer.emit("reshape", layer.dtype(), attributes, inputs=(layer.bottoms[0], target))


def _reshape(layer: Layer) -> None:
    parameter = layer.proto.reshape_param
    if parameter.pixelshuffler != 1:
        raise layer.unsupported("BT-CAFFE-RESHAPE", "a Reshape layer that shuffles pixels")
    first, count = parameter.axis, parameter.num_axes
    end = first + count
    if count < -1 or (count >= 0 and first < 0 <= end):
        raise layer.invalid("BT-CAFFE-RESHAPE", f"num_axes {count} from axis {first} leaves the blob")
    _reshaped(layer, first, -1 if count == -1 else end, parameter.shape.dim)


def _flatten(layer: Layer) -> None:
    """The axes from `axis` up to and with `end_axis` become one."""
    parameter = layer.proto.flatten_param
    first, last = parameter.axis, parameter.end_axis
    _reshaped(layer, first if first >= 0 else first - 1, last + 1 if last >= 0 else last, (-1,))


MAPPERS: Mappers = {
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Silence": _silence,
    "Split": _same,
}
