"""Groups of operators that become attention: three projections of a normalization, scores with a mask, a projection.

Source: ONNX Runtime 1.31.1, attention_fusion.cc read, and what its optimised graphs show (tests/onnx_operators/
test_passes.py compares bytes).
"""

from __future__ import annotations

import math

import numpy as np

from ...graph import Attribute, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import folded_values, known_shape

# The pass reads axes that are attributes.
_OPERANDS = 13

# Of the normalization, with up to two that ask for its sizes.
_MOST_READERS = 6

_TURNED, _KEYS = (0, 2, 1, 3), (0, 2, 3, 1)


class _Reader:
    """What the pass asks of nodes and constants; those of a graph further out it does not find."""

    def __init__(self, editor: Editor, shapes: Shapes) -> None:
        self.editor, self.shapes, self._folded = editor, shapes, folded_values(editor, shapes)

    def folded(self, index: int | None) -> np.ndarray | None:
        """What a constant of the graph holds, or what follows from such."""
        return None if index is not None and self.editor.tensors[index].outside else self._folded(index)

    def writer(self, node: Node | None, position: int, source: str) -> Node | None:
        """What writes an operand, if it is this operator and nothing else reads it."""
        found = None if node is None else self.editor.writer(node.inputs[position])
        if found is None or found.source != source or self.editor.only_reader(found) is not node:
            return None
        return found

    def integers(self, index: int | None) -> tuple[int, ...]:
        value = self.folded(index)
        return () if value is None or value.dtype.kind not in "iu" else tuple(int(v) for v in value.reshape(-1))

    def number(self, index: int | None) -> float | None:
        """A binary32 constant of one element."""
        value = None if index is None else self.folded(index)
        if value is None or value.size != 1 or value.dtype != np.float32:
            return None
        return float(value.reshape(-1)[0])

    def constant(self, index: int | None, shape: tuple[int, ...]) -> np.ndarray | None:
        """A constant of real numbers with this shape."""
        value = None if index is None else self.folded(index)
        return value if value is not None and value.shape == shape and value.dtype == np.float32 else None

    def is_turned(self, node: Node, order: tuple[int, ...]) -> bool:
        return self.integers(node.inputs[1]) == order


def _near(found: float | None, wanted: float) -> bool:
    """As the runtime compares constants with numbers."""
    return found is not None and abs(found - wanted) <= 1e-8 + 1e-5 * abs(wanted)


def _projection(
    read: _Reader, turn: Node | None, order: tuple[int, ...], root: Node, width: int
) -> tuple[tuple[Node, ...], tuple[int, ...], np.ndarray, np.ndarray] | None:
    """Nodes from a transposition back to the normalization, the heads' shape, weights and bias."""
    reshaped = read.writer(turn, 0, "Reshape")
    added = read.writer(reshaped, 0, "Add")
    product = read.writer(added, 0, "MatMul")
    if turn is None or reshaped is None or added is None or product is None or not read.is_turned(turn, order):
        return None
    if product.inputs[0] != root.outputs[0]:
        return None
    shape = read.integers(reshaped.inputs[1])
    weights, bias = read.constant(product.inputs[1], (width, width)), read.constant(added.inputs[1], (width,))
    if len(shape) != 4 or shape[0] or shape[1] not in (0, -1) or weights is None or bias is None:
        return None
    return (product, added, reshaped, turn), shape, weights, bias


def _mask(read: _Reader, product: Node) -> tuple[tuple[Node, ...], int, float] | None:
    """Nodes from the mask [N, L] to its product, the mask, and what stands where it is 0."""
    editor = read.editor
    taken = editor.writer(product.inputs[0])
    if product.source != "Mul" or taken is None or taken.source != "Sub" or editor.only_reader(taken) is not product:
        return None
    if not _near(read.number(taken.inputs[0]), 1):
        return None
    cast = read.writer(taken, 1, "Cast")
    outer = read.writer(cast or taken, 0 if cast is not None else 1, "Unsqueeze")
    inner = read.writer(outer, 0, "Unsqueeze")
    value = read.number(product.inputs[1])
    if outer is None or inner is None or value is None:
        return None
    if read.integers(inner.inputs[1]) != (1,) or read.integers(outer.inputs[1]) != (2,):
        return None
    mask = inner.inputs[0]
    shape = known_shape(editor, read.shapes, mask)
    if mask is None or shape is None or len(shape) != 2 or editor.type(mask) not in ("s64", "s32", "f32"):
        return None
    return tuple(node for node in (inner, outer, cast, taken, product) if node is not None), mask, value


