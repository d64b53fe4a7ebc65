"""fold_reals: sums, products and normalizations with constants go into the real product or convolution before them.

What is folded: scales into weights, addends into biases, each in one binary32 operation per constant; matrix products
with a bias behind them become one product, and such products transpose their operands themselves; 1 / x times y becomes
y / x. Weights that are computed stay. Last, sums move before transpositions.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_real_fusion.py compares bytes).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...graph import Graph, Node
from ...records import replace
from .. import Shapes
from ..editing import Editor
from .free_dimensions import known_shape
from .gates import GELU, join_gelu
from .inserted_casts import mark_early
from .join_reshapes import join_reshapes, settle_targets
from .push_transposes import push_past_definitions, push_transposes
from .quantized_pairs import merge_double_pairs, propagate_pairs, remove_equal_pairs, split_dequantizations
from .quantized_preparation import PLAIN_PRODUCT, join_products, remove_idle, share_equal
from .real_groups import NORMALIZATION, join_layer_normalization
from .real_products import join_all_transpositions, join_transpositions

UNSETTLED = (
    "pairs around transpositions or other movement change in every round of the runtime's optimiser, which ends after"
    " ten: what is left of them may differ (2 of 6,500 random graphs of pairs and transpositions)"
)
# How often the rules are tried; each round folds at most one neighbour into a node.
_ROUNDS = 10
_PAD = 2  # ONNX's own, the first version with the attribute `pads`; another domain's is 1.


def rewrite(graph: Graph, shapes: Shapes) -> tuple[Graph, tuple[str, ...]]:
    """`graph` with constants folded, and a note where nothing settles.

    Args:
        graph: any graph.
        shapes: of computed tensors, as far as they are known; -1 for a free dimension.
    """
    # What the graph around knows of casts comes later.
    editor = Editor(replace(graph, widened=False), shapes)
    number, changed = 0, False
    for number in editor.rounds(_ROUNDS):
        # Two pairs are merged where dequantizations alone read the second, before equal nodes become one; what has
        # come between two of them keeps these apart.
        for _ in editor.rounds(_ROUNDS):
            remove_idle(editor, shapes)
        merge_double_pairs(editor)
        fold(editor, shapes, first=number == 0)
        settle_targets(editor, shapes)
        if graph.version >= GELU:
            join_gelu(editor)
        if graph.version >= NORMALIZATION:
            join_layer_normalization(editor, shapes)
        join_reshapes(editor, shapes, "f16")
        # Pairs move before transpositions do: what then stands between two of these meets the pair before it.
        split_dequantizations(editor)
        propagate_pairs(editor)
        push_transposes(editor, shapes)
        remove_equal_pairs(editor)
        changed = editor.changed
    # The last round, too, has changed pairs: where the loop ends decides, and what comes later may still change them.
    notes = (UNSETTLED,) if number == _ROUNDS - 1 and changed else ()
    mark_early(editor)
    push_past_definitions(editor, shapes)
    return (editor.finish(), notes) if editor.touched else (graph, ())


def fold(editor: Editor, shapes: Shapes, *, first: bool = True) -> None:
    """Constants into the products before them, equal nodes become one, products with a bias behind them, too.

    `first`: pairs have not moved past transpositions.
    """
    for _ in editor.rounds(_ROUNDS):
        remove_idle(editor, shapes)
        for node in editor.nodes():
            for rule in _RULES.get(node.source, ()):
                if (first or rule is not join_transpositions) and editor.alive(node) and rule(editor, shapes, node):
                    break
        share_equal(editor)
    join_products(editor, shapes)
    # Pairs move past transpositions before the runtime looks at these products.
    join_all_transpositions(editor, shapes, of_pairs=False)


# -- convolutions --------------------------------------------------------------------------------------------------
def _real(editor: Editor, index: int | None) -> np.ndarray | None:
    """A constant of binary32 or binary16, whose operations are rounded one by one.

    What follows from a shape with a free size besides is none: the runtime computes it in every run.
    """
    value = editor.stored(index)
    return value if value is not None and value.dtype in (np.float32, np.float16) else None


def _operands(editor: Editor, conv: Node) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Constant weights and bias; None when one of them is none."""
    weights = _real(editor, conv.inputs[1])
    if weights is None or weights.ndim < 3:
        return None
    if len(conv.inputs) < 3 or conv.inputs[2] is None:
        return weights, None
    bias = _real(editor, conv.inputs[2])
    return None if bias is None or bias.ndim != 1 or bias.dtype != weights.dtype else (weights, bias)


