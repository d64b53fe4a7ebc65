"""Reading networks and weights: text, binary, old forms, phases, layers in place, and what is refused.

The operator reshape.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from google.protobuf import text_format

import bittrue
from bittrue.importers import read_model
from bittrue.importers.caffe_schema import messages
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import ReferenceExecutor
from support.caffe_models import Files


def results(network: bytes, *feeds: np.ndarray, weights: bytes | None = None) -> dict[str, np.ndarray]:
    graph = read_model(network, weights).graphs[0]
    plan = make_plan(graph, find("snps_caffe"))
    found = ReferenceExecutor(plan).run(dict(zip(graph.inputs, map(np.float32, feeds), strict=True)))
    by_index = dict(zip(plan.results, found, strict=True))
    return {graph.tensors[index].name: by_index[index] for index in graph.outputs}


def one_product() -> Files:
    files = Files({"x": (2, 3)})
    files.add("InnerProduct", "f", ["x"], ["y"], [np.array([[1, 2, 3]]), np.array([10])], num_output=1)
    return files


X = np.array([[1, 1, 1], [0, 0, 2]])


def binary(files: Files, with_weights: bool = True) -> bytes:
    net = text_format.Parse(files.text, messages()["NetParameter"]())
    if with_weights:
        for layer in net.layer:
            layer.blobs.extend(
                blob for other in files.weights.layer if other.name == layer.name for blob in other.blobs
            )
    content: bytes = net.SerializeToString()
    return content


def test_text_and_weights_binary_and_weights_and_weights_alone() -> None:
    files = one_product()
    for network, weights in (
        (files.network, files.learned),
        (binary(files, False), files.learned),
        (binary(files), None),
        (text_format.MessageToString(messages()["NetParameter"].FromString(binary(files))).encode(), None),
    ):
        assert results(network, X, weights=weights)["y"].tolist() == [[16.0], [16.0]]


def test_weights_beside_the_network_are_found(tmp_path: Path) -> None:
    files = one_product()
    (tmp_path / "net.caffemodel").write_bytes(files.learned)
    for name in ("net.prototxt", "net_deploy.prototxt"):
        (tmp_path / name).write_bytes(files.network)
        session = bittrue.load(tmp_path / name).prepare()
        assert session.run({"x": X.astype(np.float32)})["y"].tolist() == [[16.0], [16.0]]


def test_numbers_as_doubles_and_shapes_of_the_old_form() -> None:
    files = one_product()
    layer = files.weights.layer[0]
    for blob, shape in zip(layer.blobs, ((1, 1, 1, 3), (1, 1, 1, 1)), strict=True):
        blob.double_data.extend(blob.data)
        blob.ClearField("data")
        blob.ClearField("shape")
        blob.num, blob.channels, blob.height, blob.width = shape
    assert results(files.network, X, weights=files.learned)["y"].tolist() == [[16.0], [16.0]]
    layer.blobs[0].width = 2
    with pytest.raises(bittrue.InvalidModelError, match="holds 3 numbers"):
        read_model(files.network, files.learned)


def test_layers_of_the_old_form() -> None:
    text = b"""input: "x" input_dim: 2 input_dim: 3 input_dim: 1 input_dim: 1
        layers { name: "f" type: INNER_PRODUCT bottom: "x" top: "y" inner_product_param { num_output: 1 }
                 blobs_lr: 1 weight_decay: 0 }
        layers { name: "d" type: DROPOUT bottom: "y" top: "y" }"""
    weights = messages()["NetParameter"]()
    layer = weights.layers.add(name="f", type=14)
    for shape, data in (((1, 1, 1, 3), [1, 2, 3]), ((1, 1, 1, 1), [10])):
        blob = layer.blobs.add(data=data)
        blob.num, blob.channels, blob.height, blob.width = shape
    found = results(text, X.reshape(2, 3, 1, 1), weights=weights.SerializeToString())
    assert found["y"].tolist() == [[16.0], [16.0]]


def test_only_layers_for_testing_stay() -> None:
    files = one_product()
    text = (
        files.text
        + """
        layer { name: "t" type: "Python" top: "z" include { phase: TRAIN } }
        layer { name: "u" type: "Python" top: "z" exclude { phase: TEST } }
        layer { name: "s" type: "Python" top: "z" include { stage: "val" } }
        layer { name: "m" type: "Python" top: "z" include { min_level: 1 } }
        layer { name: "d" type: "Dropout" bottom: "y" top: "y" include { phase: TEST not_stage: "val" max_level: 3 } }
    """
    )
    assert list(results(text.encode(), X, weights=files.learned)) == ["y"]


def test_layers_in_place_and_copies_have_the_names_of_their_blobs() -> None:
    text = b"""layer { name: "in" type: "Input" top: "x" top: "other" input_param { shape { dim: 2 dim: 3 } } }
        layer { name: "a" type: "Power" bottom: "x" top: "x" power_param { scale: 2 } }
        layer { name: "b" type: "Power" bottom: "x" top: "x" power_param { shift: 1 } }
        layer { name: "c" type: "Split" bottom: "x" top: "one" top: "two" }
        layer { name: "e" type: "Power" bottom: "two" top: "z" power_param { scale: 3 } }
        layer { name: "quiet" type: "Silence" bottom: "other" }"""
    graph = read_model(text).graphs[0]
    assert [graph.tensors[i].name for i in graph.inputs] == ["x", "other"]
    names = [tensor.name for tensor in graph.tensors]
    assert len(set(names)) == len(names)
    found = results(text, X, X)
    assert list(found) == ["x@b", "z"]
    assert found["z"].tolist() == (3 * (2 * X + 1)).tolist()
    assert graph.aliases == {"one": graph.outputs[0]}


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        ('type: "Flatten"', (2, 60)),
        ('type: "Flatten" flatten_param { axis: 0 end_axis: 1 }', (6, 4, 5)),
        ('type: "Flatten" flatten_param { axis: -2 end_axis: -1 }', (2, 3, 20)),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: -1 dim: 10 } }', (2, 6, 10)),
        ('type: "Reshape" reshape_param { axis: 1 num_axes: 2 shape { dim: 12 } }', (2, 12, 5)),
        ('type: "Reshape" reshape_param { axis: -1 shape { dim: 1 dim: 1 } }', (2, 3, 4, 5, 1, 1)),
        ('type: "Reshape" reshape_param { axis: -3 num_axes: 1 shape { dim: 2 dim: -1 } }', (2, 3, 2, 2, 5)),
        ('type: "Reshape" reshape_param { axis: 1 num_axes: 0 shape { dim: 1 } }', (2, 1, 3, 4, 5)),
    ],
)
def test_reshape_and_flatten(layer: str, shape: tuple[int, ...]) -> None:
    """reshape keeps the elements' order."""
    text = (
        f'input: "x" input_shape {{ dim: 2 dim: 3 dim: 4 dim: 5 }} layer {{ name: "r" {layer} bottom: "x" top: "y" }}'
    )
    x = np.arange(120).reshape(2, 3, 4, 5)
    found = results(text.encode(), x)["y"]
    assert found.shape == shape
    assert found.reshape(-1).tolist() == x.reshape(-1).tolist()


