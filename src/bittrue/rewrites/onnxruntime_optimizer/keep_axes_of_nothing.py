"""keep_axes_of_nothing: reductions of tensors without elements keep the axes that are counted from the back.

So do positions of extremes. Source: ONNX Runtime 1.31.1, run; every reduction, whether its axes are an attribute or an
operand.
"""

from __future__ import annotations

from ...graph import Graph, Node
from .. import Shapes
from ..editing import Editor


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `counted_from_back` at reductions of what may have no elements; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    if not any(map(_reduces, graph.nodes)):
        return graph, ()
    editor = Editor(graph, shapes)
    for node in editor.nodes():
        if not _reduces(node) or len(node.inputs) < 2:
            continue
        axes, sizes = editor.value(node.inputs[1]), shapes().shapes.get(node.inputs[0] or 0)
        if (sizes is None or min(sizes, default=1) < 1) and (axes is None or (axes < 0).any()):
            editor.change(node, attributes={**node.attributes, "counted_from_back": "unless_empty"})
    return (editor.finish(), ()) if editor.touched else (graph, ())


def _reduces(node: Node) -> bool:
    """Whether a node is a reduction of the file, or part of one."""
    return node.source.startswith(("Reduce", "Arg"))
