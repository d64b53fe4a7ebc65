"""QuantizeLinear and DequantizeLinear nodes with what rules about them ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..graph import Graph, Node, Tensor
from ..operators import find
from .onnx_operands import known_shape
from .rule import Subject


def quantizes(node: Node) -> bool:
    """Whether a node quantizes, real numbers or quantized values again."""
    operator = find(node.operator)
    return operator is not None and operator.quantizes


def dequantizes(node: Node) -> bool:
    """Whether a node makes real numbers of quantized values."""
    operator = find(node.operator)
    return operator is not None and operator.dequantizes


@dataclass(frozen=True, eq=False)
class Linear:
    """One QuantizeLinear or DequantizeLinear.

    Attributes:
        data, scale, zero_point: its operands; the zero point may be absent.
        data_shape, scale_shape, zero_point_shape: None where they are open or absent.
        axis, block_size: as given, defaults resolved.
    """

    graph: Graph
    node: Node
    data: Tensor
    scale: Tensor
    zero_point: Tensor | None
    data_shape: tuple[int, ...] | None
    scale_shape: tuple[int, ...] | None
    zero_point_shape: tuple[int, ...] | None
    axis: int
    block_size: int

    @property
    def per_tensor(self) -> bool:
        """One scale for all: a scalar, or a vector of one element."""
        return self.scale_shape in ((), (1,))

    @property
    def axis_in_range(self) -> bool:
        rank = len(self.data_shape or ())
        return self.data_shape is None or -rank <= self.axis < rank


def linear_nodes(subject: Subject) -> Iterator[Linear]:
    """Every QuantizeLinear and DequantizeLinear of the file, in order."""
    for graph, node in subject.nodes():
        either = quantizes(node) or dequantizes(node)
        if not either or len(node.inputs) < 2 or None in node.inputs[:2]:
            continue
        data, scale, *rest = (None if i is None else graph.tensors[i] for i in node.inputs)
        point = rest[0] if rest else None
        assert data is not None
        assert scale is not None
        operands = (*node.inputs, None)[:3]
        shapes = [None if i is None else known_shape(subject, graph, i) for i in operands]
        yield Linear(
            graph,
            node,
            data,
            scale,
            point,
            shapes[0],
            shapes[1],
            shapes[2],
            int(node.attributes.get("axis", 1)),  # type: ignore[arg-type]
            int(node.attributes.get("block_size", 0)),  # type: ignore[arg-type]
        )
