"""Reshapes one behind the other become one, which may stand alone among nodes that are widened; those to sizes of
other tensors read constants, so that nothing asks these for their sizes.

The values are the same. Source: ONNX Runtime 1.31.1, ReshapeFusion; tests/onnx_operators/test_halves.py compares bytes.
"""

from __future__ import annotations

import math

import numpy as np

from ...graph import Attribute, Graph, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_numbers, reshape_targets
from .quantized_preparation import share_constants, share_equal

_VIEWS = ("Reshape", "Squeeze", "Unsqueeze")


def join_reshapes(editor: Editor, shapes: Shapes, dtype: str) -> None:
    """One Reshape of `dtype` for a chain that begins with one, as far as its sizes are numbers."""
    chains = [node for node in editor.nodes() if node.source == "Reshape" and editor.type(node.outputs[0]) == dtype]
    if not any(_follower(editor, node) for node in chains):
        return
    numbers = known_numbers(editor, shapes)
    for first in chains:
        last, passed, sizes = first, [], None
        while editor.alive(first) and (follower := _follower(editor, last)) is not None:
            found = numbers(follower.outputs[0]) or _written(editor, follower, numbers(last.outputs[0]))
            if found is None or -1 in found:
                break
            last, sizes = follower, found
            passed.append(follower)
        if sizes is None:
            continue
        editor.remove(first, *passed)
        shape = editor.constant(np.array(sizes, np.int64), f"{editor.tensors[last.outputs[0]].name}/shape", "s64")
        attributes: dict[str, Attribute] = {**first.attributes, "made": True}
        inputs = (first.inputs[0], shape)
        editor.add(first, first.operator, inputs, last.outputs, attributes, source=first.source, version=first.version)


def settle_targets(editor: Editor, shapes: Shapes) -> None:
    """A constant in place of a Concat of sizes that one Reshape alone reads."""
    found = [node for node in editor.nodes() if node.source == "Reshape" and node.attributes.get("zeros") == "copied"]
    concats = {node: writer for node in found if (writer := editor.writer(node.inputs[1])) is not None}
    concats = {node: writer for node, writer in concats.items() if writer.source == "Concat"}
    if not concats:
        return
    target = reshape_targets(editor, shapes)
    for node, sizes in [(node, target(node)) for node in concats]:
        if sizes is not None:
            name = f"{editor.tensors[node.outputs[0]].name}/sizes"
            editor.redirect(node, 1, editor.constant(np.array(sizes, np.int64), name, "s64"))
            _drop(editor, concats[node])


def share_sizes(graph: Graph, shapes: Shapes) -> Graph:
    """The graph whose equal constants, and nodes of sizes and places, are one each."""
    editor = Editor(graph, shapes)
    share_constants(editor)
    share_equal(editor, among=lambda node: editor.type(node.outputs[0]) == "s64")
    return editor.finish() if editor.touched else graph


def settle_reshapes(graph: Graph, shapes: Shapes) -> Graph:
    """The graph whose Reshapes read constants where they alone read a Concat of sizes."""
    editor = Editor(graph, shapes)
    settle_targets(editor, shapes)
    return editor.finish() if editor.touched else graph


def _drop(editor: Editor, node: Node) -> None:
    """The node goes, if nobody reads it, and then those that it reads."""
    if editor.edges(node) or editor.gives_result(node):
        return
    before = [editor.writer(index) for index in node.inputs]
    editor.remove(node)
    for one in before:
        if one is not None and editor.alive(one) and one.source in ("Unsqueeze", "Gather", "Shape"):
            _drop(editor, one)


def _follower(editor: Editor, node: Node) -> Node | None:
    reader = editor.only_reader(node)
    return reader if reader is not None and reader.source in _VIEWS and reader.inputs[0] in node.outputs else None


def _written(editor: Editor, node: Node, before: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """What a Reshape that has just been made asks for; -1 is the rest of `before`."""
    asked = editor.value(node.inputs[1]) if node.source == "Reshape" else None
    if asked is None or 0 in asked:
        return None
    sizes = [int(size) for size in asked]
    if -1 in sizes and before is not None and -1 not in before:
        sizes[sizes.index(-1)] = math.prod(before) // -math.prod(sizes)
    return tuple(sizes)