def _replace(editor: Editor, conv: Node, after: Node, weights: np.ndarray | None, bias: np.ndarray | None) -> None:
    """The convolution with other constants (None: the old ones), in place of itself and of the node behind it."""
    inputs = list(conv.inputs)
    for position, value in ((1, weights), (2, bias)):
        if value is not None:
            inputs += [None] * (position + 1 - len(inputs))
            name = editor.tensors[inputs[position] or after.outputs[0]].name
            inputs[position] = editor.constant(value, f"{name}/folded", editor.type(conv.outputs[0]))
    editor.remove(after)
    editor.change(conv, inputs=tuple(inputs), outputs=after.outputs[:1])


def _per_channel(value: np.ndarray, weights: np.ndarray) -> bool:
    """One number per filter, with dimensions of 1 for space: [M, 1, ...] or [1, M, 1, ...]."""
    count, rank = weights.shape[0], weights.ndim
    return value.shape in ((count, *(1,) * (rank - 2)), (1, count, *(1,) * (rank - 2)))


def _behind(editor: Editor, node: Node, source: str) -> tuple[Node, np.ndarray] | None:
    """The operator that alone reads the node, as its first operand, and its constant second operand."""
    after = editor.only_reader(node)
    if after is None or after.source != source or len(after.inputs) != 2 or after.inputs[0] != node.outputs[0]:
        return None
    value = _real(editor, after.inputs[1])
    return None if value is None else (after, value)


def _fold_padding(editor: Editor, shapes: Shapes, pad: Node) -> bool:
    """Zeros around an image become padding of the windows that alone read it, or read it behind a cast.

    So a maximum, which the file takes over the zeros too, no longer sees them, and convolutions may stand between
    pairs. Source: ONNX Runtime 1.31.1, where it was run: operator sets 9 to 25.
    """
    value, widths = editor.stored((*pad.inputs, None, None)[2]), editor.stored((*pad.inputs, None)[1])
    if pad.version < _PAD or len(pad.inputs) > 3 or pad.attributes["mode"] != "constant" or widths is None:
        return False
    if len(pad.inputs) > 2 and (value is None or any(value.tobytes())):
        return False
    count = widths.size // 2
    begins, ends = widths.reshape(-1)[:count].tolist(), widths.reshape(-1)[count:].tolist()
    if any(begins[:2] + ends[:2]) or min(begins + ends, default=0) < 0:
        return False
    cast = editor.only_reader(pad)
    window = editor.only_reader(cast) if cast is not None and cast.source == "Cast" else cast
    if cast is None or window is None or window.inputs[0] not in (pad.outputs[0], cast.outputs[0]):
        return False
    if window.source not in ("AveragePool", "Conv", "MaxPool") or len(window.outputs) > 1:
        return False
    given, padded = window.attributes, 2 * count - 4
    if given.get("auto_pad", "NOTSET") != "NOTSET" or given.get("counted", "padded") != "padded":
        return False
    # Pools whose file says `auto_pad` have none.
    pads = given["pads"] or (0,) * (padded if window.source == "Conv" else 0)
    if not isinstance(pads, tuple) or len(pads) != padded:
        return False
    added = tuple(map(sum, zip(pads, begins[2:] + ends[2:], strict=True)))
    editor.change(window, attributes={**given, "pads": added})
    source = pad.inputs[0]
    assert source is not None
    editor.replace_reads(pad.outputs[0], source)
    editor.remove(pad)
    return True


def _fold_sum(editor: Editor, shapes: Shapes, conv: Node) -> bool:
    found, operands = _behind(editor, conv, "Add"), _operands(editor, conv)
    if found is None or operands is None or not _per_channel(found[1], operands[0]):
        return False
    added = found[1].reshape(-1)
    with np.errstate(all="ignore"):
        bias = added if operands[1] is None else operands[1] + added
    _replace(editor, conv, found[0], None, bias)
    return True


def _fold_product(editor: Editor, shapes: Shapes, conv: Node) -> bool:
    found, operands = _behind(editor, conv, "Mul"), _operands(editor, conv)
    if found is None or operands is None:
        return False
    (weights, bias), factor = operands, found[1]
    if not (factor.ndim == 0 or _per_channel(factor, weights)):
        return False
    with np.errstate(all="ignore"):
        scaled = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
        shifted = None if bias is None else bias * factor.reshape(-1)
    _replace(editor, conv, found[0], scaled, shifted)
    return True


def _normalization(editor: Editor, node: Node | None, count: int) -> tuple[np.ndarray, ...] | None:
    """(scale / sqrt(variance + epsilon), mean, bias) of a batch normalization by constants, one per channel."""
    if node is None or node.source != "BatchNormalization" or node.operator != "batch_normalization":
        return None
    parts = [_real(editor, index) for index in node.inputs[1:5]]
    if len(node.outputs) != 1 or any(part is None or part.shape != (count,) for part in parts):
        return None
    scale, bias, mean, variance = (np.asarray(part) for part in parts)
    if len({scale.dtype, bias.dtype, mean.dtype, variance.dtype}) != 1:
        return None
    epsilon = node.attributes["epsilon"]
    assert isinstance(epsilon, float)
    with np.errstate(all="ignore"):
        # The epsilon of binary16 parameters is a binary32 number; only the sum is rounded.
        total = variance.astype(np.result_type(variance, np.float32)) + np.float32(epsilon)
        return scale / np.sqrt(total.astype(variance.dtype)), mean, bias


