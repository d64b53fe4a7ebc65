"""through_reals: functions of quantized values become dequantize, the function of real numbers and quantize.

So a frontend that has no integer form of them writes them; products of batches are sums of stored values, without zero
points and scales, and batches of gathers are not read. Source: docs/facts/tvm_qnn.md 12, verified by running.
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute, Graph, Node
from .. import Shapes
from ..editing import Editor

# Of bytes, these are tables; with one of the attributes, calls ask for another arithmetic.
_WITH_TABLES = frozenset(("hard_swish", "leaky_relu", "logistic", "tanh"))
_FUNCTIONS = frozenset(("abs", "exp", "log", "log_softmax", "resize_linear", "rsqrt", "sqrt")) | _WITH_TABLES
_OWN = ("in_steps", "requantized")


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with such functions between real numbers; no notes.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    if not any(node.operator in (*_FUNCTIONS, "gather", "matmul") for node in graph.nodes):
        return graph, ()
    editor = Editor(graph, shapes)
    for node in editor.nodes():
        if node.operator == "gather" and node.attributes.get("batch_dims", 0):
            editor.change(node, attributes={**node.attributes, "batch_dims": 0})
        elif node.operator == "matmul":
            _multiply(editor, shapes, node)
        elif _of_quantized(editor, node):
            _through(editor, node)
    return (editor.finish(), ()) if editor.touched else (graph, ())


def _of_quantized(editor: Editor, node: Node) -> bool:
    """Whether a node is a function of quantized values without a row of its own."""
    if node.operator not in _FUNCTIONS or not node.inputs or any(name in node.attributes for name in _OWN):
        return False
    pair = (node.inputs[0], node.outputs[0])
    types = {editor.type(index) for index in pair}
    given = [None if index is None else editor.tensors[index].quantization for index in pair]
    if len(types) > 1 or not types <= {"s8", "u8", "s16"} or any(one is None or one.per_axis for one in given):
        return False
    return types == {"s16"} or node.operator not in _WITH_TABLES


def _through(editor: Editor, node: Node) -> None:
    read, result = node.inputs[0], node.outputs[0]
    assert read is not None
    before = editor.computed(read, f"{editor.tensors[read].name}/real", "f32")
    after = editor.computed(result, f"{editor.tensors[result].name}/real", "f32")
    editor.add(node, "dequantize", (read,), (before,), source="DEQUANTIZE")
    editor.add(node, node.operator, (before, *node.inputs[1:]), (after,), dict(node.attributes))
    editor.add(node, "quantize", (after,), (result,), source="QUANTIZE")
    editor.remove(node)


def _multiply(editor: Editor, shapes: Shapes, node: Node) -> None:
    """Sums in 32 bits, limited to the type; batches are those of the first operand, of which there are some."""
    read = node.inputs[:2]
    result = node.outputs[0]
    if len(node.inputs) != 2 or [editor.type(index) for index in (*read, result)] != ["s8"] * 3:
        return
    # It looks for operands among what is computed.
    if any(editor.tensors[index or 0].is_constant for index in read):
        return
    sizes = [shapes().shapes.get(index or 0, editor.tensors[index or 0].shape) for index in read]
    lead, other = (tuple(size[:-2]) for size in sizes)
    if not lead or (lead != other and (len(lead) < len(other) or set(other) - {1})):
        return
    name = editor.tensors[result].name
    zero, low, high = (editor.constant(np.int32(value), f"{name}/{value}", "s32") for value in (0, -128, 127))
    total, limited = (editor.computed(result, f"{name}/{part}", "s32") for part in ("sum", "limited"))
    turned: dict[str, Attribute] = {
        key: node.attributes[key] for key in ("transpose_a", "transpose_b") if key in node.attributes
    }
    editor.add(node, "matmul", (*read, None, None, zero, None, zero), (total,), turned)
    editor.add(node, "clip", (total, low, high), (limited,), source="CLIP")
    editor.add(node, "cast", (limited,), (result,), source="CAST")
    editor.remove(node)
