"""Scales and zero points that are operands of nodes: where they stand, and their constant values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..graph import Graph, Node, Tensor, data_type
from ..numerics import find as find_numerics
from ..operators import find as find_operator
from ..operators.core.role_quantization import at
from .rule import Subject
from .surveys import survey


@dataclass(frozen=True, eq=False)
class Parameters:
    """Scale and zero point of one operand of a node.

    Attributes:
        quantized: the tensor that they belong to.
        scale, zero_point: their tensors; the zero point may be absent.
        is_output: whether they are those of the node's result.
    """

    graph: Graph
    node: Node
    quantized: Tensor
    scale: Tensor
    zero_point: Tensor | None
    is_output: bool

    @property
    def single(self) -> tuple[float, int] | None:
        """Scale and zero point where both are one constant value each (an absent zero point is 0); else None."""
        if not self.scale.is_constant or self.scale.data is None:
            return None
        scale = np.asarray(self.scale.values()).reshape(-1)
        if scale.size != 1 or scale.dtype.kind not in "f":
            return None
        if self.zero_point is None:
            return float(scale[0]), 0
        if not self.zero_point.is_constant or not self.zero_point.type.is_integer:
            return None
        point = np.asarray(self.zero_point.values()).reshape(-1)
        return (float(scale[0]), int(point[0])) if point.size == 1 else None


def parameters_of(graph: Graph, node: Node) -> Iterator[Parameters]:
    """Scales and zero points of a node's operands, in the order of its inputs."""
    operator = find_operator(node.operator)
    if "bits" in node.attributes:
        return  # zero points are packed
    for role in operator.roles if operator is not None else ():
        scale, point = at(node.inputs, role.scale), at(node.inputs, role.zero_point)
        owner = at(node.outputs, 0) if role.position < 0 else at(node.inputs, role.position)
        if scale is not None and owner is not None and not node.attributes.get("ranged"):
            zero_point = None if point is None else graph.tensors[point]
            yield Parameters(graph, node, graph.tensors[owner], graph.tensors[scale], zero_point, role.position < 0)


def known_shape(subject: Subject, graph: Graph, index: int) -> tuple[int, ...] | None:
    """The shape of a tensor, inferred where the main graph can be walked, else as declared; None where it is open."""
    tensor = graph.tensors[index]
    if tensor.is_constant:
        return tensor.shape
    if graph is subject.graphs[0]:
        # The specification's own table has no rewrites, so tensors and nodes are those of the file.
        made = survey(subject, find_numerics("onnx"))
        if made.graph is graph and index in made.shapes:
            return made.shapes[index]
    declared = tensor.shape_signature or tensor.shape
    return None if not declared or any(size < 1 for size in declared) else tuple(declared)


def shown(shape: tuple[int, ...]) -> str:
    """A shape in messages."""
    return "a scalar" if not shape else str(list(shape))


def scale_operands(subject: Subject) -> Iterator[tuple[Graph, Tensor, int]]:
    """Every constant scale that is an operand, with the span of the quantized values that it belongs to (0 beyond 16
    bits).
    """
    for graph, node in subject.nodes():
        for found in parameters_of(graph, node):
            if found.scale.is_constant:
                kind = data_type(found.quantized.dtype)
                span = kind.maximum - kind.minimum if kind.is_integer and kind.bits <= 16 else 0
                yield graph, found.scale, span


def writers(graph: Graph) -> dict[int, Node]:
    """The node that computes each tensor."""
    return {index: node for node in graph.nodes for index in node.outputs}


def readers(graph: Graph) -> dict[int, list[Node]]:
    """The nodes that read each tensor, in order; a node that reads it twice is there once."""
    found: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for index in dict.fromkeys(i for i in node.inputs if i is not None):
            found.setdefault(index, []).append(node)
    return found
