"""Builds small .tflite models with the schema classes of ai-edge-litert, independent of bittrue's reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "f32": schema.TensorType.FLOAT32,
    "f16": schema.TensorType.FLOAT16,
    "f64": schema.TensorType.FLOAT64,
    "s2": schema.TensorType.INT2,
    "s4": schema.TensorType.INT4,
    "s8": schema.TensorType.INT8,
    "s16": schema.TensorType.INT16,
    "s32": schema.TensorType.INT32,
    "s64": schema.TensorType.INT64,
    "u4": schema.TensorType.UINT4,
    "u8": schema.TensorType.UINT8,
    "u16": schema.TensorType.UINT16,
    "u32": schema.TensorType.UINT32,
    "u64": schema.TensorType.UINT64,
    "bf16": schema.TensorType.BFLOAT16,
    "c64": schema.TensorType.COMPLEX64,
    "c128": schema.TensorType.COMPLEX128,
    "bool": schema.TensorType.BOOL,
    "resource": schema.TensorType.RESOURCE,
}
NUMPY = {
    "f32": np.float32, "f16": np.float16, "f64": np.float64, "s2": np.int8, "s4": np.int8, "s8": np.int8,
    "s16": np.int16, "s32": np.int32, "s64": np.int64, "u4": np.uint8, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "bf16": ml_dtypes.bfloat16, "c64": np.complex64, "c128": np.complex128,
    "bool": np.bool_,
}  # fmt: skip


@dataclass
class T:
    """One tensor of a test model.

    `data` makes it a constant (s2, s4, u4: one byte per element, packed here). `scale` may be a list for per-axis
    parameters. A tensor without data that is an input of the operator becomes a model input, unless `variable` is set.
    """

    dtype: str
    shape: Sequence[int]
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    data: np.ndarray | None = None
    variable: bool = False
    name: str = ""
    signature: Sequence[int] | None = None


# Bits of the types that share bytes.
PACKED = {"s2": 2, "s4": 4, "u4": 4}


def pack(values: np.ndarray, bits: int) -> np.ndarray:
    """Several small integers per byte, the first in the lowest bits."""
    per_byte = 8 // bits
    flat = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    flat = np.append(flat, np.zeros(-flat.size % per_byte, np.uint8)).reshape(-1, per_byte)
    return (flat << (np.arange(per_byte) * bits)).sum(axis=1).astype(np.uint8)


def single(
    operator: str,
    options: tuple[str, dict[str, Any]] | bytes | None,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    *,
    version: int = 1,
    intermediates: Sequence[T] = (),
) -> bytes:
    """A model of one operator: `operator` is the builtin's name, `options` the schema table and its fields.

    ``"CUSTOM:code"`` is a custom operator, whose `options` are bytes.
    """
    return chain([(operator, options, inputs, outputs, version, intermediates)])


def chain(nodes: Sequence[tuple]) -> bytes:
    """A model of several operators in order; a `T` object used twice is one tensor.

    Each node is (operator, options, inputs, outputs[, version[, intermediates]]). Model inputs are the tensors without
    data that no node produces; model outputs are the tensors that no node reads.
    """
    return several(G(nodes))


@dataclass
class G:
    """One graph of a model. Without `inputs` and `outputs`: as in `chain`."""

    nodes: Sequence[tuple]
    inputs: Sequence[T] | None = None
    outputs: Sequence[T] | None = None
    name: str = ""


def several(*graphs: G) -> bytes:
    """A model of several graphs, the first of which is the main one."""
    model = schema.ModelT()
    model.version = 3
    model.description = "bittrue test"
    model.buffers = [schema.BufferT()]
    model.operatorCodes = []
    model.subgraphs = [_graph(model, graph, graph.name or f"graph{i}") for i, graph in enumerate(graphs)]
    model.subgraphs[0].name = graphs[0].name or "main"
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _graph(model: Any, built: G, name: str) -> Any:
    graph = schema.SubGraphT()
    graph.name = name
    graph.tensors, graph.operators = [], []
    indices: dict[int, int] = {}
    kept: list[T] = []

    def index(tensor: T | None) -> int:
        if tensor is None:
            return -1
        if id(tensor) not in indices:
            indices[id(tensor)] = len(graph.tensors)
            kept.append(tensor)
            graph.tensors.append(_tensor(model, tensor, f"t{len(graph.tensors)}"))
        return indices[id(tensor)]

    produced, read = set(), set()
    for operator, options, inputs, outputs, *rest in built.nodes:
        node = schema.OperatorT()
        code = schema.OperatorCodeT()
        builtin, _, custom = operator.partition(":")
        number = getattr(schema.BuiltinOperator, builtin)
        if custom:
            code.customCode = custom
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
        code.version = rest[0] if rest else 1
        model.operatorCodes.append(code)
        node.opcodeIndex = len(model.operatorCodes) - 1
        node.inputs = np.array([index(t) for t in inputs], np.int32)
        node.outputs = np.array([index(t) for t in outputs], np.int32)
        if len(rest) > 1 and rest[1]:
            node.intermediates = np.array([index(t) for t in rest[1]], np.int32)
        if isinstance(options, bytes):
            node.customOptions = np.frombuffer(options, np.uint8)
        elif options is not None:
            _set_options(node, *options)
        graph.operators.append(node)
        produced |= {index(t) for t in outputs}
        read |= {index(t) for t in inputs}
        if len(rest) > 1:
            read |= {index(t) for t in rest[1]}
    free = [i for i, t in enumerate(kept) if t.data is None and not t.variable and i not in produced]
    used_as_input = {i for node in graph.operators for i in node.inputs}
    inputs = [i for i in free if i in used_as_input]
    outputs = [i for i in sorted(produced) if i not in read]
    graph.inputs = np.array(inputs if built.inputs is None else [index(t) for t in built.inputs], np.int32)
    graph.outputs = np.array(outputs if built.outputs is None else [index(t) for t in built.outputs], np.int32)
    return graph


def _set_options(node: Any, table: str, fields: dict[str, Any]) -> None:
    number = "" if hasattr(schema.BuiltinOptions, table) else "2"
    options = getattr(schema, table + "T")()
    setattr(node, f"builtinOptions{number}Type", getattr(getattr(schema, f"BuiltinOptions{number}"), table))
    setattr(node, f"builtinOptions{number}", options)
    for name, value in fields.items():
        assert hasattr(options, name), f"{table} has no field {name}"
        setattr(options, name, value)


def _tensor(model: Any, tensor: T, name: str) -> Any:
    built = schema.TensorT()
    built.name = (tensor.name or name).encode()
    built.type = TYPES[tensor.dtype]
    built.shape = np.array(tensor.shape, np.int32)
    built.hasRank = True
    if tensor.signature is not None:
        built.shapeSignature = np.array(tensor.signature, np.int32)
    built.isVariable = tensor.variable
    built.buffer = 0
    if tensor.data is not None:
        values = np.ascontiguousarray(tensor.data, NUMPY[tensor.dtype])
        buffer = schema.BufferT()
        packed = tensor.dtype in PACKED
        raw = pack(values, PACKED[tensor.dtype]) if packed else values.reshape(-1).view(np.uint8)
        buffer.data = np.frombuffer(raw.tobytes(), np.uint8)
        model.buffers.append(buffer)
        built.buffer = len(model.buffers) - 1
    if tensor.scale is not None:
        scales = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        quantization = schema.QuantizationParametersT()
        quantization.scale = scales
        quantization.zeroPoint = np.broadcast_to(np.asarray(tensor.zero_point, np.int64), scales.shape)
        quantization.quantizedDimension = tensor.axis
        built.quantization = quantization
    return built
