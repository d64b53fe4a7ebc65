"""Cases of SNPS Caffe layers: a network of one layer as text and its weights as binary message, read like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...graph import data_type
from ...importers import read_model
from ...importers.caffe_schema import messages
from .adapters import Trial
from .vectors import Case, Recorded, damaged

# The field of a layer that holds its parameters, by layer type.
_PARAMETERS = {
    "Bias": "bias_param",
    "Concat": "concat_param",
    "Convolution": "convolution_param",
    "ConvolutionDepthwise": "convolution_param",
    "Deconvolution": "convolution_param",
    "Eltwise": "eltwise_param",
    "InnerProduct": "inner_product_param",
    "Pooling": "pooling_param",
    "Power": "power_param",
    "ReLU": "relu_param",
    "ResizeBilinear": "resize_bilinear_param",
    "Sigmoid": "sigmoid_param",
    "Softmax": "softmax_param",
    "SpatialBatchingPooling": "spatial_batching_pooling_param",
}
# Environment variable that some cases were recorded under, and the numerics that it means.
_ROUND = "CAFFE_QUANTIZED_ROUND"
_NUMERICS = {None: "snps_caffe", "EV": "snps_caffe-ev", "SR": "snps_caffe-sr"}
# Said about the case, not to the layer.
_NO_FIELDS = {_ROUND, "method_field_present"}


def trial(case: Case) -> Trial:
    """A network of the case's layer; inputs called x, x0, x1, ... are fed, the other arrays are its weights.

    Fields of the case: ``layer_type``, and attributes by the names of the layer's fields. Arrays are stored in any type
    that holds their numbers; the system has binary32.
    """
    from google.protobuf import text_format

    kind = case.fields.get("layer_type", case.operator)
    if kind not in _PARAMETERS:
        raise UnsupportedError("BT-VECTORS-OPERATOR", f"layer type {kind!r} has no adapter", place=case.place)
    given = [one for one in case.inputs() if one is not None]
    outputs = [one for one in case.outputs() if one is not None]
    fed = [one for one in given if one.name.lstrip("x").isdigit() or one.name == "x"]
    learned = [one for one in given if one not in fed]
    if not fed or len(outputs) != 1:
        raise damaged("a case has inputs and one output", case.place)
    classes = messages()
    net, weights = classes["NetParameter"](name=case.operator), classes["NetParameter"]()
    for one in fed:
        layer = net.layer.add(name=one.name, type="Input", top=[one.name])
        layer.input_param.shape.add().dim.extend(one.value.shape)
    layer = net.layer.add(name="layer", type=kind, bottom=[one.name for one in fed], top=["y"])
    _fill(getattr(layer, _PARAMETERS[kind]), case.attributes, case.place)
    blobs = weights.layer.add(name="layer", type=kind)
    for one in learned:
        blob = blobs.blobs.add()
        blob.shape.dim.extend(one.value.shape)
        blob.data.extend(_reals(one).reshape(-1).tolist())
    model = read_model(text_format.MessageToString(net).encode(), weights.SerializeToString())
    graph = model.graphs[0]
    numerics = _NUMERICS.get(case.attributes.get(_ROUND))
    if numerics is None:
        raise damaged(f"{_ROUND} is {case.attributes[_ROUND]!r}", case.place)
    return Trial(
        model,
        [_reals(one) for one in fed],
        [_typed(outputs[0], graph.tensors[graph.outputs[0]].dtype)],
        numerics,
        zero_signs=False,
    )


def _reals(one: Recorded) -> np.ndarray:
    return one.value.astype(np.float32)


def _typed(one: Recorded, dtype: str) -> Recorded:
    """The numbers in the type of our result, where that holds all of them."""
    wanted = data_type(dtype)
    value = one.value.astype(wanted.numpy)
    if (value.astype(np.float64) != one.value.astype(np.float64)).any():
        return one
    return Recorded(one.name, wanted, value, one.fields)


def _fill(parameter: Any, attributes: Mapping[str, Any], place: str) -> None:
    fields = {field.name: field for field in parameter.DESCRIPTOR.fields}
    for name, value in attributes.items():
        if name in _NO_FIELDS or (name == "quantize_method" and _leaves_out_method(attributes, fields)):
            continue
        if name not in fields:
            raise UnsupportedError("BT-VECTORS-ATTRIBUTE", f"the layer has no field '{name}'", place=place)
        field = fields[name]
        try:
            values = [
                _value(field, one)
                for one in (value if isinstance(value, Sequence | list) and not isinstance(value, str) else [value])
            ]
            if hasattr(getattr(parameter, name), "extend"):
                getattr(parameter, name).extend(values)
            elif len(values) == 1:
                setattr(parameter, name, values[0])
            else:
                raise ValueError("several values")
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise UnsupportedError(
                "BT-VECTORS-ATTRIBUTE", f"attribute '{name}' is {value!r}: {error}", place=place
            ) from None


def _leaves_out_method(attributes: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return not attributes.get("method_field_present", True) or "quantize_method" not in fields


def _value(field: Any, value: Any) -> Any:
    """A JSON value as the field takes it."""
    if field.enum_type is not None:
        return field.enum_type.values_by_name[value].number
    if isinstance(value, float) and field.cpp_type not in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return int(value) if value.is_integer() else value
    return value