REFUSED = [
    ('input: "x" layer { name: "d" type: "Power" bottom: "x" top: "y" }', "BT-CAFFE-INPUT"),
    ('input: "x" input_dim: 1 input_dim: 2 layer { type: "Power" bottom: "x" top: "y" }', "BT-CAFFE-INPUT"),
    ('input: "x" input_shape { dim: -1 } layer { type: "Power" bottom: "x" top: "y" }', "BT-CAFFE-SHAPE"),
    ('input: "x" input_shape { dim: 0 } layer { type: "Power" bottom: "x" top: "y" }', "BT-CAFFE-SHAPE"),
    ('input: "x" input_shape { dim: 1 } layer { type: "Power" bottom: "q" top: "y" }', "BT-NODE-ORDER"),
    (
        'input: "x" input_shape { dim: 1 } layer { type: "Power" bottom: "x" top: "y" } '
        'layer { type: "Power" bottom: "x" top: "y" }',
        "BT-CAFFE-BLOB",
    ),
    ('input: "x" input: "x" input_shape { dim: 1 } input_shape { dim: 1 } layer { type: "Split" }', "BT-CAFFE-BLOB"),
    ('layer { name: "i" type: "Input" top: "x" }', "BT-CAFFE-INPUT"),
    ('layer { name: "i" type: "Input" top: "x" input_param { shape { dim: 1 } } }', "BT-CAFFE-FORMAT"),
    ('layer { name: "i" type: "LRN" lrn_param { local_size: 5 } }', "BT-PROTOBUF-FORMAT"),
    ('layer { name: "i" type: "Power" power_param { scale: } }', "BT-PROTOBUF-FORMAT"),
    ('layer { name: "i" include { phase: TEST } exclude { phase: TRAIN } }', "BT-CAFFE-PHASE"),
    ('layer { name: "a" } layers { name: "b" }', "BT-CAFFE-LAYERS"),
    (
        'input: "x" input_shape { dim: 4 } layer { type: "Dropout" bottom: "x" top: "y" dropout_param { scale_train: '
        "false } }",
        "BT-CAFFE-DROPOUT",
    ),
    (
        'input: "x" input_shape { dim: 4 } layer { type: "Reshape" bottom: "x" top: "y" '
        "reshape_param { shape { dim: 3 } } }",
        "BT-RESHAPE",
    ),
    (
        'input: "x" input_shape { dim: 4 } layer { type: "Flatten" bottom: "x" top: "y" flatten_param { axis: 3 } }',
        "BT-SHAPE-AXIS",
    ),
    ('input: "x" input_shape { dim: 4 } layer { type: "LSTM" bottom: "x" top: "y" }', "BT-OPERATOR"),
]


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_refused_networks(text: str, code: str) -> None:
    with pytest.raises(bittrue.BittrueError) as caught:
        make_plan(read_model(text.encode()).graphs[0], find("snps_caffe"))
    assert caught.value.code == code