def _fold_normalization(editor: Editor, shapes: Shapes, conv: Node) -> bool:
    after, operands = editor.only_reader(conv), _operands(editor, conv)
    if after is None or operands is None:
        return False
    weights, old = operands
    turned = conv.source == "ConvTranspose"
    groups = conv.attributes["groups"]
    assert isinstance(groups, int)
    count = weights.shape[1] * groups if turned else weights.shape[0]
    found = _normalization(editor, after, count)
    if found is None or (old is not None and old.shape != (count,)) or weights.shape[0] % max(1, groups):
        return False
    factor, mean, bias = found
    if factor.dtype != weights.dtype:
        return False
    ones = (1,) * (weights.ndim - 2)
    with np.errstate(all="ignore"):
        if turned:
            grouped = weights.reshape(groups, -1, *weights.shape[1:])
            scaled = (grouped * factor.reshape(groups, 1, -1, *ones)).reshape(weights.shape)
        else:
            scaled = weights * factor.reshape(-1, 1, *ones)
        shifted = bias - mean * factor if old is None else (old - mean) * factor + bias
    _replace(editor, conv, after, scaled, shifted)
    return True


# -- matrix products -----------------------------------------------------------------------------------------------
def _fold_product_normalization(editor: Editor, shapes: Shapes, product: Node) -> bool:
    """Also behind reshapes and transposes."""
    weights = _real(editor, product.inputs[1])
    after = first = editor.only_reader(product)
    if weights is None or weights.ndim != 2 or first is None:
        return False
    while after is not None and after.source in ("Reshape", "Transpose"):
        after = editor.only_reader(after)
    found = _normalization(editor, after, weights.shape[1])
    if after is None or found is None:
        return False
    left = known_shape(editor, shapes, product.inputs[0])
    if left is None or len(left) != 2:
        return False
    factor, mean, bias = found
    if factor.dtype != weights.dtype:
        return False
    name = editor.tensors[after.outputs[0]].name
    with np.errstate(all="ignore"):
        scaled, shifted = weights * factor, bias - mean * factor
    inputs = (
        product.inputs[0],
        editor.constant(scaled, f"{name}/weights", editor.type(product.inputs[1])),
        editor.constant(shifted, f"{name}/bias", editor.type(product.inputs[1])),
    )
    outputs = product.outputs
    last = editor.writer(after.inputs[0])
    editor.remove(product, after)
    if last is product:
        outputs = after.outputs[:1]
    elif last is not None:
        editor.change(last, outputs=after.outputs[:1])
    editor.add(product, "matmul", inputs, outputs, PLAIN_PRODUCT, source="Gemm", version=13)
    return True


def _fold_addend(editor: Editor, shapes: Shapes, gemm: Node) -> bool:
    """The sum of a product of matrices without a third operand and another tensor."""
    after = editor.only_reader(gemm)
    if after is None or after.source != "Sum" or len(after.inputs) != 2 or len(gemm.inputs) > 2:
        return False
    added = after.inputs[0 if after.inputs[1] == gemm.outputs[0] else 1]
    whole, part = known_shape(editor, shapes, gemm.outputs[0]), known_shape(editor, shapes, added)
    if whole is None or part is None or len(part) > 2 or -1 in part or -1 in whole:
        return False
    if any(e not in (1, w) for e, w in zip(part[::-1], whole[::-1], strict=False)):
        return False
    editor.remove(after)
    attributes = {**gemm.attributes, "beta": 1.0}
    editor.change(gemm, inputs=(*gemm.inputs, added), outputs=after.outputs, attributes=attributes)
    return True


def _join_quotient(editor: Editor, shapes: Shapes, quotient: Node) -> bool:
    """1 / x times y."""
    one, after = editor.stored(quotient.inputs[0]), editor.only_reader(quotient)
    if one is None or one.size != 1 or one.reshape(-1)[0] != 1 or after is None or after.source != "Mul":
        return False
    other = after.inputs[0 if after.inputs[1] == quotient.outputs[0] else 1]
    editor.remove(after)
    editor.change(quotient, inputs=(other, quotient.inputs[1]), outputs=after.outputs)
    return True


_Rule = Callable[[Editor, Shapes, Node], bool]
_RULES: dict[str, tuple[_Rule, ...]] = {
    "Conv": (_fold_sum, _fold_product, _fold_normalization),
    "ConvTranspose": (_fold_normalization,),
    "Div": (_join_quotient,),
    "Gemm": (join_transpositions, _fold_addend),
    "MatMul": (_fold_product_normalization,),
    "Pad": (_fold_padding,),
}
