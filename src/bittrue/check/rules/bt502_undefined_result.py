"""BT502: nodes that the runtime takes and has no defined result for."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..refusals import UNDEFINED, refusals
from ..rule import Rule, Subject
from ..surveys import in_file


def find(subject: Subject) -> Iterator[Finding]:
    """Each node that a row of the numerics refuses as undefined."""
    for made, refusal in refusals(subject, UNDEFINED):
        graph, node = in_file(subject, made, refusal.node)
        yield RULE.finding(
            refusal.error.message,
            graph=graph,
            node=node,
            place=refusal.error.place,
            found=refusal.error.code,
            advice=refusal.error.advice,
        )


RULE = Rule(
    code="BT502",
    name="undefined-result",
    severity="error",
    what="No node falls into what the runtime's kernels take without a check and then compute by chance: wrong types"
    " read as others, memory past the end of tensors, operators that only exist in one of its resolvers.",
    why="Outputs are meaningless, differ from run to run or damage the heap. SVDF with an int8 state or int8"
    " weights_time (an extension of microcontrollers) makes LiteRT read and write twice the memory that there is; it"
    " prints an output and dies later, or does not.",
    enforced="Nobody: that is the trouble. LiteRT 2.3.0 runs such models (SIGSEGV or 'malloc' errors afterwards, run"
    " in a process of its own); bittrue refuses to give a result.",
    fix="Convert the operator with the types that its kernel was written for. The finding says which.",
    source="LiteRT fact sheet 2.1, 4.3 (run), docs/facts/onnxruntime.md 3.4 (run)",
    find=find,
)
