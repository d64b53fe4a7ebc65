"""One model per check of the TFLite importer: the right error class, code and place."""

import time
import tracemalloc

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

from bittrue.errors import BittrueError, InvalidModelError, ModelFormatError, ResourceError, UnsupportedError
from bittrue.importers.tflite import read_tflite
from importers.tflite_build import INT8, INT32, buffer, dense, node, operator_code, pack, quantization, tensor
from support.runtimes import not_emulated

TYPE = tfl.TensorType


def first(model: tfl.ModelT) -> tfl.SubGraphT:
    return model.subgraphs[0]


def expect(model: tfl.ModelT | bytes, kind: type[BittrueError], code: str, *words: str) -> BittrueError:
    content = model if isinstance(model, bytes) else pack(model)
    with pytest.raises(kind) as caught:
        read_tflite(content)
    error = caught.value
    assert type(error) is kind
    assert error.code == code
    for word in words:
        assert word in str(error)
    return error


def with_constant(data: np.ndarray | bytes | None, shape: list[int], kind: int) -> tfl.ModelT:
    model = dense()
    model.buffers.append(buffer(data))
    first(model).tensors.append(tensor("extra", shape, kind, 3))
    return model


def test_identifier_and_size() -> None:
    content = pack(dense())
    expect(b"", ModelFormatError, "BT-FILE-FORMAT", "empty")
    expect(content[:7], ModelFormatError, "BT-FILE-FORMAT")
    expect(content[:4] + b"TFL2" + content[8:], ModelFormatError, "BT-FILE-FORMAT", "another version")
    expect(content[:4] + b"abcd" + content[8:], ModelFormatError, "BT-FILE-FORMAT")
    expect(content[:8], ModelFormatError, "BT-FILE-BOUNDS")


def test_every_truncation() -> None:
    content = pack(dense())
    kinds = set()
    for size in range(len(content)):
        try:
            read_tflite(content[:size])
        except BittrueError as error:
            kinds.add(error.code)
    assert "BT-FILE-BOUNDS" in kinds


def test_schema_version() -> None:
    model = dense()
    for version in (0, 2, 4):
        model.version = version
        expect(model, ModelFormatError, "BT-FILE-VERSION", "expected 3")


@pytest.mark.parametrize("name", ["buffers", "subgraphs"])
def test_missing_vectors(name: str) -> None:
    model = dense()
    setattr(model, name, None)
    expect(model, ModelFormatError, "BT-FILE-MISSING", name)


def test_no_subgraph_and_no_tensors() -> None:
    model = dense()
    first(model).tensors = None
    expect(model, ModelFormatError, "BT-FILE-MISSING", "tensors")
    model.subgraphs = []
    expect(model, InvalidModelError, "BT-MODEL-EMPTY")


def test_buffer_index() -> None:
    model = dense()
    first(model).tensors[1].buffer = 3
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "buffer index 3", "tensor 1 'w'", "3 buffers")


def test_operator_code_index() -> None:
    model = dense()
    first(model).operators[1].opcodeIndex = 2
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "operator code index 2", "node 1")
    model.operatorCodes = None
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "the model has 0")


@pytest.mark.parametrize(
    ("where", "index"),
    [(where, index) for where in ("inputs", "outputs", "intermediates") for index in (5, -2, 2**31 - 1, -(2**31))]
    + [("outputs", -1), ("intermediates", -1)],
)
def test_node_tensor_index(where: str, index: int) -> None:
    model = dense()
    setattr(first(model).operators[0], where, [index])
    expect(model, InvalidModelError, "BT-MODEL-INDEX", f"{where}[0] is tensor {index}", "node 0 (FULLY_CONNECTED)")


def test_absent_optional_input() -> None:
    model = dense()
    first(model).operators[0].inputs = [0, 1, -1]
    assert read_tflite(pack(model)).graphs[0].nodes[0].inputs == (0, 1, None)


@pytest.mark.parametrize("where", ["inputs", "outputs"])
@pytest.mark.parametrize("index", [5, -1])
def test_graph_tensor_index(where: str, index: int) -> None:
    model = dense()
    setattr(first(model), where, [index])
    expect(model, InvalidModelError, "BT-MODEL-INDEX", f"subgraph 0, {where}")


