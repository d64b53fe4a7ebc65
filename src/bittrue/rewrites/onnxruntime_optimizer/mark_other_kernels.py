"""mark_other_kernels: nodes with kernels of their own on aarch64; those that are not reproduced, and all that follows.

There are kernels for binary16 where the runtime inserts casts elsewhere, and some operators that are several nodes here
join a product and the sum behind it. What is not reproduced is computed as on x86-64 all the same, and every node that
replaces such a one is marked, too (`Editor`). Source: ONNX Runtime 1.31.1 for aarch64, the types of its kernels; run.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...graph import HALF_KERNEL, UNREPRODUCED, Attribute, Graph, Node
from .. import Shapes
from ..editing import Editor
from .gates import GELU
from .inserted_casts import HALF_KERNELS, has_halves

# Of these the rows are exact.
_REPRODUCED = frozenset(
    "Add AveragePool Conv Div Erf Gelu Gemm GlobalAveragePool LeakyRelu MatMul MaxPool Mul Relu Sub".split()
)
# Kernels that exist everywhere, and are others.
_OTHERS = {
    **dict.fromkeys(("GroupQueryAttention", "MRotaryEmbedding", "MatMulNBits", "QMoE"), 1),
    "Attention": 23,
}
# Operators that join products and sums, and what becomes a difference of two products.
_JOINED = ("CDist", "GatedAdd", "QEmbedLayerNormalization")
# The version that has a definition.
_LEAKY_RELU = 16
_LAST = (
    "convolutions of binary16 numbers lie with their channels last on aarch64: where the runtime moves a transposition"
    " of theirs, a sum along axes has another order, or a cast that goes here stays (1 of 48 random graphs)"
)
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
    _join_definitions(editor)
    for node in editor.nodes():
        if node.version >= HALF_KERNELS.get(node.source, 1 << 30) and has_halves(editor, [node]):
            node = editor.change(node, attributes={**node.attributes, **_of_halves(node), HALF_KERNEL: True})
        own = _is_other(editor, node)
        if own or not marked.isdisjoint(node.inputs):
            count += own
            marked.update(node.outputs)
            editor.change(node, attributes={**node.attributes, UNREPRODUCED: True})
    notes = [_NOTE.format(", ".join(_JOINED), count)] if count else []
    if any(node.source == "Conv" and node.attributes.get(HALF_KERNEL) for node in editor.nodes()):
        notes.append(_LAST)
    return editor.finish() if editor.touched else graph, tuple(notes)


def _join_definitions(editor: Editor) -> None:
    """Gelu and LeakyRelu of binary16 numbers, which importers take apart, as there is no kernel elsewhere."""
    groups = defaultdict[str, list[Node]](list)
    for node in editor.nodes():
        groups[str(node.attributes.get("defines", ""))].append(node)
    for whole, nodes in groups.items():
        result, name = nodes[-1].outputs[0], whole.split(" ")[0]
        # What com.microsoft defines has no such casts.
        if editor.type(result) != "f16" or nodes[0].source != "CastLike":
            continue
        if name == "LeakyRelu":
            alpha, x = editor.value(nodes[0].inputs[0]), nodes[-1].inputs[2]
            assert alpha is not None
            editor.remove(*nodes)
            slope: dict[str, Attribute] = {"alpha": float(alpha.reshape(-1)[0])}
            editor.add(nodes[-1], "leaky_relu", (x,), (result,), slope, source=name, version=_LEAKY_RELU)
        if name == "Gelu":
            half = editor.writer(nodes[-1].inputs[0])
            assert half is not None
            x = half.inputs[1]
            editor.remove(*nodes)
            form: dict[str, Attribute] = {"approximate": any(node.source == "Tanh" for node in nodes)}
            editor.add(nodes[-1], "gelu", (x,), (result,), form, source=name, version=GELU)


def _is_other(editor: Editor, node: Node) -> bool:
    if node.source in _JOINED or (node.source == "MatMulNBits" and node.operator == "sub"):
        return True
    if node.attributes.get(HALF_KERNEL):
        negative = node.source == "LeakyRelu" and _slope(node) < 0
        return node.source not in _REPRODUCED or negative or _of_groups(editor, node) or _of_one_column(editor, node)
    return node.version >= _OTHERS.get(node.source, 1 << 30) and has_halves(editor, [node])


def _of_one_column(editor: Editor, node: Node) -> bool:
    """Whether a Gemm has a factor and perhaps a single column: which product is scaled then is not known."""
    if node.source != "Gemm" or node.attributes.get("alpha", 1.0) == 1:
        return False
    shape = editor.tensors[node.inputs[1] or 0].shape
    return not shape or shape[0 if node.attributes.get("transpose_b") else -1] in (-1, 1)


def _of_halves(node: Node) -> dict[str, Attribute]:
    """Numbers in the file that the kernel rounds."""
    return {"alpha": float(np.float16(_slope(node)))} if node.source == "LeakyRelu" else {}


def _slope(node: Node) -> float:
    alpha = node.attributes["alpha"]
    assert isinstance(alpha, float)
    return alpha


def _of_groups(editor: Editor, node: Node) -> bool:
    """Whether a convolution has groups of several filters: the runtime takes the first group's bias for all of them,
    and reads constant filters of one group where those of others begin.
    """
    if node.source != "Conv" or node.attributes.get("groups", 1) == 1:
        return False
    weights = editor.tensors[node.inputs[1] or 0].shape
    return weights is None or weights[:2] != (node.attributes["groups"], 1)
