"""Pairs of quantize and dequantize: made unique, merged, moved through data movement, removed.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_fusion.py compares them).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...errors import InvalidModelError
from ...graph import Attribute, Node, data_type
from ..editing import Edge, Editor

QUANTIZE, DEQUANTIZE = "quantize", "dequantize"

# What both kinds of pairs may be moved through: the operator's name in the file, and its versions.
_MOVES_THROUGH = {
    "MaxPool": (12, 22),
    "Reshape": (5, 13, 14, 19, 21, 23, 24, 25),
    "Transpose": (1, 13, 21, 23, 24, 25),
    "Squeeze": (1, 11, 13, 21, 23, 24, 25),
    "Unsqueeze": (1, 11, 13, 21, 23, 24, 25),
    "Slice": (1, 10, 11, 13),
}
# Versions of the pairs themselves that are known to the rewrites; 1 is the one of a domain of its own.
_PAIR_VERSIONS = (1, 10, 13, 19, 21, 23, 24, 25)


def is_quantize(node: Node | None) -> bool:
    """A quantization of a version that the rewrites know."""
    return node is not None and node.operator == QUANTIZE and node.version in _PAIR_VERSIONS


def is_dequantize(node: Node | None) -> bool:
    """A dequantization of a version that the rewrites know."""
    return node is not None and node.operator == DEQUANTIZE and node.version in _PAIR_VERSIONS


def scale_of(editor: Editor, node: Node) -> np.ndarray | None:
    """The scale of a pair's node when it is a constant."""
    return editor.value(node.inputs[1])


def zero_point_index(node: Node) -> int | None:
    """The tensor of a pair's zero point; None when there is none."""
    return node.inputs[2] if len(node.inputs) > 2 else None


def scalar(editor: Editor, index: int | None) -> np.ndarray | None:
    """A constant with one element and rank 0 or 1, as rank 0."""
    value = editor.value(index)
    return None if value is None or value.size != 1 or value.ndim > 1 else value.reshape(())


def one_constant_pair(editor: Editor, node: Node) -> bool:
    """Constant scalar scale, and a constant scalar zero point or none."""
    zero_point = zero_point_index(node)
    return scalar(editor, node.inputs[1]) is not None and (zero_point is None or scalar(editor, zero_point) is not None)


def same_parameters(editor: Editor, first: Node, second: Node) -> bool:
    """Both have a scalar constant scale and zero point, of the same types and values."""
    scales = [scalar(editor, node.inputs[1]) for node in (first, second)]
    zeros = [scalar(editor, zero_point_index(node)) for node in (first, second)]
    if any(value is None for value in (*scales, *zeros)):
        return False
    types = {editor.type(zero_point_index(node)) for node in (first, second)}
    scale_types = {editor.type(node.inputs[1]) for node in (first, second)}
    return len(types) == len(scale_types) == 1 and bool(scales[0] == scales[1] and zeros[0] == zeros[1])


# -- one dequantization per reader ---------------------------------------------------------------------------------
def split_dequantizations(editor: Editor) -> None:
    """Every input that reads a dequantization gets one of its own."""
    for node in editor.nodes():
        if not is_dequantize(node):
            continue
        readers = editor.readers(node.outputs[0])
        keep = 0 if editor.gives_result(node) else 1
        for reader, position in readers[keep:]:
            _read_copy(editor, node, (reader, position))


def _read_copy(editor: Editor, node: Node, edge: Edge) -> None:
    reader, position = edge
    # An earlier copy may have replaced the reader.
    current = next((e for e in editor.readers(node.outputs[0]) if e == edge), None) or next(
        e for e in editor.readers(node.outputs[0]) if e[1] == position and e[0].outputs == reader.outputs
    )
    name = editor.tensors[node.outputs[0]].name
    copy = editor.computed(node.outputs[0], f"{name}/copy", editor.type(node.outputs[0]))
    attributes = {**node.attributes, "made": True}
    editor.add(node, DEQUANTIZE, node.inputs, (copy,), attributes, version=node.version)
    editor.redirect(current[0], current[1], copy)