def test_enumerators() -> None:
    model = dense()
    first(model).tensors[0].type = 23
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "tensor type is 23")
    first(model).tensors[0].type = -1
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "tensor type is -1")
    model = dense()
    first(model).operators[0].builtinOptions.fusedActivationFunction = 6
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "fused_activation_function is 6", "node 0")
    first(model).operators[0].builtinOptions.fusedActivationFunction = 0
    first(model).operators[0].builtinOptions.quantizedBiasType = 99
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "quantized_bias_type is 99")
    model = dense()
    model.operatorCodes[0].builtinCode = 210
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "builtin operator code is 210")
    model = dense()
    first(model).operators[0].builtinOptionsType = 200
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "kind of builtin_options is 200")


def test_operator_codes() -> None:
    model = dense()
    model.operatorCodes[0] = operator_code(127)
    expect(model, InvalidModelError, "BT-MODEL-OPERATOR", "placeholder")
    model.operatorCodes[0] = operator_code(tfl.BuiltinOperator.CUSTOM)
    expect(model, InvalidModelError, "BT-MODEL-OPERATOR", "no custom code")
    model.operatorCodes[0] = operator_code(tfl.BuiltinOperator.FULLY_CONNECTED, version=0)
    expect(model, InvalidModelError, "BT-MODEL-OPERATOR", "version 0")


def test_shapes() -> None:
    model = dense()
    first(model).tensors[0].shape = [1, -4]
    expect(model, InvalidModelError, "BT-TENSOR-SHAPE", "negative", "tensor 0 'x'")
    for shape in ([2**31 - 1] * 3, [2**20, 2**20, 2], [0, 2**31 - 1, 2**31 - 1], [2] * 41):
        first(model).tensors[0].shape = shape
        expect(model, InvalidModelError, "BT-TENSOR-SHAPE", "2^40")
    first(model).tensors[0].shape = [1] * 65
    expect(model, ResourceError, "BT-FILE-LIMIT", "65 dimensions")
    first(model).tensors[0].shape = [2**20, 2**20]
    first(model).tensors[0].shapeSignature = [-1, 2**20]
    assert read_tflite(pack(model)).graphs[0].tensors[0].shape_signature == (-1, 2**20)
    for signature in ([-1], [-2, 2**20]):
        first(model).tensors[0].shapeSignature = signature
        found = read_tflite(pack(model))
        assert found.graphs[0].tensors[0].shape_signature is None
        assert "signature" in found.notes[0]


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        (TYPE.INT8, [3, 4], 12),
        (TYPE.INT16, [5], 10),
        (TYPE.FLOAT32, [2, 2], 16),
        (TYPE.BFLOAT16, [3], 6),
        (TYPE.COMPLEX128, [], 16),
        (TYPE.FLOAT8_E5M2, [7], 7),
        (TYPE.INT4, [3, 3], 5),
        (TYPE.UINT4, [2], 1),
        (TYPE.INT2, [5], 2),
        (TYPE.BOOL, [4], 4),
        (TYPE.INT64, [0, 4], 0),
    ],
)
def test_constant_length(kind: int, shape: list[int], size: int) -> None:
    found = read_tflite(pack(with_constant(bytes(size), shape, kind))).graphs[0].tensors[5]
    assert found.data is not None
    assert found.data.nbytes == size
    assert found.values().shape == tuple(shape)
    assert (found.data.dtype == np.uint8) == (found.type.is_packed or found.dtype == "u8")
    for wrong in (size + 1, size - 1):
        if wrong > 0:
            model = with_constant(bytes(wrong), shape, kind)
            expect(model, InvalidModelError, "BT-TENSOR-DATA", "'extra'", f"{wrong} bytes", f"expected {size}")


def test_string_constants_keep_their_bytes() -> None:
    found = read_tflite(pack(with_constant(b"\1\0\0\0abc", [1], TYPE.STRING))).graphs[0].tensors[5]
    assert found.data is not None
    assert found.data.tobytes() == b"\1\0\0\0abc"


def test_bool_constants() -> None:
    found = read_tflite(pack(with_constant(bytes([0, 1, 1]), [3], TYPE.BOOL)))
    assert found.graphs[0].tensors[5].data.tolist() == [False, True, True]
    assert found.notes == ()
    found = read_tflite(pack(with_constant(bytes([0, 1, 77]), [3], TYPE.BOOL)))
    data = found.graphs[0].tensors[5].data
    assert data.dtype == np.bool_
    # Runtimes move such bytes as they are.
    assert data.tobytes() == b"\0\1M"
    assert not data.flags.writeable


