"""Types of the operands of int8 operators."""

from __future__ import annotations

from collections.abc import Iterator

from ...graph import data_type
from ...plan.support import node_types
from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Operands of int8 nodes with another type than the specification's."""
    for place in specified_places(subject):
        expected, found = data_type(place.operand.dtype), place.tensor.type
        if found.name == expected.name:
            continue
        inputs, outputs = node_types(place.graph, place.node)
        node = place.node
        runs = subject.numerics.runs(node.operator, node.source, node.version, inputs, outputs, node.attributes)
        verdict = (
            f"numerics '{subject.numerics.name}' runs it, other implementations of the specification need not"
            if runs
            else f"numerics '{subject.numerics.name}' has no arithmetic for it"
        )
        yield RULE.finding(
            f"{place.title} of an int8 {place.node.source} is {found.title}, expected {expected.title}; {verdict}",
            graph=place.graph,
            node=place.node,
            tensor=place.tensor,
            severity="warning" if runs else "error",
            expected=expected.title,
            found=found.title,
            advice="insert a QUANTIZE in front of it, or convert the model again with int8 activations and weights",
        )


RULE = Rule(
    code="BT201",
    name="operand-types",
    severity="error",
    what="Activations and weights of an int8 operator are int8, biases int32. A node counts as int8 when one of its "
    "activations is; QUANTIZE from or to other types is no part of the specification and is left alone.",
    why="Hardware that implements the specification has data paths for these types only. What else a runtime takes "
    "(int4 weights, int16 outputs of SOFTMAX) is its own extension.",
    enforced="LiteRT refuses combinations that its kernels do not have, and runs its extensions (run); a finding is a "
    "warning where the numerics that is checked for has a row for the types, else an error.",
    fix="Convert again with representative data and int8 activations; put a QUANTIZE between parts of different types.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)
