"""What goes into the products of real matrices: factors next to them, and how their operands lie in memory.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...graph import Attribute, Node
from .. import Shapes
from ..editing import Editor
from .free_dimensions import Sizes, Values, folded_values, known_shape, known_sizes
from .quantized_pairs import DEQUANTIZE

_F32 = np.float32


def _order(editor: Editor, turn: Node, shapes: Shapes) -> tuple[int, ...]:
    """The order of axes of a transposition; empty when it is not known."""
    if len(turn.inputs) < 2:
        shape = known_shape(editor, shapes, turn.inputs[0])
        return () if shape is None else tuple(range(len(shape)))[::-1]
    value = editor.value(turn.inputs[1])
    return () if value is None else tuple(int(axis) for axis in value)


def _swaps(order: tuple[int, ...]) -> tuple[bool, bool]:
    """(the last axis moves, the first axis moves behind the batch) of an order that a product can carry out itself."""
    rank = len(order)
    if rank < 2:
        return False, False
    plain, behind = tuple(range(rank - 2)), tuple(range(1, rank - 1))
    swapped = order == (*plain, rank - 1, rank - 2)
    batched = rank > 2 and order in ((*behind, 0, rank - 1), (*behind, rank - 1, 0))
    return swapped or (batched and order[-1] == 0), batched


def is_real_product(editor: Editor, node: Node, kinds: tuple[str, ...] = ("f32", "f64")) -> bool:
    """Whether a node is a matrix product of real numbers, and no part of the file's attention or Einsum."""
    if "heads_apart" in node.attributes or node.source == "Einsum":
        return False
    types = [editor.type(index) for index in node.inputs[:2]]
    return node.operator == "matmul" and any(types == [kind, kind] for kind in kinds)


def join_transpositions(editor: Editor, shapes: Shapes, gemm: Node) -> bool:
    """A Gemm transposes its operands itself, and the operands in place of a result without addend."""
    if editor.edges(gemm) > 1:
        return False
    inputs, flags, left = list(gemm.inputs), [bool(gemm.attributes[f"transpose_{side}"]) for side in "ab"], []
    for position, index in enumerate(gemm.inputs[:2]):
        turn = editor.writer(index)
        if turn is None or not _transposes_matrix(editor, turn, shapes) or editor.gives_result(turn):
            continue
        if all(reader.source == "Gemm" for reader, _ in editor.readers(turn.outputs[0])):
            inputs[position], flags[position] = turn.inputs[0], not flags[position]
            left.append(turn)
    outputs, after = gemm.outputs, editor.only_reader(gemm)
    if len(inputs) < 3 and after is not None and _transposes_matrix(editor, after, shapes):
        inputs.reverse()
        flags, outputs = [not flag for flag in flags[::-1]], after.outputs
        editor.remove(after)
    elif not left:
        return False
    marks: dict[str, Attribute] = {"transpose_a": flags[0], "transpose_b": flags[1]}
    editor.change(gemm, inputs=tuple(inputs), outputs=outputs, attributes={**gemm.attributes, **marks})
    editor.drop_unread(left)
    return True


def join_all_transpositions(editor: Editor, shapes: Shapes, *, of_pairs: bool) -> None:
    """The same for every Gemm; without `of_pairs` not where a dequantized operand is transposed."""
    for node in editor.nodes():
        if node.source != "Gemm" or not editor.alive(node):
            continue
        turns = [
            turn for turn in map(editor.writer, node.inputs[:2]) if turn is not None and turn.source == "Transpose"
        ]
        before = [editor.writer(turn.inputs[0]) for turn in turns]
        if of_pairs or not any(writer is not None and writer.operator == DEQUANTIZE for writer in before):
            join_transpositions(editor, shapes, node)


def _transposes_matrix(editor: Editor, node: Node, shapes: Shapes) -> bool:
    return node.source == "Transpose" and _order(editor, node, shapes) == (1, 0)


def cast_before_transposing(editor: Editor, shapes: Shapes) -> None:
    """Casts between a transposition that a product can carry out and the product go before the transposition."""
    for node in editor.nodes():
        fits = is_real_product(editor, node) and node.source in ("MatMul", "FusedMatMul")
        for index in node.inputs[:2] if fits else ():
            cast = editor.writer(index)
            turn = editor.writer(cast.inputs[0]) if cast is not None and cast.operator == "convert" else None
            if cast is None or turn is None or turn.source != "Transpose" or editor.gives_result(cast):
                continue
            source = turn.inputs[0]
            if source is None or editor.gives_result(turn) or not any(_swaps(_order(editor, turn, shapes))):
                continue
            name, kind = editor.tensors[cast.outputs[0]].name, editor.type(cast.outputs[0])
            before, outputs = editor.computed(source, f"{name}/unturned", kind), cast.outputs
            editor.remove(cast)
            attributes = dict(cast.attributes)
            editor.add(cast, "convert", (source,), (before,), attributes, source=cast.source, version=cast.version)
            operands = (before, *turn.inputs[1:])
            editor.add(turn, turn.operator, operands, outputs, dict(turn.attributes), version=turn.version)
            if not editor.edges(turn):
                editor.remove(turn)