def test_present_but_empty_buffer_is_no_constant() -> None:
    model = dense()
    model.buffers.append(buffer(b""))
    first(model).tensors[3].buffer = 3
    found = read_tflite(pack(model))
    assert not found.graphs[0].tensors[3].is_constant
    assert "empty" in found.notes[0]
    first(model).tensors[1].buffer = 3
    expect(model, InvalidModelError, "BT-GRAPH-ORDER", "'w'")


def test_data_behind_the_flatbuffer() -> None:
    model = dense()
    model.buffers[1] = buffer()
    size = len(pack(model)) + 64
    model.buffers[1].offset, model.buffers[1].size = size, 12
    content = pack(model)
    weights = bytes(range(12))
    found = read_tflite(content.ljust(size, b"\0") + weights).graphs[0].tensors[1]
    assert found.data is not None
    assert found.data.tobytes() == weights
    expect(content.ljust(size, b"\0") + weights[:-1], ModelFormatError, "BT-FILE-BOUNDS", "Buffer[1]")
    for offset, length in ((2**64 - 1, 12), (2**64 - 4, 2**64 - 1), (size, 2**64 - 1), (2**63, 2**63)):
        model.buffers[1].offset, model.buffers[1].size = offset, length
        expect(model, ModelFormatError, "BT-FILE-BOUNDS")
    # Offsets 0 and 1 mean that there is no data.
    model.buffers[1].offset = 1
    expect(model, InvalidModelError, "BT-GRAPH-ORDER", "'w'")


def test_variable_with_data() -> None:
    model = dense()
    first(model).tensors[1].isVariable = True
    expect(model, InvalidModelError, "BT-TENSOR-VARIABLE", "'w'")
    first(model).tensors[1].buffer = 0
    assert read_tflite(pack(model)).graphs[0].tensors[1].is_variable


