"""The order that every graph must keep: each tensor is written once, before it is read; constants and inputs never."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..records import dataclass
from .graph import Node, Tensor


@dataclass(frozen=True)
class Disorder:
    """The first violation of the order: an error code, the tensor, what is wrong, and which node or list it is in."""

    code: str
    tensor: int
    message: str
    where: str


def find_disorder(
    tensors: Sequence[Tensor], nodes: Iterable[Node], inputs: Sequence[int], outputs: Sequence[int]
) -> Disorder | None:
    """What is wrong with the order of a graph; None when nothing is."""
    ready = [tensor.is_constant or tensor.is_variable for tensor in tensors]
    # Why a tensor must not be written (again).
    closed = {index: "a constant" for index, tensor in enumerate(tensors) if tensor.is_constant}
    for index in inputs:
        if index in closed:
            return Disorder("BT-GRAPH-INPUT", index, f"a graph input is {closed[index]}", "inputs")
        closed[index] = "a graph input already"
        ready[index] = True
    for node in nodes:
        where = str(node)
        read = set(node.inputs)
        for source in node.inputs:
            if source is not None and not ready[source]:
                message = "the tensor is read before any node computes it (or nodes form a cycle)"
                return Disorder("BT-GRAPH-ORDER", source, message, where)
        for target in node.outputs:
            if target in closed:
                message = f"the tensor is written, but it is {closed[target]}"
                return Disorder("BT-GRAPH-WRITE", target, message, where)
            if target in read:
                message = "the tensor is both input and output of the node"
                return Disorder("BT-GRAPH-WRITE", target, message, where)
            closed[target] = f"an output of node {node.index} already"
            ready[target] = True
    for index in outputs:
        if not ready[index]:
            return Disorder("BT-GRAPH-OUTPUT", index, "the graph output is never computed", "outputs")
    return None
