"""keep_axes_of_nothing: reductions of tensors without elements keep the axes that are counted from the back.

Source: ONNX Runtime 1.31.1, run; every reduction, whether its axes are an attribute or an operand.
"""

from __future__ import annotations

from ...graph import Graph
from ...operators import find
from .. import Shapes
from ..editing import Editor


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `counted_from_back` at reductions of what may have no elements; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    # Positions are no such reductions, and quantized ones are made later.
    if not any(node.source.startswith("Reduce") for node in graph.nodes):
        return graph, ()
    editor = Editor(graph, shapes)
    for node in editor.nodes():
        operator = find(node.operator) if node.source.startswith("Reduce") else None
        if operator is None or not operator.reduces or len(node.inputs) < 2:
            continue
        axes, sizes = editor.value(node.inputs[1]), shapes().shapes.get(node.inputs[0] or 0)
        if (sizes is None or min(sizes, default=1) < 1) and (axes is None or (axes < 0).any()):
            editor.change(node, attributes={**node.attributes, "counted_from_back": "unless_empty"})
    return (editor.finish(), ()) if editor.touched else (graph, ())