@pytest.mark.parametrize("zero_point", [2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_zero_point_beyond_32_bits(zero_point: int) -> None:
    model = dense()
    first(model).tensors[1].quantization = quantization([0.5], [zero_point])
    expect(model, InvalidModelError, "BT-QUANT-ZERO-POINT", str(zero_point), "'w'")


def test_quantization_counts() -> None:
    model = dense()
    weights = first(model).tensors[1]
    weights.quantization.zeroPoint = [0, 0]
    expect(model, InvalidModelError, "BT-QUANT-COUNT", "3 scale(s) but 2 zero point(s)", "'w'")
    weights.quantization.zeroPoint = None
    expect(model, InvalidModelError, "BT-QUANT-COUNT", "0 zero point(s)")
    weights.quantization = quantization([0.5, 0.5])
    expect(model, InvalidModelError, "BT-QUANT-COUNT", "expected 1 or 3")
    weights.quantization = quantization([0.5, 0.5, 0.5], axis=1)
    expect(model, InvalidModelError, "BT-QUANT-COUNT", "expected 1 or 4")
    model = dense()
    first(model).tensors.append(tensor("scalar", [], INT8, 0, quantization([0.5, 0.5])))
    expect(model, InvalidModelError, "BT-QUANT-COUNT", "scalar")


@pytest.mark.parametrize("scale", [0.0, -0.5, float("nan"), float("inf"), -float("inf")])
def test_scales(scale: float) -> None:
    model = dense()
    first(model).tensors[0].quantization.scale = [scale]
    expect(model, InvalidModelError, "BT-QUANT-SCALE", "scale[0]", "'x'")
    model = dense()
    first(model).tensors[1].quantization.scale = [0.5, 0.5, scale]
    expect(model, InvalidModelError, "BT-QUANT-SCALE", "scale[2]", "'w'")


def test_scale_0_passes_for_channels_of_zeros_only() -> None:
    model = dense()
    weights = first(model).tensors[1]
    weights.quantization.scale = [0.5, 0.0, 0.25]
    expect(model, InvalidModelError, "BT-QUANT-SCALE", "scale[1]", "'w'")
    values = np.arange(12, dtype=np.int8).reshape(3, 4)
    values[1] = 0
    model.buffers[1] = buffer(values)
    read = read_tflite(pack(model))
    assert any("scale 0" in note for note in read.notes)
    assert read.graphs[0].tensors[1].quantization.scales.tolist() == [0.5, 0.0, 0.25]


def test_zero_points_are_kept_as_they_are() -> None:
    model = dense()
    first(model).tensors[0].quantization.zeroPoint = [-(2**31)]
    found = read_tflite(pack(model)).graphs[0].tensors[0].quantization
    assert found.zero_points.dtype == np.int64
    assert found.zero_points.tolist() == [-(2**31)]


def test_quantized_dimension() -> None:
    model = dense()
    for axis in (2, -1, 2**31 - 1):
        first(model).tensors[1].quantization.quantizedDimension = axis
        expect(model, InvalidModelError, "BT-QUANT-AXIS", f"dimension {axis}", "'w'")
    model = dense()
    first(model).tensors[2].quantization.quantizedDimension = 3
    found = read_tflite(pack(model))
    assert found.graphs[0].tensors[2].quantization.axis == 0
    assert len(found.notes) == 1
    first(model).tensors[2].quantization = quantization([0.5, 0.5], axis=3)
    expect(model, InvalidModelError, "BT-QUANT-AXIS", "'b'")


def test_min_and_max_alone_are_no_quantization() -> None:
    model = dense()
    first(model).tensors[0].quantization.scale = None
    first(model).tensors[0].quantization.min = [-1.0]
    assert read_tflite(pack(model)).graphs[0].tensors[0].quantization is None


@pytest.mark.parametrize("name", ["CustomQuantization", "BlockwiseQuantization", "MultiAxisQuantization"])
def test_quantization_details(name: str) -> None:
    model = dense()
    q = first(model).tensors[1].quantization
    q.detailsType = getattr(tfl.QuantizationDetails, name)
    q.details = getattr(tfl, name + "T")()
    expect(model, UnsupportedError, "BT-QUANT-DETAILS", name, "'w'")
    q.detailsType = 9
    q.details = None
    expect(model, InvalidModelError, "BT-MODEL-ENUM", "quantization details is 9")


def test_sparse_and_external_tensors() -> None:
    model = dense()
    first(model).tensors[1].sparsity = tfl.SparsityParametersT()
    expect(model, UnsupportedError, "BT-TENSOR-SPARSE", "'w'")
    model = dense()
    first(model).tensors[1].externalBuffer = 1
    expect(model, UnsupportedError, "BT-TENSOR-EXTERNAL", "'w'")


def test_execution_order() -> None:
    model = dense()
    first(model).operators.reverse()
    expect(model, InvalidModelError, "BT-GRAPH-ORDER", "node 0 (RESHAPE)", "tensor 3 'h'")
    model = dense()
    first(model).operators[0].inputs = [4, 1, 2]
    expect(model, InvalidModelError, "BT-GRAPH-ORDER", "cycle", "node 0", "'y'")


def test_written_once() -> None:
    for target, word in ((0, "graph input"), (1, "constant"), (3, "output of node 0")):
        model = dense()
        first(model).operators[1].outputs = [target]
        expect(model, InvalidModelError, "BT-GRAPH-WRITE", word, "node 1 (RESHAPE)")
    model = dense()
    first(model).operators[1].outputs = [4, 4]
    expect(model, InvalidModelError, "BT-GRAPH-WRITE")
    model = dense()
    first(model).tensors.append(tensor("state", [1, 3], INT8))
    first(model).tensors[5].isVariable = True
    first(model).operators[1].inputs = [5]
    assert read_tflite(pack(model)).graphs[0].nodes[1].inputs == (5,)
    first(model).operators[1].outputs = [5]
    expect(model, InvalidModelError, "BT-GRAPH-WRITE", "both input and output")


def test_graph_inputs_and_outputs() -> None:
    model = dense()
    first(model).inputs = [0, 1]
    expect(model, InvalidModelError, "BT-GRAPH-INPUT", "constant")
    first(model).inputs = [0, 0]
    expect(model, InvalidModelError, "BT-GRAPH-INPUT", "already")
    model = dense()
    first(model).operators.pop()
    expect(model, InvalidModelError, "BT-GRAPH-OUTPUT", "'y'")
    first(model).outputs = [0, 1, 3, 3]
    assert read_tflite(pack(model)).graphs[0].outputs == (0, 1, 3, 3)


def test_other_subgraphs_are_listed_with_a_note() -> None:
    model = dense()
    body = first(dense())
    body.operators.reverse()
    body.name = None
    model.subgraphs.append(body)
    found = read_tflite(pack(model))
    assert [graph.name for graph in found.graphs] == ["main", "subgraph_1"]
    assert len(found.graphs[1].nodes) == 2
    assert "cannot be executed" in found.notes[0]


def test_empty_tensors_need_no_data() -> None:
    model = dense()
    first(model).tensors.append(tensor("new shape", [0], INT32))
    first(model).operators[1].inputs = [3, 5]
    found = read_tflite(pack(model)).graphs[0].tensors[5]
    assert found.is_constant
    assert found.values().shape == (0,)


def test_names() -> None:
    model = dense()
    first(model).tensors[1].name = "x"
    first(model).tensors[2].name = ""
    first(model).tensors[3].name = "x:4"
    first(model).tensors[4].name = "x"
    found = read_tflite(pack(model))
    assert [tensor.name for tensor in found.graphs[0].tensors] == ["x", "x:1", "tensor:2", "x:4", "x:4'"]
    content = pack(dense()).replace(b"main", b"m\xff\xfen")
    found = read_tflite(content)
    assert found.graphs[0].name == "m\\xff\\xfen"
    assert "UTF-8" in found.notes[0]


def test_names_in_messages_carry_no_terminal_escapes() -> None:
    model = dense()
    first(model).tensors[0].name = "\x1b[31mred\n" + "long" * 1000
    first(model).tensors[0].type = 99
    message = str(expect(model, InvalidModelError, "BT-MODEL-ENUM"))
    assert message.isprintable()
    assert len(message) < 400


def signature(key: str | None, inputs: dict[str, int], outputs: dict[str, int], subgraph: int = 0) -> tfl.SignatureDefT:
    def arguments(pairs: dict[str, int]) -> list[tfl.TensorMapT]:
        found = []
        for name, index in pairs.items():
            argument = tfl.TensorMapT()
            argument.name, argument.tensorIndex = name, index
            found.append(argument)
        return found

    found = tfl.SignatureDefT()
    found.signatureKey = key
    found.inputs, found.outputs = arguments(inputs), arguments(outputs)
    found.subgraphIndex = subgraph
    return found


def test_signatures() -> None:
    model = dense()
    model.signatureDefs = [signature("serve", {"picture": 0}, {"digit": 4}), signature("again", {"picture": 3}, {})]
    found = read_tflite(pack(model))
    assert found.graphs[0].signature == "serve"
    assert found.graphs[0].aliases == {"picture": 0, "digit": 4}
    assert len(found.notes) == 2
    model.signatureDefs = [signature(None, {}, {})]
    expect(model, InvalidModelError, "BT-MODEL-SIGNATURE", "no key")
    model.signatureDefs = [signature("a", {"b": 5}, {})]
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "argument 'b'")
    model.signatureDefs = [signature("a", {}, {}, 1)]
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "subgraph index 1")


