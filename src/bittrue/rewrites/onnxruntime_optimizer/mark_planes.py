"""Rewrite `mark_planes`: pools of images that the runtime keeps in planes, not in blocks of channels.

Blocks are kept by convolutions with constant weights, by pools, and by some functions and sums of images that all are
in blocks. What else computes an image leaves it in planes, and global pools do not change that; other pools do,
where the number of channels is known. Images that the caller gives are put into blocks.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...graph import Attribute, Graph, Node
from ...operators.layers.conv_geometry import ADDEND
from ...operators.pooling.average_reals import CHANNELS
from .. import Shapes
from ..editing import Editor
from .blocked_channels import ACTIVATIONS, FINISHES, enlarges, fills_blocks, is_blocked
from .free_dimensions import known_sizes

Shape = tuple[int, ...]

_POOL_OPERATORS = ("average_pool", "max_pool")
_POOLS = ("AveragePool", "MaxPool")
_GLOBAL = ("GlobalAveragePool", "GlobalMaxPool")
_SUMS = frozenset({"Add", "Mul", "Sum", "Concat"})


def rewrite(graph: Graph, shapes: Shapes, block: int = CHANNELS) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with the attribute `planes` at such pools, and the channels of a `block` at all where they are others
    than the operator's own.
    """
    if not any(node.operator in _POOL_OPERATORS for node in graph.nodes):
        return graph, ()
    editor = Editor(graph, shapes)
    blocked, _ = blocked_images(editor, shapes, block)
    for node in editor.nodes():
        found: dict[str, Attribute] = {}
        if _is_pool_of_reals(editor, node) and node.outputs[0] not in blocked:
            found["planes"] = True
        if node.operator in _POOL_OPERATORS and block != CHANNELS:
            found["block"] = block
        if found:
            editor.change(node, attributes={**node.attributes, **found})
    return (editor.finish(), ()) if editor.changed else (graph, ())


def blocked_images(editor: Editor, shapes: Shapes, block: int) -> tuple[set[int], set[int]]:
    """Tensors in blocks of `block` channels, and those that nothing computes; none where that is 0."""
    if not block:
        return set(), set()
    known, sizes = shapes().shapes, known_sizes(editor, shapes)
    blocked: set[int] = set()
    read = {index for node in editor.nodes() for index in node.inputs if index is not None}
    unknown = {index for index in read if editor.writer(index) is None}
    for node in editor.nodes():
        given = bool(node.inputs) and node.inputs[0] in unknown
        if given and node.operator == "identity":
            unknown.add(node.outputs[0])
        grows = enlarges(editor, sizes, node) and node.inputs[0] in blocked
        if node.source in (*_POOLS, *_GLOBAL) and not fills_blocks(sizes(node.inputs[0]), block):
            continue
        if grows or _keeps(editor, node, blocked, known, given, block):
            blocked.add(node.outputs[0])
    return blocked, unknown


def _is_pool_of_reals(editor: Editor, node: Node) -> bool:
    real = node.operator in _POOL_OPERATORS and editor.type(node.outputs[0]) in ("f32", "f16")
    return real and "planes" not in node.attributes


def _keeps(editor: Editor, node: Node, blocked: set[int], known: Mapping[int, Shape], given: bool, block: int) -> bool:
    """Whether the first output of a node is in blocks."""
    shape = known.get(node.outputs[0], ())
    if editor.type(node.outputs[0]) != "f32":
        return False
    if node.attributes.get("unblocks"):
        return False
    if node.source == "BatchNormalization" and any(not editor.tensors[i or 0].is_constant for i in node.inputs[1:]):
        return False
    kept = (*ACTIVATIONS, "BatchNormalization")
    if node.source in kept or node.operator == "identity":
        return node.inputs[0] in blocked
    if node.source in FINISHES:
        before = editor.writer(node.inputs[0])
        alone = before is not None and before.operator == "conv" and editor.only_reader(before) == node
        alone = alone and all(index is None or editor.value(index) is not None for index in node.inputs[1:])
        return alone and node.inputs[0] in blocked
    if node.source in _SUMS:
        sizes = [known.get(index or 0, ()) for index in node.inputs]
        whole = all(len(one) == 4 and one[1] % block == 0 for one in sizes)
        fits = whole if node.source == "Concat" else len(set(sizes)) == 1
        return fits and all(index in blocked for index in node.inputs)
    whole = len(shape) == 4 and shape[1] % block == 0
    if node.source in _POOLS:
        return whole and len(node.outputs) == 1
    if node.source in _GLOBAL:
        return whole and (given or node.inputs[0] in blocked)
    if node.operator != "conv" or not is_blocked(editor, node, block):
        return False
    # What its sums begin with is in blocks, too.
    return all(index in blocked for index in node.inputs[ADDEND:])