# -- pairs of other types ------------------------------------------------------------------------------------------
def make_unsigned(editor: Editor) -> None:
    """A quantization to s8 by a zero point that one dequantization of the same or none alone reads: both become u8.

    Quantized values and zero point grow by 128, real numbers stay. One to s8 by its type's name alone is left.

    Raises:
        InvalidModelError: such a quantization names its type, which the runtime leaves as it is and then refuses.
    """
    for quantize in editor.nodes():
        dequantize = editor.only_reader(quantize) if is_quantize(quantize) else None
        if dequantize is None or not is_dequantize(dequantize) or editor.value(quantize.inputs[0]) is not None:
            # The optimiser has folded constants.
            continue
        indices = [zero_point_index(node) for node in (quantize, dequantize)]
        zeros = [np.int8(0) if index is None else editor.value(index) for index in indices]
        if indices[0] is None or editor.type(quantize.outputs[0]) != "s8":
            continue
        if any(z is None or z.size != 1 for z in zeros):
            continue
        codes = {int(z.reshape(())) for z in zeros if z is not None}
        if len(codes) != 1:
            continue
        name = editor.tensors[quantize.outputs[0]].name
        if quantize.attributes.get("names_type"):
            raise InvalidModelError(
                "BT-ONNX-TYPE",
                f"the runtime makes '{name}' unsigned, whose quantization names s8, and refuses the model",
                place=f"{quantize}",
                advice="set the session's option session.qdqisint8allowed, or export with an operator set before 21",
            )
        zero = editor.constant(np.uint8(codes.pop() + 128), f"{name}/unsigned_zero_point", "u8")
        unsigned = editor.computed(quantize.outputs[0], f"{name}/unsigned", "u8")
        # The reader first: it is found by what it reads.
        editor.change(dequantize, inputs=(unsigned, dequantize.inputs[1], zero))
        editor.change(quantize, inputs=(*quantize.inputs[:2], zero), outputs=(unsigned,))


# -- two pairs behind each other -----------------------------------------------------------------------------------
def merge_double_pairs(editor: Editor) -> None:
    """quantize, dequantize, quantize, dequantize: the inner two go; the outer two get the range that both leave.

    Source: ONNX Runtime 1.31.1, whose pass does not go into graphs that others call, and merges two pairs of a row.
    """
    merged = set[int]()
    for inner in () if editor.graph.called else editor.nodes():
        if not editor.alive(inner) or not is_dequantize(inner):
            continue
        first, second = editor.writer(inner.inputs[0]), editor.only_reader(inner)
        if second is None or first is None or not is_quantize(first) or not is_quantize(second):
            continue
        last = [reader for reader, _ in editor.readers(second.outputs[0])]
        if not last or editor.gives_result(second) or editor.only_reader(first) is not inner:
            continue
        same = same_parameters(editor, first, inner)
        if not same or not all(is_dequantize(r) and same_parameters(editor, second, r) for r in last):
            continue
        kinds = {editor.type(inner.inputs[0]), editor.type(second.outputs[0])}
        scales = {editor.type(node.inputs[1]) for node in (inner, second)}
        fits = kinds in ({"u8"}, {"s8"}, {"u16"}, {"s16"}) and scales == {"f32"}
        if fits and first.outputs[0] not in merged:
            merged.add(first.outputs[0])
            _merge(editor, first, inner, second, last)