def test_metadata() -> None:
    model = dense()
    entry = tfl.MetadataT()
    entry.name, entry.buffer = "info", 1
    model.metadata = [entry]
    assert read_tflite(pack(model)).metadata == {"info": bytes(range(12))}
    entry.buffer = 3
    expect(model, InvalidModelError, "BT-MODEL-INDEX", "metadata 0 'info'")


def spread(build) -> bytes:
    """A model made with the builder's own functions, which can point many offsets at one object."""
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(build(builder), b"TFL3")
    return bytes(builder.Output())


def offsets(builder: flatbuffers.Builder, targets: list[int]) -> int:
    builder.StartVector(4, len(targets), 4)
    for target in reversed(targets):
        builder.PrependUOffsetTRelative(target)
    return builder.EndVector()


def shared_model(builder, *, tensors: int, rank=1, inputs=0, nodes=0, name=1, scales=0, subgraphs=1, metadata=0) -> int:
    """Every tensor is one table, every node is one table, every subgraph is one table."""
    empty = builder.CreateByteVector(bytes(100_000 if metadata else 1))
    tfl.BufferStart(builder)
    tfl.BufferAddData(builder, empty)
    big = tfl.BufferEnd(builder)
    tfl.BufferStart(builder)
    buffers = offsets(builder, [tfl.BufferEnd(builder), big])
    text = builder.CreateString("n" * name)
    shape = builder.CreateNumpyVector(np.ones(rank, np.int32))
    q = 0
    if scales:
        scale = builder.CreateNumpyVector(np.ones(scales, np.float32))
        zero_point = builder.CreateNumpyVector(np.zeros(scales, np.int64))
        tfl.QuantizationParametersStart(builder)
        tfl.QuantizationParametersAddScale(builder, scale)
        tfl.QuantizationParametersAddZeroPoint(builder, zero_point)
        q = tfl.QuantizationParametersEnd(builder)
        shape = builder.CreateNumpyVector(np.array([scales], np.int32))
    tfl.TensorStart(builder)
    tfl.TensorAddShape(builder, shape)
    tfl.TensorAddName(builder, text)
    if q:
        tfl.TensorAddQuantization(builder, q)
    tensor_vector = offsets(builder, [tfl.TensorEnd(builder)] * tensors)
    input_vector = builder.CreateNumpyVector(np.full(inputs, -1, np.int32))
    tfl.OperatorStart(builder)
    tfl.OperatorAddInputs(builder, input_vector)
    node_vector = offsets(builder, [tfl.OperatorEnd(builder)] * nodes)
    tfl.SubGraphStart(builder)
    tfl.SubGraphAddTensors(builder, tensor_vector)
    tfl.SubGraphAddOperators(builder, node_vector)
    subgraph_vector = offsets(builder, [tfl.SubGraphEnd(builder)] * subgraphs)
    tfl.OperatorCodeStart(builder)
    code_vector = offsets(builder, [tfl.OperatorCodeEnd(builder)])
    tfl.MetadataStart(builder)
    tfl.MetadataAddBuffer(builder, 1)
    tfl.MetadataAddName(builder, text)
    metadata_vector = offsets(builder, [tfl.MetadataEnd(builder)] * metadata)
    tfl.ModelStart(builder)
    tfl.ModelAddVersion(builder, 3)
    tfl.ModelAddBuffers(builder, buffers)
    tfl.ModelAddSubgraphs(builder, subgraph_vector)
    tfl.ModelAddOperatorCodes(builder, code_vector)
    tfl.ModelAddMetadata(builder, metadata_vector)
    return tfl.ModelEnd(builder)


