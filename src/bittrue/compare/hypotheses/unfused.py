"""One fused operator on integers, computed node by node instead: dequantize, the operator on reals, quantize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ..result import Cause
from .case import Case, Hypothesis

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class _Fused:
    """Operands are (codes, scale, zero point) by position; the result's scale and zero point follow `result`."""

    operator: str
    operands: tuple[int, ...]
    result: int
    attributes: Callable[[Attributes], dict[str, Any]] = lambda a: {}
    bias: int | None = None


def _without_layout(attributes: Attributes) -> dict[str, Any]:
    if attributes.get("channels_last"):
        raise ValueError("channels come last")
    return {k: v for k, v in attributes.items() if k not in ("channels_last", "keep_dims")}


def _softmax(attributes: Attributes) -> dict[str, Any]:
    return {"axis": attributes["axis"], "flattened": attributes["to_the_end"]}


def _gemm(attributes: Attributes) -> dict[str, Any]:
    turned = {"transpose_a": attributes["trans_a"], "transpose_b": attributes["trans_b"]}
    return {"alpha": attributes["alpha"], "beta": 1.0, **turned}


_FUSED: dict[str, _Fused] = {
    "qlinear_add": _Fused("add", (0, 3), 6),
    "qlinear_mul": _Fused("mul", (0, 3), 6),
    "qlinear_average_pool": _Fused("average_pool", (0,), 3, _without_layout),
    "qlinear_global_average_pool": _Fused("global_average_pool", (0,), 3, _without_layout),
    "qlinear_leaky_relu": _Fused("leaky_relu", (0,), 3, dict),
    "qlinear_sigmoid": _Fused("logistic", (0,), 3),
    "qlinear_softmax": _Fused("softmax_along", (0,), 3, _softmax),
    "qlinear_conv": _Fused("conv", (0, 3), 6, _without_layout, bias=8),
    "qlinear_matmul": _Fused("matmul", (0, 3), 6),
    "qgemm": _Fused("gemm", (0, 3), 7, _gemm, bias=6),
}


def unfused(case: Case) -> Iterator[Hypothesis]:
    """The segment's last node computed on real numbers."""
    node = case.segment.node
    if node.operator not in _FUSED:
        return
    text = (
        f"being computed as `{_FUSED[node.operator].operator}` on binary32 numbers between dequantization and quantization "
        f"instead of as `{node.operator}`: another order of operations, benign"
    )
    yield Hypothesis(
        Cause("not fused", text, "order", True, numerics=(case.segment.numerics.name,)),
        "fusion",
        numerics=lambda _: replace(case.segment.numerics, rewrites=()),
        graph=lambda graph: _taken_apart(graph, node.index),
    )


def _taken_apart(graph: Graph, index: int) -> Graph:
    node = next(n for n in graph.nodes if n.index == index)
    fused = _FUSED[node.operator]
    tensors, nodes = list(graph.tensors), []
    number = max(n.index for n in graph.nodes) + 1

    def add(
        operator: str, source: str, inputs: tuple[int | None, ...], attributes: Attributes, output: int = -1
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
        return add("dequantize_linear", "DequantizeLinear", (codes, scale, point), attributes)

    def given(position: int) -> int | None:
        return node.inputs[position] if position < len(node.inputs) else None

    reals: list[int | None] = []
    for place, position in enumerate(fused.operands):
        # Weights of a convolution have scales along their first axis, matrices along their last one.
        axis = 0 if place and fused.operator == "conv" else 1
        reals.append(real(given(position), given(position + 1), given(position + 2), axis))
    bias = None if fused.bias is None else given(fused.bias)
    if bias is not None:
        scales = [tensors[given(position + 1) or 0].values().reshape(-1) for position in fused.operands]
        both = np.broadcast_to(scales[0] * scales[1], np.broadcast_shapes(scales[0].shape, scales[1].shape))
        per_axis = both.size > 1
        tensors.append(
            Tensor(f"scale of the bias of {node}", "f32", both.shape if per_axis else (), data=both.astype(np.float32))
        )
        reals.append(real(bias, len(tensors) - 1, None, 0))
    result = add(fused.operator, fused.operator, tuple(reals), fused.attributes(node.attributes))
    attributes = {"axis": 1, "block_size": 0, "domain": "", "saturate": 1, "precision": "f32"}
    inputs = (result, given(fused.result), given(fused.result + 1))
    add("quantize_linear", "QuantizeLinear", inputs, attributes, node.outputs[0])
    place = next(k for k, n in enumerate(graph.nodes) if n.index == index)
    kept = (*graph.nodes[:place], *nodes, *graph.nodes[place + 1 :])
    return replace(graph, tensors=tuple(tensors), nodes=kept)