def join_attention(editor: Editor, shapes: Shapes) -> None:
    """A normalization that three products and one sum read: softmax(q k / sqrt(H) + (1 - mask) * c) v, all at once.

    The projections become one product, whose bias is part of it; the mask counts as integers.
    """
    if editor.graph.version >= _OPERANDS:
        return
    read, masks = _Reader(editor, shapes), dict[int, int]()
    for root in editor.nodes():
        if editor.alive(root) and root.source == "LayerNormalization":
            _join(read, root, masks)


def _join(read: _Reader, root: Node, masks: dict[int, int]) -> None:
    editor = read.editor
    readers = [reader for reader, _ in editor.readers(root.outputs[0])]
    below = [reader for reader in readers if reader.source != "Shape"]
    if sorted(node.source for node in below) != ["Add", "MatMul", "MatMul", "MatMul"] or len(readers) > _MOST_READERS:
        return
    bias = read.folded(root.inputs[2]) if len(root.inputs) > 2 else None
    if bias is None or bias.ndim != 1:
        return
    width = bias.size
    (residual,) = (node for node in below if node.source == "Add")
    last = editor.writer(residual.inputs[0])
    product = None if last is None or last.source != "Add" else editor.writer(last.inputs[0])
    joined = None if product is None or product.source != "MatMul" else editor.writer(product.inputs[0])
    if last is None or product is None or joined is None or joined.source != "Reshape":
        return
    if read.constant(last.inputs[1], (width,)) is None or read.constant(product.inputs[1], (width, width)) is None:
        return
    turned = read.writer(joined, 0, "Transpose")
    context = read.writer(turned, 0, "MatMul")
    softmax = read.writer(context, 0, "Softmax")
    masked = read.writer(softmax, 0, "Add")
    divided = read.writer(masked, 0, "Div")
    scores = read.writer(divided, 0, "MatMul")
    if turned is None or context is None or softmax is None or masked is None or divided is None or scores is None:
        return
    if not read.is_turned(turned, _TURNED) or softmax.attributes.get("axis") != 3:
        return
    addend = editor.writer(masked.inputs[1])
    mask = None if addend is None else _mask(read, addend)
    parts = [
        _projection(read, read.writer(reader, position, "Transpose"), order, root, width)
        for reader, position, order in ((scores, 0, _TURNED), (scores, 1, _KEYS), (context, 1, _TURNED))
    ]
    if mask is None or any(part is None for part in parts):
        return
    found = [part for part in parts if part is not None]
    heads, size = found[2][1][2:]
    if heads <= 0 or size <= 0 or heads * size != width or any(part[1][2:] != (heads, size) for part in found):
        return
    if not _near(read.number(divided.inputs[1]), math.sqrt(np.float32(size))):
        return
    shape = read.integers(joined.inputs[1])
    if len(shape) != 3 or shape[0] or shape[1] or shape[2] not in (-1, width):
        return
    _replace(read, root, joined, found, mask, masks, heads)
    editor.remove(
        joined, turned, context, softmax, masked, divided, scores, *(node for part in found for node in part[0])
    )
    for node in reversed(mask[0]):
        if not editor.edges(node) and not editor.gives_result(node):
            editor.remove(node)