def _merge(editor: Editor, first: Node, inner: Node, second: Node, last: list[Node]) -> None:
    dtype = data_type(editor.type(inner.inputs[0]))
    scales = [np.float32(_element(editor, node.inputs[1])) for node in (inner, second)]
    zeros = [int(_element(editor, zero_point_index(node))) for node in (inner, second)]
    parameters = first.inputs[1:]
    if zeros[0] != zeros[1] or not abs(scales[0] - scales[1]) < np.float32(1e-20):
        with np.errstate(all="ignore"):
            low = max(np.float32(dtype.minimum - z) * s for z, s in zip(zeros, scales, strict=True))
            high = min(np.float32(dtype.maximum - z) * s for z, s in zip(zeros, scales, strict=True))
            scale = (high - low) / np.float32(dtype.maximum - dtype.minimum)
            real = np.float32(dtype.minimum) - low / scale
            # Halves away from zero.
            rounded = np.copysign(np.floor(np.abs(np.float64(real)) + 0.5), real)
        # The processor makes a 32-bit integer of it, its minimum of what is none; the low bits stay.
        code = np.array(int(rounded) if abs(rounded) < 2**31 else -(2**31)).astype(dtype.numpy)
        name = editor.tensors[first.outputs[0]].name
        parameters = (
            editor.constant(np.float32(scale), f"{name}/merged_scale", "f32"),
            editor.constant(code, f"{name}/merged_zero_point", dtype.name),
        )
    editor.remove(inner, second)
    for reader in last:
        editor.change(reader, inputs=(first.outputs[0], *parameters))
    editor.change(first, inputs=(first.inputs[0], *parameters))


def _element(editor: Editor, index: int | None) -> np.ndarray:
    value = scalar(editor, index)
    assert value is not None
    return value


# -- pairs through data movement -----------------------------------------------------------------------------------
def _moves(node: Node | None) -> bool:
    return node is not None and node.version in _MOVES_THROUGH.get(node.source, ())


def propagate_pairs(editor: Editor) -> None:
    """Quantizations are repeated before the data movement that leads to them, dequantizations after it."""
    for node in editor.nodes():
        if editor.alive(node) and is_quantize(node) and one_constant_pair(editor, node):
            _repeat_before(editor, node)
    for node in editor.nodes():
        constant = not editor.alive(node) or not node.inputs or editor.value(node.inputs[0]) is not None
        if not constant and is_dequantize(node) and one_constant_pair(editor, node):
            _repeat_after(editor, node)


def _repeat_before(editor: Editor, quantize: Node) -> None:
    reader = quantize
    while True:
        tensor = reader.inputs[0]
        mover = editor.writer(tensor)
        if mover is None or not _moves(mover) or tensor in editor.results or len(editor.readers(tensor or 0)) != 1:
            return
        source = mover.inputs[0]
        before = editor.writer(source)
        if source is None or editor.tensors[source].is_constant:
            return
        if before is not None and (source in editor.results or len(editor.readers(source)) != 1):
            return
        if is_dequantize(before):
            return
        _insert(editor, quantize, source, [(mover, 0)])
        # Inserting has replaced the mover.
        reader = editor.writer(tensor) or mover


def quantize_results(editor: Editor) -> None:
    """A result of the graph that is transposed and then quantized is quantized and dequantized itself.

    Source: ORT's transpose optimiser, which does not look whether the tensor is a result.
    """
    for node in editor.nodes():
        if editor.alive(node) and is_quantize(node) and one_constant_pair(editor, node):
            _repeat_at_result(editor, node)


def _repeat_at_result(editor: Editor, quantize: Node) -> None:
    turn = editor.writer(quantize.inputs[0])
    result = turn.inputs[0] if turn is not None and turn.source == "Transpose" else None
    if turn is None or result is None or editor.only_reader(turn) is not quantize or result not in editor.results:
        return
    before, after = editor.writer(result), [reader for reader, _ in editor.readers(quantize.outputs[0])]
    if before is None or is_dequantize(before) or len(editor.readers(result)) != 1:
        return
    again = [reader for reader in after if is_dequantize(reader)]
    # Two transpositions become one.
    turned = any(reader.source == "Transpose" for node in again for reader, _ in editor.readers(node.outputs[0]))
    if again and not turned:
        _insert(editor, quantize, result, [])


def _repeat_after(editor: Editor, dequantize: Node) -> None:
    reader = editor.only_reader(dequantize)
    groups = [_next_edges(editor, reader, dequantize.outputs[0])] if reader is not None else []
    while groups:
        group = groups.pop()
        if group is None:
            continue
        tensor, edges = group
        inserted = _insert(editor, dequantize, tensor, edges)
        for target, copy in inserted:
            groups.append(_next_edges(editor, target, copy))


