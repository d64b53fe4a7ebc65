"""One operator on integers, computed on binary32 numbers instead: dequantized, computed, quantized again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ... import numerics as numerics_tables
from ...graph import Attribute, Graph, Node, Tensor
from ...numerics import Numerics, Row
from ...plan.support import node_types
from ..result import Cause
from .case import Case, Hypothesis

# Rounding on the way back, and whether scale and zero point of the result are operands there.
_BACK = (("ties even", "operands"), ("ties away", "tensor"))
# Ways to quantize the entries of a table that no runtime has; elsewhere other roundings are likelier.
_WRONG = (("rounded down", np.floor), ("rounded up", np.ceil), ("truncated", np.trunc))
_MOST_ROWS = 4


def real_numbers(case: Case) -> Iterator[Hypothesis]:
    """The segment's only node on real numbers, under the rules that numerics have for it there."""
    graph, node = case.segment.graph, case.segment.node
    output = graph.tensors[node.outputs[0]]
    if len(graph.nodes) != 1 or output.quantization is None or output.quantization.per_axis:
        return
    inputs, _ = node_types(graph, node)
    reals = tuple(
        "f32" if index is not None and graph.tensors[index].quantization is not None else found
        for index, found in zip(node.inputs, inputs, strict=False)
    )
    if reals == tuple(inputs) or output.dtype not in ("s8", "u8", "s16", "u16"):
        return
    for row in _rows(node.operator, reals):
        for ties, back in _BACK:
            text = f"computed on binary32 numbers, quantized with {ties}: another order of operations, benign"
            yield Hypothesis(
                Cause(f"computed in binary32, {ties}", f"being {text}", "order", True),
                "real numbers",
                numerics=lambda _, row=row: _table(case.segment.numerics, row),  # type: ignore[misc]
                graph=lambda old, back=back: _on_reals(old, node, back),  # type: ignore[misc]
            )
        for rounding, function in _WRONG if "table" in case.step.rules else ():
            text = f"being computed in binary32, then {rounding} instead of to the nearest quantized value: a fault"
            yield Hypothesis(
                Cause(f"computed in binary32, {rounding}", text, "rounding", False),
                "real numbers",
                numerics=lambda _, row=row: _table(case.segment.numerics, row),  # type: ignore[misc]
                graph=lambda old: _on_reals(old, node, ""),
                result=lambda found, plan, function=function: _quantized(found, output, function),  # type: ignore[misc]
            )


def _rows(operator: str, inputs: tuple[str, ...]) -> list[Row]:
    found: dict[tuple[tuple[str, str], ...], Row] = {}
    for name in numerics_tables.distinct():
        for row in numerics_tables.find(name).candidates(operator, inputs, ("f32",)):
            if not row.refuses and not row.on_request:
                found.setdefault(tuple(sorted(row.rules.items())), replace(row, when=(), requires=()))
    return list(found.values())[:_MOST_ROWS]


def _table(own: Numerics, row: Row) -> Numerics:
    """`row`, and rows that dequantize and quantize."""
    around = [
        other
        for name in ("onnx", "litert")
        for other in numerics_tables.find(name).rows
        if other.operator in ("dequantize", "quantize")
    ]
    return replace(own, rows=(row, *around), versions={}, rewrites=())


def _quantized(found: np.ndarray, output: Tensor, function: np.ufunc) -> np.ndarray:
    quantization = output.quantization
    assert quantization is not None
    quantized = function(found / np.float32(quantization.scales[0])) + int(quantization.zero_points[0])
    return np.clip(quantized, output.type.minimum, output.type.maximum).astype(output.type.numpy)


def _on_reals(graph: Graph, node: Node, back: str) -> Graph:
    tensors, nodes = list(graph.tensors), []
    number = node.index + 1
    reals: list[int | None] = []
    for index in node.inputs:
        quantization = None if index is None else graph.tensors[index].quantization
        if index is None or quantization is None:
            reals.append(index)
            continue
        scales = _constant(tensors, quantization.scales.astype(np.float32), "f32", quantization.per_axis)
        points: int | None = None
        if quantization.zero_points.any():
            kind = graph.tensors[index].type
            points = _constant(tensors, quantization.zero_points.astype(kind.numpy), kind.name, quantization.per_axis)
        attributes: dict[str, Attribute] = {"axis": quantization.axis or 0, "block_size": 0, "domain": ""}
        tensors.append(Tensor(f"real {graph.tensors[index].name}", "f32", ()))
        reals.append(len(tensors) - 1)
        nodes.append(
            Node(
                number,
                "dequantize",
                "DequantizeLinear",
                1,
                attributes,
                (index, scales, points),
                (len(tensors) - 1,),
            )
        )
        number += 1
    output = graph.tensors[node.outputs[0]]
    assert output.quantization is not None
    tensors.append(Tensor(f"real {output.name}", "f32", ()))
    result = len(tensors) - 1
    nodes.append(replace(node, inputs=tuple(reals), outputs=(result,)))
    if not back:
        nodes[-1] = replace(nodes[-1], outputs=node.outputs)
        tensors[node.outputs[0]] = replace(output, dtype="f32", quantization=None)
        return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))
    if back == "tensor":
        last = Node(number, "quantize", "QUANTIZE", 1, {}, (result,), node.outputs)
    else:
        scale = _constant(tensors, output.quantization.scales.astype(np.float32), "f32", False)
        point = _constant(tensors, output.quantization.zero_points.astype(output.type.numpy), output.dtype, False)
        attributes = {"axis": 1, "block_size": 0, "domain": "", "saturate": 1, "precision": "f32"}
        last = Node(number, "quantize", "QuantizeLinear", 1, attributes, (result, scale, point), node.outputs)
    return replace(graph, tensors=tuple(tensors), nodes=(*nodes, last))


def _constant(tensors: list[Tensor], values: np.ndarray, dtype: str, per_axis: bool) -> int:
    tensors.append(Tensor(f"constant {len(tensors)}", dtype, values.shape if per_axis else (), data=values.reshape(-1)))
    return len(tensors) - 1
