"""Surgery on .onnx files, through the package `onnx`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ...api import Model
from ...errors import InvalidModelError, UnsupportedError
from ...importers.onnx import onnx_package
from ...visible import visible
from .dimensions import Dimension, Links
from .document import Document, Operator

# What goes along with what: "i0.3" is axis 3 of input 0, "o0.3" of output 0; "?": it may also be 1, for all channels.
_WINDOW = ("i0.0 o0.0", "i0.1 o0.1")
_LINKS = {
    "Conv": ("i0.0 o0.0", "i0.1 i1.1", "i1.0 i2.0 o0.1", "i1.2", "i1.3"),
    "ConvInteger": ("i0.0 o0.0", "i0.1 i1.1", "i1.0 i3.0? o0.1", "i1.2", "i1.3"),
    "QLinearConv": ("i0.0 o0.0", "i0.1 i3.1", "i3.0 i4.0? i5.0? i8.0 o0.1", "i3.2", "i3.3"),
    "MatMul": ("i0.-1 i1.-2", "i0.-2 o0.-2", "i1.-1 o0.-1"),
    "MatMulInteger": ("i0.-1 i1.-2", "i0.-2 o0.-2", "i1.-1 i3.0? o0.-1"),
    "QLinearMatMul": ("i0.-1 i3.-2", "i0.-2 o0.-2", "i3.-1 i4.0? i5.0? o0.-1"),
    "BatchNormalization": ("i0.0 o0.0", "i0.1 i1.0 i2.0 i3.0 i4.0 o0.1"),
    "AveragePool": _WINDOW,
    "GlobalAveragePool": _WINDOW,
    "GlobalMaxPool": _WINDOW,
    "MaxPool": _WINDOW,
    "QLinearAveragePool": _WINDOW,
    "QLinearGlobalAveragePool": _WINDOW,
}
_ELEMENTWISE = frozenset(
    "Add Sub Mul Div Pow Max Min Sum Mean PRelu Relu LeakyRelu Elu Selu Sigmoid Tanh HardSigmoid HardSwish Softplus "
    "Softsign Gelu Abs Neg Sqrt Exp Log Erf Floor Ceil Round Sign Sin Cos Reciprocal Clip Cast Identity Softmax "
    "LogSoftmax Equal Less LessOrEqual Greater GreaterOrEqual And Or Not Where QuantizeLinear DequantizeLinear".split()
)
# Operands at even places are scales and zero points.
_QUANTIZED_ELEMENTWISE = {"QLinearAdd": (0, 3), "QLinearMul": (0, 3), "QLinearSigmoid": (0,), "QLinearLeakyRelu": (0,)}


def read(path: Path, model: Model) -> OnnxDocument:
    """The file at `path`, which `model` was read from; constants in other files are taken in."""
    onnx = _onnx()
    try:
        proto = onnx.load(str(path))
    except Exception as error:
        # bittrue could read it; the package is stricter.
        message = f"the package onnx cannot read this file: {type(error).__name__}: {error}"
        raise UnsupportedError("BT-SURGERY-READ", message, place=str(path), advice="pip install -U onnx") from None
    proto.producer_name = "bittrue"
    proto.doc_string = f"cut from {visible(path.name)}"
    graph = proto.graph
    initializers = {tensor.name for tensor in graph.initializer}
    # Old files list constants among the inputs, too.
    inputs = [port for port in graph.input if port.name not in initializers]
    del graph.input[:]
    graph.input.extend(inputs)
    shapes = {port.name: shape for port in graph.input if (shape := _shape(port)) is not None}
    return OnnxDocument(proto, shapes)


def _onnx() -> Any:
    package = onnx_package()
    import_module("onnx.shape_inference")
    return package


class OnnxDocument(Document):
    """An .onnx model; only its main graph is cut.

    Args:
        proto: the model (`onnx.ModelProto`). It is not changed.
        shapes: of tensors that are no constants, as far as they are known.
    """

    def __init__(self, proto: Any, shapes: Mapping[str, Sequence[int]]) -> None:
        self._proto = proto
        graph = proto.graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._shapes = {**shapes, **{name: tuple(tensor.dims) for name, tensor in self._constants.items()}}
        self.inputs = tuple(port.name for port in graph.input)
        self.outputs = tuple(port.name for port in graph.output)
        self._describe(
            Operator(
                position,
                node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}",
                tuple(dict.fromkeys(_read(node))),
                tuple(filter(None, node.output)),
            )
            for position, node in enumerate(graph.node)
        )

    def content(self) -> bytes:
        content: bytes = self._proto.SerializeToString()
        return content

    def dimensions(self) -> list[Dimension]:
        links = Links(self._shapes)
        for node in self._proto.graph.node:
            ports = {f"i{k}": name for k, name in enumerate(node.input) if name}
            ports |= {f"o{k}": name for k, name in enumerate(node.output) if name}
            if node.op_type in _ELEMENTWISE:
                data = node.input[:1] if node.op_type in ("QuantizeLinear", "DequantizeLinear") else node.input
                links.elementwise([*filter(None, data), *node.output])
            elif node.op_type in _QUANTIZED_ELEMENTWISE:
                links.elementwise([*(node.input[i] for i in _QUANTIZED_ELEMENTWISE[node.op_type]), *node.output])
            for group in self._groups(node):
                members = (member.partition(".") for member in group.split())
                axes = [(ports[port], int(a.rstrip("?")), a.endswith("?")) for port, _, a in members if port in ports]
                links.link((name, axis) for name, axis, single in axes if not (single and self._is_single(name)))
        rigid = [name for name, tensor in self._constants.items() if tensor.data_location]
        return links.dimensions(self.inputs, self._constants, rigid)

    def cropped(self, dimension: Dimension, low: int, high: int) -> Document:
        onnx = _onnx()
        proto = self._copy()
        graph = proto.graph
        axes = dict[str, list[int]]()
        for name, axis in dimension.axes:
            axes.setdefault(name, []).append(axis)
        for tensor in graph.initializer:
            for axis in axes.get(tensor.name, ()):
                values = np.moveaxis(np.asarray(onnx.numpy_helper.to_array(tensor)), axis, 0)[low:high]
                kept = np.ascontiguousarray(np.moveaxis(values, 0, axis))
                tensor.CopyFrom(onnx.numpy_helper.from_array(kept, tensor.name))
        for port in graph.input:
            for axis in axes.get(port.name, ()):
                port.type.tensor_type.shape.dim[axis].dim_value = high - low
        for node in graph.node:
            self._fit_attributes(node, axes, high - low)
        return self._inferred(proto)

    def _part(
        self, positions: Sequence[int], inputs: list[str], outputs: list[str], values: Mapping[str, np.ndarray]
    ) -> OnnxDocument:
        onnx = _onnx()
        proto = self._copy(constants=False)
        graph, old = proto.graph, self._proto.graph
        types = {port.name: port for port in (*old.input, *old.output, *old.value_info)}
        for field in ("node", "input", "output", "value_info", "initializer", "sparse_initializer"):
            graph.ClearField(field)
        graph.node.extend(old.node[position] for position in positions)
        read = {name for node in graph.node for name in _read(node)} | {*outputs}
        graph.initializer.extend(tensor for tensor in old.initializer if tensor.name in read)
        graph.sparse_initializer.extend(t for t in old.sparse_initializer if t.values.name in read)
        entries = [name for name in inputs if name not in self._constants]
        shapes = {name: value.shape for name, value in values.items()}
        for name in [n for n in self.inputs if n in entries] + [n for n in entries if n not in self.inputs]:
            if name not in values and name not in types:
                raise InvalidModelError("BT-SURGERY-TENSOR", f"nothing is known about the type of '{name}'")
            graph.input.append(_port(name, values[name]) if name in values else types[name])
        for name in outputs:
            # Without a type, the runtime infers it.
            known = types.get(name, onnx.ValueInfoProto(name=name))
            graph.output.append(_port(name, values[name]) if name in values else known)
        return OnnxDocument(proto, {name: shape for name, shape in shapes.items() if name not in self._constants})

    def _inferred(self, proto: Any) -> OnnxDocument:
        """With the shapes that follow from those of the inputs; outputs are left without."""
        onnx = _onnx()
        for port in proto.graph.output:
            if port.type.HasField("tensor_type"):
                port.type.tensor_type.ClearField("shape")
        del proto.graph.value_info[:]
        try:
            known = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
        except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
            raise InvalidModelError("BT-SURGERY-SHAPE", f"shapes no longer fit: {error}") from None
        ports = (*known.input, *known.value_info, *known.output)
        return OnnxDocument(proto, {p.name: shape for p in ports if (shape := _shape(p)) is not None})

    def _groups(self, node: Any) -> list[str]:
        """What goes along with what in one node."""
        if node.op_type in ("Conv", "QLinearConv") and _attribute(node, "group", 1) > 1:
            weights = 1 if node.op_type == "Conv" else 3
            if not self._is_depthwise(node, weights):
                return ["i0.0 o0.0"]
            rest = "i2.0" if node.op_type == "Conv" else "i4.0? i5.0? i8.0"
            return ["i0.0 o0.0", f"i0.1 i{weights}.0 {rest} o0.1"]
        if node.op_type == "Gemm":
            a, b = (_attribute(node, name, 0) for name in ("transA", "transB"))
            return [f"i0.{1 - a} i1.{b}", f"i0.{a} o0.0", f"i1.{1 - b} i2.-1? o0.1"]
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            axis = _attribute(node, "axis", 1)
            return [f"i0.{axis} i1.0? i2.0?"] if len(self._shapes.get(node.input[1], ())) == 1 else []
        if node.op_type == "Transpose":
            rank = len(self._shapes.get(node.input[0], ()))
            order = _attribute(node, "perm", range(rank - 1, -1, -1))
            return [f"i0.{axis} o0.{place}" for place, axis in enumerate(order)]
        if node.op_type == "Concat":
            rank = len(self._shapes.get(node.output[0], ()))
            along = _attribute(node, "axis", 0) % rank if rank else 0
            every = [*(f"i{k}" for k in range(len(node.input))), "o0"]
            return [" ".join(f"{port}.{axis}" for port in every) for axis in range(rank) if axis != along]
        return list(_LINKS.get(node.op_type, ()))

    def _is_depthwise(self, node: Any, weights: int) -> bool:
        shape = self._shapes.get(node.input[weights], ())
        return len(shape) > 1 and shape[1] == 1 and shape[0] == _attribute(node, "group", 1)

    def _is_single(self, name: str) -> bool:
        return self._shapes.get(name, (1,))[:1] in ((), (1,))

    def _fit_attributes(self, node: Any, axes: Mapping[str, Sequence[int]], size: int) -> None:
        """Attributes of convolutions that repeat the sizes of their weights."""
        weights = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}.get(node.op_type)
        if weights is None:
            return
        cropped = axes.get(node.input[weights], ())
        for attribute in node.attribute:
            if attribute.name == "group" and 0 in cropped and self._is_depthwise(node, weights):
                # A depthwise convolution has one group per channel.
                attribute.i = size
            elif attribute.name == "kernel_shape":
                for axis in (a for a in cropped if 2 <= a < len(attribute.ints) + 2):
                    attribute.ints[axis - 2] = size

    def _copy(self, constants: bool = True) -> Any:
        proto = type(self._proto)()
        if constants:
            proto.CopyFrom(self._proto)
            return proto
        # Constants may be large; everything else is small.
        for field, value in self._proto.ListFields():
            if field.name == "graph":
                proto.graph.name, proto.graph.doc_string = value.name, value.doc_string
            elif field.name in ("opset_import", "functions"):
                getattr(proto, field.name).extend(value)
            elif field.name in ("ir_version", "producer_name", "doc_string", "domain", "model_version"):
                setattr(proto, field.name, value)
        return proto


def _read(node: Any) -> list[str]:
    """Names that a node reads, those of outer tensors in its graphs among them."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            inner = {port.name for port in graph.input} | {tensor.name for tensor in graph.initializer}
            inner |= {name for child in graph.node for name in child.output}
            outer = [*(name for child in graph.node for name in _read(child)), *(port.name for port in graph.output)]
            found += [name for name in outer if name not in inner]
    return found


def _attribute(node: Any, name: str, default: Any) -> Any:
    for attribute in node.attribute:
        if attribute.name == name:
            return list(attribute.ints) if attribute.ints else attribute.i
    return default


def _shape(port: Any) -> tuple[int, ...] | None:
    """Dimensions of a port where all are known."""
    kind = port.type.tensor_type
    if not port.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    sizes = tuple(size.dim_value for size in kind.shape.dim)
    return sizes if all(size > 0 for size in sizes) else None


def _port(name: str, value: np.ndarray) -> Any:
    helper = _onnx().helper
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