@pytest.mark.parametrize(
    "sizes",
    [
        {"tensors": 50_000, "rank": 64},
        {"tensors": 100_001},
        {"tensors": 50_000, "name": 100_000},
        {"tensors": 10_000, "scales": 100_000},
        {"tensors": 1, "nodes": 50_000, "inputs": 50_000},
        {"tensors": 1, "nodes": 100_001},
        {"tensors": 1000, "subgraphs": 1000},
        {"tensors": 1, "metadata": 20_000},
        {"tensors": 0, "subgraphs": 100_001},
    ],
    ids=str,
)
def test_shared_objects_cannot_ask_for_unbounded_work(sizes: dict[str, int]) -> None:
    content = spread(lambda builder: shared_model(builder, **sizes))
    start = time.process_time()
    with pytest.raises(ResourceError) as caught:
        read_tflite(content)
    assert time.process_time() - start < 5
    assert caught.value.code in ("BT-FILE-WORK", "BT-FILE-LIMIT")
    tracemalloc.start()
    with pytest.raises(ResourceError):
        read_tflite(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * len(content) + 10_000_000


@not_emulated
def test_the_largest_shared_model_that_is_taken() -> None:
    content = spread(
        lambda builder: shared_model(builder, tensors=100_000, nodes=100_000, inputs=2, scales=1, name=1_000_000)
    )
    content = content.ljust(3_000_000, b"\0")
    with pytest.raises(ResourceError):
        read_tflite(content)
    content = spread(lambda builder: shared_model(builder, tensors=100_000, nodes=100_000, inputs=2, scales=1))
    content = content.ljust(3_000_000, b"\0")
    start = time.process_time()
    read_tflite(content)
    # What takes longer is a hang (SECURITY.md).
    assert time.process_time() - start < 20


def test_few_shared_objects_are_fine() -> None:
    # Sharing as such is legal: equal strings, shapes and tables may be stored once.
    content = spread(lambda builder: shared_model(builder, tensors=20, nodes=20, inputs=2, subgraphs=2))
    found = read_tflite(content)
    assert len(found.graphs[1].nodes) == 20


def test_many_honest_objects_are_read_in_time() -> None:
    model = dense()
    first(model).tensors += [tensor(f"t{index}", [1, 3], INT8) for index in range(5_000)]
    first(model).operators += [node([3], [5 + index], 1) for index in range(5_000)]
    content = pack(model)
    start = time.process_time()
    assert len(read_tflite(content).graphs[0].tensors) == 5_005
    assert time.process_time() - start < 1.25
