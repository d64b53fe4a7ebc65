"""The order in which the nodes of an ONNX graph are read: the file's where it is topological, else a sorted one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidModelError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def free_names(proto: GraphProto) -> Iterator[str]:
    """Names that a graph, or one that its nodes call, uses without defining them."""
    known = {*_given(proto), *(name for node in proto.node for name in node.output)}
    for node in proto.node:
        yield from (name for name in _needed(node) if name not in known)
    yield from (info.name for info in proto.output if info.name not in known)


def _given(proto: GraphProto) -> set[str]:
    return {*(info.name for info in proto.input), *(tensor.name for tensor in proto.initializer)}


def _needed(node: NodeProto) -> Iterator[str]:
    """Names that a node, or a graph that it calls, reads from the graph at hand."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from free_names(attribute.g)


def in_order(proto: GraphProto, place: str) -> tuple[Sequence[NodeProto], bool]:
    """The nodes, each behind those that it needs, and whether they had to be sorted.

    Source: ONNX Runtime 1.31.1, docs/facts/onnxruntime.md 4.9: it visits them depth first from the nodes that no other
    one needs, the last one first, and from each one the last one that it needs first.

    Raises:
        InvalidModelError: nodes need each other.
    """
    nodes = proto.node
    given = _given(proto)
    writers = {name: number for number, node in enumerate(nodes) for name in node.output if name not in given}
    needs = [sorted({writers[name] for name in _needed(node) if name in writers}) for node in nodes]
    if all(not before or before[-1] < number for number, before in enumerate(needs)):
        return nodes, False
    _refuse_circles(nodes, needs, place)
    read = {before for every in needs for before in every}
    stack = [(number, False) for number in range(len(nodes)) if number not in read]
    order, seen = [], set()
    while stack:
        number, left = stack.pop()
        if left:
            order.append(nodes[number])
        elif number not in seen:
            seen.add(number)
            stack.append((number, True))
            stack += [(before, False) for before in needs[number] if before not in seen]
    return order, True


def _refuse_circles(nodes: Sequence[NodeProto], needs: Sequence[Sequence[int]], place: str) -> None:
    waits = [len(before) for before in needs]
    readers: list[list[int]] = [[] for _ in nodes]
    for number, before in enumerate(needs):
        for other in before:
            readers[other].append(number)
    ready = [number for number, count in enumerate(waits) if not count]
    while ready:
        for reader in readers[ready.pop()]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    waiting = [number for number, count in enumerate(waits) if count]
    if waiting:
        node = nodes[waiting[0]]
        raise InvalidModelError(
            "BT-NODE-ORDER",
            f"{len(waiting)} nodes need each other's results, so that none can be the first; one is {node.op_type} "
            f"'{node.name or next(iter(node.output), '')}'",
            place=place,
        )
