"""Slices that share out a tensor among them become one Split; what stands around that decides where casts are inserted.

The values are the same. Source: ONNX Runtime 1.31.1, GatherSliceToSplitFusion; tests/onnx_operators/test_halves.py
compares bytes.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...graph import Attribute, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import Values, folded_values, known_numbers

_SINCE = 13  # The runtime leaves slices of older operator sets as they are.


def split_slices(editor: Editor, shapes: Shapes, dtype: str) -> list[Node]:
    """One Split for all slices and single elements of a tensor of `dtype` that together are one of its axes.

    Returns:
        What there is now: first all nodes that were there before, then the new ones.
    """
    before = editor.nodes()
    parts: defaultdict[int, list[Node]] = defaultdict(list)
    for node in before:
        if node.source in ("Gather", "Slice") and node.inputs[0] is not None and editor.type(node.inputs[0]) == dtype:
            parts[node.inputs[0]].append(node)
    shared = {tensor: nodes for tensor, nodes in parts.items() if len(nodes) > 1}
    if not shared:
        return before
    numbers, values = known_numbers(editor, shapes), folded_values(editor, shapes)
    for tensor, nodes in shared.items():
        writer, shape = editor.writer(tensor), numbers(tensor)
        if shape is None or (writer is not None and len(writer.outputs) > 1):
            continue
        axis = _axis(values, nodes[0], len(shape))
        if axis is not None and shape[axis] >= 0:
            _join(editor, values, tensor, axis, shape, nodes)
    known = set(before)
    return [*filter(editor.alive, before), *(node for node in editor.nodes() if node not in known)]


def _join(editor: Editor, values: Values, tensor: int, axis: int, shape: tuple[int, ...], nodes: list[Node]) -> None:
    parts: dict[int, tuple[int, Node]] = {}
    for node in nodes:
        part = _part(values, node, axis, shape)
        if part is None or part.start in parts:
            return
        parts[part.start] = part.stop, node
    begins = sorted(parts)
    ends = [parts[begin][0] for begin in begins]
    if [*begins, shape[axis]] != [0, *ends]:
        return
    name = editor.tensors[tensor].name
    outputs = []
    for begin in begins:
        node = parts[begin][1]
        result = node.outputs[0]
        index = values(node.inputs[1])
        if node.source == "Gather" and index is not None and index.ndim == 0:
            kept = editor.computed(tensor, f"{name}/part", editor.type(tensor))
            axes = editor.constant(np.array([axis], np.int64), f"{name}/axis", "s64")
            editor.add(node, "squeeze", (kept, axes), (result,), {"made": True}, source="Squeeze", version=_SINCE)
            result = kept
        outputs.append(result)
    sizes = editor.constant(np.subtract(ends, begins), f"{name}/sizes", "s64")
    attributes: dict[str, Attribute] = {
        "axis": axis,
        "count": len(outputs),
        "keeps_axis": True,
        "open_size": False,
        "uneven": False,
        "made": True,
    }
    editor.add(nodes[0], "split", (tensor, sizes), outputs, attributes, source="Split", version=_SINCE)
    editor.remove(*nodes)


def _part(values: Values, node: Node, axis: int, shape: tuple[int, ...]) -> range | None:
    """The positions along the axis that a node takes; None for what the runtime does not look at."""
    size = shape[axis]
    start = _integer(values, node, 1)
    if node.version < _SINCE or _axis(values, node, len(shape)) != axis or start is None:
        return None
    start += size * (start < 0)
    if node.source == "Gather":
        return range(start, start + 1) if 0 <= start < size else None
    stop = _integer(values, node, 2)
    if stop is None or (len(node.inputs) > 4 and _integer(values, node, 4) != 1):
        return None
    start, stop = (min(max(one, 0), size) for one in (start, stop + size * (stop < 0)))
    return range(start, stop) if start < stop else None


def _axis(values: Values, node: Node, rank: int) -> int | None:
    """The one axis of a Gather or Slice, counted from the front."""
    if node.source == "Gather":
        axis = int(node.attributes["axis"])  # type: ignore[arg-type]
    else:
        one = _integer(values, node, 3)
        if one is None:
            return None
        axis = one
    axis += rank * (axis < 0)
    return axis if 0 <= axis < rank else None


def _integer(values: Values, node: Node, position: int) -> int | None:
    """The one 64-bit integer that an operand holds."""
    value = values(node.inputs[position]) if position < len(node.inputs) else None
    return int(value.reshape(())) if value is not None and value.size == 1 and value.dtype == np.int64 else None
