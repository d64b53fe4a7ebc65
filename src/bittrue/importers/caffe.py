"""Caffe networks to graphs: a network as text or binary message, weights as binary message (.caffemodel) or as HDF5.

Layers are those of the fork with quantization fields (input_scale, input_zero_point, quantize_method, saturate, ...).
Blobs are binary32 as in the system; one that a layer limits to 8 bits after rounding is u8 or s8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import InvalidModelError, ModelFormatError, UnsupportedError
from ..graph import Graph, ModelFile, Tensor, find_disorder
from .caffe_layers import Blob, Builder, Layer, map_layer
from .caffe_layers.base import MOST_AXES
from .caffe_schema import messages
from .hdf5 import read_groups
from .protobuf import parse

_TEST = 1
_MOST_LAYERS = 100_000
_LARGEST = 1 << 31
_HDF5 = b"\x89HDF"
_MEANINGS = "deploy networks have layers, or an input with its shape"
_WEIGHTS = "this is a file of weights: pass the network (.prototxt) as the model and this file as its weights"
# The old enumeration of layer types, where the name is not simply spelled differently.
_NAMES = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}


def read_caffe(network: np.ndarray | bytes | memoryview, weights: np.ndarray | bytes | memoryview | None) -> ModelFile:
    """Reads a network.

    Args:
        network: a NetParameter, as text or binary; a binary one may hold the weights itself.
        weights: a binary NetParameter or an HDF5 file with the arrays of its layers, or None.

    Raises:
        ModelFormatError: a file is no NetParameter.
        InvalidModelError: the network contradicts itself or its weights.
        UnsupportedError: it uses a part of the format that bittrue does not read.
    """
    classes = messages()
    net = parse(classes["NetParameter"], network, "Caffe network")
    _check_fields(net, "network")
    layers = _layers(net)
    if weights is None:
        learned = _arrays(net)
    elif bytes(weights[:4]) == _HDF5:
        learned = {name: [Blob(array) for array in arrays] for name, arrays in read_groups(weights).items()}
    else:
        learned = _arrays(parse(classes["NetParameter"], weights, "Caffe weight file", "weights"))
    size = len(network) + (0 if weights is None else len(weights))
    return ModelFile("caffe", "", (_graph(net, layers, learned),), {}, (), size)


def _check_fields(message: Any, place: str) -> None:
    """Refuse fields that the schema does not know: what they mean is not known either."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    unknown = UnknownFieldSet(message)
    if len(unknown):
        name = type(message).__name__
        raise UnsupportedError(
            "BT-CAFFE-FIELD",
            f"field {unknown[0].field_number} of {name} is not known",
            place=place,
            advice="the file comes from another fork, or has layers that bittrue does not read",
        )
    for field, value in message.ListFields():
        if field.message_type is None or field.name == "blobs":
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            name = getattr(one, "name", "")
            _check_fields(one, f"layer '{name}'" if field.name in ("layer", "layers") else place)


def _layers(net: Any) -> list[Any]:
    """Layers for testing, old ones in the form of the new ones."""
    if net.layer and net.layers:
        raise InvalidModelError("BT-CAFFE-LAYERS", "holds layers of both the old form and the new one")
    found = [_upgraded(old) for old in net.layers] if net.layers else list(net.layer)
    if len(found) > _MOST_LAYERS:
        raise UnsupportedError("BT-NODES", f"more than {_MOST_LAYERS:,} layers")
    return [layer for layer in found if _included(layer, net.state)]


def _upgraded(old: Any) -> Any:
    """A layer of the old form in the new one."""
    layer = messages()["LayerParameter"]()
    for field, value in old.ListFields():
        if field.name == "type":
            name = field.enum_type.values_by_number[value].name
            layer.type = _NAMES.get(name) or "".join(word.capitalize() for word in name.split("_"))
        elif field.name in ("param", "blob_share_mode", "blobs_lr", "weight_decay", "loss_weight"):
            continue
        elif field.message_type is not None and hasattr(value, "ListFields"):
            getattr(layer, field.name).CopyFrom(value)
        elif field.name == "name":
            layer.name = value
        else:
            getattr(layer, field.name).extend(value)
    return layer


def _included(layer: Any, state: Any) -> bool:
    """Whether the rules of a layer keep it in the network while testing."""
    if layer.include and layer.exclude:
        raise InvalidModelError(
            "BT-CAFFE-PHASE", "has rules to include and to exclude it", place=f"layer '{layer.name}'"
        )
    if layer.include:
        return any(_meets(rule, state) for rule in layer.include)
    return not any(_meets(rule, state) for rule in layer.exclude)


def _meets(rule: Any, state: Any) -> bool:
    stages = set(state.stage)
    return not (
        (rule.HasField("phase") and rule.phase != _TEST)
        or (rule.HasField("min_level") and state.level < rule.min_level)
        or (rule.HasField("max_level") and state.level > rule.max_level)
        or not stages.issuperset(rule.stage)
        or not stages.isdisjoint(rule.not_stage)
    )


def _arrays(net: Any) -> dict[str, list[Blob]]:
    """Learned arrays by the name of their layer; of several layers of one name, the last one counts."""
    return {layer.name: [_blob(proto, layer.name) for proto in layer.blobs] for layer in net.layers or net.layer}


