"""Small TFLite models for the tests, built with the classes that LiteRT generates from its schema."""

from __future__ import annotations

import os
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as tfl

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("BITTRUE_SHARED", REPOSITORY.parent / "shared")) / "models"
DEMO = REPOSITORY / "src/bittrue/data/demo/digits_int8.tflite"
NO_SHARED = f"the shared models are not at {SHARED}"


def model_files(largest: int = 1 << 40) -> list[object]:
    """Test parameters: the demo model and all shared ones up to a size; one skipped parameter without the latter."""
    found = sorted(SHARED.glob("*.tflite")) if SHARED.is_dir() else []
    parameters: list[object] = [
        pytest.param(path, id=path.stem) for path in [DEMO, *found] if path.stat().st_size <= largest
    ]
    if not found:
        parameters.append(pytest.param(None, id="shared", marks=pytest.mark.skip(reason=NO_SHARED)))
    return parameters


def pack(model: tfl.ModelT) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def buffer(data: np.ndarray | bytes | None = None) -> tfl.BufferT:
    found = tfl.BufferT()
    if data is not None:
        found.data = np.frombuffer(np.asarray(data).tobytes() if isinstance(data, np.ndarray) else data, np.uint8)
    return found


def quantization(scale: list[float], zero_point: list[int] | None = None, axis: int = 0) -> tfl.QuantizationParametersT:
    found = tfl.QuantizationParametersT()
    found.scale = scale
    found.zeroPoint = [0] * len(scale) if zero_point is None else zero_point
    found.quantizedDimension = axis
    return found


def tensor(
    name: str, shape: list[int], kind: int, buffer_index: int = 0, q: tfl.QuantizationParametersT | None = None
) -> tfl.TensorT:
    found = tfl.TensorT()
    found.name = name
    found.shape = shape
    found.type = kind
    found.buffer = buffer_index
    found.quantization = q
    return found


def operator_code(code: int, custom: str | None = None, version: int = 1) -> tfl.OperatorCodeT:
    found = tfl.OperatorCodeT()
    found.deprecatedBuiltinCode = min(code, 127)
    found.builtinCode = code
    found.version = version
    found.customCode = custom
    return found


def node(inputs: list[int], outputs: list[int], code: int = 0) -> tfl.OperatorT:
    found = tfl.OperatorT()
    found.opcodeIndex = code
    found.inputs = inputs
    found.outputs = outputs
    return found


INT8, INT32 = tfl.TensorType.INT8, tfl.TensorType.INT32


def dense() -> tfl.ModelT:
    """x[1,4] (tensor 0) times w[3,4] (1) plus b[3] (2) gives h[1,3] (3), reshaped gives y[3] (4)."""
    model = tfl.ModelT()
    model.version = 3
    model.description = "made by a test"
    model.buffers = [
        buffer(),
        buffer(np.arange(12, dtype=np.int8)),
        buffer(np.array([1, -2, 3], np.int32)),
    ]
    options = tfl.FullyConnectedOptionsT()
    options.fusedActivationFunction = tfl.ActivationFunctionType.RELU
    dense_node = node([0, 1, 2], [3])
    dense_node.builtinOptionsType = tfl.BuiltinOptions.FullyConnectedOptions
    dense_node.builtinOptions = options
    model.operatorCodes = [
        operator_code(tfl.BuiltinOperator.FULLY_CONNECTED, version=4),
        operator_code(tfl.BuiltinOperator.RESHAPE),
    ]
    graph = tfl.SubGraphT()
    graph.tensors = [
        tensor("x", [1, 4], INT8, 0, quantization([0.5], [-3])),
        tensor("w", [3, 4], INT8, 1, quantization([0.25, 0.5, 0.125])),
        tensor("b", [3], INT32, 2, quantization([0.125, 0.25, 0.0625])),
        tensor("h", [1, 3], INT8, 0, quantization([1.0], [7])),
        tensor("y", [3], INT8, 0, quantization([1.0], [7])),
    ]
    graph.inputs = [0]
    graph.outputs = [4]
    graph.operators = [dense_node, node([3], [4], 1)]
    graph.name = "main"
    model.subgraphs = [graph]
    return model
