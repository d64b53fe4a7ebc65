"""What is done to a graph of pairs before groups are looked for.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_fusion.py compares them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ...graph import Attribute, Node, data_type
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_numbers, known_shape, leaves_sizes_free
from .quantized_pairs import DEQUANTIZE, QUANTIZE, is_quantize, pair_attributes

# Never the same twice.
_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
# Equal constants of so many elements and of these types are one.
_SMALL, _SHARED = 8, ("f16", "f32", "f64", "s32", "s64")

# Gives the sizes of tensors as the runtime knows them, where they are asked for.
_Known = Callable[[], Callable[[int | None], tuple[int, ...] | None]]
# What leaves the other operand as it is.
_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}

# Of a product of two matrices without factors.
PLAIN_PRODUCT: dict[str, Attribute] = {
    "alpha": 1.0,
    "beta": 1.0,
    "transpose_a": False,
    "transpose_b": False,
    "matrices": True,
}


# -- operators without effect --------------------------------------------------------------------------------------
def remove_idle(editor: Editor, shapes: Shapes) -> None:
    """Identity, Dropout (whose mask is made by nodes of its own), casts to the type and Expand to the sizes that are
    there, Slice of whole axes, and sums with 0 and products with 1, whatever they do to the sign of 0; Shape of sizes
    that the file settles.
    """
    free, sizes = leaves_sizes_free(editor), cache(lambda: known_numbers(editor, shapes))
    for planned in editor.nodes():
        # One that read what another of them gave has been replaced.
        node = editor.writer(planned.outputs[0]) if planned.outputs else None
        if node is None or not node.inputs or editor.gives_result(node) or node.attributes.get("unblocks"):
            continue
        if "defines" in node.attributes or node.source == "CastLike":
            # Definitions come in place of operators later.
            continue
        same = node.operator == "convert" and editor.type(node.inputs[0]) == editor.type(node.outputs[0])
        same = same or node.operator == "identity"
        if editor.writer(node.inputs[0]) is not None:
            # Source: ORT leaves those of graph inputs alone.
            same = same or _takes_all(editor, node) or _expands_nothing(editor, sizes, node)
        source = node.inputs[0] if same else _unchanged(editor, sizes, node)
        value = editor.value(node.outputs[0]) if node.source == "Shape" and not free else None
        if value is not None:
            editor.settle(node, [value])
            editor.drop_unread([editor.writer(node.inputs[0])])
        elif source is not None:
            editor.replace_reads(node.outputs[0], source)
            editor.remove(node)


def _takes_all(editor: Editor, node: Node) -> bool:
    """Whether a Slice begins at 0 and ends at the largest number of 64 bits, as exporters write what takes all."""
    if node.source != "Slice" or len(node.inputs) < 3:
        return False
    starts, ends = (editor.value(index) for index in node.inputs[1:3])
    given = node.inputs[4] if len(node.inputs) > 4 else None
    steps = np.ones(1) if given is None else editor.value(given)
    if starts is None or ends is None or steps is None or not ends.size:
        return False
    return not starts.any() and bool((ends == np.iinfo(np.int64).max).all() and (steps == 1).all())


def _expands_nothing(editor: Editor, sizes: _Known, node: Node) -> bool:
    """Whether an Expand asks for no size but those of its operand, or 1."""
    target = editor.value(node.inputs[1]) if node.source == "Expand" and len(node.inputs) > 1 else None
    shape = None if target is None else sizes()(node.inputs[0])
    if target is None or shape is None or not 0 < target.size <= len(shape):
        return False
    return all(wanted in (0, 1, size) for size, wanted in zip(shape[::-1], target.reshape(-1)[::-1], strict=False))


def _unchanged(editor: Editor, sizes: _Known, node: Node) -> int | None:
    """The operand that a sum with 0 or a product with 1 gives back. Source: ORT leaves those of graph inputs alone."""
    neutral = _NEUTRAL.get(node.source)
    if neutral is None or len(node.inputs) != 2:
        return None
    values = [editor.value(index) for index in node.inputs]
    for position in (0, 1) if node.source in ("Add", "Mul") else (1,):
        value, other = values[position], node.inputs[1 - position]
        if value is None or value.size != 1 or editor.writer(other) is None or editor.type(other) not in _SHARED:
            continue
        if value.reshape(()) != neutral or values[1 - position] is not None:
            continue
        shape = sizes()(other)
        if shape is not None and value.ndim <= len(shape):
            return other
    return None


def join_clamps(editor: Editor) -> None:
    """A Relu that only a clamp with a constant lower limit reads: the limit rises to 0."""
    for relu in editor.nodes():
        clip = editor.only_reader(relu) if editor.alive(relu) and relu.source == "Relu" else None
        if clip is None or clip.source != "Clip" or clip.inputs[0] != relu.outputs[0] or relu.inputs[0] is None:
            continue
        low = editor.value(clip.inputs[1]) if len(clip.inputs) > 1 else None
        if low is None or low.size != 1 or low.dtype != np.float32:
            continue
        inputs = [relu.inputs[0], *clip.inputs[1:]]
        if not low.reshape(()) >= 0:
            name = editor.tensors[clip.inputs[1] or 0].name
            inputs[1] = editor.constant(np.float32(0), f"{name}/risen", "f32")
        editor.remove(relu)
        editor.change(clip, inputs=tuple(inputs))


# -- equal nodes ---------------------------------------------------------------------------------------------------
# Of a node's attributes, what only says where it comes from.
_MARKS = ("defines", "inserted", "made", "names_type")


def share_constants(editor: Editor) -> None:
    """Small constants of the main graph that are equal are one, before anything is computed from them.

    Source: ONNX Runtime 1.31.1, which does so once: before the nodes of a branch stand there, too.
    """
    first: dict[object, int] = {}
    for node in () if editor.graph.called or editor.graph.inlined else editor.nodes():
        for position, index in enumerate(node.inputs):
            tensor = None if index is None else editor.tensors[index]
            if index is None or tensor is None or not tensor.is_constant or tensor.dtype not in _SHARED:
                continue
            value = tensor.values()
            if value.size > _SMALL:
                continue
            same = first.setdefault((tensor.dtype, value.shape, value.tobytes()), index)
            if same != index:
                node = editor.redirect(node, position, same)


def share_equal(editor: Editor, *, among: Callable[[Node], bool] | None = None) -> None:
    """Nodes that compute the same become one, but for dequantizations, which belong to their readers, and these.

    What gives a result of the graph stays, but what reads it and its equal are compared as if it did not.
    `among`: says which nodes are compared.
    """
    seen: dict[object, Node] = {}
    same: dict[int | None, int] = {}
    for planned in editor.nodes_from_the_end():
        # Sharing replaces the nodes behind it, but what they write stays.
        node = editor.writer(planned.outputs[0]) if planned.outputs else None
        if node is None or node.operator == DEQUANTIZE or node.source in _RANDOM:
            continue
        if among is not None and not among(node):
            continue
        if any(writer is not None and writer.operator == DEQUANTIZE for writer in map(editor.writer, node.inputs)):
            continue
        first = seen.setdefault(_key(editor, node, same), node)
        if first is node:
            continue
        for new, old in zip(first.outputs, node.outputs, strict=True):
            if old in editor.results:
                same[old] = new
            else:
                editor.replace_reads(old, new)
        if not editor.gives_result(node):
            editor.remove(node)


def _key(editor: Editor, node: Node, same: Mapping[int | None, int]) -> object:
    types = tuple(map(editor.type, node.outputs))
    attributes = tuple(sorted((name, repr(value)) for name, value in node.attributes.items() if name not in _MARKS))
    return node.operator, node.source, node.version, attributes, tuple(same.get(i, i) for i in node.inputs), types


# -- products and sums ---------------------------------------------------------------------------------------------
def join_products(editor: Editor, shapes: Shapes) -> None:
    """A product of an operand with a matrix, and a sum with a bias behind it: one product.

    Operands of another rank are reshaped when all of their dimensions are known.
    """
    sizes = known_numbers(editor, shapes)
    for product in editor.nodes():
        if not editor.alive(product) or product.source != "MatMul" or len(product.inputs) != 2:
            continue
        total = editor.only_reader(product)
        if total is None or total.source != "Add" or "turned_a" in product.attributes:
            continue
        if editor.type(product.outputs[0]) not in ("f32", "f16", "bf16"):
            continue
        a, b = map(sizes, product.inputs)
        bias = total.inputs[0 if total.inputs[1] == product.outputs[0] else 1]
        c = sizes(bias)
        if a is None or b is None or c is None or len(b) != 2 or not a:
            continue
        plain = len(a) == 2
        if not plain and (min(a) < 0 or min(b) < 0):
            continue
        rows = len(c) == 2 and ((c[0] in (1, a[0]) and c[1] == b[1]) or c == (a[0], 1))
        if c == (b[1],) or (plain and rows and -1 not in c):
            _join(editor, product, total, bias, a, b)


def _join(editor: Editor, product: Node, total: Node, bias: int | None, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    operand, weights = product.inputs
    result = total.outputs[0]
    assert operand is not None
    name = editor.tensors[result].name
    editor.remove(product, total)
    first, last = operand, result
    if len(a) != 2:
        first = editor.computed(operand, f"{name}/rows", editor.type(operand))
        last = editor.computed(result, f"{name}/columns", editor.type(result))
        rows = int(np.prod(a[:-1], dtype=np.int64))
        _reshape(editor, product, operand, first, (rows, b[0]), f"{name}/rows_shape")
        _reshape(editor, product, last, result, (*a[:-1], b[1]), f"{name}/columns_shape")
    editor.add(product, "matmul", (first, weights, bias), (last,), PLAIN_PRODUCT, source="Gemm", version=13)


def _reshape(editor: Editor, near: Node, source: int, target: int, shape: tuple[int, ...], name: str) -> None:
    sizes = editor.constant(np.array(shape, np.int64), name, "s64")
    editor.add(
        near, "reshape", (source, sizes), (target,), {"zeros": "copied", "made": True}, source="Reshape", version=14
    )


# -- choices between quantized values and a real number
# -----------------------------------------------------------------------
def quantize_choices(editor: Editor) -> None:
    """A choice between dequantized values and a constant real number, quantized: the number is dequantized, too.

    Its quantized value is the end of the type on its side, its zero point the middle, and its scale what gives the
    number back.
    """
    for node in editor.nodes():
        if (
            not editor.alive(node)
            or node.source != "Where"
            or len(node.inputs) != 3
            or len(editor.readers(node.outputs[0])) != 1
        ):
            continue
        after = editor.readers(node.outputs[0])[0][0]
        for position, other in ((1, 2), (2, 1)):
            pair, number = editor.writer(node.inputs[position]), editor.value(node.inputs[other])
            if pair is None or pair.operator != DEQUANTIZE or after.operator != QUANTIZE or number is None:
                continue
            if number.ndim == 0 and _parameters_are_constant(editor, pair, after, number):
                _quantize_number(editor, node, other, pair, np.float32(number))


def _parameters_are_constant(editor: Editor, pair: Node, after: Node, number: np.ndarray) -> bool:
    kind = editor.type(pair.inputs[0])
    if kind != editor.type(after.outputs[0]) or kind not in ("u8", "s8", "u16", "s16") or len(pair.inputs) < 3:
        return False
    scale = editor.value(pair.inputs[1])
    return scale is not None and scale.dtype == number.dtype == np.float32 and editor.value(pair.inputs[2]) is not None


def _quantize_number(editor: Editor, node: Node, position: int, pair: Node, number: np.float32) -> None:
    dtype = data_type(editor.type(pair.inputs[0]))
    zero = 0 if dtype.minimum < 0 else dtype.maximum // 2
    code = dtype.maximum if number > 0 else zero if number == 0 else dtype.minimum
    scale = np.float32(1) if number == 0 else number / np.float32(code - zero)
    index = node.inputs[position]
    assert index is not None
    name = editor.tensors[index].name
    again = editor.computed(index, f"{name}/quantized", "f32")
    operands = (
        editor.constant(np.array(code, dtype.numpy), f"{name}/codes", dtype.name),
        editor.constant(scale, f"{name}/scale", "f32"),
        editor.constant(np.array(zero, dtype.numpy), f"{name}/zero_point", dtype.name),
    )
    attributes = pair_attributes(pair, "f32")[1]
    editor.add(pair, DEQUANTIZE, operands, (again,), attributes, source=pair.source, version=pair.version)
    editor.redirect(node, position, again)


# -- real weights and biases ---------------------------------------------------------------------------------------
def quantize_constants(editor: Editor, shapes: Shapes) -> None:
    """Constant real weights and biases between a dequantized operand and a quantized result are quantized.

    Weights: s8, one scale for all. Bias: s32 with the product of the other scales, round(bias / scale), ties to even.
    """
    for node in editor.nodes():
        # Widened nodes stand between pairs too late.
        if node.attributes.get("widened"):
            continue
        if editor.alive(node) and node.source in ("Conv", "ConvTranspose", "Gemm") and len(node.inputs) > 1:
            _quantize_constants(editor, shapes, node)


def _leads_to_quantize(editor: Editor, node: Node) -> bool:
    while True:
        readers = editor.readers(node.outputs[0])
        if len(readers) != 1:
            return False
        node = readers[0][0]
        if is_quantize(node):
            return True
        if node.source not in ("Relu", "Clip"):
            return False


def _quantize_constants(editor: Editor, shapes: Shapes, node: Node) -> None:
    x, w = (editor.writer(index) for index in node.inputs[:2])
    if x is None or x.operator != DEQUANTIZE or not _leads_to_quantize(editor, node):
        return
    weights, bias = editor.value(node.inputs[1]), (*node.inputs, None)[2]
    quantized = w is not None and w.operator == DEQUANTIZE
    if known_shape(editor, shapes, x.inputs[1]) not in ((), (1,)) or node.inputs[1] is None:
        return
    outside = editor.tensors[node.inputs[1]].outside
    if not quantized and (weights is None or weights.dtype != np.float32 or outside > 0):
        return
    length = known_shape(editor, shapes, bias)
    if bias is not None:
        initial = editor.value(bias) is not None or editor.tensors[bias].is_default
        if not initial or length is None or len(length) != 1:
            return
    elif quantized:
        return
    if quantized and w is not None and not _scale_fits(editor, shapes, node, w, length[0] if length else -1):
        return
    if not quantized and weights is not None:
        node = _quantize_weights(editor, node, weights)
        w = editor.writer(node.inputs[1])
    if w is None or bias is None:
        return
    scales = x.inputs[1], w.inputs[1]
    if len({editor.type(index) for index in (*scales, bias)}) == 1:
        _quantize_bias(editor, shapes, node, bias, scales)


def _scale_fits(editor: Editor, shapes: Shapes, node: Node, w: Node, count: int) -> bool:
    """One scale, or one per element of the bias along the axis of results."""
    scale = known_shape(editor, shapes, w.inputs[1])
    if scale is None:
        return False
    if scale in ((), (1,)):
        return True
    if len(scale) != 1 or scale[0] != count or w.attributes.get("block_size", 0):
        return False
    axis = w.attributes.get("axis", 1)
    assert isinstance(axis, int)
    rank = len(known_shape(editor, shapes, w.inputs[0]) or ())
    columns_last = node.source == "Gemm" and not node.attributes.get("transpose_b")
    expected = 1 if columns_last or node.source == "ConvTranspose" else 0
    return (axis + rank if axis < 0 else axis) == expected


def _quantize_weights(editor: Editor, node: Node, weights: np.ndarray) -> Node:
    name = editor.tensors[node.inputs[1] or 0].name
    low = min(np.float32(weights.min(initial=0)), np.float32(0))
    high = max(np.float32(weights.max(initial=0)), np.float32(0))
    scale = np.float32(1) if high == low else (high - low) / np.float32(255)
    with np.errstate(all="ignore"):
        zero = np.rint(np.clip(np.float32(-128) - low / scale, np.float32(-128), np.float32(127)))
    operands = (
        editor.constant(np.float32(scale), f"{name}/scale", "f32"),
        editor.constant(np.array(zero).astype(np.int8), f"{name}/zero_point", "s8"),
    )
    quantized = editor.computed(node.inputs[1] or 0, f"{name}/codes", "s8")
    again = editor.computed(node.inputs[1] or 0, f"{name}/quantized", "f32")
    near = editor.writer(node.inputs[0])
    assert near is not None
    pair = pair_attributes(near, "f32")
    editor.add(near, QUANTIZE, (node.inputs[1], *operands), (quantized,), pair[0], version=near.version)
    editor.add(near, DEQUANTIZE, (quantized, *operands), (again,), pair[1], version=near.version)
    return editor.redirect(node, 1, again)


def _quantize_bias(
    editor: Editor, shapes: Shapes, node: Node, bias: int, scales: tuple[int | None, int | None]
) -> None:
    near, (scale, factor) = editor.writer(node.inputs[0]), map(editor.value, scales)
    assert near is not None
    name, dtype, value = editor.tensors[bias].name, editor.type(bias), editor.value(bias)
    if dtype == "f32" and value is not None and scale is not None and factor is not None:
        with np.errstate(all="ignore"):
            product = np.float32(scale.reshape(())) * factor
            real = np.rint(value / product)
            # Numbers outside of the type become its minimum, as the processor converts them.
            inside = np.abs(real) < np.float32(2**31)
            whole = np.where(inside, real, 0).astype(np.int32)
        whole = np.where(inside, whole, np.int32(-(2**31))).astype(np.int32)
        operands = (editor.constant(whole, f"{name}/codes", "s32"), editor.constant(product, f"{name}/scale", dtype))
    else:
        operands = _bias_by_nodes(editor, near, bias, scales)
    again = editor.computed(bias, f"{name}/quantized", dtype)
    several = known_shape(editor, shapes, scales[1]) not in ((), (1,))
    pair = {**pair_attributes(near, dtype)[1], "axis": 0 if several else 1}
    editor.add(near, DEQUANTIZE, operands, (again,), pair, source="DequantizeLinear", version=near.version)
    editor.redirect(node, 2, again)


def _bias_by_nodes(editor: Editor, near: Node, bias: int, scales: tuple[int | None, int | None]) -> tuple[int, int]:
    """A quantized bias and its scale, computed anew in every run.

    So is one of binary16 numbers, which no kernel multiplies and divides before casts are inserted, and one that
    callers may replace.
    """
    name, dtype, factor = editor.tensors[bias].name, editor.type(bias), scales[1]
    assert factor is not None

    def step(
        like: int, dtype: str, operator: str, inputs: tuple[int | None, ...], source: str, **attributes: Attribute
    ) -> int:
        result = editor.computed(like, f"{name}/{source}", dtype, editor.tensors[like].shape)
        editor.add(near, operator, inputs, (result,), attributes, source=source, version=13)
        return result

    scale = step(factor, dtype, "mul", scales, "Mul", activation="none")
    quotient = step(bias, dtype, "div", (bias, scale), "Div", activation="none")
    rounded = step(bias, dtype, "round_to_integer", (quotient,), "Round", direction="even")
    return step(bias, "s32", "convert", (rounded,), "Cast", saturate=True, round_mode="up"), scale