def _replace(
    read: _Reader,
    root: Node,
    joined: Node,
    parts: list[tuple[tuple[Node, ...], tuple[int, ...], np.ndarray, np.ndarray]],
    mask: tuple[tuple[Node, ...], int, float],
    masks: dict[int, int],
    heads: int,
) -> None:
    editor, result = read.editor, joined.outputs[0]
    name = editor.tensors[result].name
    weights = editor.constant(np.concatenate([part[2] for part in parts], axis=1), f"{name}/weights", "f32")
    bias = editor.constant(np.concatenate([part[3] for part in parts]), f"{name}/bias", "f32")
    projected = editor.computed(result, f"{name}/projected", "f32", ())
    index = mask[1]
    if editor.type(index) != "s32" and index not in masks:
        masks[index] = editor.computed(index, f"{editor.tensors[index].name}/integers", "s32")
        rounding: dict[str, Attribute] = {"saturate": True, "round_mode": "up"}
        editor.add(root, "convert", [index], [masks[index]], rounding, source="Cast", version=9)
    operands = [root.outputs[0], weights, bias]
    product: dict[str, Attribute] = {"heads_apart": (heads, 0)}
    editor.add(joined, "matmul", operands, [projected], product, source="Attention")
    attributes: dict[str, Attribute] = {
        "heads": heads,
        "key_heads": heads,
        "scale": 0.0,
        "causal": False,
        "last_sees_all": True,
        "begins_with_mask": False,
        "wide_scale": False,
        "strided": False,
        "window": -1,
        "mask_value": mask[2],
        "cap": 0.0,
        "smooth": False,
        "key_columns": 0,
        "value_columns": 0,
        "cache": "stacked",
        "cache_bits": 0,
        "cache_scales": False,
        "scores": "none",
        "blocks": "never",
    }
    inputs = [projected, None, None, None, masks.get(index, index)]
    editor.add(joined, "attention", inputs, [result], attributes, source="Attention")


def mark_attention(editor: Editor) -> None:
    """Softmax of attention in forms that the runtime may join and that are not joined here: rows say so then."""
    joined = editor.graph.version < _OPERANDS
    whole = any(_splits_projection(editor, node) for node in editor.nodes())
    for node in editor.nodes():
        if node.operator != "softmax" or "perhaps_attention" in node.attributes or editor.type(node.inputs[0]) != "f32":
            continue
        if whole or (joined and (_hides_with_infinity(editor, node) or _hides_with_triangle(editor, node))):
            editor.change(node, attributes={**node.attributes, "perhaps_attention": True})


def _source(editor: Editor, index: int | None) -> str:
    node = editor.writer(index)
    return "" if node is None else node.source


def _holds(editor: Editor, index: int | None, number: float) -> bool:
    value = editor.value(index)
    return value is not None and value.size == 1 and float(value.reshape(-1)[0]) == number


def _hides_with_infinity(editor: Editor, softmax: Node) -> bool:
    """DistilBERT's: minus infinity where an expanded mask is 0, else products of quotients."""
    choice = editor.writer(softmax.inputs[0])
    if choice is None or choice.source != "Where" or not _holds(editor, choice.inputs[1], -math.inf):
        return False
    product = editor.writer(choice.inputs[2])
    return product is not None and product.source == "MatMul" and _source(editor, product.inputs[0]) == "Div"


def _hides_with_triangle(editor: Editor, softmax: Node) -> bool:
    """GPT-2's: -10000 beyond the triangle, else quotients; perhaps a mask is added."""
    choice = editor.writer(softmax.inputs[0])
    if choice is not None and choice.source == "Add":
        choice = editor.writer(choice.inputs[0])
    if choice is None or choice.source != "Where" or not _holds(editor, choice.inputs[2], -10000):
        return False
    return _source(editor, choice.inputs[0]) == "Cast" and _source(editor, choice.inputs[1]) == "Div"


def _splits_projection(editor: Editor, product: Node) -> bool:
    """MobileCLIP's: a projection of a transposed image, which becomes five axes and three parts along the third."""
    turned = editor.writer(product.inputs[0]) if product.source == "MatMul" else None
    if turned is None or turned.source != "Transpose" or _source(editor, turned.inputs[0]) != "Reshape":
        return False
    reshaped = editor.only_reader(product)
    if reshaped is None or reshaped.source != "Reshape":
        return False
    shape, split = editor.value(reshaped.inputs[1]), editor.only_reader(reshaped)
    return (
        shape is not None and shape.size == 5 and int(shape[2]) == 3 and split is not None and split.source == "Split"
    )
