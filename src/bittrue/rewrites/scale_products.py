"""Rewrite `scale_products`: a product of matrices and a constant factor behind it become a product with a factor.

product(a, b) * s and product(a, b) / s, s one constant binary32 number and the product read by nothing else: a product
with alpha = s, or the rounded 1 / s. Several factors multiply, each product rounded.
"""

from __future__ import annotations

import numpy as np

from ..graph import Graph, Node
from . import Shapes
from .editing import Editor

_PRODUCT = "matmul"


def _factor(editor: Editor, node: Node, product: int) -> np.float32 | None:
    """What `node` multiplies `product` with, None when it is not one constant number."""
    if node.source not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    place = node.inputs.index(product)
    value = editor.value(node.inputs[1 - place])
    if value is None or value.size != 1 or value.dtype != np.float32 or (node.source == "Div" and place != 0):
        return None
    factor = np.float32(value.reshape(-1)[0])
    with np.errstate(all="ignore"):
        return factor if node.source == "Mul" else np.float32(1) / factor


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with factors in products, and what was done."""
    editor, count = Editor(graph), 0
    for product in editor.nodes():
        if product.operator != _PRODUCT or editor.type(product.outputs[0]) != "f32":
            continue
        while True:
            after = editor.only_reader(product)
            factor = None if after is None else _factor(editor, after, product.outputs[0])
            if after is None or factor is None or _wider(editor, after):
                break
            alpha = np.float32(product.attributes.get("alpha", 1.0)) * factor  # type: ignore[arg-type]
            outputs = after.outputs
            editor.remove(after)
            attributes = {**product.attributes, "alpha": float(alpha)}
            product = editor.change(product, outputs=outputs, attributes=attributes)
            count += 1
    if not editor.changed:
        return graph, ()
    return editor.finish(), (f"{count} factors are part of matrix products",)


def _wider(editor: Editor, node: Node) -> bool:
    """Whether a factor has axes, which might be more than the product's."""
    return any((value := editor.value(index)) is not None and value.ndim > 1 for index in node.inputs)
