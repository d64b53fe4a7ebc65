"""Mappings of element-wise operators, pools and tables on quantized numbers."""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import MICROSOFT, Mapper, Mappers, Source, same_type
from .windows import WHOLE, pool_attributes


def _average_pool(source: Source) -> None:
    attributes = {
        **pool_attributes(source, dilated=False),
        "counted": "taps" if source.flag("count_include_pad", False, True) else "inside",
        "channels_last": source.flag("channels_last", False, True),
    }
    source.emit("average_pool", source.type(0), attributes)


def _required(source: Source, name: str, why: str) -> int:
    if not source.has(name):
        raise source.invalid("BT-ONNX-ATTRIBUTE", f"attribute '{name}' is missing: {why}")
    return source.integer(name, 0)


def _concat(source: Source) -> None:
    """The tensors come first, then their scales and zero points, then those of the result, which the file has first."""
    axis, given = _required(source, "axis", "it has no default"), source.inputs
    pairs = [index for first in range(2, len(given), 3) for index in given[first + 1 : first + 3]]
    inputs = [*given[2::3], *pairs, *given[:2]]
    source.emit("concatenation", source.type(2), {"axis": axis, "given": "scales"}, inputs=inputs)


def _global_average_pool(source: Source) -> None:
    source.emit("average_pool", source.type(0), {**WHOLE, "channels_last": source.flag("channels_last", False, True)})


def _leaky_relu(source: Source) -> None:
    source.emit("leaky_relu", source.type(0), {"alpha": source.real("alpha", 0.01)})


def _max_pool(source: Source) -> None:
    source.emit("max_pool", source.type(0), {**pool_attributes(source), "channels_last": True})


def _pair(stem: str) -> Mapper:
    """Both tensors come first; the file has each one before its scale and zero point."""

    def apply(source: Source) -> None:
        given = [*source.inputs, *(None,) * (8 - len(source.inputs))]
        inputs = [given[position] for position in (0, 3, 1, 2, 4, 5, *range(6, len(given)))]
        while len(inputs) > len(source.inputs):
            inputs.pop()
        source.emit(stem, source.type(0), inputs=inputs)

    return apply


def _reduce_mean(source: Source) -> None:
    axes = source.integers("axes")
    given = source.constant(np.array(axes, np.int64), "axes") if axes else None
    attributes: dict[str, Attribute] = {
        "keep_dims": source.flag("keepdims", True, False),
        "keeps_without_axes": False,
    }
    source.emit("mean", source.type(0), attributes, inputs=(source.inputs[0], given, *source.inputs[1:]))


def _softmax(source: Source) -> None:
    # Before operator set 13, a row was everything from the axis on.
    opset = _required(source, "opset", "it decides what a row is")
    attributes = {"axis": source.integer("axis", -1), "flattened": opset < 13, "beta": 1.0}
    source.emit("softmax", source.type(0), attributes)


def _where(source: Source) -> None:
    """Both tensors come before their scales and zero points."""
    given = [*source.inputs, *(None,) * (9 - len(source.inputs))]
    inputs = [given[position] for position in (0, 1, 4, 2, 3, *range(5, len(given)))]
    attributes: dict[str, Attribute] = {"broadcasts": True, "keeps_declared_shape": False}
    source.emit("select", source.type(1), attributes, inputs=inputs)


MAPPERS: Mappers = {
    (MICROSOFT, "NhwcMaxPool"): _max_pool,
    (MICROSOFT, "QLinearAdd"): _pair("add"),
    (MICROSOFT, "QLinearAveragePool"): _average_pool,
    (MICROSOFT, "QLinearConcat"): _concat,
    (MICROSOFT, "QLinearGlobalAveragePool"): _global_average_pool,
    (MICROSOFT, "QLinearLeakyRelu"): _leaky_relu,
    (MICROSOFT, "QLinearMul"): _pair("mul"),
    (MICROSOFT, "QLinearReduceMean"): _reduce_mean,
    (MICROSOFT, "QLinearSigmoid"): same_type("logistic"),
    (MICROSOFT, "QLinearSoftmax"): _softmax,
    (MICROSOFT, "QLinearWhere"): _where,
}
