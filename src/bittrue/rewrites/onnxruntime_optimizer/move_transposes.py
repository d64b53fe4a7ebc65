"""move_transposes: transpositions go behind what is carried out in another way on the tensor before them.

Interpolation of 8-bit values, whose channels come to lie last: linear weights have ten bits then, cubic ones 22. Real
sums over axes add in another order between convolutions of quantized values, whose channels lie last; elsewhere
`push_transposes` moves them, because what reads a tensor decides before it is fused.
Source: ONNX Runtime 1.31.1, its optimised graphs (tests/onnx_operators/test_moved_transposes.py compares bytes).
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Graph, Node
from ...operators.movement.concatenation import data_inputs
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape
from .push_transposes import push_once, turn_image, without

_SUMS = ("mean", "sum", "reduce_prod")
_MOVED = (
    "a sum over axes lies near a convolution of quantized values, and not right behind its image: the runtime moves"
    " transpositions there, and may add up in another order (2 of 6,500 random graphs differed)"
)
_CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_CODES = ("u8", "s8")
# Quantized values whose channels lie last in the runtime leave these that way; others only where what follows wants
# them so.
_RESIZED = ("resize_linear", "resize_cubic")
_STAYS = ("max_pool", *_RESIZED)
_PASSES = ("average_pool", "clip", "leaky_relu", "logistic", "resize_nearest")
_JOINS = ("add", "concatenation", "mul")


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with transpositions moved, and a note where a sum may be added up in another order.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    notes = _sum_channels_last(editor, shapes)
    _resample_channels_last(editor, shapes)
    return (editor.finish(), notes) if editor.touched else (graph, notes)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _resample_channels_last(editor: Editor, shapes: Shapes) -> None:
    last: set[int] = set()
    for node in editor.nodes():
        result = node.outputs[0] if node.outputs else None
        if result is None or not node.inputs or editor.type(result) not in _CODES:
            continue
        source = node.inputs[0]
        if node.operator == "transpose" and editor.value(source) is None:
            if _order(editor, node) == _CHANNELS_FIRST:
                last.add(result)
        elif _is_integer_convolution(editor, shapes, node):
            last.add(result)
        elif _stays_last(editor, node, last):
            last.add(result)
            if node.operator in _RESIZED and source is not None:
                _resample_between(editor, node, source)


def _sum_channels_last(editor: Editor, shapes: Shapes) -> tuple[str, ...]:
    """Real sums over axes between convolutions of quantized values: where transpositions come to stand decides."""
    sums = [node for node in editor.nodes() if node.operator in _SUMS]
    if not sums or not any(_is_integer_convolution(editor, shapes, node) for node in editor.nodes()):
        return ()
    tried = Editor(editor.graph, shapes)
    for node in tried.nodes():
        if _is_integer_convolution(tried, shapes, node):
            turn_image(tried, node, _CHANNELS_FIRST)
    push_once(tried, shapes)
    moved = {node.index: node for node in tried.nodes() if node.operator in _SUMS}
    notes: tuple[str, ...] = ()
    for node in sums:
        source, there = node.inputs[0], moved.get(node.index)
        if source is None or there is None or there.inputs[0] == source:
            continue
        before, after = (_summed_axes(e, n, len(_CHANNELS_FIRST)) for e, n in ((editor, node), (tried, there)))
        four = len(known_shape(editor, shapes, source) or ()) == len(_CHANNELS_FIRST)
        # All axes but the first are the same ones behind a transposition, and are added up in another order.
        if four and before and after == {_CHANNELS_FIRST[axis] for axis in before}:
            _sum_between(editor, node, source, before)
        else:
            notes = (_MOVED,)
    return notes


def _is_code(editor: Editor, node: Node) -> bool:
    return editor.type(node.outputs[0]) in _CODES


def _is_integer_convolution(editor: Editor, shapes: Shapes, node: Node) -> bool:
    if node.operator != "conv" or not _is_code(editor, node) or node.attributes["channels_last"]:
        return False
    return len(known_shape(editor, shapes, node.inputs[1]) or ()) == len(_CHANNELS_FIRST)


def _sum_between(editor: Editor, node: Node, source: int, axes: set[int]) -> None:
    """The sum of what would be there without the transposition, with that behind it."""
    result, name = node.outputs[0], editor.tensors[node.outputs[0]].name
    moved = sorted(_CHANNELS_FIRST[axis] for axis in axes)
    behind = _CHANNELS_FIRST if node.attributes.get("keep_dims") else without(_CHANNELS_FIRST, moved)
    trivial = behind == tuple(range(len(behind)))
    before = result if trivial else editor.computed(result, f"{name}/unturned", editor.type(result))
    turn, turned = _turned_back(editor, node, source)
    over = editor.constant(np.array(moved, np.int64), f"{name}/axes", "s64")
    editor.change(node, inputs=(turned, over), outputs=(before,))
    if turn is not None:
        _drop(editor, turn)
    if not trivial:
        back = editor.constant(np.array(behind, np.int64), f"{name}/order", "s64")
        editor.add(node, "transpose", (before, back), (result,), source="Transpose", version=13)


def _turned_back(editor: Editor, node: Node, source: int) -> tuple[Node | None, int]:
    """The transposition before `node`, and an operand of it with channels last: what is transposed there, if it is the
    same order and no constant, or `source` transposed anew.
    """
    turn = editor.writer(source)
    if turn is None or turn.operator != "transpose":
        turn = None
    elif _order(editor, turn) == _CHANNELS_FIRST and editor.value(turn.inputs[0]) is None:
        assert turn.inputs[0] is not None
        return turn, turn.inputs[0]
    name = editor.tensors[source].name
    turned = editor.computed(source, f"{name}/turned", editor.type(source))
    axes = editor.constant(np.array(_CHANNELS_LAST, np.int64), f"{name}/order", "s64")
    editor.add(node, "transpose", (source, axes), (turned,), source="Transpose", version=13)
    return turn, turned


def _stays_last(editor: Editor, node: Node, last: set[int]) -> bool:
    if node.operator in _JOINS:
        # Scales and zero points, where they are operands, stand behind the tensors.
        count = 2 if node.operator != "concatenation" else data_inputs(node.attributes, len(node.inputs))
        return all(index in last for index in node.inputs[:count])
    if node.inputs[0] not in last:
        return False
    if node.operator == "average_pool" and not node.attributes["kernel"]:
        return False
    return node.operator in _STAYS or (node.operator in _PASSES and _leads_to_last(editor, node))


def _leads_to_last(editor: Editor, node: Node) -> bool:
    """What the node computes goes, perhaps through others, where channels lie last."""
    queue, seen = [node], {node}
    while queue:
        for reader, position in editor.readers(queue.pop().outputs[0]):
            if reader.operator == "conv" and position == 0:
                return True
            if reader.operator == "transpose" and _order(editor, reader) == _CHANNELS_LAST:
                return True
            if reader.operator in (*_STAYS, *_PASSES, *_JOINS) and reader not in seen:
                seen.add(reader)
                queue.append(reader)
    return False


def _resample_between(editor: Editor, node: Node, source: int) -> None:
    """The same with transpositions before and behind it, or without the one that is there before it."""
    turn, turned = _turned_back(editor, node, source)
    result = node.outputs[0]
    before = editor.computed(result, f"{editor.tensors[result].name}/unturned", editor.type(result))
    # What belonged to an axis belongs to the one that it came from.
    axes_given, rank = node.attributes.get("axes"), len(_CHANNELS_FIRST)
    named = range(rank) if not isinstance(axes_given, tuple) else [int(axis) % rank for axis in axes_given]
    attributes: dict[str, Attribute] = {**node.attributes, "axes": tuple(_CHANNELS_FIRST[axis] for axis in named)}
    editor.change(node, inputs=(turned, *node.inputs[1:]), outputs=(before,), attributes=attributes)
    axes = editor.constant(np.array(_CHANNELS_FIRST, np.int64), f"{editor.tensors[result].name}/order", "s64")
    editor.add(node, "transpose", (before, axes), (result,), source="Transpose", version=13)
    if turn is not None:
        _drop(editor, turn)


def _order(editor: Editor, turn: Node | None) -> tuple[int, ...] | None:
    """The order of axes that a transposition writes out."""
    if turn is None or turn.operator != "transpose" or len(turn.inputs) < 2:
        return None
    value = editor.value(turn.inputs[1])
    order = () if value is None else tuple(int(axis) for axis in value)
    return order if order and sorted(order) == list(range(len(order))) else None


def _drop(editor: Editor, turn: Node) -> None:
    if not editor.edges(turn) and not editor.gives_result(turn):
        editor.remove(turn)


def _summed_axes(editor: Editor, node: Node, rank: int) -> set[int] | None:
    """All where none are given; None where they are not known, or none of `rank`."""
    given = (*node.inputs, None)[1]
    value = editor.value(given)
    if given is not None and value is None:
        return None
    axes = [] if value is None else [int(axis) for axis in value.reshape(-1)]
    if not axes:
        return None if node.attributes["keeps_without_axes"] else set(range(rank))
    return {axis % rank for axis in axes} if all(-rank <= axis < rank for axis in axes) else None
