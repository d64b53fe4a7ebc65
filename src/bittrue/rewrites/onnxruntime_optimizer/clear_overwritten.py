"""clear_overwritten: rows of a mixture of experts that the runtime overwrites with zeros before its kernel reads them.

A result takes the memory of its operand where nothing reads that later, and the kernel of MoE clears its result first;
with normalize_routing_weights its answers are right all the same. This is no pass of the optimiser: memory is shared
out when all passes have run, so it comes last.
Source: ONNX Runtime 1.31.1, run (tests/onnx_operators/test_experts.py compares bytes).
"""

from __future__ import annotations

import numpy as np

from ...graph import UNREPRODUCED, Graph, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import UNKNOWN, known_sizes

# Results that lie in the memory of their operand.
_VIEWS = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_NOTE = (
    "ONNX Runtime overwrites the rows of a MoE before it has read them where nothing reads them later; of {} of these"
    " nodes the file does not say whether something does: their results may differ from the runtime's"
)


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with zeros in place of such rows, and a note where another node reads the rows before or after.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor, unsure = Editor(graph, shapes), 0
    for node in graph.nodes:
        if node.source != "MoE" or node.attributes.get("normalized") is not False:
            continue
        others = _other_readers(editor, node) if _fits(editor, shapes, node) else None
        if others is None or not others.isdisjoint(_behind(editor, node)):
            continue
        if others <= _before(editor, node):
            _clear(editor, node)
        else:
            unsure += 1
            editor.change(node, attributes={**node.attributes, UNREPRODUCED: True})
    return (editor.finish(), (_NOTE.format(unsure),) if unsure else ()) if editor.touched else (graph, ())


def _fits(editor: Editor, shapes: Shapes, node: Node) -> bool:
    """Whether the result may lie where the rows do: both have sizes that are known to be equal."""
    sizes = known_sizes(editor, shapes)
    rows, result = sizes(node.inputs[0]), sizes(node.outputs[0])
    return rows is not None and rows == result and UNKNOWN not in rows and not editor.gives_result(node)


def _other_readers(editor: Editor, node: Node) -> set[Node] | None:
    """Other nodes that read the memory of a node's rows; None where it is an operand or a result of the graph."""
    first = node.inputs[0]
    while (writer := editor.writer(first)) is not None and writer.source in _VIEWS:
        first = writer.inputs[0]
    if first is None or writer is None:
        return None
    found, same = set[Node](), [first]
    for index in same:
        if index in editor.results:
            return None
        for reader, position in editor.readers(index):
            found.add(reader)
            if reader.source in _VIEWS and position == 0:
                same += reader.outputs
    return found - {node}


def _before(editor: Editor, node: Node) -> set[Node]:
    """All nodes that what a node reads follows from."""
    found, left = set[Node](), [node]
    while left:
        before = {w for w in map(editor.writer, left.pop().inputs) if w is not None} - found
        found |= before
        left += before
    return found


def _behind(editor: Editor, node: Node) -> set[Node]:
    """All nodes that follow from what a node gives."""
    found, left = set[Node](), [node]
    while left:
        behind = {reader for index in left.pop().outputs for reader, _ in editor.readers(index)} - found
        found |= behind
        left += behind
    return found


def _clear(editor: Editor, node: Node) -> None:
    rows = node.inputs[0]
    sizes = editor.computed(None, "sizes", "s64")
    zeros = editor.computed(rows, "overwritten", "f32")
    editor.add(node, "shape", [rows], [sizes], {"of": "dimensions", "start": 0}, source="Shape")
    zero = editor.constant(np.zeros((), np.float32), "zero", "f32")
    editor.add(node, "fill", [sizes, zero], [zeros], source="ConstantOfShape")
    editor.redirect(node, 0, zeros)
