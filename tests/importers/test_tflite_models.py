"""Real models read the same as through the classes generated from LiteRT's schema."""

import time
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from bittrue.graph import DATA_TYPES, ModelFile
from bittrue.importers import read_model
from bittrue.importers.tflite import read_tflite
from bittrue.importers.tflite_schema import ENUMS, RENAMES, TYPES
from importers.tflite_build import DEMO, NO_SHARED, SHARED, dense, model_files, pack

OPERATORS = {value: name for name, value in vars(tfl.BuiltinOperator).items() if not name.startswith("_")}


def numbers(vector) -> list:
    return [] if vector is None else np.asarray(vector).tolist()


def snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def expected_attributes(options) -> dict[str, object]:
    """The generated options object in bittrue's words, by rules written for this test only."""
    found: dict[str, object] = {}
    for camel, value in vars(options).items():
        name = snake(camel)
        if name == "quant_spec":
            continue
        if name in ("quantized_bias_type", "out_type", "output_type", "in_data_type", "out_data_type", "idx_out_type"):
            value = TYPES[value]
        elif name == "fused_activation_function":
            value = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")[value]
        elif name == "padding":
            value = ("same", "valid")[value]
        elif name == "weights_format":
            value = ("default", "shuffled4x16int8")[value]
        elif value is None or isinstance(value, (list, np.ndarray)):
            value = tuple(numbers(value))
        found[RENAMES.get(name, name)] = value
    return found


def check_tensor(tensor, expected, model: tfl.ModelT, note: bool) -> None:
    if expected.name:
        assert tensor.name == expected.name.decode()
    assert tensor.shape == tuple(numbers(expected.shape))
    assert tensor.dtype == TYPES[expected.type]
    assert list(tensor.shape_signature or ()) == numbers(expected.shapeSignature)
    assert tensor.is_variable == expected.isVariable
    q = expected.quantization
    if q is None or not numbers(q.scale):
        assert tensor.quantization is None
    else:
        assert tensor.quantization.scales.dtype == np.float32
        assert tensor.quantization.zero_points.dtype == np.int64
        assert tensor.quantization.scales.tobytes() == np.asarray(q.scale, np.float32).tobytes()
        assert numbers(tensor.quantization.zero_points) == numbers(q.zeroPoint)
        if len(numbers(q.scale)) == 1:
            assert tensor.quantization.axis is None
        else:
            assert tensor.quantization.axis == (0 if note and len(tensor.shape) == 1 else q.quantizedDimension)
    content = numbers(model.buffers[expected.buffer].data)
    if content:
        assert tensor.data.ndim == 1
        assert tensor.data.dtype == DATA_TYPES[tensor.dtype].numpy
        assert tensor.data.tobytes() == bytes(content)
        assert not tensor.data.flags.writeable
        assert tensor.values().shape == tensor.shape
    else:
        assert tensor.data is None or tensor.data.size == 0


def agree(model: ModelFile, content: bytes) -> None:
    expected = tfl.ModelT.InitFromPackedBuf(content, 0)
    assert model.format == "tflite"
    assert model.size == len(content)
    assert model.producer == (expected.description or b"").decode()
    assert len(model.graphs) == len(expected.subgraphs)
    assert set(model.metadata) == {entry.name.decode() for entry in expected.metadata or []}
    for entry in expected.metadata or []:
        assert list(model.metadata[entry.name.decode()]) == numbers(expected.buffers[entry.buffer].data)
    for graph, subgraph in zip(model.graphs, expected.subgraphs, strict=True):
        assert graph.inputs == tuple(numbers(subgraph.inputs))
        assert graph.outputs == tuple(numbers(subgraph.outputs))
        assert len({tensor.name for tensor in graph.tensors}) == len(graph.tensors)
        for tensor, raw in zip(graph.tensors, subgraph.tensors, strict=True):
            check_tensor(tensor, raw, expected, bool(model.notes))
        for node, operator in zip(graph.nodes, subgraph.operators, strict=True):
            code = expected.operatorCodes[operator.opcodeIndex]
            assert node.source == OPERATORS[max(code.builtinCode, code.deprecatedBuiltinCode)]
            assert node.version == code.version
            assert [-1 if index is None else index for index in node.inputs] == numbers(operator.inputs)
            assert list(node.outputs) == numbers(operator.outputs)
            assert list(node.intermediates) == numbers(operator.intermediates)
            if operator.builtinOptions is not None:
                assert node.attributes == expected_attributes(operator.builtinOptions)
    for signature in expected.signatureDefs or []:
        graph = model.graphs[signature.subgraphIndex]
        assert graph.signature == signature.signatureKey.decode()
        arguments = [*signature.inputs, *signature.outputs]
        assert graph.aliases == {argument.name.decode(): argument.tensorIndex for argument in arguments}


@pytest.mark.parametrize("path", model_files())
def test_agrees_with_the_generated_classes(path) -> None:
    agree(read_model(path), path.read_bytes())


def test_built_model_agrees() -> None:
    content = pack(dense())
    agree(read_model(content), content)


@pytest.mark.parametrize("path", model_files())
def test_constants_are_views_of_the_bytes(path) -> None:
    content = np.frombuffer(path.read_bytes(), np.uint8)
    constants = [t for g in read_tflite(content).graphs for t in g.tensors if t.data is not None and t.data.size]
    assert constants
    assert all(np.shares_memory(tensor.data, content) for tensor in constants)


def test_what_becomes_of_a_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(DEMO.read_bytes())
    model = read_model(path)
    constants = [t.data for t in model.graphs[0].tensors if t.data is not None]
    before = [value.tobytes() for value in constants]
    path.write_bytes(bytes(len(DEMO.read_bytes())))
    path.write_bytes(b"")
    assert [value.tobytes() for value in constants] == before


def test_known_quirks_are_noted() -> None:
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    person = read_model(SHARED / "tflm_person_detect.tflite")
    assert len(person.notes) == 1
    assert "quantized dimension" in person.notes[0]
    assert "13 more" in person.notes[0]
    keyword = read_model(SHARED / "tflm_keyword_scrambled_8bit.tflite")
    assert keyword.graphs[0].tensors[5].name == "tensor:5"
    assert "no name" in keyword.notes[0]
    clean = read_model(SHARED / "tiny_kws_int8.tflite")
    assert clean.notes == ()


@pytest.mark.parametrize(
    ("name", "limit"), [("inception_v3_299_int8", 0.1), ("coral_tf2_mobilenet_v2_1.0_224_ptq", 0.06)]
)
def test_loading_is_fast(name: str, limit: float) -> None:
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(NO_SHARED)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        read_model(path)
        times.append(time.perf_counter() - start)
    assert min(times) < limit


def test_every_type_has_a_name() -> None:
    assert len(TYPES) == len(ENUMS["TensorType"])
    assert set(TYPES) <= set(DATA_TYPES)
    for title, name in zip(ENUMS["TensorType"], TYPES, strict=True):
        assert DATA_TYPES[name].title == title.lower()
