"""One fused operator on integers, computed node by node instead: dequantize, the operator on reals, quantize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import Role, find
from ...operators.core.role_quantization import at, role_of
from ...operators.core.roles import weights_order
from ..result import Cause
from .case import Case, Hypothesis

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class _Fused:
    """The operator on real numbers, and its attributes."""

    operator: str
    attributes: Callable[[Attributes], dict[str, Any]] = lambda a: {}


def _pool(attributes: Attributes) -> dict[str, Any]:
    if attributes["channels_last"]:
        raise ValueError("channels come last")
    return {**attributes, "counted": "padded" if attributes.get("counted") == "taps" else "inside"}


_FUSED: dict[str, _Fused] = {
    "add": _Fused("add"),
    "mul": _Fused("mul"),
    "average_pool": _Fused("average_pool", _pool),
    "leaky_relu": _Fused("leaky_relu", dict),
    "logistic": _Fused("logistic"),
    "softmax": _Fused("softmax", dict),
    "conv": _Fused("conv", dict),
    "matmul": _Fused("matmul", dict),
}


def unfused(case: Case) -> Iterator[Hypothesis]:
    """The segment's last node computed on real numbers."""
    node = case.segment.node
    if node.operator not in _FUSED or at(node.inputs, _role(node, "output").scale) is None:
        return
    if node.attributes.get("ranged"):
        return
    text = (
        f"being computed as `{_FUSED[node.operator].operator}` on binary32 numbers between dequantization and "
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
    fused, operator = _FUSED[node.operator], find(node.operator)
    assert operator is not None, "it was found before"
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

    def real(codes: int | None, scale: int | None, point: int | None, axis: int) -> int:
        attributes = {"axis": axis, "block_size": 0, "domain": ""}
        return add("dequantize", "DequantizeLinear", (codes, scale, point), attributes)

    operator = find(node.operator)
    assert operator is not None
    operands = [role for role in operator.roles if role.position >= 0 and role.scale is not None]
    reals: list[int | None] = []
    for place, role in enumerate(operands):
        # Filters [O, ...] and transposed matrices [O, I] have their scales along the first axis.
        axis = int(place == 0 or weights_order(operator, node.attributes)[:1] != "O")
        codes, scale, point = (at(node.inputs, p) for p in (role.position, role.scale, role.zero_point))
        reals.append(real(codes, scale, point, axis))
    bias = at(node.inputs, _role(node, "bias").position)
    if bias is not None:
        scales = [tensors[at(node.inputs, role.scale) or 0].values().reshape(-1) for role in operands]
        both = np.broadcast_to(scales[0] * scales[1], np.broadcast_shapes(scales[0].shape, scales[1].shape))
        per_axis = both.size > 1
        tensors.append(
            Tensor(f"scale of the bias of {node}", "f32", both.shape if per_axis else (), data=both.astype(np.float32))
        )
        reals.append(real(bias, len(tensors) - 1, None, 0))
    result = add(fused.operator, fused.operator, tuple(reals), fused.attributes(node.attributes))
    attributes = {"axis": 1, "block_size": 0, "domain": "", "saturate": 1, "precision": "f32"}
    inputs = (result, *(at(node.inputs, p) for p in (_role(node, "output").scale, _role(node, "output").zero_point)))
    add("quantize", "QuantizeLinear", inputs, attributes, node.outputs[0])
    place = next(k for k, n in enumerate(graph.nodes) if n.index == index)
    kept = (*graph.nodes[:place], *nodes, *graph.nodes[place + 1 :])
    return replace(graph, tensors=tuple(tensors), nodes=kept)
