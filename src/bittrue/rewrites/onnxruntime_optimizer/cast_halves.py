"""cast_halves: casts around nodes without a kernel for binary16, before the groups of real operators are looked for.

The runtime looks for them before it inserts casts, and once more when a constant has been widened behind them: nearly
always. Where none has been, the graph stays as it is for `cast_last`. In graphs that others call none ever is; there it
looks once more when the main graph had one.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_halves.py compares bytes).
"""

from __future__ import annotations

from ...graph import Graph
from ...operators.pooling.average_reals import CHANNELS
from ...records import replace
from .. import Shapes
from ..editing import Editor
from .fuse_quantized import fuse_groups, mark_computed_weights
from .fuse_reals import join_groups
from .inserted_casts import Casts, has_halves
from .mark_planes import blocked_images
from .push_transposes import push_once
from .real_products import join_transposed_twice
from .settle_constants import settle_constants


def rewrite(graph: Graph, shapes: Shapes, block: int = CHANNELS, pairs: str = "") -> tuple[Graph, tuple[str, ...]]:
    """`graph` with casts, if a constant is widened, and a note where one of them may stay.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
        block: channels of a block of images that are laid out in such.
        pairs: as in `fuse_quantized`.
    """
    editor = Editor(replace(graph, widened=False), shapes)
    if not has_halves(editor, graph.nodes) and not graph.widened:
        return graph, ()
    settle_constants(editor, shapes)
    join_transposed_twice(editor, shapes)
    fuse_groups(editor, shapes, pairs)
    join_groups(editor, shapes, block)
    images, _ = blocked_images(editor, shapes, block)
    casts = Casts(editor, shapes)
    casts.insert()
    casts.remove_pairs()
    casts.keep_apart(images)
    if not casts.fold_constants() and not graph.widened:
        return graph, ()
    push_once(editor, shapes)
    mark_computed_weights(editor)
    return replace(editor.finish(), widened=True), casts.notes
