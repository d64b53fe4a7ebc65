"""Surgery on .tflite files, through the classes that LiteRT's package generates from its schema."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np

from ...api import Model, load
from ...errors import InvalidModelError, UnsupportedError
from ...files import read_file
from ...visible import visible
from .dimensions import Dimension, Links
from .document import Document, Operator

_NUMPY = {
    "BOOL": np.bool_,
    "FLOAT16": np.float16,
    "FLOAT32": np.float32,
    "FLOAT64": np.float64,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "INT8": np.int8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT8": np.uint8,
}
# What goes along with what: "i0.3" is axis 3 of input 0, "o0.3" of output 0.
_LINKS = {
    "CONV_2D": ("i0.0 o0.0", "i0.3 i1.3", "i1.0 i2.0 o0.3", "i1.1", "i1.2"),
    "DEPTHWISE_CONV_2D": ("i0.0 o0.0", "i0.3 i1.3 i2.0 o0.3", "i1.1", "i1.2"),
    "FULLY_CONNECTED": ("i0.-1 i1.1", "i1.0 i2.0 o0.-1"),
    "TRANSPOSE_CONV": ("i2.3 i1.3",),
    "AVERAGE_POOL_2D": ("i0.0 o0.0", "i0.3 o0.3"),
    "MAX_POOL_2D": ("i0.0 o0.0", "i0.3 o0.3"),
    "L2_POOL_2D": ("i0.0 o0.0", "i0.3 o0.3"),
    "RESIZE_BILINEAR": ("i0.0 o0.0", "i0.3 o0.3"),
    "RESIZE_NEAREST_NEIGHBOR": ("i0.0 o0.0", "i0.3 o0.3"),
}
# A depthwise convolution of one channel, whose output channels are its depth multiplier.
_SPREAD = ("i0.0 o0.0", "i1.3 i2.0 o0.3", "i1.1", "i1.2")
_ELEMENTWISE = frozenset(
    "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE FLOOR_DIV FLOOR_MOD POW PRELU "
    "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU ELU LOGISTIC TANH HARD_SWISH GELU ABS NEG SQUARE SQRT RSQRT EXP "
    "LOG SIN COS FLOOR CEIL ROUND SIGN CAST QUANTIZE DEQUANTIZE SOFTMAX LOG_SOFTMAX L2_NORMALIZATION "
    "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT".split()
)


def read(path: Path, model: Model) -> TfliteDocument:
    """The file at `path`, which `model` was read from."""
    content = read_file(path)
    schema = _schema()
    try:
        root = schema.ModelT.InitFromPackedBuf(content, 0)
    except Exception as error:
        # bittrue could read it; the generated classes know less.
        message = f"the classes of ai-edge-litert cannot read this file: {type(error).__name__}: {error}"
        raise UnsupportedError(
            "BT-SURGERY-READ", message, place=str(path), advice="pip install -U ai-edge-litert"
        ) from None
    graph = root.subgraphs[0]
    if len(graph.tensors) != len(model.graph.tensors):
        raise UnsupportedError("BT-SURGERY-READ", "bittrue and ai-edge-litert read different tensors", place=str(path))
    # bittrue's names are unique.
    for tensor, known in zip(graph.tensors, model.graph.tensors, strict=True):
        tensor.name = known.name
    for buffer in root.buffers:
        # Data of files beyond 2 GB lies after the FlatBuffer.
        if buffer.offset > 1:
            buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    for operator in graph.operators:
        if getattr(operator, "largeCustomOptionsOffset", 0) > 1:
            operator.customOptions = np.frombuffer(
                content, np.uint8, operator.largeCustomOptionsSize, operator.largeCustomOptionsOffset
            )
            operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0
    root.description = f"cut from {visible(path.name)} by bittrue"
    return TfliteDocument(root)


def _schema() -> Any:
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError:
        raise UnsupportedError(
            "BT-SURGERY-MISSING", "writing .tflite files needs LiteRT's schema", advice="pip install ai-edge-litert"
        ) from None
    return schema_py_generated


class TfliteDocument(Document):
    """A .tflite model; only its main graph is cut.

    Args:
        root: the model, an object of the generated class `ModelT`. It is not changed.
    """

    def __init__(self, root: Any) -> None:
        schema = _schema()
        self._root = root
        self._graph = root.subgraphs[0]
        self._builtin = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
        self._type = {v: k for k, v in vars(schema.TensorType).items() if not k.startswith("_")}
        names = [tensor.name for tensor in self._graph.tensors]
        self._index = {name: i for i, name in enumerate(names)}
        self.inputs = tuple(names[i] for i in _list(self._graph.inputs))
        self.outputs = tuple(names[i] for i in _list(self._graph.outputs))
        self._describe(
            Operator(
                position,
                self._source(operator),
                tuple(names[i] for i in _list(operator.inputs) if i >= 0),
                tuple(names[i] for i in _list(operator.outputs)),
            )
            for position, operator in enumerate(self._graph.operators or [])
        )

    def content(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._root.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def dimensions(self) -> list[Dimension]:
        links = Links({t.name: _list(t.shape) for t in self._graph.tensors})
        for operator in self._graph.operators:
            source = self._source(operator)
            ports = {f"i{k}": i for k, i in enumerate(_list(operator.inputs)) if i >= 0}
            ports |= {f"o{k}": i for k, i in enumerate(_list(operator.outputs))}
            named = {port: self._graph.tensors[i].name for port, i in ports.items()}
            if source in _ELEMENTWISE:
                links.elementwise(list(named.values()))
            elif source == "CONCATENATION":
                self._link_concatenation(links, operator, list(named.values()))
            for group in _SPREAD if self._spreads(operator) else _LINKS.get(source, ()):
                members = (member.partition(".") for member in group.split())
                links.link((named[port], int(axis)) for port, _, axis in members if port in named)
        constants = [t.name for i, t in enumerate(self._graph.tensors) if self._is_constant(i)]
        return links.dimensions(self.inputs, constants, [n for n in constants if not self._can_crop(n)])

    def cropped(self, dimension: Dimension, low: int, high: int) -> Document:
        root = copy.copy(self._root)
        graph = copy.copy(self._graph)
        root.subgraphs = [graph, *root.subgraphs[1:]]
        root.buffers, graph.tensors = list(root.buffers), list(graph.tensors)
        for name, axis in dimension.axes:
            index = self._index[name]
            tensor = graph.tensors[index] = copy.copy(graph.tensors[index])
            shape = _list(tensor.shape)
            if self._is_constant(index):
                values: np.ndarray = np.frombuffer(_bytes(root.buffers[tensor.buffer]), _NUMPY[self._type[tensor.type]])
                kept = np.moveaxis(np.moveaxis(values.reshape(shape), axis, 0)[low:high], 0, axis)
                tensor.buffer = len(root.buffers)
                root.buffers.append(_buffer(np.ascontiguousarray(kept).view(np.uint8).reshape(-1)))
            shape[axis] = high - low
            tensor.shape = np.array(shape, np.int32)
            tensor.quantization = _crop_quantization(tensor.quantization, axis, dimension.size, low, high)
        graph.operators = list(graph.operators)
        for position, operator in enumerate(graph.operators):
            if self._spreads(operator) and (graph.tensors[operator.inputs[1]].name, 3) in dimension.axes:
                changed = graph.operators[position] = copy.copy(operator)
                changed.builtinOptions = copy.copy(operator.builtinOptions)
                changed.builtinOptions.depthMultiplier = high - low
        return TfliteDocument(root)._inferred()

    def _inferred(self) -> TfliteDocument:
        """With the shapes that the planner finds for computed tensors."""
        plan = load(self.content()).prepare(executor="reference").plan
        root, graph = copy.copy(self._root), copy.copy(self._graph)
        root.subgraphs = [graph, *root.subgraphs[1:]]
        graph.tensors = [copy.copy(t) for t in graph.tensors]
        written = {i for operator in graph.operators for i in _list(operator.outputs)}
        for i in written:
            found = plan.tensors[i]
            if found.kind in ("unknown", "later") or -1 in found.shape:
                raise InvalidModelError("BT-SURGERY-SHAPE", f"the shape of '{found.name}' is only known when it runs")
            graph.tensors[i].shape = np.array(found.shape, np.int32)
        return TfliteDocument(root)

    def _part(
        self, positions: Sequence[int], inputs: list[str], outputs: list[str], values: Mapping[str, np.ndarray]
    ) -> TfliteDocument:
        old = self._graph
        operators = [copy.copy(old.operators[p]) for p in positions]
        # Variable tensors start from their first values, constants stay.
        indices = [self._index[name] for name in inputs]
        entries = sorted(i for i in indices if not old.tensors[i].isVariable and not self._is_constant(i))
        used = [*entries, *(self._index[name] for name in outputs)]
        for operator in operators:
            used += [i for i in (*_list(operator.inputs), *_list(operator.outputs)) if i >= 0]
            used += [i for i in _list(operator.intermediates) if i >= 0]
        order = sorted(set(used))
        place = {old_index: new for new, old_index in enumerate(order)} | {-1: -1}
        for operator in operators:
            for field in ("inputs", "outputs", "intermediates"):
                if getattr(operator, field) is not None:
                    setattr(operator, field, np.array([place[i] for i in _list(getattr(operator, field))], np.int32))
        graph = copy.copy(old)
        graph.operators = operators
        graph.tensors = [copy.copy(old.tensors[i]) for i in order]
        graph.inputs = np.array([place[i] for i in entries], np.int32)
        graph.outputs = np.array([place[self._index[n]] for n in outputs], np.int32)
        for tensor, index in zip(graph.tensors, order, strict=True):
            if tensor.name in values and not self._is_constant(index):
                tensor.shape, tensor.shapeSignature = np.array(values[tensor.name].shape, np.int32), None
        root = copy.copy(self._root)
        root.subgraphs = [graph, *(root.subgraphs[1:] if any(map(_calls, operators)) else ())]
        root.metadata = root.metadataBuffer = root.signatureDefs = None
        _keep_what_is_used(root)
        return TfliteDocument(root)

    def _link_concatenation(self, links: Links, operator: Any, names: list[str]) -> None:
        rank = len(_list(self._graph.tensors[self._index[names[-1]]].shape))
        along = operator.builtinOptions.axis % rank if rank and operator.builtinOptions is not None else 0
        for axis in set(range(rank)) - {along}:
            links.link((name, axis) for name in names)

    def _spreads(self, operator: Any) -> bool:
        """Whether this is a depthwise convolution of a single channel."""
        if self._source(operator) != "DEPTHWISE_CONV_2D" or operator.builtinOptions is None:
            return False
        shape = _list(self._graph.tensors[operator.inputs[0]].shape)
        return len(shape) == 4 and shape[3] == 1 and operator.builtinOptions.depthMultiplier > 1

    def _source(self, operator: Any) -> str:
        code = self._root.operatorCodes[operator.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        return self._builtin.get(number, str(number))

    def _is_constant(self, index: int) -> bool:
        tensor = self._graph.tensors[index]
        return not tensor.isVariable and bool(tensor.buffer) and self._root.buffers[tensor.buffer].data is not None

    def _can_crop(self, name: str) -> bool:
        tensor = self._graph.tensors[self._index[name]]
        kind = _NUMPY.get(self._type[tensor.type])
        if kind is None or tensor.sparsity is not None:
            return False
        return (
            _bytes(self._root.buffers[tensor.buffer]).size == math.prod(_list(tensor.shape)) * np.dtype(kind).itemsize
        )


def _list(values: Any) -> list[int]:
    return [] if values is None else [int(v) for v in values]


def _bytes(buffer: Any) -> np.ndarray:
    return np.asarray(buffer.data, np.uint8)


def _buffer(data: np.ndarray) -> Any:
    buffer = _schema().BufferT()
    buffer.data = data
    return buffer


def _calls(operator: Any) -> bool:
    """Whether an operator names another graph of the file."""
    options = (operator.builtinOptions, getattr(operator, "builtinOptions2", None))
    return any("ubgraph" in name for found in options if found is not None for name in vars(found))


def _crop_quantization(quantization: Any, axis: int, size: int, low: int, high: int) -> Any:
    """Parameters per slice of the axis, for the slices that stay."""
    if quantization is None or quantization.scale is None or len(quantization.scale) < 2:
        return quantization
    if quantization.quantizedDimension != axis or len(quantization.scale) != size:
        return quantization
    kept = copy.copy(quantization)
    for name in ("scale", "zeroPoint", "min", "max"):
        values = getattr(kept, name)
        if values is not None and len(values) == size:
            setattr(kept, name, np.asarray(values)[low:high])
    return kept


def _keep_what_is_used(root: Any) -> None:
    """Number buffers and operator codes anew, without those that nobody uses any more."""
    buffers, codes = {0: root.buffers[0]}, dict[int, Any]()
    graphs = []
    for graph in root.subgraphs:
        graph = copy.copy(graph)
        graph.tensors = [copy.copy(t) for t in graph.tensors]
        graph.operators = [copy.copy(o) for o in graph.operators or []]
        for tensor in graph.tensors:
            buffers[tensor.buffer] = root.buffers[tensor.buffer]
        for operator in graph.operators:
            codes[operator.opcodeIndex] = root.operatorCodes[operator.opcodeIndex]
        graphs.append(graph)
    buffer_place, code_place = ({old: new for new, old in enumerate(found)} for found in (buffers, codes))
    for graph in graphs:
        for tensor in graph.tensors:
            tensor.buffer = buffer_place[tensor.buffer]
        for operator in graph.operators:
            operator.opcodeIndex = code_place[operator.opcodeIndex]
    root.subgraphs, root.buffers, root.operatorCodes = graphs, list(buffers.values()), list(codes.values())
