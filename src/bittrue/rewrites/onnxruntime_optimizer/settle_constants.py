"""settle_constants: what follows from constants alone becomes a constant, of whatever size, before anything else.

Source: ONNX Runtime 1.31.1, whose level 1 computes it (docs/facts/onnxruntime_passes.md 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from ...graph import Graph, Node
from ...operators import find
from .. import Shapes
from ..editing import Editor
from .free_dimensions import folded_values
from .inserted_casts import CONTROL, has_kernel
from .quantized_preparation import share_constants, share_equal

# The size of what they give follows from values.
_OPEN = ("Compress", "NonMaxSuppression", "NonZero")


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with more constants and fewer nodes; a note where constants ask for too much.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    _share_copies(editor)
    share_constants(editor)
    share_equal(editor, among=_of_constants(editor))
    left = settle_constants(editor, shapes)
    notes: tuple[str, ...] = ()
    if left:
        notes = (
            f"{left} nodes of constants run every time (inexact ones, or too much work or memory for the file's size); "
            "the runtime computes them once: real products with what they give may have other bits",
        )
    return (editor.finish(), notes) if editor.touched else (graph, notes)


def settle_constants(editor: Editor, shapes: Shapes) -> int:
    """What follows from constants and settled sizes, where the runtime has a kernel, becomes constants.

    Dequantized values are left to the fusion. What only other constants are made of is let go.

    Returns:
        How many nodes read constants alone and stay.
    """
    values: dict[int, np.ndarray | None] = {}
    done: list[Node] = []
    reads = Counter(index for node in editor.nodes() for index in node.inputs)
    reads.update(editor.results)

    def value(index: int) -> np.ndarray | None:
        if index in values:
            return values[index]
        tensor = editor.tensors[index]
        return tensor.values() if tensor.is_constant and tensor.type.bits else None

    folded = folded_values(editor, shapes)
    held = left = 0
    found: list[np.ndarray] | None
    for node in editor.nodes():
        if not _may_settle(editor, node):
            continue
        if node.source == "Shape":
            known = [folded(index) for index in node.outputs]
            found = [one for one in known if one is not None]
        else:
            operands = [None if i is None else value(i) for i in node.inputs]
            absent = any(value is None and i is not None for i, value in zip(node.inputs, operands, strict=True))
            found = None if absent else shapes.compute(node, editor.tensors, operands, held)
            left += not absent and not found
        if not found:
            continue
        done.append(node)
        for index, result in zip(node.outputs, found, strict=True):
            values[index] = result if reads[index] else None
            held += result.nbytes if reads[index] else 0
        for read in node.inputs:
            reads[read] -= 1
            before = None if read is None or reads[read] else values.get(read)
            if read is not None and before is not None:
                values[read] = None
                held -= before.nbytes
    for node in done:
        editor.settle(node, [values[index] for index in node.outputs])
    return left


def _share_copies(editor: Editor) -> None:
    """What reads a copy of a constant reads the constant: what several nodes read is widened for all at once."""
    for result in [node.outputs[0] for node in editor.nodes() if node.source == "Identity" and node.outputs]:
        node = editor.writer(result)
        source = None if node is None else node.inputs[0]
        if node is None or source is None or result in editor.results or not editor.tensors[source].is_constant:
            continue
        editor.replace_reads(result, source)
        editor.remove(node)


def _of_constants(editor: Editor) -> Callable[[Node], bool]:
    """Whether a node follows from constants and shapes alone, asked of one node after the other."""
    made: set[int] = set()

    def follows(node: Node) -> bool:
        read = [index for index in node.inputs if index is not None]
        known = node.source == "Shape" or all(i in made or editor.tensors[i].is_constant for i in read)
        found = known and _may_settle(editor, node)
        made.update(node.outputs if found else ())
        return found

    return follows


def _may_settle(editor: Editor, node: Node) -> bool:
    """Whether the runtime computes a node of constants before it runs."""
    operator = find(node.operator)
    if operator is None or operator.worldly or operator.graphs or operator.dequantizes or not node.outputs:
        return False
    if not node.inputs or node.source in (*CONTROL, *_OPEN) or node.attributes.get("computed"):
        return False
    return has_kernel(node) or all(editor.type(index) != "f16" for index in (*node.inputs, *node.outputs))
