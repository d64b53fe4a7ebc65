"""Groups of operators on real numbers that become one: normalizations of rows.

Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...graph import HALF_KERNEL, Attribute, Node
from .. import Shapes
from ..called_graphs import INLINED
from ..editing import Editor
from .free_dimensions import UNKNOWN, Sizes, known_shape, known_sizes
from .gates import is_integer_product, only
from .quantized_pairs import DEQUANTIZE

_F32 = np.float32
_REALS = ("f16", "f32", "f64")
# Normalizations, and what the sum before them is called.
_SUMMED = {"LayerNormalization": "Add", "SkipLayerNormalization": "SkipLayerNormalization"}
# From this operator set on there is the operator itself, and the passes that know nothing but the standard join it.
NORMALIZATION = 17


def _axes(editor: Editor, mean: Node) -> tuple[int, ...]:
    axes = editor.value(mean.inputs[1]) if len(mean.inputs) > 1 else None
    return () if axes is None else tuple(int(axis) for axis in axes.reshape(-1))


def _last_axis(editor: Editor, shapes: Shapes, mean: Node) -> bool:
    """A mean over the last axis alone, whose dimension stays as 1."""
    shape, axes = known_shape(editor, shapes, mean.inputs[0]), _axes(editor, mean)
    if len(axes) != 1:
        return False
    return axes[0] == -1 or (shape is not None and axes[0] == len(shape) - 1)


def _vector(editor: Editor, shapes: Shapes, node: Node) -> int | None:
    """The operand of rank 1, the last one of two."""
    found = [i for i in node.inputs if len(known_shape(editor, shapes, i) or ()) == 1]
    return found[-1] if found else None


def _root(editor: Editor, quotient: Node) -> tuple[Node, Node, Node, Node] | None:
    """(power, mean, sum, root) that a quotient divides by."""
    root = editor.writer(quotient.inputs[1])
    total = editor.writer(root.inputs[0]) if root is not None and root.source == "Sqrt" else None
    if root is None or total is None or total.source != "Add" or editor.only_reader(root) is not quotient:
        return None
    means = [w for w in map(editor.writer, total.inputs) if w is not None and w.source == "ReduceMean"]
    if not means or editor.only_reader(total) is not root or editor.only_reader(means[0]) is not total:
        return None
    power = editor.writer(means[0].inputs[0])
    if power is None or power.source != "Pow" or editor.only_reader(power) is not means[0]:
        return None
    return power, means[0], total, root


def _epsilon(editor: Editor, total: Node, centred: bool) -> float:
    """The constant operand of the sum; behind a centred one it has to be the second operand.

    Source: ORT takes 1e-5 for a constant that is the first operand there.
    """
    for index in total.inputs[1:] if centred else total.inputs:
        value = editor.value(index)
        if value is not None and value.dtype in (np.float64, np.float32, np.float16) and value.size:
            return float(_F32(value.reshape(-1)[0]))
    return float(_F32(1e-5))


def join_layer_normalization(editor: Editor, shapes: Shapes) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias over the last axis: layer_normalization."""
    for mean in editor.nodes():
        if not editor.alive(mean) or mean.source != "ReduceMean" or editor.gives_result(mean):
            continue
        x = mean.inputs[0]
        readers = [reader for reader, _ in editor.readers(mean.outputs[0])]
        if x is None or len(readers) not in (1, 2):
            continue
        pair = editor.writer(x)
        shared = editor.graph.widened or (pair is not None and pair.attributes.get(INLINED))
        if pair is not None and pair.operator == DEQUANTIZE and not shared:
            # Every node that reads it has its own, but those that inserted casts have kept apart.
            continue
        if any(reader.source != "Sub" or set(reader.inputs) != {x, mean.outputs[0]} for reader in readers):
            continue
        widened = _real_cast(editor, editor.only_reader(readers[0])) if len(readers) == 1 else None
        centred = readers if widened is None else [widened]
        if any(map(editor.gives_result, (*readers, *centred))) or sum(map(editor.edges, centred)) != 2:
            continue
        below = [reader for one in centred for reader, _ in editor.readers(one.outputs[0])]
        quotient = next((node for node in below if node.source == "Div"), None)
        parts = None if quotient is None else _root(editor, quotient)
        if quotient is None or parts is None or parts[0] not in below or _shares_cast(editor, parts[0]):
            continue
        before = _narrow(editor, editor.writer(x), "f16", "f32")
        if before is not None and (editor.edges(before) != 1 + len(readers) or editor.gives_result(before)):
            # What others read, too, is no part of it.
            before = None
        rounded = _real_cast(editor, only(editor, quotient, "Cast"))
        scaled = only(editor, rounded or quotient, "Mul")
        last = only(editor, scaled, "Add")
        if scaled is None or last is None or not all(_last_axis(editor, shapes, m) for m in (mean, parts[1])):
            continue
        scale, bias = (_vector(editor, shapes, node) for node in (scaled, last))
        if scale is None or bias is None or _axes(editor, mean) != _axes(editor, parts[1]):
            continue
        if known_shape(editor, shapes, scale) != known_shape(editor, shapes, bias):
            continue
        source, result = (before.inputs[0] if before is not None else x), last.outputs[0]
        assert source is not None
        if editor.type(source) != editor.type(result) or not _has_normalization(editor, editor.type(source)):
            continue
        casts = [cast for cast in (widened, rounded) if cast is not None]
        nodes = (mean, *readers, *parts, quotient, *casts, scaled, last)
        _normalize(editor, nodes, (source, scale, bias), parts[2])
        if before is not None:
            _drop(editor, before)


