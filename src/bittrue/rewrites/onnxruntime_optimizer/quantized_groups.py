"""Groups of one operator between dequantizations and a quantization, and the integer operators that replace them.

A group is dequantizations -> operator (-> clamp that the quantization makes redundant) -> quantization, where the
operator alone reads each dequantization. `CHECKS` says why a group stays as it is; `fuse` replaces one that does not.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_fusion.py compares them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...graph import Attribute, Node, data_type
from ...records import dataclass
from ..editing import Editor
from .quantized_pairs import (
    DEQUANTIZE,
    QUANTIZE,
    is_quantize,
    same_parameters,
    scalar,
    zero_point_index,
)

_SIXTEEN = ("u16", "s16")
_FOUR = ("u4", "s4")
_CLAMPS = ("Relu", "Clip")
# Products that want u8 unless s8 is allowed, too.
OF_U8 = ("Conv", "MatMul")
# Groups of reals other than f32 that are replaced. Source: ORT has no f16 kernels for the others on this processor.
_ANY_REAL: tuple[str, ...] = ("Concat", "Expand", "Flatten", "Gather", "GatherElements", "Reshape", "Slice", "Split")
_ANY_REAL += ("Squeeze", "Transpose", "Unsqueeze")


@dataclass(frozen=True)
class Group:
    """An operator, the dequantizations that it reads in order of its inputs, the clamp and quantizations behind it."""

    target: Node
    before: tuple[Node, ...]
    clamp: Node | None
    after: tuple[Node, ...]


# -- finding -------------------------------------------------------------------------------------------------------
def find_group(editor: Editor, node: Node) -> Group | str:
    """The group around `node`, or why there is none; empty when the node reads no dequantization."""
    before = tuple(w for w in map(editor.writer, node.inputs) if w is not None and w.operator == DEQUANTIZE)
    if not before:
        return ""
    real = editor.type(before[0].outputs[0])
    if real != "f32" and node.source not in _ANY_REAL:
        return f"there is no integer kernel between {real}"
    clamp = None
    if editor.edges(node) == 1:
        reader = next(r for index in node.outputs for r, _ in editor.readers(index))
        if reader.source in _CLAMPS and editor.edges(reader) == 1 and not editor.gives_result(reader):
            clamp = reader
    last = clamp or node
    after = tuple(r for index in last.outputs for r, _ in editor.readers(index) if r.operator == QUANTIZE)
    if clamp is not None and (len(after) != 1 or not clamp_is_redundant(editor, clamp, after[0])):
        return f"{clamp.source} stands between it and its quantization"
    return Group(node, before, clamp, after)


def clamp_is_redundant(editor: Editor, clamp: Node, quantize: Node) -> bool:
    """Whether the quantization saturates wherever the clamp does, with the clamp's limits rounded to quantized
    values.
    """
    scale, zero = editor.value(quantize.inputs[1]), 0
    dtype = data_type(editor.type(quantize.outputs[0]))
    if scale is None or scale.ndim or scale.dtype != np.float32 or dtype.name not in ("u8", "s8", *_SIXTEEN):
        return False
    if zero_point_index(quantize) is not None:
        value = editor.value(zero_point_index(quantize))
        if value is None or value.ndim:
            return False
        zero = int(value)
    if clamp.source == "Relu":
        return zero == dtype.minimum
    limits = clamp_limits(editor, clamp)
    if limits is None:
        return False
    with np.errstate(all="ignore"):
        quantized = [_to_int32(np.rint(np.float32(limit) / np.float32(scale))) + zero for limit in limits]
    return quantized[0] <= dtype.minimum and quantized[1] >= dtype.maximum


def _to_int32(value: np.floating) -> int:
    # What the processor gives for numbers outside of the type.
    return int(value) if abs(value) < 2**31 else -(2**31)


def clamp_limits(editor: Editor, clamp: Node) -> tuple[float, float] | None:
    """Lower and upper limit of a clamp of f32 when both are constants."""
    ends = [float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)]
    for side, name in enumerate(("min", "max")):
        given = clamp.attributes.get(name)
        if isinstance(given, (int, float)):
            ends[side] = float(given)
        elif len(clamp.inputs) > side + 1 and clamp.inputs[side + 1] is not None:
            value = editor.value(clamp.inputs[side + 1])
            if value is None or value.size != 1 or value.dtype != np.float32:
                return None
            ends[side] = float(value.reshape(()))
    return ends[0], ends[1]


# -- checks --------------------------------------------------------------------------------------------------------
def _shape_of_group(editor: Editor, group: Group, count: int = -1, *, open_end: bool = False) -> str:
    """`count` dequantizations (-1: one per input), each read by the operator alone; one quantization per output."""
    node = group.target
    wanted = sum(i is not None for i in node.inputs) if count < 0 else count
    if len(group.before) != wanted:
        return "not all of its operands are dequantized"
    for pair in group.before:
        if editor.gives_result(pair) or editor.edges(pair) != 1:
            return "a dequantization before it is read elsewhere, too"
    if not group.after:
        return "" if open_end else "its result is not quantized"
    outputs = len(node.outputs)
    if outputs != len(group.after) or editor.edges(node) != len(group.after) or editor.gives_result(node):
        return "its result is read by more than one quantization"
    return ""


def _types(editor: Editor, group: Group) -> tuple[list[str], list[str]]:
    return [editor.type(n.inputs[0]) for n in group.before], [editor.type(n.outputs[0]) for n in group.after]


def _one_type(editor: Editor, group: Group, count: int = -1, excluded: tuple[str, ...] = (*_SIXTEEN, *_FOUR)) -> str:
    reason = _shape_of_group(editor, group, count)
    if reason:
        return reason
    before, after = _types(editor, group)
    if len({*before, *after}) != 1:
        return f"its types differ ({', '.join(before)} -> {', '.join(after)})"
    return f"there is no integer kernel for {before[0]}" if before[0] in excluded else ""


def _unary(editor: Editor, group: Group) -> str:
    return _one_type(editor, group, 1)


def _binary(editor: Editor, group: Group) -> str:
    return _one_type(editor, group)


def _choice(editor: Editor, group: Group) -> str:
    return _one_type(editor, group, 2)


def _movement(editor: Editor, group: Group, excluded: tuple[str, ...] = _FOUR, *, ordered: bool = False) -> str:
    if group.clamp is not None:
        return f"{group.clamp.source} follows"
    reason = _one_type(editor, group, 1, excluded)
    if reason:
        return reason
    if ordered:
        scale = scalar(editor, group.after[0].inputs[1])
        if scale is None or not scale > 0:
            return "its scale is not a positive constant"
    if all(same_parameters(editor, after, group.before[0]) for after in group.after):
        return ""
    return "scales or zero points before and after it differ"


def _blocks(editor: Editor, group: Group) -> str:
    return _movement(editor, group, (*_SIXTEEN, *_FOUR))


def _resize(editor: Editor, group: Group) -> str:
    if group.target.operator != "resize_nearest":
        return "only the nearest mode has an integer kernel"
    return _movement(editor, group, (*_SIXTEEN, *_FOUR))


def _extremes(editor: Editor, group: Group) -> str:
    return _movement(editor, group, (*_SIXTEEN, *_FOUR), ordered=True)


def _max_pool(editor: Editor, group: Group) -> str:
    if group.target.version < 12:
        return f"version {group.target.version} knows no integers"
    return _extremes(editor, group)


def _arg_max(editor: Editor, group: Group) -> str:
    pair = group.before[0]
    if group.clamp is not None or len(group.before) != 1:
        return "its operand is not dequantized"
    if editor.gives_result(pair) or editor.edges(pair) != 1:
        return "a dequantization before it is read elsewhere, too"
    kind = editor.type(pair.inputs[0])
    if kind in (*_SIXTEEN, *_FOUR):
        return f"there is no integer kernel for {kind}"
    parameters = (scalar(editor, pair.inputs[1]), scalar(editor, zero_point_index(pair)))
    return "its scale or zero point is not one constant" if any(p is None for p in parameters) else ""


def _weight_types(before: list[str], after: list[str]) -> str:
    if after and before[0] != after[0]:
        return f"its types differ ({before[0]} -> {after[0]})"
    if before[0] == "s8" and before[1] != "s8":
        return f"there is no integer kernel for {before[0]} and {before[1]}"
    bad = [kind for kind in before[:2] if kind in (*_SIXTEEN, *_FOUR)]
    return f"there is no integer kernel for {bad[0]}" if bad else ""


def _convolution(editor: Editor, group: Group) -> str:
    reason = _shape_of_group(editor, group)
    if reason:
        return reason
    before, after = _types(editor, group)
    reason = _weight_types(before, after)
    if reason or len(group.before) < 3:
        return reason
    if before[2] != "s32":
        return f"its bias is {before[2]}"
    return _bias_scale(editor, *group.before)


def _bias_scale(editor: Editor, x: Node, w: Node, bias: Node) -> str:
    """The bias scale is the product of the others within one percent, or nearly; its zero point is 0."""
    zero = zero_point_index(bias)
    if zero is not None:
        value = editor.value(zero)
        if value is None or value.any():
            return "its bias has a zero point"
    scales = [editor.value(node.inputs[1]) for node in (x, w, bias)]
    if any(scale is None or scale.dtype != np.float32 for scale in scales):
        return "its bias scale is no constant of f32"
    product, given = np.broadcast_arrays(*(_flat_product(scales)))  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        near = np.abs(given - product) <= np.float32(1e-6) + np.float32(1e-2) * np.abs(product)
    return "" if near.all() else "its bias scale is not the product of the other scales"


def _flat_product(scales: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x, w, bias = (scale.reshape(-1) for scale in scales)
    return x * w, bias if bias.size in (1, (x * w).size) or (x * w).size == 1 else np.full((x * w).size, np.nan)


def _matmul(editor: Editor, group: Group) -> str:
    if len(group.before) != 2:
        weights = editor.writer(group.target.inputs[1])
        if weights in group.before and not group.after:
            return "its other operand is real; the runtime quantizes it in blocks"
        return "not all of its operands are dequantized"
    before, after = _types(editor, group)
    return _weight_types(before, after) or (_shape_of_group(editor, group) if group.after else "")


def _gemm(editor: Editor, group: Group) -> str:
    reason = _shape_of_group(editor, group, open_end=True)
    if reason:
        return reason
    before, after = _types(editor, group)
    reason = _weight_types(before, after)
    if reason:
        return reason
    if any(zero_point_index(pair) is None for pair in group.before[:2]):
        return "an operand has no zero point"
    given, scale, weights = group.before[0].inputs[1], group.before[1].inputs[1], group.before[1].inputs[0]
    assert given is not None
    assert scale is not None
    assert weights is not None
    if editor.tensors[given].shape not in ((), (1,)):
        return "its first operand has a scale per slice"
    quantized = editor.writer(weights)
    if quantized is not None and is_quantize(quantized) and quantized.inputs[0] is not None:
        # Quantized values that a file declares no shape for have that of the numbers.
        weights = quantized.inputs[0]
    columns = editor.tensors[weights].shape[: 1 if group.target.attributes.get("transpose_b") else None][-1:]
    shape = editor.tensors[scale].shape
    if shape not in ((), (1,), columns):
        return "its weights' scales are not one per column"
    if len(group.before) < 3:
        return ""
    if group.target.attributes.get("beta", 1.0) != 1.0 or group.target.attributes.get("alpha", 1.0) != 1.0:
        return "it has a bias and factors other than 1"
    return "" if before[2] == "s32" else f"its bias is {before[2]}"


Check = Callable[[Editor, Group], str]

# The operator's name in the file -> why a group around it stays as it is; empty when it is replaced.
CHECKS: Mapping[str, Check] = {
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax"), _unary),
    **dict.fromkeys(("Add", "Mul", "Concat"), _binary),
    "Where": _choice,
    "Conv": _convolution,
    "MatMul": _matmul,
    "Gemm": _gemm,
    **dict.fromkeys(
        (
            *("Expand", "Flatten", "Gather", "GatherElements", "Reshape", "Slice", "Squeeze", "Tile"),
            *("Transpose", "Unsqueeze"),
        ),
        _movement,
    ),
    "DepthToSpace": _blocks,
    "Resize": _resize,
    "MaxPool": _max_pool,
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _extremes),
    "Split": _movement,
    "ArgMax": _arg_max,
}


def why_not(editor: Editor, group: Group, pairs: str) -> str:
    """Why a group stays as it is, by `CHECKS`; where `pairs` is ``"u8"``, products of s8 with weights do, too."""
    reason = CHECKS[group.target.source](editor, group)
    if reason or pairs != "u8" or group.target.source not in OF_U8:
        return reason
    return "session.qdqisint8allowed is 0" if editor.type(group.before[0].inputs[0]) == "s8" else ""


# -- replacing -----------------------------------------------------------------------------------------------------
def fuse(editor: Editor, group: Group) -> Node:
    """Replaces a group whose check gives no reason; the node that stands there then."""
    node, after = group.target, group.after
    inputs, operator, attributes = _REPLACEMENTS.get(node.source, _on_integers)(editor, group)
    outputs = tuple(q.outputs[0] for q in after) or node.outputs
    editor.remove(*after, *(() if group.clamp is None else (group.clamp,)))
    new = editor.change(node, operator=operator, inputs=_trimmed(inputs), outputs=outputs, attributes=attributes)
    editor.drop_unread(group.before)
    return new


Replacement = tuple[list[int | None], str, Mapping[str, Attribute]]


def _trimmed(inputs: list[int | None]) -> tuple[int | None, ...]:
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return tuple(inputs)


def _zero_point(editor: Editor, pair: Node) -> int:
    """The zero point; where there is none, 0 of the type that ORT gives it. Source: ORT, qdq_actions."""
    found = zero_point_index(pair)
    if found is not None:
        return found
    signed = pair.operator == DEQUANTIZE and editor.type(pair.inputs[0]) == "s8"
    dtype = data_type("s8" if signed else "u8")
    return editor.constant(np.zeros((), dtype.numpy), f"{editor.tensors[pair.outputs[0]].name}/zero_point", dtype.name)


def _operand(editor: Editor, pair: Node) -> list[int | None]:
    return [pair.inputs[0], pair.inputs[1], _zero_point(editor, pair)]


def _result(editor: Editor, group: Group) -> list[int | None]:
    return [index for pair in group.after for index in (pair.inputs[1], _zero_point(editor, pair))]


def _on_integers(editor: Editor, group: Group) -> Replacement:
    """The operator itself on integers."""
    node = group.target
    inputs = [i if editor.writer(i) is not group.before[0] else group.before[0].inputs[0] for i in node.inputs]
    return inputs, node.operator, node.attributes


def _plain(
    operator: str, attributes: Callable[[Node], Mapping[str, Attribute]]
) -> Callable[[Editor, Group], Replacement]:
    def replacement(editor: Editor, group: Group) -> Replacement:
        data, given = [pair.inputs[0] for pair in group.before], [_operand(editor, pair)[1:] for pair in group.before]
        scales = [index for one in given for index in one]
        return [*data, *scales, *_result(editor, group)], operator, attributes(group.target)

    return replacement


def _concat_operands(editor: Editor, group: Group) -> Replacement:
    inputs, _, _ = _plain("concatenation", _none)(editor, group)
    return inputs, "concatenation", {"axis": group.target.attributes["axis"], "given": "scales"}


def _where_operands(editor: Editor, group: Group) -> Replacement:
    inputs, _, _ = _plain("select", _none)(editor, group)
    return [group.target.inputs[0], *inputs], "select", {"broadcasts": True, "keeps_declared_shape": False}


def _conv_operands(editor: Editor, group: Group) -> Replacement:
    x, w = (_operand(editor, pair) for pair in group.before[:2])
    bias = [pair.inputs[0] for pair in group.before[2:]] or [None]
    return [x[0], w[0], *bias, *x[1:], *w[1:], *_result(editor, group)], "conv", group.target.attributes


def _product(operands: list[int | None], bias: list[int | None], editor: Editor, group: Group) -> list[int | None]:
    a, a_scale, a_point, b, b_scale, b_point = operands
    return [a, b, *bias, a_scale, a_point, b_scale, b_point, *_result(editor, group)]


def _gemm_operands(editor: Editor, group: Group) -> Replacement:
    operands = [index for pair in group.before[:2] for index in _operand(editor, pair)]
    bias = [pair.inputs[0] for pair in group.before[2:]] or [None]
    return _product(operands, bias, editor, group), "matmul", {**group.target.attributes, "beta": 1.0}


def _matmul_operands(editor: Editor, group: Group) -> Replacement:
    operands = [index for pair in group.before for index in _operand(editor, pair)]
    return _product(operands, [None], editor, group), "matmul", {}


def _slope(node: Node) -> Mapping[str, Attribute]:
    alpha = node.attributes["alpha"]
    assert isinstance(alpha, float)
    return {"alpha": float(np.float32(alpha))}


def _pool(node: Node) -> Mapping[str, Attribute]:
    # Integers count every tap where padding counts.
    return {**node.attributes, "counted": "inside" if node.attributes["counted"] == "inside" else "taps"}


def _attributes(node: Node) -> Mapping[str, Attribute]:
    return node.attributes


def _same(node: Node) -> Mapping[str, Attribute]:
    return node.attributes


def _none(node: Node) -> Mapping[str, Attribute]:
    return {}


_REPLACEMENTS: Mapping[str, Callable[[Editor, Group], Replacement]] = {
    "Add": _plain("add", _none),
    "AveragePool": _plain("average_pool", _pool),
    "Concat": _concat_operands,
    "Conv": _conv_operands,
    "Gemm": _gemm_operands,
    "GlobalAveragePool": _plain("average_pool", _attributes),
    "LeakyRelu": _plain("leaky_relu", _slope),
    "MatMul": _matmul_operands,
    "Mul": _plain("mul", _none),
    "Sigmoid": _plain("logistic", _none),
    "Softmax": _plain("softmax", _same),
    "Where": _where_operands,
}
