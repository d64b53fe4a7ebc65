"""mark_halves: nodes whose kernels for binary16 have an arithmetic of their own, and all that follows from them.

On aarch64 the runtime has kernels for binary16 where it inserts casts elsewhere. What they compute is not reproduced:
such nodes are computed by way of casts all the same, and every node that replaces one is marked, too (`Editor`).
Source: ONNX Runtime 1.31.1 for aarch64, the types of its kernels.
"""

from __future__ import annotations

from ...graph import UNREPRODUCED, Graph
from .. import Shapes
from ..editing import Editor
from .inserted_casts import has_halves

# From which version there is a kernel: those that widen their operands elsewhere, and those that exist nowhere else.
_SINCE = {
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), 14),
    **dict.fromkeys(("AveragePool", "Conv"), 11),
    **dict.fromkeys(("FusedConv", "GlobalAveragePool", "MatMul", "MatMulNBits", "QMoE"), 1),
    **dict.fromkeys(("GroupQueryAttention", "MRotaryEmbedding", "RMSNormalization", "RotaryEmbedding"), 1),
    **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization"), 1),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), 1),
    "Attention": 23,
    "Erf": 13,
    "Gelu": 20,
    "Gemm": 7,
    "LeakyRelu": 6,
    "MaxPool": 8,
    "Relu": 6,
}
_NOTE = (
    "ONNX Runtime has kernels for binary16 on aarch64, which are not reproduced: what {} of this graph's nodes and"
    " those behind them give may differ from the runtime's in bits"
)


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `UNREPRODUCED` at such nodes and all that read what they give, and a note.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor, marked, count = Editor(graph, shapes), set[int](), 0
    for node in editor.nodes():
        own = node.version >= _SINCE.get(node.source, 1 << 30) and has_halves(editor, [node])
        if own or not marked.isdisjoint(node.inputs):
            count += own
            marked.update(node.outputs)
            editor.change(node, attributes={**node.attributes, UNREPRODUCED: True})
    return (editor.finish(), (_NOTE.format(count),)) if count else (graph, ())
