"""Products of real rows with dequantized constant weights: the weights stay codes, in blocks along the rows.

Source: ORT 1.31.1, what its optimised graphs show (tests/onnx_operators/test_quantized_weights.py compares them).
"""

from __future__ import annotations

import numpy as np

from ..graph import Attribute, Node, data_type
from .editing import Editor
from .quantized_pairs import is_dequantize, is_quantize, zero_point_index

# Numbers that share a scale where none is given for blocks.
_BLOCK, _SMALLEST_BLOCK = 32, 16
_BITS = {"u2": 2, "s2": 2, "u4": 4, "s4": 4, "u8": 8, "s8": 8}


def keep_weights_as_codes(editor: Editor) -> None:
    """matmul and gemm of a real operand and weights that a dequantization gives to them alone: matmul_n_bits."""
    for node in editor.nodes():
        if not editor.alive(node) or node.source not in ("MatMul", "Gemm") or node.operator not in ("matmul", "gemm"):
            continue
        pair = editor.writer(node.inputs[1])
        if pair is None or not is_dequantize(pair) or editor.only_reader(pair) is not node:
            continue
        if is_dequantize(editor.writer(node.inputs[0])) or editor.type(node.outputs[0]) != "f32":
            continue
        if any(is_quantize(reader) for reader, _ in editor.readers(node.outputs[0])):
            continue
        parts = _blocks(editor, pair)
        if parts is not None and _plain(editor, node, parts[0].shape[1]):
            _replace(editor, node, pair, *parts)


def _plain(editor: Editor, node: Node, columns: int) -> bool:
    """Without factors and transpositions, and with one addend per column or none."""
    if node.operator == "matmul":
        return node.attributes.get("alpha", 1.0) == 1.0
    if node.attributes["alpha"] != 1.0 or node.attributes["transpose_a"] or node.attributes["transpose_b"]:
        return False
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return True
    bias = node.inputs[2]
    shape = editor.tensors[bias].shape
    before = editor.writer(bias)
    if before is not None and is_dequantize(before) and before.inputs[0] is not None:
        shape = editor.tensors[before.inputs[0]].shape
    return node.attributes["beta"] == 1.0 and shape == (columns,)


def _blocks(editor: Editor, pair: Node) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int] | None:
    """Codes [K, N], scales and zero points [blocks, N], and the extent of a block."""
    codes, scales = editor.value(pair.inputs[0]), editor.value(pair.inputs[1])
    index = zero_point_index(pair)
    zeros = editor.value(index)
    if codes is None or scales is None or scales.dtype != np.float32 or (index is not None and zeros is None):
        return None
    if codes.ndim != 2 or editor.type(pair.inputs[0]) not in _BITS or not codes.size:
        return None
    depth, columns = codes.shape
    block = pair.attributes.get("block_size", 0)
    axis = pair.attributes.get("axis", 1)
    assert isinstance(block, int)
    if block:
        count = -(-depth // block)
        if axis != 0 or block < _SMALLEST_BLOCK or block & (block - 1) or scales.shape != (count, columns):
            return None
        return codes, scales, zeros, block
    if scales.shape not in ((), (columns,)) or (scales.shape and axis != 1):
        return None
    shape = (-(-depth // _BLOCK), columns)
    whole = None if zeros is None else np.broadcast_to(zeros, shape)
    return codes, np.broadcast_to(scales, shape), whole, _BLOCK


def _pack(codes: np.ndarray, bits: int, last: int = 0) -> np.ndarray:
    """Numbers along the last axis as bytes, the first one in the lowest bits; `last` fills the last byte."""
    per_byte = 8 // bits
    lacking = -codes.shape[-1] % per_byte
    padded = np.pad(codes, [*((0, 0),) * (codes.ndim - 1), (0, lacking)], constant_values=last).astype(np.uint8)
    parts = padded.reshape(*codes.shape[:-1], -1, per_byte)
    packed = np.zeros(parts.shape[:-1], np.uint8)
    for place in range(per_byte):
        packed |= parts[..., place] << np.uint8(place * bits)
    return packed


def _replace(
    editor: Editor,
    node: Node,
    pair: Node,
    codes: np.ndarray,
    scales: np.ndarray,
    zeros: np.ndarray | None,
    block: int,
) -> None:
    dtype = data_type(editor.type(pair.inputs[0]))
    bits, depth, columns = _BITS[dtype.name], *codes.shape
    # Codes with a sign are shifted to numbers without one; the middle is the zero point where none is given.
    shift = -dtype.minimum
    # What fills the last block meets no row: the middle in a byte that is begun and for 8 bits, then 0.
    rows = codes.astype(np.int64).T + shift
    begun = -depth % (8 // bits) if bits < 8 else -depth % block
    rows = np.pad(rows, ((0, 0), (0, begun)), constant_values=shift)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % block)))
    name = editor.tensors[node.outputs[0]].name
    points: int | None = None
    if zeros is None and shift == 0:
        zeros = np.zeros(scales.shape, np.int64)
    if zeros is not None:
        packed = _pack(zeros.astype(np.int64).T + shift, bits, shift)
        points = editor.constant(packed.reshape(-1), f"{name}/zero_points", "u8")
    attributes: dict[str, Attribute] = {
        "n": columns,
        "k": depth,
        "block_size": block,
        "bits": bits,
        "accuracy_level": 4,
    }
    inputs = (
        node.inputs[0],
        editor.constant(_pack(rows.reshape(columns, -1, block), bits), f"{name}/codes", "u8"),
        editor.constant(scales.T.reshape(-1), f"{name}/scales", "f32"),
        points,
        None,
        node.inputs[2] if len(node.inputs) > 2 else None,
    )
    outputs = node.outputs
    editor.remove(node, pair)
    editor.add(node, "matmul_n_bits", inputs, outputs, attributes, source="MatMulNBits")
