"""keep_planes: no image is laid out in blocks of channels, as before the runtime's optimiser chooses layouts.

Convolutions of images in planes add up in the order of the unfolded image. Weights and biases that come from a
dequantization are no constants to the runtime, which then does not rearrange them ahead of time.
Source: ONNX Runtime 1.31.1 at its levels "disable" and "basic" (tests/runners/test_onnxruntime_side.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from .. import Shapes
from ..editing import Editor
from .fuse_quantized import mark_computed_weights


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `computed_weights` at convolutions and at such products; no notes."""
    editor = Editor(graph, shapes)
    for node in editor.nodes():
        if node.operator == "conv" and editor.type(node.outputs[0]) == "f32":
            editor.change(node, attributes={**node.attributes, "computed_weights": (1,)})
    mark_computed_weights(editor)
    return (editor.finish(), ()) if editor.changed else (graph, ())
