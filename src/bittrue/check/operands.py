"""Nodes and tensors as the LiteRT 8-bit specification sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..graph import Graph, Node, Tensor
from .rule import Subject
from .specification import SPECIFICATION, Operand, Specified

# Layers with weights, whatever the types.
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


@dataclass(frozen=True, eq=False)
class Place:
    """One tensor of a node, and what the specification says about it.

    Attributes:
        graph, node: where.
        scheme: of the node, see `scheme`.
        operand: the line of the specification.
        position: index among the node's inputs or outputs.
        tensor: the tensor there.
    """

    graph: Graph
    node: Node
    scheme: str
    operand: Operand
    position: int
    tensor: Tensor

    @property
    def specified(self) -> Specified:
        return SPECIFICATION[self.node.source]

    @property
    def title(self) -> str:
        """``"input 1 (weight)"``."""
        role = f" ({self.operand.role})" if self.operand.role != "activation" else ""
        return f"{self.operand.side} {self.position}{role}"

    @property
    def severity(self) -> str:
        """Of a broken restriction: the specification speaks of int8, other schemes only follow it."""
        return "error" if self.scheme == "s8" else "warning"


def tensor_at(graph: Graph, node: Node, side: str, position: int) -> Tensor | None:
    """The tensor at an input or output of a node; None when there is none."""
    indices = node.inputs if side == "input" else node.outputs
    index = indices[position] if position < len(indices) else None
    return None if index is None else graph.tensors[index]


def places(graph: Graph, node: Node, role: str = "") -> Iterator[Place]:
    """The tensors of one node that the specification speaks of, in the order of its lines; those of one role only."""
    specified = SPECIFICATION.get(node.source)
    if specified is None:
        return
    kind = scheme(graph, node)
    for operand in specified.operands:
        if role and operand.role != role:
            continue
        indices = node.inputs if operand.side == "input" else node.outputs
        wanted = range(len(indices)) if operand.position is None else (operand.position,)
        for position in wanted:
            tensor = tensor_at(graph, node, operand.side, position)
            if tensor is not None:
                yield Place(graph, node, kind, operand, position, tensor)


def specified_places(subject: Subject, role: str = "", schemes: tuple[str, ...] = ("s8",)) -> Iterator[Place]:
    """`places` of every node of some schemes."""
    for graph, node in subject.nodes(*SPECIFICATION):
        if scheme(graph, node) in schemes:
            yield from places(graph, node, role)


def scheme(graph: Graph, node: Node) -> str:
    """How a node's numbers are represented, by the types of its activations.

    Returns:
        ``"s8"`` (what the specification is about), ``"u8"`` (the scheme before it), ``"s16"`` (int16 activations),
        ``"hybrid"`` (quantized weights of a layer on real activations), or ``""`` for all others: real ones, indices,
        integers without scale, operators that the specification does not have.
    """
    specified = SPECIFICATION.get(node.source)
    if specified is None:
        return ""
    ends = []
    for operand in specified.operands:
        if operand.role == "activation":
            indices = node.inputs if operand.side == "input" else node.outputs
            chosen = indices if operand.position is None else indices[operand.position : operand.position + 1]
            ends += [graph.tensors[index] for index in chosen if index is not None]
    weight = tensor_at(graph, node, "input", 1) if node.source in WEIGHTED else None
    if weight is not None and weight.quantization is not None and ends and ends[0].type.is_float:
        return "hybrid"
    types = {tensor.dtype for tensor in ends}
    if node.source == "QUANTIZE" and len(types) > 1:
        # Where other numbers become int8, only the int8 side is one of the specification's.
        return ""
    quantized = {tensor.dtype for tensor in ends if tensor.quantization is not None}
    if "s8" in types and (quantized or not _takes_plain_integers(specified)):
        return "s8"
    return next((name for name in ("u8", "s16") if name in quantized), "")


def _takes_plain_integers(specified: Specified) -> bool:
    """Whether the operator means something for integers that stand for nothing but themselves."""
    return specified.same or not any(operand.side == "output" for operand in specified.operands)


def activations(subject: Subject) -> Iterator[tuple[Graph, Node | None, str, Tensor]]:
    """Every quantized tensor of 8 or 16 bits that is an input of a graph, an output of a node or a constant activation.

    Yields:
        graph, the node that makes or reads it (None for inputs of the graph), what it is there, and the tensor.
    """
    for graph in subject.graphs:
        seen: set[int] = set()
        found: list[tuple[Node | None, str, int]] = [(None, "input of the graph", index) for index in graph.inputs]
        for node in graph.nodes:
            found += [(node, f"output {position}", index) for position, index in enumerate(node.outputs)]
            specified = SPECIFICATION.get(node.source)
            for operand in specified.operands if specified is not None else ():
                if operand.role == "activation" and operand.side == "input":
                    wanted = range(len(node.inputs)) if operand.position is None else (operand.position,)
                    found += [
                        (node, f"input {position}", index)
                        for position in wanted
                        if position < len(node.inputs) and (index := node.inputs[position]) is not None
                    ]
        for reader, title, index in found:
            tensor = graph.tensors[index]
            if index not in seen and tensor.quantization is not None and tensor.dtype in ("s8", "u8", "s16"):
                seen.add(index)
                yield graph, reader, title, tensor


def parameters(tensor: Tensor) -> str:
    """Scale and zero point of a tensor, for people; scales with as many digits as binary32 needs."""
    if tensor.quantization is None:
        return "no scale"
    return str(tensor.quantization)