def join_transposed_twice(editor: Editor, shapes: Shapes) -> None:
    """A transposition that alone reads another one: one of them, or none where they undo each other."""
    for planned in editor.nodes():
        # What read the one before may have been replaced.
        node = editor.writer(planned.outputs[0]) if planned.outputs else None
        before = editor.writer(node.inputs[0]) if node is not None and node.source == "Transpose" else None
        if node is None or before is None or before.source != "Transpose" or editor.only_reader(before) is not node:
            continue
        first, second = _order(editor, before, shapes), _order(editor, node, shapes)
        source = before.inputs[0]
        if source is None or not first or len(first) != len(second):
            continue
        order = tuple(first[axis] for axis in second)
        if order != tuple(range(len(order))):
            name = editor.tensors[node.outputs[0]].name
            axes = editor.constant(np.array(order, np.int64), f"{name}/order", "s64")
            editor.change(node, inputs=(source, axes))
        elif not editor.gives_result(node):
            editor.replace_reads(node.outputs[0], source)
            editor.remove(node)
        else:
            continue
        editor.remove(before)


def mark_transposed(editor: Editor, shapes: Shapes) -> None:
    """Products of a transposed operand: the runtime reads it where it lies, which single rows and columns depend on.

    Rows that lie before the batch axes stay there where both operands have as many axes.
    """
    for node in editor.nodes():
        if not editor.alive(node) or not is_real_product(editor, node) or "turned_a" in node.attributes:
            continue
        if node.source in ("Gemm", "FusedGemm"):
            continue
        turned, apart, apart_b = [False, False], False, False
        for position, index in enumerate(node.inputs[:2]):
            turn = editor.writer(index)
            if turn is None or turn.source != "Transpose" or editor.gives_result(turn):
                continue
            if editor.value(turn.inputs[0]) is None:
                order = _order(editor, turn, shapes)
                turned[position], batched = _swaps(order)
                if batched and {len(known_shape(editor, shapes, one) or ()) for one in node.inputs[:2]} != {len(order)}:
                    turned[position] = batched = False
                apart = apart or (position == 0 and (turned[0] or batched))
                apart_b = apart_b or (position == 1 and batched)
        if any(turned) or apart or apart_b:
            marks: dict[str, Attribute] = {"turned_a": turned[0], "turned_b": turned[1]}
            marks |= {"apart": apart, "apart_b": apart_b}
            editor.change(node, attributes={**node.attributes, **marks})


def merge_factors(editor: Editor, shapes: Shapes) -> None:
    """Products with one constant number before and behind a matrix product become its factor alpha."""
    constant, sizes = folded_values(editor, shapes), known_sizes(editor, shapes)
    for node in editor.nodes():
        kept = editor.alive(node) and node.source in ("MatMul", "FusedMatMul") and is_real_product(editor, node)
        if kept:
            _merge(editor, sizes, constant, node)


def _factor(
    sizes: Callable[[int | None], Sizes | None], constant: Values, node: Node | None
) -> tuple[np.float32, int] | None:
    """What a product or quotient by a constant number multiplies by, and the position of its other operand."""
    if node is None or node.source not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    if constant(node.outputs[0]) is not None:
        # It is gone by now.
        return None
    for position in (0, 1) if node.source == "Mul" else (1,):
        value = constant(node.inputs[position])
        other = sizes(node.inputs[1 - position])
        if value is None or value.dtype not in (np.float32, np.float64) or value.size != 1:
            continue
        if value.ndim > len(other or ()):
            continue
        number = _F32(value.reshape(-1)[0])
        with np.errstate(all="ignore"):
            return (_F32(1) / number if node.source == "Div" else number), 1 - position
    return None


def _merge(editor: Editor, sizes: Callable[[int | None], Sizes | None], constant: Values, product: Node) -> None:
    known = product.attributes.get("alpha", 1.0)
    assert isinstance(known, float)
    alpha, inputs, left = _F32(known), list(product.inputs), []
    turned = (product.attributes.get("turned_a"), product.attributes.get("turned_b"))
    for position, index in enumerate(product.inputs):
        turn = editor.writer(index) if turned[position] else None
        scaled = editor.writer(index if turn is None else turn.inputs[0])
        found = _factor(sizes, constant, scaled)
        if found is None or scaled is None:
            continue
        source = scaled.inputs[found[1]]
        if source is None or not sizes(source):
            continue
        alpha = alpha * found[0]
        left += [turn, scaled]
        inputs[position] = source
        if turn is not None:
            again = editor.computed(
                turn.outputs[0], f"{editor.tensors[turn.outputs[0]].name}/unscaled", editor.type(source)
            )
            editor.add(
                turn, "transpose", (source, *turn.inputs[1:]), (again,), dict(turn.attributes), version=turn.version
            )
            inputs[position] = again
    outputs, after = product.outputs, editor.only_reader(product)
    found = _factor(sizes, constant, after)
    if after is not None and found is not None and after.inputs[found[1]] == product.outputs[0]:
        alpha, outputs = alpha * found[0], after.outputs
        editor.remove(after)
    if outputs is product.outputs and not left:
        return
    attributes = {**product.attributes, "alpha": float(alpha)}
    editor.change(product, source="FusedMatMul", inputs=tuple(inputs), outputs=outputs, attributes=attributes)
    for node in left:
        if node is not None and editor.alive(node) and not editor.edges(node) and not editor.gives_result(node):
            editor.remove(node)
