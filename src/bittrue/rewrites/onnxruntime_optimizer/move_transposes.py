"""move_transposes: transpositions go behind what is carried out in another way on the tensor before them.

Linear interpolation of 8-bit values, whose channels come to lie last: weights have ten bits then. Real sums over axes
add in another order: between convolutions of quantized values, whose channels lie last; elsewhere they belong to
`fold_reals`, because what reads a tensor decides before it is fused.
Source: ONNX Runtime 1.31.1, its optimised graphs (tests/onnx_operators/test_moved_transposes.py compares bytes).
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Graph, Node
from ...operators import find
from ...operators.movement.concatenation import data_inputs
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape
from .push_transposes import PASSED

_SUMS = ("mean", "sum", "reduce_prod")
_CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_CODES = ("u8", "s8")
# Quantized values whose channels lie last in the runtime leave these that way; others only where what follows wants
# them so.
_STAYS = ("max_pool", "resize_linear")
_PASSES = ("average_pool", "clip", "leaky_relu", "logistic", "resize_nearest")
_JOINS = ("add", "concatenation", "mul")


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with transpositions moved; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    editor = Editor(graph, shapes)
    _sum_channels_last(editor, shapes)
    _resample_channels_last(editor, shapes)
    return (editor.finish(), ()) if editor.touched else (graph, ())


def move_behind_sums(editor: Editor, shapes: Shapes) -> None:
    """Transpositions go behind sums where that leaves less to transpose, if they can pass all that reads them.

    They also go where operators on elements lead on to a transposition that undoes them.
    """
    turned: dict[int, tuple[int, ...]] = {}
    for planned in editor.nodes():
        # What moved before it may have changed it.
        node = editor.writer(planned.outputs[0]) if planned.outputs else None
        if node is None:
            continue
        order = _order(editor, node)
        source = node.inputs[0] if node.inputs else None
        if order is not None and editor.value(source) is None:
            turned[node.outputs[0]] = order
        elif node.operator in _SUMS and source in turned and editor.type(node.outputs[0]) == "f32":
            _move(editor, shapes, node, source, turned)
        elif node.source in PASSED and _on_elements(node):
            operands = [turned.get(i) for i in node.inputs if i is not None and editor.value(i) is None]
            common = operands[0] if len(set(operands)) == 1 else None
            # Two transpositions become one.
            if common is not None and (len(operands) > 1 or _leads_back(editor, node, common)):
                turned[node.outputs[0]] = common


def _move(editor: Editor, shapes: Shapes, node: Node, source: int | None, turned: dict[int, tuple[int, ...]]) -> None:
    assert source is not None
    turn, order, result = editor.writer(source), turned[source], node.outputs[0]
    keeps = bool(node.attributes.get("keep_dims"))
    axes = _summed_axes(editor, node, len(order))
    if keeps and axes is not None and _leads_back(editor, node, order):
        _sum_between(editor, node, source, axes, order)
        turned[result] = order
    elif turn is None or editor.gives_result(turn) or axes is None:
        return
    elif all(reader.source in PASSED for reader, _ in editor.readers(source)):
        if _order(editor, turn) == order:
            _move_behind_sum(editor, shapes, turn, node, order)
        elif keeps and _shrinks(editor, shapes, source, axes):
            _sum_between(editor, node, source, axes, order)
        if keeps and editor.writer(result) is not node:
            turned[result] = order


def _shrinks(editor: Editor, shapes: Shapes, source: int, axes: set[int]) -> bool:
    shape = known_shape(editor, shapes, source)
    return shape is not None and any(shape[axis] != 1 for axis in axes)


def _on_elements(node: Node) -> bool:
    operator = find(node.operator)
    return operator is not None and operator.elementwise > 0


def _leads_back(editor: Editor, node: Node, order: tuple[int, ...]) -> bool:
    """What the node computes goes through operators on elements and sums to a transposition that undoes this one."""
    queue, seen = [node], {node}
    while queue:
        for reader, _ in editor.readers(queue.pop().outputs[0]):
            back = _order(editor, reader)
            if back is not None and _inverse(back) == order:
                return True
            if (_on_elements(reader) or reader.operator in _SUMS) and reader not in seen:
                seen.add(reader)
                queue.append(reader)
    return False


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
        elif node.operator == "conv":
            if len(known_shape(editor, shapes, node.inputs[1]) or ()) == 4 and not node.attributes["channels_last"]:
                last.add(result)
        elif _stays_last(editor, node, last):
            last.add(result)
            if node.operator == "resize_linear" and source is not None:
                _resample_between(editor, node, source)


def _sum_channels_last(editor: Editor, shapes: Shapes) -> None:
    """Real sums over axes between convolutions of quantized values."""
    if not any(node.operator in _SUMS for node in editor.nodes()):
        return
    last: set[int] = set()
    for node in editor.nodes():
        source = node.inputs[0] if node.inputs else None
        if _is_integer_convolution(editor, shapes, node):
            last.add(node.outputs[0])
        elif node.operator in _SUMS and source in last and node.attributes.get("keep_dims"):
            axes = _summed_axes(editor, node, len(_CHANNELS_FIRST))
            if source is not None and axes is not None and _leads_to_convolution(editor, shapes, node):
                _sum_between(editor, node, source, axes, _CHANNELS_FIRST)
                last.add(node.outputs[0])
        elif node.operator in _JOINS and _is_code(editor, node):
            count = 2 if node.operator != "concatenation" else data_inputs(node.attributes, len(node.inputs))
            last.update(node.outputs if all(index in last for index in node.inputs[:count]) else ())
        elif source in last and _passes(editor, node):
            last.update(node.outputs)


def _is_code(editor: Editor, node: Node) -> bool:
    return editor.type(node.outputs[0]) in _CODES


def _passes(editor: Editor, node: Node) -> bool:
    """A transposition can stand behind the node as well as before it, and the node has no other operand for it."""
    if node.operator in (*_STAYS, *_PASSES, "quantize", "dequantize"):
        return True
    return node.source in PASSED and all(editor.value(index) is not None for index in node.inputs[1:])


def _is_integer_convolution(editor: Editor, shapes: Shapes, node: Node) -> bool:
    if node.operator != "conv" or not _is_code(editor, node) or node.attributes["channels_last"]:
        return False
    return len(known_shape(editor, shapes, node.inputs[1]) or ()) == len(_CHANNELS_FIRST)


def _leads_to_convolution(editor: Editor, shapes: Shapes, node: Node) -> bool:
    queue, seen = [node], {node}
    while queue:
        for reader, position in editor.readers(queue.pop().outputs[0]):
            if position == 0 and _is_integer_convolution(editor, shapes, reader):
                return True
            if (_passes(editor, reader) or reader.operator in _JOINS) and reader not in seen:
                seen.add(reader)
                queue.append(reader)
    return False


def _sum_between(editor: Editor, node: Node, source: int, axes: set[int], order: tuple[int, ...]) -> None:
    """The sum of what would be there without the transposition, with that behind it."""
    result, name = node.outputs[0], editor.tensors[node.outputs[0]].name
    before = editor.computed(result, f"{name}/unturned", editor.type(result))
    there, back = (editor.constant(np.array(to, np.int64), f"{name}/order", "s64") for to in (_inverse(order), order))
    moved = np.array(sorted(order[axis] for axis in axes), np.int64)
    turn = editor.writer(source)
    if turn is not None and _order(editor, turn) == order and turn.inputs[0] is not None:
        turned = turn.inputs[0]
    else:
        turned = editor.computed(source, f"{name}/turned", editor.type(source))
        editor.add(node, "transpose", (source, there), (turned,), source="Transpose", version=13)
    editor.change(node, inputs=(turned, editor.constant(moved, f"{name}/axes", "s64")), outputs=(before,))
    if turn is not None and turn.operator == "transpose":
        _drop(editor, turn)
    editor.add(node, "transpose", (before, back), (result,), source="Transpose", version=13)


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
    turn = editor.writer(source)
    if turn is None or _order(editor, turn) != _CHANNELS_FIRST or editor.value(turn.inputs[0]) is not None:
        name = editor.tensors[source].name
        turned = editor.computed(source, f"{name}/turned", editor.type(source))
        axes = editor.constant(np.array(_CHANNELS_LAST, np.int64), f"{name}/order", "s64")
        editor.add(node, "transpose", (source, axes), (turned,), source="Transpose", version=13)
    else:
        turned = turn.inputs[0]  # type: ignore[assignment]
    result = node.outputs[0]
    before = editor.computed(result, f"{editor.tensors[result].name}/unturned", editor.type(result))
    # What belonged to an axis belongs to the one that it came from.
    axes_given, rank = node.attributes.get("axes"), len(_CHANNELS_FIRST)
    named = range(rank) if not isinstance(axes_given, tuple) else [int(axis) % rank for axis in axes_given]
    attributes: dict[str, Attribute] = {**node.attributes, "axes": tuple(_CHANNELS_FIRST[axis] for axis in named)}
    editor.change(node, inputs=(turned, *node.inputs[1:]), outputs=(before,), attributes=attributes)
    axes = editor.constant(np.array(_CHANNELS_FIRST, np.int64), f"{editor.tensors[result].name}/order", "s64")
    editor.add(node, "transpose", (before, axes), (result,), source="Transpose", version=13)
    if turn is not None and turn.operator == "transpose":
        _drop(editor, turn)


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
    attributes = dict(turn.attributes)
    editor.add(node, turn.operator, (before, axes), (result,), attributes, source=turn.source, version=turn.version)
    return before


def _drop(editor: Editor, turn: Node) -> None:
    if not editor.edges(turn) and not editor.gives_result(turn):
        editor.remove(turn)


def _move_behind_sum(editor: Editor, shapes: Shapes, turn: Node, node: Node, order: tuple[int, ...]) -> None:
    shape, axes = known_shape(editor, shapes, node.inputs[0]), _summed_axes(editor, node, len(order))
    if shape is None or len(shape) != len(order) or axes is None or all(shape[axis] == 1 for axis in axes):
        return
    result = order
    if not node.attributes["keep_dims"]:
        left = sorted(order[axis] for axis in range(len(order)) if axis not in axes)
        result = tuple(left.index(order[axis]) for axis in range(len(order)) if axis not in axes)
    moved = sorted(order[axis] for axis in axes)
    constant = editor.constant(np.array(moved, np.int64), f"{editor.tensors[node.outputs[0]].name}/axes", "s64")
    outputs = node.outputs
    if result != tuple(range(len(result))):
        outputs = (_behind(editor, turn, node, result),)
    editor.change(node, inputs=(turn.inputs[0], constant), outputs=outputs)
    _drop(editor, turn)


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