def _shares_cast(editor: Editor, power: Node) -> bool:
    """Whether the exponent is an inserted cast that other nodes read, too: the runtime would remove it with the group.

    A cast of the file is a constant by then.
    """
    cast = editor.writer(power.inputs[1])
    return cast is not None and bool(cast.attributes.get("inserted")) and editor.edges(cast) != 1


def _cast_constant(editor: Editor, index: int | None) -> np.ndarray | None:
    """A constant, or what is cast in every run."""
    cast = editor.writer(index)
    return editor.value(cast.inputs[0] if cast is not None and cast.operator == "convert" else index)


def _real_cast(editor: Editor, cast: Node | None) -> Node | None:
    """The node if it is a cast of real numbers."""
    if cast is None or cast.source != "Cast":
        return None
    return cast if {editor.type(cast.inputs[0]), editor.type(cast.outputs[0])} <= set(_REALS) else None


def _narrow(editor: Editor, cast: Node | None, source: str, target: str) -> Node | None:
    """The node if it is a cast from one of two types to the other."""
    if cast is None or cast.operator != "convert" or editor.type(cast.inputs[0]) != source:
        return None
    return cast if editor.type(cast.outputs[0]) == target else None


def _drop(editor: Editor, node: Node) -> None:
    if not editor.edges(node) and not editor.gives_result(node):
        editor.remove(node)


def _has_normalization(editor: Editor, dtype: str) -> bool:
    """Of binary16 numbers only where the operator set has layer normalization."""
    return dtype in ("f32", "f64") or (dtype == "f16" and editor.graph.version >= NORMALIZATION)


def join_root_mean_square(editor: Editor, shapes: Shapes) -> None:
    """x / sqrt(mean(x^2) + epsilon) * scale over the last axis: layer_normalization without a mean."""
    for quotient in editor.nodes():
        if not editor.alive(quotient) or quotient.source != "Div":
            continue
        parts, scaled, x = _root(editor, quotient), only(editor, quotient, "Mul"), quotient.inputs[0]
        if parts is None or scaled is None or x is None or parts[0].inputs[0] != x:
            continue
        # Source: ORT does not ask so where there is a mean.
        exponent = _cast_constant(editor, parts[0].inputs[1])
        if editor.type(x) not in ("f32", "f64") or exponent is None or exponent.size != 1 or exponent.item() != 2:
            continue
        scale = _vector(editor, shapes, scaled)
        if scale is not None and _last_axis(editor, shapes, parts[1]):
            _normalize(editor, (*parts, quotient, scaled), (x, scale), parts[2])


def _normalize(editor: Editor, nodes: tuple[Node, ...], inputs: tuple[int, ...], total: Node) -> None:
    attributes: dict[str, Attribute] = {
        "axis": -1,
        "epsilon": _epsilon(editor, total, len(inputs) == 3),
        "centred": len(inputs) == 3,
        "summed": False,
        "made": True,
    }
    source = "LayerNormalization" if len(inputs) == 3 else "SimplifiedLayerNormalization"
    outputs = nodes[-1].outputs
    editor.remove(*dict.fromkeys(nodes))
    editor.add(nodes[-1], "layer_normalization", inputs, outputs, attributes, source=source, version=17)


