"""Operators of ONNX that the specification defines by others: the nodes that stand for one of them.

Runtimes carry these definitions out where they have no kernel, which is so for a few operators, and for most of them on
binary16 numbers. A definition counts where each of its
operators is the same under the model's operator set as under the set that it was written for.
Source: ONNX Runtime 1.31.1, what its optimised graphs show (tests/onnx_operators/test_halves.py and test_definitions.py
compare bytes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .onnx_operators.base import MICROSOFT
from .onnx_tensors import TYPES

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

_NUMBERS = {name: number for number, name in TYPES.items() if number}
# Without a kernel for any type.
EXPANDED = frozenset("CenterCropPad NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss Swish".split())
# Carried out as they are: there are kernels for binary16, or a mapping that is their meaning.
UNEXPANDED = frozenset(
    "Attention CastLike Clip LayerNormalization RMSNormalization Range RotaryEmbedding Shrink".split()
)

# Without a kernel for some types of inputs; for some of results, which an attribute names.
_WIDE = (
    "Elu Gelu GroupNormalization HardSigmoid HardSwish LeakyRelu Mish Selu Softplus Softsign ThresholdedRelu".split()
)
EXPANDED_BY_TYPE = {**dict.fromkeys(_WIDE, ("f64",)), "PRelu": ("f64", "s32", "s64", "u32", "u64")}
EXPANDED_WINDOWS = dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), ("f16", "bf16"))

# Gates of ONNX Runtime's own domain, whose kernels know binary32 alone: on binary16 numbers and nodes define them.
CONTRIBUTED: dict[str, tuple[dict[str, float], tuple[str, ...]]] = {
    "Gelu": (
        {"C": math.sqrt(0.5), "One": 1, "Half": 0.5},
        ("Mul C X CX", "Erf CX ERF", "Add ERF One Plus", "Mul Plus Half Phi", "Mul X Phi Y"),
    ),
    "FastGelu": (
        {"a": 0.5, "b": 0.7978845608028654, "c": 0.035677408136300125, "one": 1},
        (
            *("Mul Z Z T1", "Mul c T1 T2", "Add b T2 T3", "Mul Z T3 T4"),
            *("Tanh T4 T5", "Add one T5 T6", "Mul Z T6 T7", "Mul a T7 Y"),
        ),
    ),
    "QuickGelu": ({"alpha": 1.702}, ("Mul alpha X CX", "Sigmoid CX S", "Mul X S Y")),
}


def expand(proto: NodeProto, opset: int, types: Sequence[str], unique: Callable[[str], str]) -> list[NodeProto]:
    """The nodes that define a node of the default domain, or one of `CONTRIBUTED`; none where it stands for itself.

    Args:
        proto: the node.
        opset: the model's version of the default operator set.
        types: element types of its inputs; ``-`` for absent ones.
        unique: makes names of tensors for what only the definition computes.

    Raises:
        RuntimeError: attributes are not what the definition reads.
    """
    function: FunctionProto | None
    if proto.op_type == "LayerNormalization":
        function = _normalization_of_two_types(proto, types)
    else:
        function = _contributed(proto) if proto.domain == MICROSOFT else _definition(proto, opset, types)
    return [] if function is None else _substituted(function, proto, opset, unique)


def _contributed(proto: NodeProto) -> FunctionProto:
    from onnx import TensorProto, helper

    numbers, body = CONTRIBUTED[proto.op_type]
    given = {entry.name: entry.f for entry in proto.attribute if entry.name in numbers}
    nodes = [
        helper.make_node(
            "Constant", [], [name], value=helper.make_tensor(name, TensorProto.FLOAT16, [], [given.get(name, number)])
        )
        for name, number in numbers.items()
    ]
    if proto.op_type == "FastGelu":
        biased = len(proto.input) > 1 and proto.input[1]
        nodes.append(
            helper.make_node("Add", ["X", "bias"], ["Z"]) if biased else helper.make_node("Identity", ["X"], ["Z"])
        )
    for line in body:
        operator, *operands, result = line.split()
        nodes.append(helper.make_node(operator, operands, [result]))
    return helper.make_function(MICROSOFT, proto.op_type, ["X", "bias"], ["Y"], nodes, [])


def _normalization_of_two_types(proto: NodeProto, types: Sequence[str]) -> FunctionProto:
    """The runtime's own LayerNormalization, before set 17: the mean of squares less the square of the mean."""
    from onnx import TensorProto, helper

    axis, epsilon = 1, 1e-5
    for entry in proto.attribute:
        axis, epsilon = (entry.i if entry.name == "axis" else axis), (entry.f if entry.name == "epsilon" else epsilon)
    numbers = {"begin": [0], "axis": [axis], "end": [2**31 - 1]}
    nodes = [helper.make_node("Constant", [], [name], value_ints=values) for name, values in numbers.items()]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    nodes += [
        helper.make_node("Constant", [], ["epsilon"], value_float=epsilon),
        helper.make_node("Flatten", ["X"], ["rows"], axis=axis),
        helper.make_node("Cast", ["rows"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["wide"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["mean", "mean"], ["square of mean"]),
        helper.make_node("Mul", ["wide", "wide"], ["square"]),
        helper.make_node("ReduceMean", ["square"], ["mean of square"], axes=[1], keepdims=1),
        helper.make_node("Sub", ["mean of square", "square of mean"], ["variance"]),
        helper.make_node("Add", ["variance", "epsilon"], ["added"]),
        helper.make_node("Sqrt", ["added"], ["deviation"]),
        helper.make_node("Sub", ["wide", "mean"], ["difference"]),
        helper.make_node("Div", ["difference", "deviation"], ["quotient"]),
        helper.make_node("Cast", ["quotient"], ["narrow"], to=_NUMBERS[types[1]]),
        helper.make_node("Flatten", ["scale"], ["row of scales"], axis=0),
        helper.make_node("Mul", ["narrow", "row of scales"], ["scaled"]),
    ]
    last = "scaled"
    if len(proto.input) > 2 and proto.input[2]:
        last = "biased"
        nodes += [
            helper.make_node("Flatten", ["bias"], ["row of biases"], axis=0),
            helper.make_node("Add", ["scaled", "row of biases"], ["biased"]),
        ]
    nodes += [helper.make_node("Shape", ["X"], ["sizes"]), helper.make_node("Reshape", [last, "sizes"], ["Y"])]
    if any(proto.output[1:]):
        nodes += [
            helper.make_node("Slice", ["sizes", "begin", "axis"], ["kept"]),
            helper.make_node("Slice", ["sizes", "axis", "end"], ["reduced"]),
            helper.make_node("Shape", ["reduced"], ["axes"]),
            helper.make_node("ConstantOfShape", ["axes"], ["ones"], value=one),
            # From the first axis on there are none.
            helper.make_node("Concat", ["kept", "ones"], ["reduced sizes"], axis=0)
            if axis
            else helper.make_node("Slice", ["sizes", "begin", "begin"], ["reduced sizes"]),
            helper.make_node("Reshape", ["mean", "reduced sizes"], ["Mean"]),
            helper.make_node("Reciprocal", ["deviation"], ["inverse"]),
            helper.make_node("Reshape", ["inverse", "reduced sizes"], ["InvStdDev"]),
        ]
    results = ["Y", "Mean", "InvStdDev"][: len(proto.output)]
    return helper.make_function("", proto.op_type, ["X", "scale", "bias"], results, nodes, [])


def _definition(proto: NodeProto, opset: int, types: Sequence[str]) -> FunctionProto | None:
    import onnx
    from onnx import defs, helper

    try:
        # The package's own type stubs lack its functions.
        schema: Any = defs.get_schema(proto.op_type, opset)
    except defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        if not versions:
            return None
        kinds = [
            helper.make_tensor_type_proto(_NUMBERS[kind], None) if kind in _NUMBERS else onnx.TypeProto()
            for kind in types
        ]
        raw = schema.get_context_dependent_function_with_opset_version(
            max(versions), proto.SerializeToString(), [kind.SerializeToString() for kind in kinds]
        )
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        if not versions or not _stays_valid(schema, max(versions), opset):
            return None
        raw = schema.get_function_with_opset_version(max(versions))
    else:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(raw)
    return function


@lru_cache(maxsize=256)
def _version(op_type: str, opset: int) -> int:
    from onnx import defs

    return int(defs.get_schema(op_type, opset).since_version)


def _stays_valid(schema: Any, written: int, opset: int) -> bool:
    """Whether no operator of the definition has changed since it was written."""
    import onnx

    function = onnx.FunctionProto()
    function.ParseFromString(schema.get_function_with_opset_version(written))
    return all(_version(node.op_type, written) == _version(node.op_type, opset) for node in function.node)


def _substituted(
    function: FunctionProto, proto: NodeProto, opset: int, unique: Callable[[str], str]
) -> list[NodeProto]:
    """The definition's nodes with the node's names and attributes in place of the formal ones."""
    import onnx
    from onnx import defs

    names = dict.fromkeys((*function.input, *function.output), "")
    names.update(zip(function.input, proto.input, strict=False))
    names.update((formal, actual) for formal, actual in zip(function.output, proto.output, strict=False) if actual)
    label = proto.name or proto.output[0]
    for node in function.node:
        names.update((name, unique(f"{label}/{name}")) for name in node.output if name and name not in names)
    given = {entry.name: entry for entry in proto.attribute}
    if proto.domain != MICROSOFT and defs.has(proto.op_type, opset):
        for name, entry in defs.get_schema(proto.op_type, opset).attributes.items():
            if entry.default_value.name:
                given.setdefault(name, entry.default_value)
    nodes = []
    for formal_node in function.node:
        node = onnx.NodeProto()
        node.CopyFrom(formal_node)
        node.name = f"{label}/{formal_node.name or formal_node.output[0]}"
        for values in (node.input, node.output):
            for position, name in enumerate(values):
                values[position] = names[name] if name else ""
        del node.attribute[:]
        node.attribute.extend(_attributes(formal_node, given))
        for entry in node.attribute:
            _rename(entry.g, names, given)
        nodes.append(node)
    return nodes


def _rename(graph: GraphProto, names: Mapping[str, str], given: Mapping[str, AttributeProto]) -> None:
    """Puts names and attributes of the node in a graph that the definition calls, but for what the graph computes."""
    own = {name for node in graph.node for name in node.output}
    names = {name: actual for name, actual in names.items() if name not in own}
    for node in graph.node:
        for position, name in enumerate(node.input):
            node.input[position] = names.get(name, name)
        attributes = _attributes(node, given)
        del node.attribute[:]
        node.attribute.extend(attributes)
        for entry in node.attribute:
            _rename(entry.g, names, given)


def _attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> list[AttributeProto]:
    """Attributes that refer to one of the function get its value; those that it leaves open are left out."""
    import onnx

    found = []
    for entry in node.attribute:
        actual = given.get(entry.ref_attr_name) if entry.ref_attr_name else entry
        if actual is not None:
            named = onnx.AttributeProto()
            named.CopyFrom(actual)
            named.name = entry.name
            found.append(named)
    return found
