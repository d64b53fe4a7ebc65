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
from importers.tflite_build import DEMO, NO_SHARED, SHARED, dense, model_files, operator_code, pack
from importers.tflite_build import node as build_node
from support.runtimes import not_emulated

OPERATORS = {value: name for name, value in vars(tfl.BuiltinOperator).items() if not name.startswith("_")}
ACTIVATIONS = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")
CONVOLUTIONS = ("CONV_2D", "CONV_3D", "CONV_3D_TRANSPOSE", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
POOLS = ("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D")
WINDOWS = (*POOLS, *CONVOLUTIONS)

# What an operator's name alone says in TFLite and is an attribute of ours: written out again, not from the importer.
IMPLIED: dict[str, dict[str, object]] = {
    "BATCH_MATMUL": {"most_axes": 5},
    "BIDIRECTIONAL_SEQUENCE_LSTM": {"operands": "separate", "sequence": True, "bidirectional": True},
    "BIDIRECTIONAL_SEQUENCE_RNN": {"operands": "separate", "sequence": True, "bidirectional": True},
    "CONV_2D": {"filter_layout": "OSI"},
    "CONV_3D": {"filter_layout": "SIO"},
    "CONV_3D_TRANSPOSE": {"filter_layout": "SOI"},
    "DEPTHWISE_CONV_2D": {"filter_layout": "ISO"},
    "DILATE": {"mode": "gaps"},
    "EMBEDDING_LOOKUP": {"axis": 0, "batch_dims": 0, "table": True},
    "IF": {"plans_both": True},
    "LSTM": {"operands": "separate", "sequence": False, "bidirectional": False},
    "MIRROR_PAD": {"widths": "pairs"},
    "NON_MAX_SUPPRESSION_V4": {"results": "indices"},
    "NON_MAX_SUPPRESSION_V5": {"results": "indices"},
    "ONE_HOT": {"from_either_end": False},
    "PAD": {"mode": "constant", "widths": "pairs"},
    "PADV2": {"mode": "constant", "widths": "pairs"},
    "RANGE": {"counting": "wrapped_magnitude"},
    "RANK": {"of": "rank"},
    "RELU": {"activation": "relu"},
    "RELU6": {"activation": "relu6"},
    "RELU_0_TO_1": {"activation": "relu_0_to_1"},
    "RELU_N1_TO_1": {"activation": "relu_n1_to_1"},
    "RESHAPE": {"zeros": "counted"},
    "RNN": {"operands": "separate", "sequence": False, "bidirectional": False},
    "SCATTER_ND": {"coordinates": "slices", "reduction": "add", "wraps": False},
    "SHAPE": {"of": "dimensions"},
    "SPARSE_TO_DENSE": {"coordinates": "elements", "reduction": "replace", "wraps": False},
    "SPLIT": {"keeps_axis": True, "open_size": False, "uneven": False},
    "SPLIT_V": {"keeps_axis": True, "open_size": True, "uneven": False},
    "STABLEHLO_ADD": {"stored_values": True},
    "STABLEHLO_GATHER": {"boxes": True},
    "STABLEHLO_MAXIMUM": {"stored_values": True},
    "STABLEHLO_MINIMUM": {"stored_values": True},
    "STABLEHLO_MULTIPLY": {"stored_values": True},
    "STABLEHLO_PAD": {"mode": "gaps"},
    "TRANSPOSE_CONV": {"filter_layout": "OSI"},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {"operands": "separate", "sequence": True, "bidirectional": False},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {"operands": "separate", "sequence": True, "bidirectional": False},
    "UNIQUE": {"nans_differ": False, "results": "indices", "sorted": False},
    "UNPACK": {"keeps_axis": False, "open_size": False, "uneven": False},
    "UNSORTED_SEGMENT_MAX": {"reduction": "largest"},
    "UNSORTED_SEGMENT_MIN": {"reduction": "smallest"},
    "UNSORTED_SEGMENT_PROD": {"reduction": "multiply"},
    "UNSORTED_SEGMENT_SUM": {"reduction": "add"},
}

# A scale and a zero point of input, weights and output.
_SCALES = " ".join(f"{what}{number}" for number in range(3) for what in ("scale", "point"))
# Operands in TFLite's order, and in that of our operator; all others have the same order.
OPERANDS: dict[str, tuple[str, str]] = {
    "CONV_3D_TRANSPOSE": ("shape weights input bias", f"input weights bias {_SCALES} shape"),
    "EMBEDDING_LOOKUP": ("positions table", "table positions"),
    "MATRIX_DIAG": ("diagonal", "matrices diagonal"),
    "SCATTER_ND": ("coordinates updates shape", "tensor coordinates updates shape"),
    "SPARSE_TO_DENSE": ("coordinates shape updates default", "tensor coordinates updates shape default"),
    "SPLIT": ("axis input", "input sizes axis"),
    "STABLEHLO_PAD": ("input value", "input widths value"),
    "TRANSPOSE_CONV": ("shape weights input bias", f"input weights bias {_SCALES} shape"),
}


def numbers(vector) -> list:
    return [] if vector is None else np.asarray(vector).tolist()


def snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def expected_pool(options: tfl.Pool2DOptionsT) -> dict[str, object]:
    """Windows rows first. Without padding their number is (size + stride - filter) / stride, cut off."""
    given = dict(vars(options))
    found = {
        "kernel": (given.pop("filterHeight"), given.pop("filterWidth")),
        "strides": (given.pop("strideH"), given.pop("strideW")),
        "activation": ACTIVATIONS[given.pop("fusedActivationFunction")],
        "dilations": (),
        "pads": (),
        "unfit": "empty",
        "channels_last": True,
    }
    found["padding"], found["size"] = (("same_upper", "floor"), ("explicit", "truncated_sum"))[given.pop("padding")]
    assert not given, "an option that no attribute stands for"
    return found


def expected_windows(given: dict[str, object]) -> dict[str, object]:
    """The windows of a convolution, those of depth first, then rows."""
    axes = [axis for axis in "DHW" if f"stride{axis}" in given]
    found = {
        "strides": tuple(given.pop(f"stride{axis}") for axis in axes),
        "dilations": tuple(given.pop(f"dilation{axis}Factor") for axis in axes if f"dilation{axis}Factor" in given),
        "pads": (),
    }
    found["padding"], found["size"] = (("same_upper", "floor"), ("explicit", "truncated_sum"))[given.pop("padding")]
    return found


def expected_resizing(given: dict[str, object]) -> dict[str, object]:
    """Where a result's position lies in the image."""
    corners, half = given.pop("alignCorners"), given.pop("halfPixelCenters")
    names = {(True, True): "align_corners_half_pixel", (True, False): "align_corners", (False, True): "half_pixel"}
    return {"transformation": names.get((bool(corners), bool(half)), "asymmetric"), "channels_last": True}


def expected_attributes(source: str, options: object) -> dict[str, object]:
    """The generated options object in bittrue's words, by rules written for this test only."""
    if isinstance(options, tfl.Pool2DOptionsT):
        return expected_pool(options)
    found: dict[str, object] = dict(IMPLIED.get(source, {}))
    given = dict(vars(options))
    if isinstance(options, (tfl.Conv3DOptionsT, tfl.TransposeConvOptionsT)):
        found |= {"kernel_shape": (), "groups": 1, "channels_last": True, **expected_windows(given)}
    if isinstance(options, (tfl.Conv2DOptionsT, tfl.DepthwiseConv2DOptionsT)):
        found |= {"kernel_shape": (), "channels_last": True, **expected_windows(given)}
    if isinstance(options, tfl.DepthwiseConv2DOptionsT):
        found["depthwise"] = True
    if isinstance(options, (tfl.ResizeBilinearOptionsT, tfl.ResizeNearestNeighborOptionsT)):
        found |= expected_resizing(given)
    for camel, value in given.items():
        name = snake(camel)
        if name == "quant_spec":
            continue
        if name in ("quantized_bias_type", "out_type", "output_type", "in_data_type", "out_data_type", "idx_out_type"):
            value = TYPES[value]
        elif name == "fused_activation_function":
            value = ACTIVATIONS[value]
        elif name == "mode":
            value = ("reflect", "symmetric")[value]
        elif name == "kernel_type":
            value = ("full", "basic")[value]
        elif name == "padding":
            value = ("same", "valid")[value]
        elif name == "weights_format":
            value = ("default", "shuffled4x16int8")[value]
        elif value is None or isinstance(value, (list, np.ndarray)):
            value = tuple(numbers(value))
        name = RENAMES.get(name, name)
        assert name not in found, f"{name} is said twice"
        found[name] = value
    return found


def expected_inputs(source: str, inputs: list[int]) -> list[int]:
    """The file's tensors, -1 for absent ones, at the places of our operands."""
    if source not in OPERANDS:
        return inputs
    theirs, ours = (names.split() for names in OPERANDS[source])
    assert set(theirs) <= set(ours)
    given = dict(zip(theirs, inputs, strict=True))
    return [given.get(name, -1) for name in ours]


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
            source = OPERATORS[max(code.builtinCode, code.deprecatedBuiltinCode)]
            assert node.source == source
            assert node.version == code.version
            inputs = [-1 if index is None else index for index in node.inputs]
            assert inputs == expected_inputs(source, numbers(operator.inputs))
            assert list(node.outputs) == numbers(operator.outputs)
            assert list(node.intermediates) == numbers(operator.intermediates)
            options = operator.builtinOptions or operator.builtinOptions2
            if options is not None:
                assert node.attributes == expected_attributes(source, options)
            else:
                assert IMPLIED.get(source, {}).items() <= node.attributes.items()
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


def all_different(options: object, padding: int) -> None:
    """No two numbers alike, flags not at their defaults, so that none can stand for another."""
    for place, (name, value) in enumerate(vars(options).items()):
        if name == "padding":
            value = padding
        elif name in ("fusedActivationFunction", "kernelType", "idxOutType", "mode"):
            value = 1
        elif isinstance(value, bool):
            value = not value
        else:
            value = [place + 2, place + 3] if value is None else type(value)(place + 2)
        setattr(options, name, value)


@pytest.mark.parametrize(
    ("source", "padding"),
    [(name, 0) for name in sorted({*IMPLIED, *OPERANDS, *WINDOWS})] + [(name, 1) for name in WINDOWS],
)
def test_operators_with_a_form_of_our_own_agree(source: str, padding: int) -> None:
    model = dense()
    names = OPERANDS[source][0].split() if source in OPERANDS else "abc"
    operator = build_node([3, 1, 0, 2][: len(names)], [4])
    special = {
        "CONV_3D_TRANSPOSE": "Conv3DOptions",
        "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
        **dict.fromkeys(POOLS, "Pool2DOptions"),
    }
    wanted = special.get(source, source.replace("_", "") + "Options").lower()
    for slot, union in (("builtinOptions", tfl.BuiltinOptions), ("builtinOptions2", tfl.BuiltinOptions2)):
        for table, number in vars(union).items():
            if table.lower() == wanted:
                options = getattr(tfl, table + "T")()
                all_different(options, padding)
                setattr(operator, slot, options)
                setattr(operator, slot + "Type", number)
    without = source.startswith(("RELU", "STABLEHLO_")) or source == "EMBEDDING_LOOKUP"
    has_none = without and source not in ("STABLEHLO_GATHER", "STABLEHLO_PAD")
    assert (operator.builtinOptions is None and operator.builtinOptions2 is None) == has_none
    model.operatorCodes = [operator_code(getattr(tfl.BuiltinOperator, source))]
    model.subgraphs[0].inputs, model.subgraphs[0].operators = [0, 3], [operator]
    content = pack(model)
    found = read_tflite(content)
    agree(found, content)
    if has_none:
        assert found.graphs[0].nodes[0].attributes == IMPLIED[source]


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


@not_emulated
@pytest.mark.parametrize(
    ("name", "limit"), [("inception_v3_299_int8", 0.1), ("coral_tf2_mobilenet_v2_1.0_224_ptq", 0.06)]
)
def test_loading_is_fast(name: str, limit: float) -> None:
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(NO_SHARED)
    times = []
    for _ in range(7):
        start = time.process_time()
        read_model(path)
        times.append(time.process_time() - start)
    assert min(times) < limit


def test_every_type_has_a_name() -> None:
    assert len(TYPES) == len(ENUMS["TensorType"])
    assert set(TYPES) <= set(DATA_TYPES)
    for title, name in zip(ENUMS["TensorType"], TYPES, strict=True):
        assert DATA_TYPES[name].title == title.lower()
