"""BT409: dequantized biases whose scale is not input scale * weight scale."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...graph import Graph, Node
from ..finding import Finding
from ..linear import dequantizes
from ..onnx_operands import writers
from ..rule import Rule, Subject

# ONNX Runtime fuses convolutions within |b - x w| <= 1e-6 + 0.01 |x w|.
ABSOLUTE, RELATIVE = 1e-6, 0.01
# Two roundings of binary32.
_ROUNDED = 2.0**-22


def _scales(graph: Graph, written: dict[int, Node], node: Node, position: int) -> tuple[np.ndarray, Node] | None:
    """The constant scales that an input of a layer is dequantized with, and the node that does it."""
    index = node.inputs[position] if position < len(node.inputs) else None
    source = None if index is None else written.get(index)
    if source is None or not dequantizes(source) or source.inputs[1] is None:
        return None
    scale = graph.tensors[source.inputs[1]]
    if not scale.is_constant or scale.dtype != "f32":
        return None
    return np.asarray(scale.values(), np.float32).reshape(-1), source


def find(subject: Subject) -> Iterator[Finding]:
    """Each s32 bias of Conv and Gemm whose scale is off."""
    for graph in subject.graphs:
        written = writers(graph)
        for node in graph.nodes:
            if node.source not in ("Conv", "Gemm"):
                continue
            found = [_scales(graph, written, node, position) for position in range(3)]
            if found[0] is None or found[1] is None or found[2] is None:
                continue
            (x, _), (w, _), (b, source) = found[0], found[1], found[2]
            bias = graph.tensors[source.inputs[0] or 0]
            sizes = {w.size, b.size} - {1}
            if x.size != 1 or bias.dtype != "s32" or len(sizes) > 1:
                continue
            wanted = np.broadcast_to(x * w, max(w.size, b.size)).astype(np.float64)
            given = np.broadcast_to(b, wanted.shape).astype(np.float64)
            off = np.abs(given - wanted)
            beyond = off > ABSOLUTE + RELATIVE * np.abs(wanted)
            apart = off > _ROUNDED * np.abs(wanted)
            if not apart.any():
                continue
            channel = int(np.argmax(off / np.maximum(np.abs(wanted), np.finfo(np.float32).tiny)))
            if node.source == "Gemm":
                severity, effect = "error" if beyond.any() else "note", "and ignores the bias's own scale when it fuses"
            elif beyond.any():
                severity, effect = "warning", "and leaves the layer in real numbers"
            else:
                severity, effect = "note", "which it takes for equal: the bias counts as if it had the product's scale"
            yield RULE.finding(
                f"bias '{bias.name}' has scale {given[channel]:.9g} in channel {channel}, input scale * weight scale is"
                f" {wanted[channel]:.9g}: ONNX Runtime sees a difference of {off[channel] / wanted[channel]:.3g} of it,"
                f" {effect}",
                graph=graph,
                node=node,
                tensor=bias,
                severity=severity,
                place=f"channel {channel}",
                expected=f"{wanted[channel]:.9g}",
                found=f"{given[channel]:.9g}",
                advice="quantize the bias again with input scale * weight scale",
                numbers={"channel": channel, "channels": int(apart.sum()), "beyond": int(beyond.sum())},
            )


RULE = Rule(
    code="BT409",
    name="dequantized-bias-scale",
    severity="warning",
    what="A 32-bit bias that is dequantized for Conv or Gemm has the scale input scale * weight scale of its channel,"
    " and zero point 0 (BT406). An error for Gemm beyond 1 %, a warning for Conv beyond 1e-6 + 1 %, a note for what is"
    " less.",
    why="An integer layer adds the bias to the sum of products as it is, so both must have one scale. Node by node the"
    " bias means what its own scale says; fused it means something else.",
    enforced="ONNX Runtime 1.31: Conv is fused when |b - x w| <= 1e-6 + 0.01 |x w| and then takes the bias as it is;"
    " beyond that it stays in real numbers. Gemm is fused whatever the bias's scale is: with a scale three times as"
    " large the optimised model gives other results than the unoptimised one (run).",
    fix="Quantize the bias with the product of the scales; int32 has room for it. `onnxruntime.quantization` does it"
    " so.",
    source="ONNX Runtime 1.31.1 (run: docs/facts/onnxruntime.md 4.1, 4.2; tests/check/test_onnx_rules.py)",
    find=find,
    formats=("onnx",),
)
