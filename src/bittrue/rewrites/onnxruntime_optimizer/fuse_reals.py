"""fuse_reals: operators on real numbers that the runtime carries out together, in another order of operations.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

import math

from ...graph import Graph, Node
from ...operators.pooling.average_reals import CHANNELS
from .. import Shapes
from ..editing import Editor
from .attention_groups import join_attention, mark_attention
from .block_weights import join_biases
from .blocked_channels import is_blocked, join_residual_sums
from .free_dimensions import known_shape
from .gates import GELU, join_biased_gelu, join_fast_gelu, join_gelu, mark_gates
from .quantized_preparation import join_products
from .real_groups import NORMALIZATION, join_layer_normalization, join_root_mean_square, join_skipped_sums
from .real_products import cast_before_transposing, join_all_transpositions, mark_transposed, merge_factors

# What one group leaves can be part of another one.
_ROUNDS = 10
# Products that are added up at once, for so many columns per thread; for fewer columns more of them are.
_TERMS, _COLUMNS = 128, 64
# Multiplications from which on threads share a product.
_SHARED = 1 << 16


def rewrite(graph: Graph, shapes: Shapes, block: int = CHANNELS) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with groups of real operators joined, and a note about sums that depend on the number of threads.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
        block: channels of a block of images that are laid out in such.
    """
    editor = Editor(graph, shapes)
    if any(tensor.dtype == "f16" for tensor in graph.tensors):
        # What stood apart by casts before.
        cast_before_transposing(editor, shapes)
        mark_transposed(editor, shapes)
        join_products(editor, shapes)
    join_groups(editor, shapes, block)
    notes = _notes(editor, shapes, block)
    return (editor.finish(), notes) if editor.touched else (graph, notes)


def _notes(editor: Editor, shapes: Shapes, block: int) -> tuple[str, ...]:
    """How many nodes' results depend on the number of threads: docs/facts/onnxruntime.md, section 5.25."""
    nodes = [n for n in editor.nodes() if {*map(editor.type, (*n.inputs[:1], *n.outputs))} == {"f32"}]
    convolutions = sum(n.operator == "conv" and _is_cut(editor, shapes, n, block) for n in nodes)
    products = sum(n.operator == "matmul" and _is_cut_product(editor, shapes, n) for n in nodes)
    given = [known_shape(editor, shapes, n.inputs[0]) for n in nodes if n.source == "DynamicQuantizeLSTM"]
    layers = sum(shape is None or shape[1:2] != (1,) for shape in given)
    terms = f"that add up more than {_TERMS} products each"
    counts = {
        f"Conv {terms}, not in blocks of channels": convolutions,
        f"products by weights that are no constants, {terms}": products,
        "DynamicQuantizeLSTM of several samples, parts of which are quantized alone": layers,
    }
    found = "; ".join(f"{words} (nodes: {count})" for words, count in counts.items() if count)
    several = "the bits are those of one thread; sessions of several threads may differ in:"
    return (f"{several} {found}",) if found else ()


def _is_cut(editor: Editor, shapes: Shapes, node: Node, block: int) -> bool:
    weights, shape = (known_shape(editor, shapes, index) for index in (node.inputs[1], node.outputs[0]))
    if weights is None or math.prod(weights[1:]) <= _TERMS or is_blocked(editor, node, block):
        return False
    return shape is None or -1 in shape or math.prod(shape[2:]) > _COLUMNS


def _is_cut_product(editor: Editor, shapes: Shapes, node: Node) -> bool:
    """Whether threads may share the columns, of which there are more than rows, and add up more products at once."""
    computed = node.attributes.get("computed_weights", ())
    a, b = (known_shape(editor, shapes, index) for index in node.inputs[:2])
    if b is None or len(b) < 2 or (editor.value(node.inputs[1]) is not None and computed == ()):
        return False
    depth, columns = b[-2:][:: -1 if node.attributes.get("transpose_b") else 1]
    rows = -1
    if a is not None and len(a) >= 2 and not node.attributes.get("transpose_a"):
        counted = a[:-1] if len(b) == 2 else a[-2:-1]
        rows = -1 if -1 in counted else math.prod(counted)
    most = next((_TERMS * times for least, times in ((64, 1), (32, 2), (16, 4)) if columns > least), depth)
    return depth > most and (rows == -1 or (1 < rows < columns and rows * columns * depth >= _SHARED))


def join_groups(editor: Editor, shapes: Shapes, block: int) -> None:
    """Groups of binary32 operators become one, until nothing changes; then what products begin or end with."""
    version = editor.graph.version
    for _ in editor.rounds(_ROUNDS):
        if version < GELU:
            join_gelu(editor)
        join_biased_gelu(editor, shapes)
        if version < NORMALIZATION:
            join_layer_normalization(editor, shapes)
        join_root_mean_square(editor, shapes)
        join_attention(editor, shapes)
        mark_attention(editor)
        # What several nodes of a normalization read, one reads now.
        join_all_transpositions(editor, shapes, of_pairs=True)
        cast_before_transposing(editor, shapes)
        mark_transposed(editor, shapes)
        join_skipped_sums(editor, shapes)
        # Sums before a FastGelu that is not there yet are none of a gate's.
        join_biases(editor, shapes)
        join_fast_gelu(editor)
        merge_factors(editor, shapes)
    mark_gates(editor)
    join_residual_sums(editor, shapes, block)
