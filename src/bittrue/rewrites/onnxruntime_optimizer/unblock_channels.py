"""unblock_channels: what a saved graph computes on images in blocks of channels becomes the same on plain images.

Blocks have 16 channels, as the runtime writes them on processors with vectors of 512 bits, or as many as the numerics
says; the last one is filled with zeros. Filters lie by blocks, too: output blocks, input blocks, taps, input channels
and output channels of a block, or, where images are plain or every channel has a filter of its own, output blocks,
input channels, taps, output channels. Sums and products of images that broadcast, or may, are computed on five
axes, the channels of a block last: between two Reshapes, which plain images do without.
Source: ONNX Runtime 1.31.1, graphs that it saved (tests/onnx_operators/test_saved_graphs.py compares bytes).
"""

from __future__ import annotations

import numpy as np

from ...errors import InvalidModelError
from ...graph import Attribute, Graph, Node
from ...operators import find
from ...operators.layers.conv_geometry import ADDEND
from ...operators.pooling.average_reals import CHANNELS
from .. import Shapes
from ..editing import Editor

_CHANNELS_FIRST, _CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_BEHIND = "_of_blocks"


def rewrite(graph: Graph, shapes: Shapes, block: int = CHANNELS) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with plain images; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
        block: channels of a block.

    Raises:
        InvalidModelError: images that are not in blocks, or filters that are computed or of another size.
    """
    # `apart`: in blocks, on five axes.
    editor, blocked, apart = Editor(graph, shapes), set[int](), set[int]()
    for node in editor.nodes():
        if node.operator == "blocks_of_channels":
            _fill(editor, node, block)
        elif node.operator.endswith(_BEHIND):
            plain = node.operator == "conv" + _BEHIND and _set_filters(editor, node, block)
            begin = node.inputs[ADDEND:] if node.operator == "conv" + _BEHIND else ()
            if not blocked.issuperset((*(() if plain else node.inputs[:1]), *begin)):
                raise InvalidModelError("BT-ONNX-BLOCKS", "an image is not in blocks of channels", place=f"{node}")
            if node.operator == "channels" + _BEHIND:
                _cut(editor, node, block)
                continue
            now = editor.writer(node.outputs[0])
            assert now is not None
            editor.change(now, operator=node.operator.removesuffix(_BEHIND))
        elif _is_reshape(editor, node, blocked, (0, -1, 0, 0, block)):
            _leave(editor, node)
            apart.update(node.outputs)
            continue
        elif _stays(editor, node, apart):
            apart.update(node.outputs[:1])
            continue
        elif _is_reshape(editor, node, apart, (0, -1, 0, 0)):
            _leave(editor, node)
        elif not apart.isdisjoint(index for index in node.inputs if index is not None):
            raise InvalidModelError(
                "BT-ONNX-BLOCKS", "an image in blocks of channels is read as another", place=f"{node}"
            )
        elif not _stays(editor, node, blocked):
            continue
        blocked.update(node.outputs[:1])
    return (editor.finish(), ()) if editor.touched else (graph, ())


def _stays(editor: Editor, node: Node, blocked: set[int]) -> bool:
    """Whether a node works element by element, or joins, and all operands are in blocks or single numbers."""
    operator = find(node.operator)
    if operator is None or not (operator.elementwise or operator.joins) or not node.inputs:
        return False
    values = [editor.value(index) for index in node.inputs if index is not None and index not in blocked]
    return node.inputs[0] in blocked and all(value is not None and value.size == 1 for value in values)


def _is_reshape(editor: Editor, node: Node, images: set[int], sizes: tuple[int, ...]) -> bool:
    """Whether a node gives one of the images these sizes, those that are 0 being its own."""
    if node.operator != "reshape" or node.attributes["zeros"] != "copied" or node.inputs[0] not in images:
        return False
    value = editor.value(node.inputs[1])
    return value is not None and tuple(value.tolist()) == sizes


def _leave(editor: Editor, node: Node) -> None:
    """The tensor itself."""
    editor.change(node, operator="identity", inputs=node.inputs[:1], attributes={})


def _turned(editor: Editor, node: Node, order: tuple[int, ...], source: int | None, target: int) -> None:
    axes = editor.constant(np.array(order, np.int64), "order", "s64")
    editor.add(node, "transpose", (source, axes), (target,))


def _fill(editor: Editor, node: Node, block: int) -> None:
    """Zeros behind the channels, up to whole blocks."""
    source, target = node.inputs[0], node.outputs[0]
    if node.attributes["channels_last"]:
        first = editor.computed(target, "channels_first", "f32")
        _turned(editor, node, _CHANNELS_FIRST, source, first)
        source = first
    multiples = editor.constant(np.array([1, block, 1, 1], np.int64), "multiples", "s64")
    attributes: dict[str, Attribute] = {"mode": "constant", "widths": "multiples"}
    editor.change(node, operator="pad", inputs=(source, multiples), attributes=attributes)


def _cut(editor: Editor, node: Node, block: int) -> None:
    """The first channels."""
    target, last = node.outputs[0], bool(node.attributes["channels_last"])
    cut = editor.computed(target, "channels", "f32") if last else target
    ends = [editor.constant(np.array([n], np.int64), "part", "s64") for n in (0, node.attributes["channels"], 1)]
    attributes: dict[str, Attribute] = {"most_cut": block - 1}
    editor.change(node, operator="slice_axes", inputs=(node.inputs[0], *ends), outputs=(cut,), attributes=attributes)
    if last:
        _turned(editor, node, _CHANNELS_LAST, cut, target)


def _set_filters(editor: Editor, node: Node, block: int) -> bool:
    """Filters as other convolutions have them; whether the images are plain."""
    stored, groups = editor.value(node.inputs[1]), node.attributes["groups"]
    if stored is None or stored.ndim != 4 or stored.shape[0] % block or not stored.size:
        raise InvalidModelError("BT-ONNX-BLOCKS", f"filters are not constants in blocks of {block}", place=f"{node}")
    filters, channels, *taps = stored.shape
    single = groups == filters and channels == 1
    plain = groups == 1 and channels < block
    if single or plain:
        weights = stored.reshape(-1, channels, *taps, block).transpose(0, 4, 1, 2, 3)
    elif channels % block:
        raise InvalidModelError("BT-ONNX-BLOCKS", f"filters of {channels} channels are not in blocks", place=f"{node}")
    else:
        weights = stored.reshape(-1, channels // block, *taps, block, block).transpose(0, 5, 1, 4, 2, 3)
    name = editor.tensors[node.inputs[1] or 0].name
    constant = editor.constant(np.ascontiguousarray(weights.reshape(stored.shape)), f"{name}/plain", "f32")
    editor.redirect(node, 1, constant)
    return plain
