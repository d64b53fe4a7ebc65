"""The operands of a segment that carry scales and zero points, by the names that people use for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import Role, find
from ...operators.core.role_quantization import at, of_node
from ...operators.core.roles import seats_of
from .case import Case, change_tensors, with_quantization

# As sentences have it.
_WORDS = {"weights": "weight"}


@dataclass(frozen=True, eq=False)
class Operand:
    """One operand with a scale and a zero point.

    Attributes:
        role: ``"input"``, ``"first input"``, ``"weight"``, ``"output"`` ...
        scales, zero_points: as the model has them.
        set_scale, set_zero_point: the graph with other ones.
    """

    role: str
    scales: np.ndarray
    zero_points: np.ndarray
    set_scale: Callable[[Graph, object], Graph]
    set_zero_point: Callable[[Graph, object], Graph]


def operands(case: Case) -> list[Operand]:
    """Operands of the segment's last quantized node, inputs first; nodes that only move elements come last."""
    graph = case.segment.graph
    for node in sorted(graph.nodes, key=lambda node: (_moves(node), -node.index)):
        found = _as_operands(graph, node) or _as_tensors(graph, node)
        if found:
            return found
    return []


def _moves(node: Node) -> bool:
    operator = find(node.operator)
    return operator is not None and operator.moves


def is_layer(node: Node) -> bool:
    """Whether an operator has weights, or multiplies matrices."""
    return seats_of(find(node.operator)) is not None


def main_node(case: Case) -> Node:
    """The segment's last layer, else its last node."""
    graph = case.segment.graph
    return next((n for n in reversed(graph.nodes) if is_layer(n)), graph.nodes[-1])


def _roles(node: Node) -> tuple[Role, ...]:
    operator = find(node.operator)
    return () if operator is None else operator.roles


def _word(graph: Graph, node: Node, role: Role) -> str:
    """What people call an operand: the constant one of two factors is the weights."""
    second = at(node.inputs, next((r.position for r in _roles(node) if r.name == "second input"), None))
    if is_layer(node) and second is not None and graph.tensors[second].is_constant:
        name = {"first input": "input", "second input": "weights"}.get(role.name, role.name)
    else:
        name = role.name
    return _WORDS.get(name, name)


def operand_roles(graph: Graph, node: Node) -> dict[int, str]:
    """Position of an operand to what people call it, as far as there are words for it."""
    found: dict[int, str] = {}
    for role in _roles(node):
        word = _word(graph, node, role)
        named = ((role.scale, f"{word} scale"), (role.zero_point, f"{word} zero point"), (role.position, word))
        found |= {position: text for position, text in named if position is not None and position >= 0}
    if found:
        return found
    data_at = [k for k, i in enumerate(node.inputs) if i is not None and graph.tensors[i].quantization is not None]
    roles = [f"input {n + 1}" for n in range(len(data_at))]
    if len(data_at) == 1:
        roles = ["input"]
    elif len(data_at) == 2:
        roles = ["first input", "second input"]
    return dict(zip(data_at, roles, strict=True))


def _as_tensors(graph: Graph, node: Node) -> list[Operand]:
    roles = operand_roles(graph, node)
    found = [
        (roles[k], i)
        for k, i in enumerate(node.inputs)
        if i is not None and roles.get(k, "bias") != "bias" and graph.tensors[i].quantization is not None
    ]
    if node.outputs and graph.tensors[node.outputs[0]].quantization is not None:
        found.append(("output", node.outputs[0]))
    return [_of_tensor(role, graph.tensors[index], index) for role, index in found]


def _of_tensor(role: str, tensor: Tensor, index: int) -> Operand:
    quantization = tensor.quantization
    assert quantization is not None
    return Operand(
        role,
        quantization.scales,
        quantization.zero_points,
        lambda graph, scales: change_tensors(graph, {index: lambda t: with_quantization(t, scales=scales)}),
        lambda graph, points: change_tensors(graph, {index: lambda t: with_quantization(t, zero_points=points)}),
    )


def _as_operands(graph: Graph, node: Node) -> list[Operand]:
    found, place = [], graph.nodes.index(node)
    for role in _roles(node):
        given = of_node(graph.tensors, node, role)
        if at(node.inputs, given.scale_at) is None or given.scale_at is None or given.scales is None:
            continue
        scales = given.scales.reshape(-1).astype(np.float32)
        points = np.zeros(1, np.int64) if given.zero_points is None else given.zero_points.reshape(-1).astype(np.int64)
        found.append(
            Operand(
                _word(graph, node, role),
                scales,
                points,
                lambda graph, value, position=given.scale_at: _set(graph, place, position, value),  # type: ignore[misc]
                lambda graph, value, position=given.zero_point_at: _set_point(graph, place, position, value),  # type: ignore[misc]
            )
        )
    return found


def _set_point(graph: Graph, place: int, position: int | None, value: object) -> Graph:
    index = at(graph.nodes[place].inputs, position)
    if index is None or position is None or not graph.tensors[index].is_constant:
        raise ValueError("the zero point is not known")
    return _set(graph, place, position, value)


def _set(graph: Graph, place: int, position: int, value: object) -> Graph:
    """The graph whose node at `place` reads other values at `position`; other operands keep what they share with it."""
    node = graph.nodes[place]
    index = node.inputs[position]
    assert index is not None
    if node.inputs.count(index) == 1:
        return change_tensors(graph, {index: lambda t: with_data(t, value)})
    inputs = (*node.inputs[:position], len(graph.tensors), *node.inputs[position + 1 :])
    nodes = (*graph.nodes[:place], replace(node, inputs=inputs), *graph.nodes[place + 1 :])
    return replace(graph, tensors=(*graph.tensors, with_data(graph.tensors[index], value)), nodes=nodes)


def with_data(tensor: Tensor, value: object) -> Tensor:
    """A constant with other content.

    Raises:
        ValueError: sub-byte types, or values that the type does not hold.
    """
    if tensor.type.is_packed or tensor.data is None:
        raise ValueError("no constant of whole bytes")
    whole = np.broadcast_to(np.asarray(value).reshape(-1), tensor.data.reshape(-1).shape)
    data = whole.astype(tensor.data.dtype)
    if tensor.data.dtype.kind in "iu" and (data.astype(np.int64) != whole).any():
        raise ValueError("the type does not hold these values")
    return replace(tensor, data=np.ascontiguousarray(data))
