"""One fused operator on integers, computed node by node instead: dequantize, the operator on reals, quantize."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import Role, find
from ...operators.core.role_quantization import at, role_of
from ...operators.core.roles import weights_order
from ..result import Cause
from .case import Case, Hypothesis

Attributes = Mapping[str, Any]


def _on_reals(attributes: Attributes) -> dict[str, Any]:
    """What the node's own attributes say of the same operator on real numbers."""
    if attributes.get("channels_last"):
        raise ValueError("channels come last")
    if "counted" not in attributes:
        return dict(attributes)
    return {**attributes, "counted": "padded" if attributes["counted"] == "taps" else "inside"}


def unfused(case: Case) -> Iterator[Hypothesis]:
    """The segment's last node computed on real numbers."""
    node = case.segment.node
    scales = [at(node.inputs, _role(node, name).scale) for name in ("input", "first input", "output")]
    if scales[-1] is None or scales[0] is scales[1] is None or node.attributes.get("ranged"):
        return
    text = (
        f"being computed as `{node.operator}` on binary32 numbers between dequantization and "
        f"quantization instead of as `{node.operator}` on integers: another order of operations, benign"
    )
    yield Hypothesis(
        Cause("not fused", text, "order", True, numerics=(case.segment.numerics.name,)),
        "fusion",
        numerics=lambda _: replace(case.segment.numerics, rewrites=()),
        graph=lambda graph: _taken_apart(graph, node.index),
    )


def _role(node: Node, name: str) -> Role:
    return role_of(find(node.operator), name) or Role(name, -1)


def _taken_apart(graph: Graph, index: int) -> Graph:
    node = next(n for n in graph.nodes if n.index == index)
    tensors, nodes = list(graph.tensors), []
    number = max(n.index for n in graph.nodes) + 1

    def add(
        operator: str,
        source: str,
        inputs: tuple[int | None, ...],
        attributes: Attributes,
        output: int = -1,
    ) -> int:
        nonlocal number
        if output < 0:
            output = len(tensors)
            tensors.append(Tensor(f"real value {output} of {node}", "f32", ()))
        nodes.append(Node(number, operator, source, node.version, attributes, inputs, (output,)))
        number += 1
        return output

    def real(quantized: int | None, scale: int | None, point: int | None, axis: int) -> int:
        attributes = {"axis": axis, "block_size": 0, "domain": ""}
        return add("dequantize", "DequantizeLinear", (quantized, scale, point), attributes)

    operator = find(node.operator)
    assert operator is not None
    operands = [role for role in operator.roles if role.position >= 0 and role.scale is not None]
    reals: list[int | None] = []
    for place, role in enumerate(operands):
        # Filters [O, ...] and transposed matrices [O, I] have their scales along the first axis.
        axis = int(place == 0 or weights_order(operator, node.attributes)[:1] != "O")
        quantized, scale, point = (at(node.inputs, p) for p in (role.position, role.scale, role.zero_point))
        reals.append(real(quantized, scale, point, axis))
    bias = at(node.inputs, _role(node, "bias").position)
    if bias is not None:
        scales = [tensors[at(node.inputs, role.scale) or 0].values().reshape(-1) for role in operands]
        both = np.broadcast_to(scales[0] * scales[1], np.broadcast_shapes(scales[0].shape, scales[1].shape))
        per_axis = both.size > 1
        tensors.append(
            Tensor(f"scale of the bias of {node}", "f32", both.shape if per_axis else (), data=both.astype(np.float32))
        )
        reals.append(real(bias, len(tensors) - 1, None, 0))
    result = add(node.operator, node.operator, tuple(reals), _on_reals(node.attributes))
    attributes = {"axis": 1, "block_size": 0, "domain": "", "saturate": 1, "precision": "f32"}
    inputs = (result, *(at(node.inputs, p) for p in (_role(node, "output").scale, _role(node, "output").zero_point)))
    add("quantize", "QuantizeLinear", inputs, attributes, node.outputs[0])
    place = next(k for k, n in enumerate(graph.nodes) if n.index == index)
    kept = (*graph.nodes[:place], *nodes, *graph.nodes[place + 1 :])
    return replace(graph, tensors=tuple(tensors), nodes=kept)
