"""Writes small .onnx models; the bytes are the same on every machine.

Messages are filled field by field, so that nothing depends on the defaults of the package's helpers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import data_type
from ...importers.onnx import onnx_package
from ...importers.onnx_tensors import TYPES

MICROSOFT = "com.microsoft"
# The operator set that is written unless a model needs a newer one: what most compilers read.
OPSET = 13
# First operator set to the file version that came with it.
_FILE_VERSIONS = ((10, 5), (11, 6), (12, 7), (15, 8), (19, 9), (21, 10), (23, 11), (24, 12), (25, 13))
_NUMBERS = {name: number for number, name in TYPES.items()}


class OnnxModel:
    """A model that grows node by node, in execution order.

    Args:
        opset: version of ONNX's operators; those of com.microsoft are version 1.

    Raises:
        UnsupportedError: the package `onnx` is not installed.

    A model of one Relu:

    >>> model = OnnxModel()
    >>> y = model.node("Relu", [model.input("x", "f32", (2,))], ["y"])
    >>> len(model.output("y", "f32", (2,)).write())
    83
    """

    def __init__(self, opset: int = OPSET) -> None:
        self._onnx = onnx_package()
        self._opset = opset
        self._graph = self._onnx.GraphProto(name="main")
        self._domains: set[str] = set()
        self._count = 0

    def name(self, stem: str) -> str:
        """A name that no other tensor has, as long as all others come from here or have no number behind."""
        self._count += 1
        return f"{stem}_{self._count}"

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> str:
        """An input of the model; `dtype` is a short type name, ``"s8"``."""
        self._port(self._graph.input, name, dtype, shape)
        return name

    def output(self, name: str, dtype: str, shape: Sequence[int]) -> OnnxModel:
        """Makes a tensor an output of the model."""
        self._port(self._graph.output, name, dtype, shape)
        return self

    def constant(self, values: Any, dtype: str = "", name: str = "") -> str:
        """A constant; its name.

        Args:
            values: an array; of packed types, an element each.
            dtype: short type name; by default the array's.
        """
        array = np.asarray(values)
        kind = data_type(dtype or array.dtype.name)
        name = name or self.name("constant")
        tensor = self._graph.initializer.add(name=name, data_type=_NUMBERS[kind.name])
        tensor.dims.extend(array.shape)
        if kind.is_packed:
            tensor.raw_data = pack(array, kind.bits).tobytes()
        else:
            tensor.raw_data = np.ascontiguousarray(array, kind.numpy).tobytes()
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
        domain: str = "",
    ) -> str:
        """Adds a node; the name of its first output.

        Args:
            inputs: names, empty for absent ones.
            outputs: names; by default one that is new.
            attributes: integers, binary32 numbers, texts and sequences of them.
        """
        node = self._graph.node.add(op_type=operator, name=f"{operator}_{len(self._graph.node)}", domain=domain)
        node.input.extend(inputs)
        node.output.extend(outputs or [self.name(operator.lower())])
        self._domains.add(domain)
        for name, value in sorted((attributes or {}).items()):
            self._attribute(node.attribute.add(name=name), value)
        return str(node.output[0])

    def write(self) -> bytes:
        """The file."""
        model = self._onnx.ModelProto(producer_name="bittrue")
        model.ir_version = max(file for opset, file in _FILE_VERSIONS if opset <= self._opset)
        model.opset_import.add(domain="", version=self._opset)
        if MICROSOFT in self._domains:
            model.opset_import.add(domain=MICROSOFT, version=1)
        model.graph.CopyFrom(self._graph)
        return bytes(model.SerializeToString(deterministic=True))

    def _port(self, ports: Any, name: str, dtype: str, shape: Sequence[int]) -> None:
        tensor = ports.add(name=name).type.tensor_type
        tensor.elem_type = _NUMBERS[dtype]
        # Present even when there are no dimensions: a scalar.
        tensor.shape.SetInParent()
        for size in shape:
            tensor.shape.dim.add(dim_value=int(size))

    def _attribute(self, proto: Any, value: Any) -> None:
        kinds = self._onnx.AttributeProto
        if isinstance(value, str):
            proto.type, proto.s = kinds.STRING, value.encode()
        elif isinstance(value, (int, np.integer)):
            proto.type, proto.i = kinds.INT, int(value)
        elif isinstance(value, (float, np.floating)):
            proto.type, proto.f = kinds.FLOAT, float(value)
        elif all(isinstance(one, (int, np.integer)) for one in value):
            proto.type = kinds.INTS
            proto.ints.extend(int(one) for one in value)
        else:
            proto.type = kinds.FLOATS
            proto.floats.extend(float(one) for one in value)


def one_node(
    operator: str,
    inputs: Sequence[tuple[str, str, Any] | None],
    outputs: Sequence[tuple[str, str, Sequence[int]]],
    attributes: dict[str, Any] | None = None,
    *,
    fed: Sequence[str],
    domain: str = "",
    opset: int = OPSET,
) -> bytes:
    """A model of one node.

    Args:
        inputs: name, short type name and values of each operand, None for an absent one.
        outputs: name, short type name and shape.
        fed: operands that are inputs of the model; the others are constants.
    """
    model = OnnxModel(opset)
    names = []
    for operand in inputs:
        if operand is None:
            names.append("")
            continue
        name, dtype, values = operand
        names.append(name)
        if name in fed:
            model.input(name, dtype, np.shape(values))
        else:
            model.constant(values, dtype, name)
    model.node(operator, names, [name for name, _, _ in outputs], attributes, domain)
    for name, dtype, shape in outputs:
        model.output(name, dtype, shape)
    return model.write()


def pack(values: np.ndarray, bits: int) -> np.ndarray:
    """Several small integers per byte, the first in the lowest bits."""
    per_byte = 8 // bits
    flat = np.asarray(values).reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    flat = np.append(flat, np.zeros(-flat.size % per_byte, np.uint8)).reshape(-1, per_byte)
    return np.asarray((flat << (np.arange(per_byte) * bits)).sum(axis=1), np.uint8)


def declared(content: bytes, dtype: str, shape: Sequence[int] | None = None) -> bytes:
    """The model with another type, or another shape, for its first output: what must be refused."""
    model = onnx_package().load_model_from_string(content)
    tensor = model.graph.output[0].type.tensor_type
    tensor.elem_type = _NUMBERS[dtype]
    if shape is not None:
        del tensor.shape.dim[:]
        for size in shape:
            tensor.shape.dim.add(dim_value=int(size))
    return bytes(model.SerializeToString(deterministic=True))
