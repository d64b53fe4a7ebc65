"""BT610: quantizing again what was quantized already, so that quantized values fall together or are cut off."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...graph import Graph, Node, Tensor, data_type
from ..finding import Finding
from ..linear import dequantizes, quantizes
from ..onnx_operands import parameters_of, writers
from ..rule import Rule, Subject

# Share of the quantized values that stay different from one another; below it the pair is reported.
LEAST_SHARE = 0.75
_MOST_BITS = 8

Parameters = tuple[float, int]


def _single(tensor: Tensor) -> Parameters | None:
    quantization = tensor.quantization
    if quantization is None or quantization.per_axis:
        return None
    return float(quantization.scales[0]), int(quantization.zero_points[0])


def _operand(graph: Graph, node: Node) -> Parameters | None:
    return next((found.single for found in parameters_of(graph, node)), None)


def _first(node: Node) -> int | None:
    return node.inputs[0] if node.inputs else None


def _pairs(graph: Graph) -> Iterator[tuple[Node, Tensor, Tensor, Parameters, Parameters]]:
    """Every requantization: the node that ends it, quantized values before and behind, and their parameters."""
    written = writers(graph)
    for node in graph.nodes:
        index = _first(node)
        if not quantizes(node) or index is None or not node.outputs:
            continue
        first, quantized = node, index
        if not graph.tensors[index].type.is_integer:
            before_it = written.get(index)
            inside = None if before_it is None else _first(before_it)
            if before_it is None or inside is None or not dequantizes(before_it):
                continue
            first, quantized = before_it, inside
        source, target = graph.tensors[quantized], graph.tensors[node.outputs[0]]
        before, behind = _operand(graph, first) or _single(source), _operand(graph, node) or _single(target)
        if before is not None and behind is not None and not source.is_constant:
            yield node, source, target, before, behind


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    for graph in subject.graphs:
        for node, source, target, before, behind in _pairs(graph):
            one, two = data_type(source.dtype), data_type(target.dtype)
            if not (one.is_integer and two.is_integer) or not one.bits <= two.bits or one.bits > _MOST_BITS:
                continue
            if not all(np.isfinite(p[0]) and p[0] > 0 for p in (before, behind)):
                continue
            quantized = np.arange(one.minimum, one.maximum + 1)
            wanted = np.rint((quantized - before[1]) * (before[0] / behind[0])) + behind[1]
            cut = int(((wanted < two.minimum) | (wanted > two.maximum)).sum())
            kept = int(np.unique(np.clip(wanted, two.minimum, two.maximum)).size)
            if kept >= LEAST_SHARE * quantized.size:
                continue
            yield RULE.finding(
                f"requantizing '{source.name}' leaves {kept} of {quantized.size} quantized values ({cut} saturate):"
                f" scale {before[0]:.6g}, zero point {before[1]} becomes scale {behind[0]:.6g}, zero point {behind[1]}",
                graph=graph,
                node=node,
                tensor=target,
                expected=f"at least {int(LEAST_SHARE * quantized.size)} different quantized values",
                found=kept,
                advice="give both tensors one scale, or calibrate the one behind with the data of the one before",
                numbers={"kept": kept, "values": quantized.size, "saturated": cut},
            )


RULE = Rule(
    "BT610",
    "lossy-requantization",
    "note",
    what="Quantizing again (QUANTIZE of integers, DEQUANTIZE and QUANTIZE behind one "
    "another) keeps at least"
    " three quarters of the quantized values of up to 8 bits different from one another. Counted over all quantized "
    "values"
    " of the type before.",
    why="Where the scale behind is larger, several quantized values become one; where its range is narrower, "
    "those at the ends are"
    " cut off. Precision that was paid for is thrown away, mostly ahead of an operator that wants one scale for all"
    " inputs (concatenation, maximum).",
    enforced="Nobody checks it. ONNX Runtime removes pairs with equal parameters and merges double pairs to the range"
    " that both leave (docs/facts/onnxruntime.md 4.4, run).",
    fix="Fine where the values really use a part of the range only: the calibration of the tensor before was too wide"
    " then. Otherwise share one scale (quantization-aware training, or constraints of the quantizer).",
    find=find,
    source="follows from the formulas of QUANTIZE (LiteRT specification) and QuantizeLinear (ONNX)",
    formats=("tflite", "onnx"),
)
