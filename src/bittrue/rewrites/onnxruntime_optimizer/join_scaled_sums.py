"""join_scaled_sums: a product of integers, its factor and a bias become one operator.

The runtime joins them everywhere, and the results are the same but on aarch64, where the bias is added without a
rounding of its own. Source: ONNX Runtime 1.31.1, run on aarch64 (tests/onnx_operators/test_real_fusion.py compares
bytes).
"""

from __future__ import annotations

import math

from ...graph import Graph, Node
from .. import Shapes
from ..editing import Editor
from .gates import is_integer_product


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with such groups joined; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    for product in editor.nodes():
        total = editor.only_reader(product) if is_integer_product(editor, product) else None
        if total is None or total.source != "Add":
            continue
        bias = next(index for index in (*total.inputs, None) if index != product.outputs[0])
        if _is_vector(editor, bias):
            _join(editor, product, total, bias)
    return (editor.finish(), ()) if editor.touched else (graph, ())


def _is_vector(editor: Editor, index: int | None) -> bool:
    """A constant with several elements along its last axis alone."""
    value = editor.value(index)
    return value is not None and value.ndim > 0 and value.shape[-1] > 1 and math.prod(value.shape[:-1]) == 1


def _join(editor: Editor, product: Node, total: Node, bias: int | None) -> None:
    parts = {part.source: part for part in map(editor.writer, product.inputs) if part is not None}
    cast, factors = parts["Cast"], parts["Mul"]
    sums = editor.writer(cast.inputs[0])
    assert sums is not None
    a, b, *_ = sums.inputs
    a_point, b_point = ((*sums.inputs, *[None] * 7)[position] for position in (4, 6))
    inputs = (a, b, bias, factors.inputs[0], a_point, factors.inputs[1], b_point)
    editor.remove(sums, cast, factors, product, total)
    attributes = dict(sums.attributes)
    editor.add(total, "matmul", inputs, total.outputs, attributes, source="MatMulIntegerToFloat")