def hdf5_of(files: Files, **keywords: Any) -> bytes:
    """The weights as the system writes them: data/LAYER/0, 1, ..."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for layer in files.weights.layer:
            group = file.create_group(f"data/{layer.name}")
            for i, blob in enumerate(layer.blobs):
                group.create_dataset(str(i), data=np.reshape(blob.data, blob.shape.dim), **keywords)
    return content.getvalue()


def test_weights_in_hdf5(tmp_path: Path) -> None:
    """In the types that the system reads, compressed or not, and beside the network."""
    files = one_product()
    for keywords in ({"dtype": "f4"}, {"dtype": "f8", "compression": "gzip"}, {"dtype": "i2"}):
        weights = hdf5_of(files, **keywords)
        assert results(files.network, X, weights=weights)["y"].tolist() == [[16.0], [16.0]]
    (tmp_path / "net.prototxt").write_bytes(files.network)
    (tmp_path / "net.caffemodel.h5").write_bytes(weights)
    session = bittrue.load(tmp_path / "net.prototxt").prepare()
    assert session.run({"x": X.astype(np.float32)})["y"].tolist() == [[16.0], [16.0]]


@pytest.mark.parametrize("fault", ["cut", "header", "elsewhere", "text", "missing"])
def test_damaged_weights_in_hdf5(fault: str) -> None:
    files = one_product()
    content = bytearray(hdf5_of(files, dtype="f4"))
    if fault == "cut":
        content = content[:700]
    elif fault == "header":
        content[8:64] = bytes(range(56))
    else:
        changed = io.BytesIO(bytes(content))
        with h5py.File(changed, "r+") as file:
            del file["data/f/0"]
            if fault == "elsewhere":
                file["data/f/0"] = h5py.ExternalLink("/etc/passwd", "data")
            elif fault == "text":
                file["data/f/0"] = "weights"
        content = bytearray(changed.getvalue())
    with pytest.raises(bittrue.ModelFormatError, match="HDF5") as caught:
        read_model(files.network, bytes(content))
    assert caught.value.code == "BT-HDF5"


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h5py.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(bittrue.UnsupportedError, match="h5py"):
        read_model(one_product().network, hdf5_of(one_product()))


def test_fields_that_nobody_knows_are_refused() -> None:
    files = one_product()
    content = bytearray(binary(files))
    # Field 900 of the network, a number.
    content += bytes([0xA0, 0x38, 5])
    with pytest.raises(bittrue.UnsupportedError, match="field 900 of NetParameter"):
        read_model(bytes(content))


def test_the_weights_of_another_network_are_refused() -> None:
    files = one_product()
    files.weights.layer[0].name = "g"
    with pytest.raises(bittrue.InvalidModelError, match="missing"):
        read_model(files.network, files.learned)


def test_an_operator_in_place_that_quantizes_twice_is_refused() -> None:
    text = b"""input: "x" input_shape { dim: 2 dim: 3 }
        layer { name: "r" type: "ReLU" bottom: "x" top: "x" relu_param { input_scale: 0.5 output_scale: 0.25 } }"""
    with pytest.raises(bittrue.UnsupportedError, match="second time"):
        read_model(text)
