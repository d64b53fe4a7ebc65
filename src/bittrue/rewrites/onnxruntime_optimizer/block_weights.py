"""Products with weights that are dequantized constants become products with weights by blocks.

A block is what shares a scale along the sum; weights with one scale, or one per column, are cut into blocks of 32.
Rows are then allowed to become integers of 8 bits. Source: ONNX Runtime 1.31.1, what its optimised graphs show.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...graph import Node, data_type
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape
from .quantized_pairs import DEQUANTIZE, QUANTIZE, zero_point_index
from .real_products import is_real_product

_BITS = {"u2": 2, "s2": 2, "u4": 4, "s4": 4, "u8": 8, "s8": 8}
_BLOCKS = (16, 32, 64, 128, 256)
_USUAL_BLOCK = 32
_ROWS_IN_8_BITS = 4
# Columns of 2 bits in a byte of a row of the file's weights.
_WHOLE_BYTES = 4


def multiply_by_blocks(editor: Editor, shapes: Shapes) -> None:
    """Replaces the products that alone read their weights and these weights' scales; zero points may be shared."""
    # Quantizations of constants are constants by then.
    left = (node for node in editor.nodes() if not node.outputs or editor.value(node.outputs[0]) is None)
    read = Counter(index for node in left for index in node.inputs)
    for node in editor.nodes():
        if editor.alive(node) and is_real_product(editor, node, ("f16", "f32")):
            pair = editor.writer(node.inputs[1])
            if pair is None or pair.operator != DEQUANTIZE or read[pair.inputs[1]] > 1:
                continue
            if _fits(editor, shapes, node, pair):
                _replace(editor, node, pair)


def join_biases(editor: Editor, shapes: Shapes) -> None:
    """A vector that alone is added to a product with weights by blocks becomes its bias, constant or not.

    Sums that a gate alone reads are the gate's, but QuickGelu takes none.
    """
    for node in editor.nodes():
        if node.operator != "matmul" or "block_size" not in node.attributes or len(node.inputs) < 6:
            continue
        after = editor.only_reader(node)
        if after is None or after.source != "Add" or node.inputs[2] is not None or editor.type(node.inputs[0]) != "f32":
            continue
        gate = editor.only_reader(after)
        bias = after.inputs[1 - after.inputs.index(node.outputs[0])]
        taken = gate is not None and gate.operator == "gelu" and gate.source != "QuickGelu"
        if known_shape(editor, shapes, bias) == (node.attributes["n"],) and not taken:
            editor.remove(after)
            editor.change(node, inputs=(*node.inputs[:2], bias, *node.inputs[3:]), outputs=after.outputs)


def _fits(editor: Editor, shapes: Shapes, node: Node, pair: Node) -> bool:
    quantized, scale = pair.inputs[0], editor.value(pair.inputs[1])
    if quantized is None or scale is None or editor.type(node.inputs[0]) not in ("f16", "f32"):
        return False
    if node.source not in ("MatMul", "Gemm"):
        return False
    if editor.type(pair.inputs[1]) != editor.type(node.inputs[0]):
        return False
    first = editor.writer(node.inputs[0])
    if (first is not None and first.operator == DEQUANTIZE) or editor.only_reader(pair) is not node:
        return False
    weights, point = editor.value(quantized), zero_point_index(pair)
    if weights is None or weights.ndim != 2 or not weights.size or editor.type(quantized) not in _BITS:
        return False
    if len(editor.readers(quantized)) != 1 or (point is not None and editor.value(point) is None):
        return False
    if _is_clamped(editor, node) or any(reader.operator == QUANTIZE for reader, _ in editor.readers(node.outputs[0])):
        return False
    if "heads_apart" in node.attributes or _block(pair, scale, weights.shape) is None:
        return False
    return not node.attributes.get("matrices") or _is_plain(editor, shapes, node, weights.shape[1])


def _is_clamped(editor: Editor, node: Node) -> bool:
    """Whether one clamp alone reads the product, and one node the clamp: the runtime looks for a pair behind it."""
    edges = [edge for index in node.outputs for edge in editor.readers(index)]
    clamp = edges[0][0] if len(edges) == 1 and edges[0][0].source in ("Clip", "Relu") else None
    return clamp is not None and editor.only_reader(clamp) is not None


def _is_plain(editor: Editor, shapes: Shapes, node: Node, columns: int) -> bool:
    """A product without factors and transpositions, to which one number per column may be added."""
    given = node.attributes
    if given.get("alpha", 1) != 1 or given.get("beta", 1) != 1 or given.get("transpose_a") or given.get("transpose_b"):
        return False
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return bias is None or known_shape(editor, shapes, bias) == (columns,)


def _block(pair: Node, scale: np.ndarray, shape: tuple[int, ...]) -> int | None:
    block, axis = pair.attributes["block_size"], pair.attributes["axis"]
    assert isinstance(block, int)
    if block and scale.ndim == 2:
        return block if axis == 0 and block in _BLOCKS else None
    if scale.ndim == 0 or (scale.shape == (shape[1],) and axis == 1):
        return _USUAL_BLOCK
    return None


def _pack(quantized: np.ndarray, bits: int) -> np.ndarray:
    """Numbers [..., n] to bytes, the first one in the lowest bits; a last byte is filled with 0."""
    each = 8 // bits
    rest = -quantized.shape[-1] % each
    padded = np.pad(quantized, [(0, 0)] * (quantized.ndim - 1) + [(0, rest)])
    parts = padded.reshape(*quantized.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(each, dtype=np.uint8) * bits), axis=-1).astype(np.uint8)


def _replace(editor: Editor, node: Node, pair: Node) -> None:
    kind, scale = data_type(editor.type(pair.inputs[0])), editor.value(pair.inputs[1])
    weights, given = editor.value(pair.inputs[0]), editor.value(zero_point_index(pair))
    assert weights is not None
    assert scale is not None
    block, bits = _block(pair, scale, weights.shape), _BITS[kind.name]
    assert block is not None
    depth, columns = weights.shape
    blocks = -(-depth // block)
    quantized = np.zeros((columns, blocks * block), np.uint8)
    quantized[:, :depth] = (weights.T.astype(np.int16) - kind.minimum).astype(np.uint8)
    point = np.zeros((), np.int16) if given is None else given.astype(np.int16)
    points = np.broadcast_to((point - kind.minimum).astype(np.uint8), (blocks, columns)).T
    scales = np.ascontiguousarray(np.broadcast_to(scale, (blocks, columns)).T)
    packed = _pack(quantized.reshape(columns, blocks, block), bits)
    # Signed weights without zero points get none, which the runtime's kernels add up in another order.
    pointed = given is not None or kind.minimum == 0
    inputs = [
        node.inputs[0],
        editor.constant(packed, "values", "u8"),
        node.inputs[2] if len(node.inputs) > 2 else None,
        *(None, None),
        editor.constant(scales, "scales", editor.type(pair.inputs[1])),
        editor.constant(_pack(points, bits), "zero_points", "u8") if pointed else None,
    ]
    editor.remove(node)
    editor.add(
        node,
        "matmul",
        inputs,
        node.outputs,
        {
            "n": columns,
            "k": depth,
            "bits": bits,
            "block_size": block,
            "accuracy_level": _ROWS_IN_8_BITS,
            "partly_written": bits == 2 and columns % _WHOLE_BYTES != 0,
            # No kernel is chosen for what comes in place of other operators on binary16 numbers.
            **({"unassigned": True} if scales.dtype == np.float16 else {}),
        },
        source="MatMulNBits",
    )
    editor.drop_unread([pair])
