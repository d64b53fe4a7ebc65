"""mark_other_kernels: nodes whose kernels on aarch64 are not reproduced, and all that follows from them.

There are kernels for binary16 where the runtime inserts casts elsewhere, and some operators that are several nodes here
join a product and the sum behind it. Such nodes are computed as on x86-64 all the same, and every node that replaces
one is marked, too (`Editor`). Source: ONNX Runtime 1.31.1 for aarch64, the types of its kernels; run.
"""

from __future__ import annotations

from ...graph import UNREPRODUCED, Graph, Node
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
# Operators that join products and sums, and what becomes a difference of two products.
_JOINED = ("BranchwiseRMSNorm", "CDist", "EngramGate", "GatedAdd", "QEmbedLayerNormalization")
_NOTE = (
    "ONNX Runtime has other kernels on aarch64 (for binary16, {}), which are not reproduced: what {}"
    " of this graph's nodes and those behind them give may differ from the runtime's in bits"
)


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `UNREPRODUCED` at such nodes and all that read what they give, and a note.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor, marked, count = Editor(graph, shapes), set[int](), 0
    for node in editor.nodes():
        own = _is_other(editor, node)
        if own or not marked.isdisjoint(node.inputs):
            count += own
            marked.update(node.outputs)
            editor.change(node, attributes={**node.attributes, UNREPRODUCED: True})
    return (editor.finish(), (_NOTE.format(", ".join(_JOINED), count),)) if count else (graph, ())


def _is_other(editor: Editor, node: Node) -> bool:
    if node.source in _JOINED or (node.source == "MatMulNBits" and node.operator == "sub"):
        return True
    return node.version >= _SINCE.get(node.source, 1 << 30) and has_halves(editor, [node])