def join_skipped_sums(editor: Editor, shapes: Shapes) -> None:
    """A sum of two tensors [N, M, K] that only a layer normalization reads: its rows are summed in another order.

    A constant vector that is added to one of the two is added last; before a SkipLayerNormalization of the file, too,
    where it is added to a product. Sums of binary16 numbers with a kernel are parts of the normalization then.
    """
    sizes = known_sizes(editor, shapes)
    for node in editor.nodes():
        if not editor.alive(node) or node.operator != "layer_normalization" or node.source not in _SUMMED:
            continue
        if len(node.outputs) != 1:
            continue
        first = editor.writer(node.inputs[0])
        if first is None or first.source != _SUMMED[node.source]:
            continue
        new = first.source == "Add"
        if new and (
            editor.only_reader(first) is not node or node.attributes["summed"] or not _same_three(sizes, first)
        ):
            continue
        half = new and _has_kernel(first) and editor.type(first.outputs[0]) == "f16"
        if not half and editor.type(first.outputs[0]) != "f32":
            continue
        if any(len(known_shape(editor, shapes, part) or ()) > 1 for part in node.inputs[1:]):
            continue
        later = _added_later(editor, sizes, first, node)
        if later is not None and (not half or _has_kernel(later[0])):
            _add_later(editor, first, *later)
        if half:
            _make_parts(editor, node)
        if new:
            attributes = {**node.attributes, "axis": -1, "summed": True}
            editor.change(node, attributes=attributes, source="SkipLayerNormalization")


def _has_kernel(node: Node) -> bool:
    return bool(node.attributes.get(HALF_KERNEL))


def _make_parts(editor: Editor, normalization: Node) -> None:
    """Says of the sum before it, and of one with a vector behind that, that they are the same operator's."""
    total = editor.writer(normalization.inputs[0])
    assert total is not None
    before = editor.writer(total.inputs[0])
    inner = before is not None and editor.tensors[total.inputs[0] or 0].name.endswith("/skipped")
    for part, kind in ((total, "row"), (before, "sequence")) if inner else ((total, "sequence"),):
        if part is not None:
            attributes: dict[str, Attribute] = {**part.attributes, "skipped": kind}
            editor.change(part, attributes=attributes, source="SkipLayerNormalization", version=1)


def _same_three(sizes: Callable[[int | None], Sizes | None], node: Node) -> bool:
    """Operands of three dimensions, and each is known to be the same in both: the same number or the same symbol."""
    left, right = map(sizes, node.inputs)
    return left is not None and len(left) == 3 and left == right and not {-1, UNKNOWN}.intersection(left)


def _added_later(
    editor: Editor, sizes: Callable[[int | None], Sizes | None], first: Node, normalization: Node
) -> tuple[Node, int, int] | None:
    """A sum with a constant vector before `first`, at which of its operands, and the vector's place in that sum.

    A vector that is the second operand; else any that is added to a product of real matrices.
    """
    sums = [editor.writer(index) for index in first.inputs]
    found = [
        (second, position)
        for position, second in enumerate(sums)
        if second is not None and second.source == "Add" and editor.only_reader(second) is first
    ]
    for second, position in found if first.source == "Add" else ():
        value, whole = editor.value(second.inputs[1]), sizes(second.inputs[0])
        product = editor.writer(second.inputs[0])
        # The runtime's product holds the bias already.
        integer = product is not None and is_integer_product(editor, product) and editor.only_reader(product) is second
        if value is not None and whole is not None and len(whole) == 3 and value.shape == whole[2:] and not integer:
            return second, position, 1
    for second, position in found:
        for place in (1, 0):
            product, value = editor.writer(second.inputs[1 - place]), editor.value(second.inputs[place])
            if product is None or product.source != "MatMul" or "turned_a" in product.attributes or value is None:
                continue
            if value.ndim == 1 and sizes(normalization.inputs[1]) in (None, value.shape):
                return second, position, place
    return None


def _add_later(editor: Editor, first: Node, second: Node, position: int, place: int) -> None:
    """(a + v) + b, or b + (a + v), as (a + b) + v with the order of a and b kept."""
    total = first.outputs[0]
    before = editor.computed(total, f"{editor.tensors[total].name}/skipped", editor.type(total))
    inputs = list(first.inputs)
    inputs[position] = second.inputs[1 - place]
    vector = second.inputs[place]
    editor.remove(second)
    editor.change(first, inputs=tuple(inputs), outputs=(before,))
    attributes = dict(second.attributes)
    editor.add(first, "add", (before, vector), (total,), attributes, source="Add", version=second.version)
