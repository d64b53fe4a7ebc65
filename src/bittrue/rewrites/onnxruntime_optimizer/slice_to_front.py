"""slice_to_front: slices backwards that end at the largest number of 32 or of 64 bits go as far as the front.

Source: ONNX Runtime 1.31.1, run; elsewhere such an end is one behind the last element, where nothing is left.
"""

from __future__ import annotations

from ...graph import Graph, Node
from ...records import replace
from .. import Shapes


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `largest_end_is_front` at slices; no notes.

    Args:
        graph: any graph.
        shapes: not asked for.
    """
    if not any(node.operator == "slice_axes" for node in graph.nodes):
        return graph, ()
    return replace(graph, nodes=tuple(map(_told, graph.nodes))), ()


def _told(node: Node) -> Node:
    if node.operator != "slice_axes":
        return node
    return replace(node, attributes={**node.attributes, "largest_end_is_front": True})
