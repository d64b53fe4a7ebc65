"""fuse_quantized: operators between dequantizations and quantizations become operators on integers.

First the graph is prepared until nothing changes: operators without effect go, double pairs merge, equal nodes are
shared, a product and a sum become one, pairs move through data movement, real weights and biases are quantized, and
every input gets a dequantization of its own. Then redundant clamps go, groups are replaced, and pairs that undo each
other go.
Inputs and outputs of the graph stay. Notes say which operators between pairs stay real, and why.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_fusion.py compares them).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...graph import Graph, Node, data_type
from .. import Shapes
from ..editing import Editor
from .block_weights import multiply_by_blocks
from .quantized_groups import CHECKS, OF_U8, Group, clamp_limits, find_group, fuse, why_not
from .quantized_pairs import (
    DEQUANTIZE,
    QUANTIZE,
    is_quantize,
    make_unsigned,
    merge_double_pairs,
    propagate_pairs,
    quantize_results,
    remove_equal_pairs,
    remove_inverse_pairs,
    scalar,
    split_dequantizations,
    transpose_constants,
    zero_point_index,
)
from .quantized_preparation import (
    join_clamps,
    join_products,
    quantize_choices,
    quantize_constants,
    remove_idle,
    share_equal,
)
from .real_products import join_all_transpositions

# Each round only enlarges what the one before it prepared.
_ROUNDS = 10


def rewrite(graph: Graph, shapes: Shapes, pairs: str = "") -> tuple[Graph, tuple[str, ...]]:
    """`graph` with integer operators and the attribute `computed_weights`, and notes about what stays real.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
        pairs: ``"u8"`` where the runtime was not told that it may use s8 (``session.qdqisint8allowed`` is 0): pairs of
            s8 become pairs of u8 as far as they can, and products of s8 with weights stay real; ``"s8"`` where it need
            not be told.
    """
    editor = Editor(graph, shapes)
    if not fuse_groups(editor, shapes, pairs):
        return (editor.finish(), ()) if editor.touched else (graph, ())
    return editor.finish(), _notes(editor, pairs)


def fuse_groups(editor: Editor, shapes: Shapes, pairs: str = "") -> bool:
    """Groups are prepared until nothing changes, and replaced; False where a graph has no pairs. `pairs` as above.

    Convolutions that are left know which of their weights are no constants.
    """
    found = any(node.operator in (QUANTIZE, DEQUANTIZE) for node in editor.nodes())
    if found:
        if not editor.graph.widened:
            # Source: ORT prepares nothing when it looks once more behind inserted casts.
            _prepare(editor, shapes)
        for _ in editor.rounds(_ROUNDS):
            _remove_clamps(editor)
            if pairs == "u8":
                make_unsigned(editor)
            _fuse_groups(editor, pairs)
            remove_inverse_pairs(editor)
        multiply_by_blocks(editor, shapes)
    mark_computed_weights(editor)
    return found


def _prepare(editor: Editor, shapes: Shapes) -> None:
    quantize_choices(editor)
    split_dequantizations(editor)
    for _ in editor.rounds(_ROUNDS):
        remove_idle(editor, shapes)
        join_clamps(editor)
        merge_double_pairs(editor)
        share_equal(editor)
        join_products(editor, shapes)
        propagate_pairs(editor)
        quantize_results(editor)
        transpose_constants(editor)
        join_all_transpositions(editor, shapes, of_pairs=True)
        remove_equal_pairs(editor)
        quantize_constants(editor, shapes)
        split_dequantizations(editor)


def _fuse_groups(editor: Editor, pairs: str) -> None:
    for node in editor.nodes():
        if editor.alive(node) and node.source in CHECKS:
            group = find_group(editor, node)
            if isinstance(group, Group) and not why_not(editor, group, pairs):
                fuse(editor, group)


def _remove_clamps(editor: Editor) -> None:
    """A clamp goes when the quantization that alone reads it cannot tell."""
    for node in editor.nodes():
        if not editor.alive(node) or node.source not in ("Relu", "Clip"):
            continue
        reader = editor.only_reader(node)
        if is_quantize(reader) and reader is not None and _cannot_tell(editor, node, reader):
            source = node.inputs[0]
            assert source is not None
            editor.remove(node)
            editor.redirect(reader, 0, source)


def _cannot_tell(editor: Editor, clamp: Node, quantize: Node) -> bool:
    """Quantized values of the quantization lie inside of the clamp, or the runtime takes that for granted."""
    scale, zero = scalar(editor, quantize.inputs[1]), scalar(editor, zero_point_index(quantize))
    dtype = data_type(editor.type(quantize.outputs[0]))
    if zero is None or editor.type(clamp.inputs[0]) != "f32":
        return False
    known = dtype.name in ("u8", "s8", "u16", "s16")
    if clamp.source == "Relu":
        # Source: ORT looks at zero points of these types alone; a Relu before others goes, whatever it cuts off.
        return not known or int(zero) == dtype.minimum
    limits = clamp_limits(editor, clamp)
    if scale is None or not known or limits is None or scale.dtype != np.float32:
        return False
    low, high = (np.float32(scale) * np.float32(end - int(zero)) for end in (dtype.minimum, dtype.maximum))
    epsilon = np.finfo(np.float32).eps
    return not (epsilon < np.float32(limits[0]) - low or epsilon < high - np.float32(limits[1]))


def mark_computed_weights(editor: Editor) -> None:
    """Convolutions whose weights or bias are no constants of the graph at hand: those of real numbers stay in planes,
    and constants of the graph around them are none there.

    The attribute holds the positions of such operands.
    """
    for node in editor.nodes():
        if node.operator != "conv":
            continue
        real = editor.type(node.outputs[0]) == "f32"
        operands = [None if index is None else editor.tensors[index] for index in node.inputs[:3]]
        found = tuple(
            position
            for position, tensor in enumerate(operands)
            if position and tensor is not None and (not tensor.is_constant or (real and tensor.outside))
        )
        if found:
            editor.change(node, attributes={**node.attributes, "computed_weights": found})


def _notes(editor: Editor, pairs: str) -> tuple[str, ...]:
    """Counts of the operators between pairs that stay real, by operator and reason, and of fused products of s8."""
    counts: Counter[tuple[str, str]] = Counter()
    for node in editor.nodes():
        if node.operator in (QUANTIZE, DEQUANTIZE):
            continue
        before = [w for w in map(editor.writer, node.inputs) if w is not None and w.operator == DEQUANTIZE]
        behind = [r for index in node.outputs for r, _ in editor.readers(index) if r.operator == QUANTIZE]
        if not before and not behind:
            continue
        reason = "no integer kernel"
        if node.source in ("Relu", "Clip"):
            reason = "its quantization does not cover it" if behind else "its result is not quantized"
        elif node.source in CHECKS:
            group = find_group(editor, node)
            reason = why_not(editor, group, pairs) if isinstance(group, Group) else group
            reason = reason or "its operands are not dequantized"
        counts[node.source, reason] += 1
    parts = [f"{count} {source} ({reason})" for (source, reason), count in counts.most_common()]
    notes = [f"stays float: {', '.join(parts)}"] if parts else []
    signed = [n for n in editor.nodes() if n.source in OF_U8 and editor.type(n.inputs[0]) == "s8"]
    if signed and not pairs:
        notes.append(
            f"{len(signed)} Conv and MatMul of s8 become integer operators, as session.qdqisint8allowed=1 asks for; a "
            "session with default options may give other bits, those of the numerics that ends in -defaults"
        )
    return tuple(notes)
