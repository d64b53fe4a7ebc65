"""fuse_reals: operators on real numbers that the runtime carries out together, in another order of operations.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from ...operators.pooling.average_reals import CHANNELS
from .. import Shapes
from ..editing import Editor
from .attention_groups import join_attention, mark_attention
from .block_weights import join_biases
from .blocked_channels import join_residual_sums
from .gates import GELU, join_fast_gelu, join_gelu, mark_gates
from .quantized_preparation import join_products
from .real_groups import NORMALIZATION, join_layer_normalization, join_root_mean_square, join_skipped_sums
from .real_products import cast_before_transposing, join_all_transpositions, mark_transposed, merge_factors

# What one group leaves can be part of another one.
_ROUNDS = 10


def rewrite(graph: Graph, shapes: Shapes, block: int = CHANNELS) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with groups of real operators joined; no notes.

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
    return (editor.finish(), ()) if editor.touched else (graph, ())


def join_groups(editor: Editor, shapes: Shapes, block: int) -> None:
    """Groups of binary32 operators become one, until nothing changes; then what products begin or end with."""
    version = editor.graph.version
    for _ in editor.rounds(_ROUNDS):
        if version < GELU:
            join_gelu(editor)
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
