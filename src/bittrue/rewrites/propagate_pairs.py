"""propagate_pairs: dequantizations and quantizations move through data movement, and nothing else changes.

Source: ORT 1.31.1 at its level "basic" (tests/runners/test_onnxruntime_side.py compares bytes).
"""

from __future__ import annotations

from ..graph import Graph
from . import Shapes
from .editing import Editor
from .quantized_pairs import propagate_pairs

# Each round moves pairs past one operator at least.
_ROUNDS = 10


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with pairs moved; no notes."""
    editor = Editor(graph)
    for _ in range(_ROUNDS):
        editor.changed = False
        propagate_pairs(editor)
        if not editor.changed:
            break
    return (editor.finish(), ()) if editor.touched else (graph, ())
