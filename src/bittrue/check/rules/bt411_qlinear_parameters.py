"""BT411: parameters of QLinearConv and QLinearMatMul in shapes that they do not take."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import Graph, Node
from ..finding import Finding
from ..onnx_operands import known_shape, shown
from ..rule import Rule, Subject

_SINGLE = ((), (1,))


def _convolution(subject: Subject, graph: Graph, node: Node) -> Iterator[tuple[int, str, str, str]]:
    shapes = [None if i is None else known_shape(subject, graph, i) for i in node.inputs]
    filters = shapes[3]
    for position, role in ((1, "x_scale"), (2, "x_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        if shapes[position] not in (None, *_SINGLE):
            yield position, role, "a scalar", ""
    if not filters:
        return
    for position, role in ((4, "w_scale"), (5, "w_zero_point")):
        if shapes[position] not in (None, *_SINGLE, filters[:1]):
            yield position, role, f"a scalar or [{filters[0]}]", ""
    if len(shapes) > 8 and shapes[8] is not None and shapes[8] != filters[:1]:
        yield 8, "bias", f"[{filters[0]}]", ""


def _product(subject: Subject, graph: Graph, node: Node) -> Iterator[tuple[int, str, str, str]]:
    shapes = [None if i is None else known_shape(subject, graph, i) for i in node.inputs]
    left, right = shapes[0], shapes[3]
    for position, role in ((1, "a_scale"), (2, "a_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        found = shapes[position]
        if found in (None, *_SINGLE):
            continue
        # The specification lets rows of a and y have scales of their own.
        rows = left is not None and len(left) > 1 and found in (left[-2:-1], (*left[:-1], 1))
        yield position, role, "a scalar", "warning" if rows else ""
    if right is not None and len(right) > 1:
        columns = (right[-1:], (*right[:-2], 1, right[-1]))
        for position, role in ((4, "b_scale"), (5, "b_zero_point")):
            if shapes[position] not in (None, *_SINGLE, *columns):
                yield position, role, f"a scalar or [{right[-1]}]", ""


def find(subject: Subject) -> Iterator[Finding]:
    """Each operand of a shape that the operator has no meaning for."""
    for graph, node in subject.nodes("QLinearConv", "QLinearMatMul"):
        if len(node.inputs) < 8:
            continue
        problems = _convolution if node.source == "QLinearConv" else _product
        for position, role, expected, severity in problems(subject, graph, node):
            index = node.inputs[position]
            assert index is not None
            tensor = graph.tensors[index]
            found = shown(known_shape(subject, graph, index) or ())
            yield RULE.finding(
                f"{role} '{tensor.name}' of {node.source} has shape {found}, expected {expected}"
                + ("; the specification allows one per row, ONNX Runtime does not" if severity else ""),
                graph=graph,
                node=node,
                tensor=tensor,
                severity=severity,
                place=f"input {position}",
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
