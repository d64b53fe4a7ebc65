"""A .tflite model of one operator, read with the schema classes of ai-edge-litert: nothing of bittrue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

_TYPES = {
    schema.TensorType.INT8: np.int8,
    schema.TensorType.UINT8: np.uint8,
    schema.TensorType.INT16: np.int16,
    schema.TensorType.INT32: np.int32,
    schema.TensorType.INT64: np.int64,
    schema.TensorType.FLOAT32: np.float32,
    schema.TensorType.BOOL: np.bool_,
}
_OPERATORS = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}


@dataclass
class Tensor:
    """`value` is None for what the operator computes."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    scales: np.ndarray
    zero: int
    value: np.ndarray | None = None

    @property
    def scale(self) -> np.float32:
        return np.float32(self.scales[0])


@dataclass
class Operation:
    """`options` are the fields of the options table."""

    name: str
    options: Any
    inputs: list[Tensor | None]
    outputs: list[Tensor]

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def x(self) -> Tensor:
        """The first input."""
        found = self.inputs[0]
        assert found is not None
        return found

    def get(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None


def read(content: bytes, given: dict[str, np.ndarray]) -> Operation:
    """The only operator of a model, with the values of its inputs."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    (node,) = graph.operators
    code = model.operatorCodes[node.opcodeIndex]
    tensors = []
    for one in graph.tensors:
        name, dtype = one.name.decode(), _TYPES[one.type]
        shape = tuple(int(v) for v in one.shape) if one.shape is not None else ()
        quantization = one.quantization
        has = quantization is not None and quantization.scale is not None and len(quantization.scale)
        scales = np.array(quantization.scale, np.float32) if has else np.zeros(0, np.float32)
        zero = int(quantization.zeroPoint[0]) if has and quantization.zeroPoint is not None else 0
        raw = model.buffers[one.buffer].data
        value = None
        if name in given:
            value = given[name]
        elif raw is not None and len(raw):
            value = np.frombuffer(bytes(raw), dtype).reshape(shape)
        tensors.append(Tensor(name, shape, dtype, scales, zero, value))
    name = _OPERATORS[max(code.builtinCode, code.deprecatedBuiltinCode)]
    inputs = [None if i < 0 else tensors[i] for i in node.inputs]
    return Operation(name, node.builtinOptions, inputs, [tensors[i] for i in node.outputs])
