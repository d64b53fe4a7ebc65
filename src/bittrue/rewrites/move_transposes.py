"""move_transposes: transpositions go behind what is carried out in another way on the tensor before them.

Real sums over axes, when that leaves less to transpose: they add in another order. Linear interpolation of 8-bit codes,
whose channels come to lie last: weights have ten bits then.
Source: ORT 1.31.1, what its optimised graphs show (tests/onnx_operators/test_moved_transposes.py compares bytes).
"""

from __future__ import annotations

import numpy as np

from ..graph import Attribute, Graph, Node
from . import Shapes
from .editing import Editor
from .quantized_preparation import known_shape

_SUMS = ("reduce_mean", "reduce_sum", "reduce_sum_square", "reduce_l1", "reduce_l2", "reduce_log_sum")
_SUMS = (*_SUMS, "reduce_log_sum_exp", "axes_prod")
_CHANNELS_FIRST = (0, 3, 1, 2)


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with transpositions moved; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free extent.
    """
    editor = Editor(graph)
    for node in editor.nodes():
        turn = editor.writer(node.inputs[0]) if editor.alive(node) and node.inputs else None
        order = _order(editor, turn)
        if turn is None or order is None or editor.value(turn.inputs[0]) is not None:
            continue
        if node.operator in _SUMS and editor.type(node.outputs[0]) == "f32":
            _move_behind_sum(editor, shapes, turn, node, order)
        elif node.operator == "resample_linear" and editor.type(node.outputs[0]) in ("u8", "s8"):
            if order == _CHANNELS_FIRST:
                _move_behind_resampling(editor, turn, node, order)
    return (editor.finish(), ()) if editor.touched else (graph, ())


def _order(editor: Editor, turn: Node | None) -> tuple[int, ...] | None:
    """The order of axes that a transposition writes out."""
    if turn is None or turn.operator != "transpose" or len(turn.inputs) < 2:
        return None
    value = editor.value(turn.inputs[1])
    order = () if value is None else tuple(int(axis) for axis in value)
    return order if order and sorted(order) == list(range(len(order))) else None


def _behind(editor: Editor, turn: Node, node: Node, order: tuple[int, ...]) -> int:
    """A tensor for the result of the moved operator, which the transposition then turns; the old result stays."""
    result = node.outputs[0]
    before = editor.computed(result, f"{editor.tensors[result].name}/unturned", editor.type(result))
    axes = editor.constant(np.array(order, np.int64), f"{editor.tensors[result].name}/order", "s64")
    editor.add(node, turn.operator, (before, axes), (result,), dict(turn.attributes), version=turn.version)
    return before


def _drop(editor: Editor, turn: Node) -> None:
    if not editor.edges(turn) and not editor.gives_result(turn):
        editor.remove(turn)


def _move_behind_sum(editor: Editor, shapes: Shapes, turn: Node, node: Node, order: tuple[int, ...]) -> None:
    shape, value = known_shape(editor, shapes, node.inputs[0]), editor.value((*node.inputs, None)[1])
    if shape is None or value is None or not value.size or editor.only_reader(turn) is not node:
        return
    rank, keeps = len(shape), bool(node.attributes["keep_dims"])
    if len(order) != rank or any(not -rank <= axis < rank for axis in value.reshape(-1)):
        return
    axes = {int(axis) % rank for axis in value.reshape(-1)}
    if all(shape[axis] == 1 for axis in axes):
        return
    result = order
    if not keeps:
        left = sorted(order[axis] for axis in range(rank) if axis not in axes)
        result = tuple(left.index(order[axis]) for axis in range(rank) if axis not in axes)
    moved = sorted(order[axis] for axis in axes)
    constant = editor.constant(np.array(moved, np.int64), f"{editor.tensors[node.outputs[0]].name}/axes", "s64")
    outputs = node.outputs
    if result != tuple(range(len(result))):
        outputs = (_behind(editor, turn, node, result),)
    editor.change(node, inputs=(turn.inputs[0], constant), outputs=outputs)
    _drop(editor, turn)


def _move_behind_resampling(editor: Editor, turn: Node, node: Node, order: tuple[int, ...]) -> None:
    """What belonged to an axis belongs to the one that it came from."""
    axes = node.attributes.get("axes")
    named = range(len(order)) if not isinstance(axes, tuple) else [int(axis) % len(order) for axis in axes]
    attributes: dict[str, Attribute] = {**node.attributes, "axes": tuple(order[axis] for axis in named)}
    before = _behind(editor, turn, node, order)
    editor.change(node, inputs=(turn.inputs[0], *node.inputs[1:]), outputs=(before,), attributes=attributes)
    _drop(editor, turn)
