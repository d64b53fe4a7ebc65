"""tables against the real LiteRT reference kernels, through single-operator models built here."""

from __future__ import annotations

import numpy as np
import pytest

from bittrue.arithmetic import elementary, exact, tables

pytest.importorskip("ai_edge_litert")
flatbuffers = pytest.importorskip("flatbuffers")

from ai_edge_litert import schema_py_generated as schema  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402

EVERY_S8 = np.arange(-128, 128).astype(np.int8)
EVERY_U8 = np.arange(256).astype(np.uint8)
EVERY_S16 = np.arange(-(2**15), 2**15).astype(np.int16)


def single_operator_model(operator, tensor_type, input_parameters, output_parameters, size, version) -> bytes:
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode, code.deprecatedBuiltinCode, code.version = operator, min(operator, 127), version
    model.operatorCodes = [code]
    graph = schema.SubGraphT()
    graph.tensors = []
    for name, (scale, zero_point) in (("input", input_parameters), ("output", output_parameters)):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.buffer = name, [size], tensor_type, 0
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.scale, tensor.quantization.zeroPoint = [float(scale)], [int(zero_point)]
        graph.tensors.append(tensor)
    node = schema.OperatorT()
    node.opcodeIndex, node.inputs, node.outputs = 0, [0], [1]
    graph.operators, graph.inputs, graph.outputs = [node], [0], [1]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def run(operator, input_parameters, output_parameters, values, version=1):
    tensor_type = {"int8": 9, "uint8": 3, "int16": 7}[values.dtype.name]
    interpreter = Interpreter(
        model_content=single_operator_model(
            operator, tensor_type, input_parameters, output_parameters, values.size, version
        ),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    return interpreter.get_tensor(1)


@pytest.mark.parametrize("values", [EVERY_S8, EVERY_U8], ids=["s8", "u8"])
@pytest.mark.parametrize("name", ["LOGISTIC", "TANH"])
def test_table_256(name, values):
    rng = np.random.default_rng(1)
    low, high = int(values.min()), int(values.max())
    function = {"LOGISTIC": elementary.logistic, "TANH": elementary.tanh}[name]
    for _ in range(200):
        input_scale, output_scale = np.exp(rng.uniform([-9, -6], [0.5, 0])).astype(np.float32)
        if name == "LOGISTIC":
            output_scale = np.float32(1 / 256)  # the only one the kernel accepts
        input_zero_point, output_zero_point = (int(v) for v in rng.integers(low, high + 1, 2))
        parameters = (input_scale, input_zero_point), (output_scale, output_zero_point)
        expected = run(getattr(schema.BuiltinOperator, name), *parameters, values)
        table = tables.table_256(function, *parameters[0], *parameters[1], low, high)
        assert table.tolist() == expected.tolist(), parameters


@pytest.mark.parametrize(("input_scale", "output_scale"), [(1.0, 1.0), (3.0, 1e-3), (1 / 16, 1 / 8)])
def test_table_256_saturates_up_to_infinity(input_scale, output_scale):
    expected = run(schema.BuiltinOperator.EXP, (input_scale, 0), (output_scale, -3), EVERY_S8, 2)
    assert tables.table_256(elementary.exp, input_scale, 0, output_scale, -3, -128, 127).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("input_scale", "output_scale"), [(0.05, 1.0), (0.2, 1.0), (0.02, 0.01), (1e-3, 1e-3), (1e-4, 1e-3)]
)
def test_table_513(input_scale, output_scale):
    """The first three have neighbours 2^15 apart: the slope wraps."""
    expected = run(schema.BuiltinOperator.EXP, (input_scale, 0), (output_scale, 0), EVERY_S16, 2)
    table = tables.table_513(elementary.exp, input_scale, 0, output_scale, 0)
    assert tables.lookup_513(table, EVERY_S16).tolist() == expected.tolist()
    assert (input_scale < 0.01) == (np.abs(np.diff(table)).max() < 2**15)


def test_logistic_in_binary64() -> None:
    x = np.float32([0, -0.0, 1, -1, 99.5, -99.5, 100, 100.5, -100.5, 1e30, -1e30, *np.linspace(-20, 20, 401)])
    expected = [exact.logistic_binary64(float(v)) for v in x]
    assert tables.logistic_binary64(x).tolist() == expected
