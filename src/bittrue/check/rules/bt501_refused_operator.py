"""BT501: every node that the runtime refuses, or aborts on."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ResourceError
from ..finding import Finding
from ..open_sizes import open_sizes
from ..refusals import REFUSED, refusals
from ..rule import Rule, Subject
from ..surveys import in_file


def find(subject: Subject) -> Iterator[Finding]:
    """Each refused node with its own error, also those behind the first one."""
    for made, refusal in refusals(subject, REFUSED):
        error = refusal.error
        graph, node = in_file(subject, made, refusal.node)
        sizes = open_sizes(subject, error)
        yield RULE.finding(
            f"{subject.numerics.name} refuses this {refusal.node.source}: {error.message}{sizes}",
            graph=graph,
            node=node,
            severity="note" if sizes or isinstance(error, ResourceError) else "",
            place=error.place,
            found=error.code,
            advice=error.advice,
        )


RULE = Rule(
    code="BT501",
    name="refused-operator",
    severity="error",
    what="The runtime runs every node with the types, shapes and parameters that the file gives it. Every node that it"
    " refuses is named with the code of the refusal; nodes behind it are looked at with the shapes that the file"
    " declares.",
    why="The interpreter refuses the whole model when it prepares the node, or the process aborts (ADD and"
    " SQUARED_DIFFERENCE with an output multiplier of 1 and more, SOFTMAX with beta * scale * 2^26 <= 1, comparisons"
    " of tensors with scale 1: failed assertions inside of kernels, which no exception handler catches).",
    enforced="The runtime itself, in Prepare or Invoke; bittrue's tables repeat its checks (`requires` of the rows)"
    " and were held against it with random models. A note is a limit of memory of bittrue's own, or may"
    " come from sizes of inputs that the file leaves open (--shape gives them).",
    fix="The code says what: BT-QUANT-SAME wants a requantization in front of the operator, BT-MULTIPLIER an output"
    " scale that is not far below the input's, BT-QUANT-OUTPUT the fixed output parameters of its function,"
    " BT-BIAS-TYPE the option quantized_bias_type that says how the bias of 16-bit layers is read.",
    source="fact sheets of LiteRT (2.1 to 2.4), XNNPACK (1.2) and ONNX Runtime (3.4): run",
    find=find,
)
