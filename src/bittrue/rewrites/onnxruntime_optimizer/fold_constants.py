"""fold_constants: the part of `fold_reals` that folds constants into real products, and joins no groups.

Source: ONNX Runtime 1.31.1 at its level "basic" (tests/runners/test_onnxruntime_side.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from .. import Shapes
from ..editing import Editor
from .fold_reals import fold


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with constants folded; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    fold(editor, shapes)
    return (editor.finish(), ()) if editor.touched else (graph, ())
