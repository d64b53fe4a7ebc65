"""Cases of .tflite models as .onnx: DequantizeLinear, the operator on real numbers, QuantizeLinear.

Names, shapes and types of inputs and outputs stay; transpositions that channels-first operators need are inside, on
codes. The arithmetic is another one: what such a model means in real numbers is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import BittrueError
from ...graph import Graph, Node, Tensor
from .case import SuiteCase
from .onnx_model import OnnxModel

CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_CLAMPS = {"relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}


class NotSaid(Exception):
    """ONNX cannot say this; the reason is the text."""


@dataclass(frozen=True)
class QdqForm:
    """What became of a case.

    Attributes:
        content: the .onnx file; None where ONNX cannot say it.
        reason: then, why.
    """

    content: bytes | None
    reason: str = ""


class Writer:
    """Writes the ONNX form of one node.

    Attributes:
        node: of the .tflite model.
        model: what is written.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node: Node = graph.nodes[0]
        self.opset = 21 if any(t.dtype in ("s16", "s4", "u4") for t in graph.tensors) else 13
        self.model = OnnxModel(self.opset)
        for index in graph.inputs:
            tensor = graph.tensors[index]
            self.model.input(tensor.name, tensor.dtype, tensor.shape)

    # -- what the node reads ---------------------------------------------------------------------------------------
    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.node.attributes

    def has(self, position: int) -> bool:
        return position < len(self.node.inputs) and self.node.inputs[position] is not None

    def tensor(self, position: int) -> Tensor:
        index = self.node.inputs[position] if self.has(position) else None
        if index is None:
            raise NotSaid(f"input {position} is absent")
        return self.graph.tensors[index]

    @property
    def result(self) -> Tensor:
        return self.graph.tensors[self.node.outputs[0]]

    def integers(self, position: int) -> list[int]:
        """Values of a constant operand."""
        tensor = self.tensor(position)
        if not tensor.is_constant:
            raise NotSaid(f"'{tensor.name}' is no constant")
        return [int(value) for value in tensor.values().reshape(-1)]

    def name(self, position: int) -> str:
        """An operand as it is: the input of the model, or a constant."""
        tensor = self.tensor(position)
        return self.model.constant(tensor.values(), tensor.dtype) if tensor.is_constant else tensor.name

    # -- nodes -----------------------------------------------------------------------------------------------------
    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.model.node(operator, inputs, attributes=attributes)

    def transposed(self, name: str, order: Sequence[int]) -> str:
        return self.add("Transpose", name, perm=list(order))

    def shaped(self, name: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", name, self.model.constant(np.array(shape, np.int64)))

    def real(
        self,
        position: int,
        order: Sequence[int] = (),
        shape: Sequence[int] = (),
        product: np.ndarray | None = None,
    ) -> str:
        """An operand as real numbers.

        Args:
            order: of its axes, applied to codes.
            shape: another shape, given to codes.
            product: scale of an operand that has none of its own: a bias.
        """
        tensor = self.tensor(position)
        found, axis = tensor.quantization, None
        if tensor.is_constant:
            values = tensor.values()
            values = np.transpose(values, order) if order else values
            name = self.model.constant(values.reshape(shape) if shape else values, tensor.dtype)
        else:
            name = self.transposed(tensor.name, order) if order else tensor.name
            name = self.shaped(name, shape) if shape else name
        if tensor.dtype == "f32":
            return name
        if found is None and product is None:
            raise NotSaid(f"'{tensor.name}' has no scale")
        scales = product if found is None else found.scales
        points = np.zeros(1, np.int64) if found is None else found.zero_points
        assert scales is not None
        if scales.size > 1:
            axis = 0 if found is None or found.axis is None else found.axis
            axis = list(order).index(axis) if order else axis
        if tensor.dtype == "s64":
            # DequantizeLinear does not take 64 bits.
            wide = self.add("Cast", name, to=1)
            return self.add("Mul", wide, self.model.constant(scales if scales.size > 1 else scales.reshape(())))
        more = {} if axis is None else {"axis": axis}
        operands = [name, self.model.constant(scales if scales.size > 1 else scales.reshape(()))]
        if tensor.dtype != "s32":
            points = points if scales.size > 1 else points.reshape(-1)[:1].reshape(())
            operands.append(self.model.constant(points, tensor.dtype))
        return self.add("DequantizeLinear", *operands, **more)

    def clamped(self, name: str) -> str:
        """With the node's own activation."""
        activation = str(self.attributes.get("activation", "none"))
        if activation == "none":
            return name
        if activation not in _CLAMPS:
            raise NotSaid(f"activation {activation}")
        return self.clamp(name, *_CLAMPS[activation])

    def clamp(self, name: str, low: float | None, high: float | None) -> str:
        if low == 0 and high is None:
            return self.add("Relu", name)
        ends = ["" if end is None else self.model.constant(np.float32(end)) for end in (low, high)]
        return self.add("Clip", name, *ends)

    def quantized(self, name: str) -> str:
        """Codes of the result's type and parameters."""
        tensor = self.result
        if tensor.dtype == "f32":
            return name
        if tensor.quantization is None:
            raise NotSaid(f"'{tensor.name}' has no scale")
        if tensor.quantization.per_axis:
            raise NotSaid("a result with scales per axis")
        if tensor.dtype not in ("s8", "u8", "s16", "u16"):
            raise NotSaid(f"a result of {tensor.dtype}")
        scale = self.model.constant(tensor.quantization.scales[0])
        point = self.model.constant(int(tensor.quantization.zero_points[0]), tensor.dtype)
        return self.add("QuantizeLinear", name, scale, point)

    def finish(self, name: str) -> bytes:
        """The file; `name` becomes the output under the name that it has in the .tflite model."""
        self.model.node("Identity", [name], [self.result.name])
        self.model.output(self.result.name, self.result.dtype, self.result.shape)
        return self.model.write()


Mapper = Callable[[Writer], str]


def qdq_form(case: SuiteCase) -> QdqForm:
    """The ONNX form of a .tflite case, or why there is none.

    Raises:
        UnsupportedError: the package `onnx` is not installed.
    """
    from .qdq_operators import MAPPERS

    if case.format != "tflite":
        return QdqForm(None, f"it is a model of the format {case.format}")
    if case.rejects:
        return QdqForm(None, "a model that must be refused")
    try:
        graph = case.model.graph
    except BittrueError as error:
        return QdqForm(None, str(error))
    if len(graph.nodes) != 1 or len(graph.outputs) != 1:
        return QdqForm(None, f"{len(graph.nodes)} operators, {len(graph.outputs)} results")
    mapper = MAPPERS.get(graph.nodes[0].operator)
    if mapper is None:
        return QdqForm(None, f"no ONNX form of {case.operator} is known here")
    try:
        writer = Writer(graph)
        return QdqForm(writer.finish(mapper(writer)))
    except NotSaid as reason:
        return QdqForm(None, str(reason))


def as_qdq_onnx(case: SuiteCase) -> bytes | None:
    """A .tflite case as .onnx, inputs and outputs as they are; None where ONNX cannot say it (`qdq_form` says why)."""
    return qdq_form(case).content