def _next_edges(editor: Editor, mover: Node | None, read: int) -> tuple[int, list[Edge]] | None:
    """The tensor behind a mover, and who reads it; without readers, it is a result of the graph.

    One quantization among them keeps the pair from all of them (ONNX Runtime 1.31.1, where it was run).
    """
    if mover is None or not _moves(mover) or mover.inputs[0] != read:
        return None
    tensor = mover.outputs[0]
    readers = list(editor.readers(tensor))
    if tensor in editor.results:
        return None if readers else (tensor, [])
    return (tensor, readers) if readers and not any(is_quantize(reader) for reader, _ in readers) else None


def _insert(editor: Editor, pair: Node, tensor: int, edges: list[Edge]) -> list[tuple[Node, int]]:
    """A pair with the parameters of `pair` behind `tensor`; a dequantization for every edge, or for the graph's result.

    Returns:
        The nodes that read the dequantizations, with the tensors that they read.
    """
    name = editor.tensors[tensor].name
    zero_point = zero_point_index(pair)
    integer = editor.type(pair.inputs[0] if is_dequantize(pair) else pair.outputs[0])
    if zero_point is None and is_dequantize(pair) and pair.version < 21:
        # Before version 21 a quantization without zero point gives u8. Source: ORT, whatever the quantized values were
        # before.
        integer = "u8"
    real = tensor
    if not edges:
        # The result keeps its tensor: the node before it writes a new one.
        writer = editor.writer(tensor)
        assert writer is not None
        real = editor.computed(tensor, f"{name}/real", editor.type(tensor))
        editor.change(writer, outputs=tuple(real if i == tensor else i for i in writer.outputs))
    quantized = editor.computed(tensor, f"{name}/codes", integer)
    quantize, attributes = pair_attributes(pair, editor.type(pair.inputs[1]))
    if is_dequantize(pair) and zero_point is not None and pair.version >= 21:
        quantize["names_type"] = True
    parameters = (pair.inputs[1], zero_point)
    editor.add(
        pair, QUANTIZE, (real, *parameters), (quantized,), quantize, source="QuantizeLinear", version=pair.version
    )
    inserted = []
    for number, (reader, position) in enumerate(edges):
        copy = editor.computed(tensor, f"{name}/again{number or ''}", editor.type(tensor))
        _dequantize(editor, pair, (quantized, *parameters), copy, attributes)
        current = next(e for e in editor.readers(tensor) if e[1] == position and e[0].outputs == reader.outputs)
        inserted.append((editor.redirect(*current, copy), copy))
    if not edges:
        _dequantize(editor, pair, (quantized, *parameters), tensor, attributes)
    return inserted


def _dequantize(
    editor: Editor, near: Node, inputs: tuple[int | None, ...], output: int, attributes: dict[str, Attribute]
) -> None:
    editor.add(near, DEQUANTIZE, inputs, (output,), attributes, source="DequantizeLinear", version=near.version)


