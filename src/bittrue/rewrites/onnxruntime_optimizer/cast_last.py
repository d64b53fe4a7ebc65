"""cast_last: casts around what still has no kernel for binary16, and inside of the kernels that widen by themselves.

Casts of casts go here, too, whatever their types are.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_halves.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from .. import Shapes
from ..editing import Editor
from .fuse_quantized import mark_computed_weights
from .inserted_casts import Casts, has_brains, has_halves, is_cast
from .real_products import join_transposed_twice
from .settle_constants import settle_constants


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with all of its casts, and a note where one of them may stay.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    halves = has_halves(editor, graph.nodes)
    if not halves and sum(map(is_cast, graph.nodes)) < 2 and not has_brains(editor, graph.nodes):
        return graph, ()
    if halves:
        # Level 1 has done so where `cast_halves` left the graph as it was.
        settle_constants(editor, shapes)
    join_transposed_twice(editor, shapes)
    casts = Casts(editor, shapes)
    casts.insert()
    casts.remove_pairs()
    casts.fold_constants()
    mark_computed_weights(editor)
    casts.widen_kernels()
    return (editor.finish(), casts.notes) if editor.touched else (graph, ())
