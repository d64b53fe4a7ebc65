"""BT411: parameters of QLinearConv and QLinearMatMul in shapes that they do not take."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from ...operators import find as find_operator
from ...operators.core.role_quantization import at, role_of
from ..finding import Finding
from ..onnx_operands import known_shape, shown
from ..rule import Rule, Subject

_SINGLE = ((), (1,))


# What the file's operators call the operands of these roles.
_NAMES = {
    "QLinearConv": {"input": "x", "weights": "w", "output": "y"},
    "QLinearMatMul": {"first input": "a", "second input": "b", "output": "y"},
}
# (tensor, operand, expected shape, severity of a finding)
Problems = Iterator[tuple[int, str, str, str]]


def _parameters(node: Node, name: str) -> list[tuple[int, str]]:
    """Tensors that hold scale and zero point of an operand, and their names."""
    operator, names = find_operator(node.operator), _NAMES[node.source]
    role = role_of(operator, *(role for role, one in names.items() if one == name))
    given = [] if role is None else [at(node.inputs, role.scale), at(node.inputs, role.zero_point)]
    named = zip(given, (f"{name}_scale", f"{name}_zero_point"), strict=False)
    return [(index, text) for index, text in named if index is not None]


def _shape(subject: Subject, graph: Graph, node: Node, *roles: str) -> tuple[int, ...] | None:
    role = role_of(find_operator(node.operator), *roles)
    index = None if role is None else at(node.inputs, role.position)
    return None if index is None else known_shape(subject, graph, index)


def _convolution(subject: Subject, graph: Graph, node: Node) -> Problems:
    for name in ("x", "y"):
        for index, operand in _parameters(node, name):
            if known_shape(subject, graph, index) not in (None, *_SINGLE):
                yield index, operand, "a scalar", ""
    filters = _shape(subject, graph, node, "weights")
    if not filters:
        return
    for index, operand in _parameters(node, "w"):
        if known_shape(subject, graph, index) not in (None, *_SINGLE, filters[:1]):
            yield index, operand, f"a scalar or [{filters[0]}]", ""
    bias = role_of(find_operator(node.operator), "bias")
    addend = at(node.inputs, bias.position) if bias is not None else None
    if addend is not None and known_shape(subject, graph, addend) not in (None, filters[:1]):
        yield addend, "bias", f"[{filters[0]}]", ""


def _product(subject: Subject, graph: Graph, node: Node) -> Problems:
    left, right = (_shape(subject, graph, node, name) for name in ("first input", "second input"))
    for name in ("a", "y"):
        for index, operand in _parameters(node, name):
            found = known_shape(subject, graph, index)
            if found in (None, *_SINGLE):
                continue
            # The specification lets rows of a and y have scales of their own.
            rows = left is not None and len(left) > 1 and found in (left[-2:-1], (*left[:-1], 1))
            yield index, operand, "a scalar", "warning" if rows else ""
    if right is not None and len(right) > 1:
        columns = (right[-1:], (*right[:-2], 1, right[-1]))
        for index, operand in _parameters(node, "b"):
            if known_shape(subject, graph, index) not in (None, *_SINGLE, *columns):
                yield index, operand, f"a scalar or [{right[-1]}]", ""


def find(subject: Subject) -> Iterator[Finding]:
    """Each operand of a shape that the operator has no meaning for."""
    for graph, node in subject.nodes("QLinearConv", "QLinearMatMul"):
        problems = _convolution if node.source == "QLinearConv" else _product
        for index, role, expected, severity in problems(subject, graph, node):
            tensor = graph.tensors[index]
            found = shown(known_shape(subject, graph, index) or ())
            yield RULE.finding(
                f"{role} '{tensor.name}' of {node.source} has shape {found}, expected {expected}"
                + ("; the specification allows one per row, ONNX Runtime does not" if severity else ""),
                graph=graph,
                node=node,
                tensor=tensor,
                severity=severity,
                place=role,
                expected=expected,
                found=found,
                advice=f"give {role} the shape {expected}",
            )


RULE = Rule(
    code="BT411",
    name="qlinear-parameters",
    severity="error",
    what="QLinearConv has scalars for scale and zero point of x and y, a scalar or one value per output channel for w,"
    " and a bias [M]. QLinearMatMul has scalars or one value per column for b, and scalars for a and y (a warning for"
    " one per row, which the specification allows).",
    why="Any other shape has no meaning for the operator.",
    enforced="onnx.checker does not look. ONNX Runtime 1.31 loads the model and fails when it runs, for scales per row"
    " of a and y as well; it takes one scale beside several zero points of w, and the other way round (run). A bias"
    " that is not int32 is refused at load. bittrue refuses the plan (BT-QUANT-AXIS, BT-BIAS-LENGTH).",
    fix="Give the operands the shapes above.",
    source="ONNX operators QLinearConv 10, QLinearMatMul 10 and 21 (read); ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)