def pair_attributes(pair: Node, scale: str) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Attributes of a quantization and a dequantization of whole tensors, in the versions and domain of `pair`."""
    plain: dict[str, Attribute] = {"axis": 1, "block_size": 0, "domain": pair.attributes.get("domain", "")}
    return {"saturate": 1, "precision": scale, **plain}, plain


# -- dequantized constants that are transposed ---------------------------------------------------------------------
def transpose_constants(editor: Editor) -> None:
    """A constant that is dequantized and then transposed is transposed first."""
    for first in editor.nodes():
        if not editor.alive(first) or not is_dequantize(first) or first.attributes.get("block_size"):
            continue
        quantized, turn = editor.value(first.inputs[0]), editor.only_reader(first)
        if quantized is None or turn is None or turn.source != "Transpose":
            continue
        if editor.edges(turn) + editor.gives_result(turn) != 1:
            continue
        order = editor.value(turn.inputs[1]) if len(turn.inputs) > 1 else np.arange(quantized.ndim)[::-1]
        axis, source = first.attributes.get("axis", 1), first.inputs[0]
        if zero_point_index(first) is None and not _repeats_alone(first, editor.type(source)):
            continue
        if order is None or sorted(order) != list(range(quantized.ndim)) or source is None or not isinstance(axis, int):
            continue
        if editor.tensors[first.inputs[1] or 0].shape not in ((), (1,)):
            if len(turn.inputs) < 2:
                # Source: ORT leaves scales per slice alone where the order of axes is not written out.
                continue
            axis = [int(i) for i in order].index(axis % quantized.ndim)
        turned = editor.constant(
            quantized.transpose(order), f"{editor.tensors[source].name}/turned", editor.type(source)
        )
        editor.remove(first)
        editor.remove(turn)
        attributes = {**first.attributes, "axis": axis}
        _dequantize(editor, first, (turned, *first.inputs[1:]), turn.outputs[0], attributes)


def _repeats_alone(dequantize: Node, kind: str) -> bool:
    """Whether a quantization without a zero point gives this type: u8, and from set 21 on others of 8 bits or more.

    Source: ONNX Runtime 1.31.1, its optimised graphs (tests/onnx_operators/test_block_weights.py).
    """
    return kind == "u8" or (dequantize.version >= 21 and kind not in ("s2", "u2", "s4", "u4"))


# -- pairs that undo each other ------------------------------------------------------------------------------------
def remove_equal_pairs(editor: Editor) -> None:
    """A dequantization that only a quantization of the same type and parameters reads: both go if that is used once.

    Parameters may be vectors, and an absent zero point is 0.
    """
    for first, second in _undoing_pairs(editor):
        if first.attributes.get("axis") == second.attributes.get("axis") and _equal(editor, first, second):
            _bridge(editor, first, second, identity=False)


def _equal(editor: Editor, first: Node, second: Node) -> bool:
    kind = editor.type(first.inputs[0])
    scales = [editor.value(node.inputs[1]) for node in (first, second)]
    zeros = [editor.value(zero_point_index(node)) for node in (first, second)]
    absent = [zero_point_index(node) is None for node in (first, second)]
    if kind != editor.type(second.outputs[0]) or scales[0] is None or scales[1] is None:
        return False
    if scales[0].dtype != scales[1].dtype or not np.array_equal(scales[0].reshape(-1), scales[1].reshape(-1)):
        return False
    if any(zero is None and not gone for zero, gone in zip(zeros, absent, strict=True)):
        return False
    present = [zero.reshape(-1) for zero in zeros if zero is not None]
    if len(present) == 2:
        return np.array_equal(present[0], present[1])
    return not any(zero.any() for zero in present)


def remove_inverse_pairs(editor: Editor) -> None:
    """The same for scalar parameters that are all there, also where nothing before it can write the graph's result."""
    for first, second in _undoing_pairs(editor):
        if same_parameters(editor, second, first):
            _bridge(editor, first, second, identity=True)


def _undoing_pairs(editor: Editor) -> Iterator[tuple[Node, Node]]:
    for first in editor.nodes():
        second = editor.only_reader(first) if editor.alive(first) and is_dequantize(first) else None
        if second is not None and is_quantize(second) and editor.edges(second) + editor.gives_result(second) == 1:
            yield first, second


def _bridge(editor: Editor, first: Node, second: Node, *, identity: bool) -> None:
    before, after = first.inputs[0], second.outputs[0]
    writer = editor.writer(before)
    assert before is not None
    if not editor.gives_result(second):
        editor.remove(first, second)
        editor.replace_reads(after, before)
    elif writer is not None and before not in editor.results and len(editor.readers(before)) == 1:
        editor.remove(first, second)
        editor.change(writer, outputs=tuple(after if i == before else i for i in writer.outputs))
    elif identity:
        editor.remove(first, second)
        editor.add(second, "identity", (before,), (after,), source="Identity")