def _blob(proto: Any, name: str) -> Blob:
    place = f"layer '{name}'"
    values = np.array(proto.double_data or proto.data, np.float64 if proto.double_data else np.float32)
    legacy = any(proto.HasField(field) for field in ("num", "channels", "height", "width"))
    shape = (proto.num, proto.channels, proto.height, proto.width) if legacy else tuple(int(v) for v in proto.shape.dim)
    if len(shape) > MOST_AXES or any(not 0 <= size < _LARGEST for size in shape):
        raise InvalidModelError("BT-CAFFE-SHAPE", f"shape {list(shape[:8])} of a blob is no shape", place=place)
    if math.prod(shape) != values.size:
        raise InvalidModelError(
            "BT-CAFFE-WEIGHTS",
            f"a blob of shape {list(shape)} holds {values.size:,} numbers",
            place=place,
            advice="the weight file is damaged; fetch it again",
        )
    with np.errstate(over="ignore"):
        return Blob(values.astype(np.float32).reshape(shape), legacy)


def _inputs(net: Any, layers: list[Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every input: fields of the network first, then layers of type Input."""
    if net.input_dim and net.input_shape:
        raise InvalidModelError("BT-CAFFE-INPUT", "shapes of inputs are given by input_dim and by input_shape")
    dims = list(net.input_dim)
    if len(dims) % 4:
        raise InvalidModelError("BT-CAFFE-INPUT", f"{len(dims)} numbers in input_dim: an input has 4 of them")
    shapes = [dims[i : i + 4] for i in range(0, len(dims), 4)] or [list(shape.dim) for shape in net.input_shape]
    if net.input and len(shapes) != len(net.input):
        raise InvalidModelError(
            "BT-CAFFE-INPUT", f"{len(net.input)} inputs with {len(shapes)} shapes", advice="declare a shape per input"
        )
    found = list(zip(net.input, shapes, strict=False))
    for layer in layers:
        if layer.type == "Input":
            given = [list(shape.dim) for shape in layer.input_param.shape]
            given = given * len(layer.top) if len(given) == 1 else given
            if not layer.top or len(given) != len(layer.top) or layer.bottom:
                raise InvalidModelError(
                    "BT-CAFFE-INPUT", f"{len(layer.top)} tops with {len(given)} shapes", place=f"layer '{layer.name}'"
                )
            found += zip(layer.top, given, strict=True)
    for name, shape in found:
        if len(shape) > MOST_AXES or any(not 0 < size < _LARGEST for size in shape):
            raise InvalidModelError("BT-CAFFE-SHAPE", f"shape {shape[:8]} is no shape", place=f"input '{name}'")
        yield name, tuple(shape)


def _graph(net: Any, layers: list[Any], arrays: dict[str, list[Blob]]) -> Graph:
    builder = Builder()
    for name, shape in _inputs(net, layers):
        if not name or name in builder.blobs:
            raise InvalidModelError("BT-CAFFE-BLOB", f"input '{name}' is given twice, or has no name")
        index = builder.add(Tensor(name, "f32", shape, (-1, *shape[1:]) if shape else None))
        builder.blobs[name] = index
        builder.inputs.append(index)
        builder.free.add(name)
    for proto in layers:
        if proto.type != "Input":
            _layer(proto, arrays.get(proto.name, []), builder)
    if not builder.nodes:
        advice = _WEIGHTS if arrays and not builder.inputs else _MEANINGS
        raise ModelFormatError("BT-CAFFE-FORMAT", "the network has no layers that compute something", advice=advice)
    # What no layer takes is an output, in the order of the names.
    outputs = [builder.blobs[name] for name in sorted(builder.free) if builder.blobs[name] not in builder.inputs]
    outputs = list(dict.fromkeys(outputs))
    if not outputs:
        raise InvalidModelError("BT-CAFFE-OUTPUT", "every blob is taken by a layer: the network has no output")
    disorder = find_disorder(builder.tensors, builder.nodes, builder.inputs, outputs)
    if disorder is not None:
        raise InvalidModelError(
            disorder.code,
            disorder.message,
            place=f"{disorder.where}, tensor '{builder.tensors[disorder.tensor].name}'",
        )
    aliases = {
        name: builder.blobs[name]
        for name in sorted(builder.free)
        if builder.blobs[name] in outputs and builder.tensors[builder.blobs[name]].name != name
    }
    return Graph(
        net.name,
        tuple(builder.tensors),
        tuple(builder.nodes),
        tuple(builder.inputs),
        tuple(outputs),
        aliases=aliases,
    )


def _layer(proto: Any, learned: list[Blob], builder: Builder) -> None:
    place = f"node {len(builder.nodes)} ({proto.type}), layer '{proto.name}'"
    for blob in proto.bottom:
        if blob not in builder.blobs:
            raise InvalidModelError(
                "BT-NODE-ORDER", f"bottom blob '{blob}' is not computed before it is used", place=place
            )
        builder.free.discard(blob)
    map_layer(Layer(proto, [builder.blobs[blob] for blob in proto.bottom], learned, builder))
