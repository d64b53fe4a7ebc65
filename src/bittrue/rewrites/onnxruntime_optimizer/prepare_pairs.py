"""prepare_pairs: real weights and biases between pairs are quantized, pairs move through data movement; no fusion.

Source: ONNX Runtime 1.31.1 at its level "basic" (tests/runners/test_onnxruntime_side.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from .. import Shapes
from ..editing import Editor
from .quantized_pairs import propagate_pairs, quantize_results
from .quantized_preparation import quantize_constants

# Each round moves pairs past one operator at least.
_ROUNDS = 10


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with such constants quantized and pairs moved; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    for _ in editor.rounds(_ROUNDS):
        quantize_constants(editor, shapes)
        propagate_pairs(editor)
        quantize_results(editor)
    return (editor.finish(), ()) if editor.touched else (graph, ())
