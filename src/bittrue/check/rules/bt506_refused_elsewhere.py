"""BT506: nodes that another way of running the same file refuses."""

from __future__ import annotations

from collections.abc import Iterator

from ..families import others, title
from ..finding import Finding
from ..refusals import NO_ROW, kind_of
from ..rule import Rule, Subject
from ..surveys import in_file, survey


def find(subject: Subject) -> Iterator[Finding]:
    """Nodes that this numerics plans and another one of the family refuses."""
    own = {refusal.node.index for refusal in survey(subject).refused}
    for numerics, name in others(subject):
        made = survey(subject, numerics)
        for refusal in made.refused:
            # What the other table has no row for says little about the runtime.
            if refusal.node.index in own or kind_of(refusal) == NO_ROW:
                continue
            graph, node = in_file(subject, made, refusal.node)
            yield RULE.finding(
                f"{name} refuses this {refusal.node.source}, which {title(subject)} run: {refusal.error.message}",
                graph=graph,
                node=node,
                place=refusal.error.place,
                found=refusal.error.code,
                advice=refusal.error.advice,
                numbers={"numerics": numerics.name},
            )


RULE = Rule(
    code="BT506",
    name="refused-elsewhere",
    severity="warning",
    what="Every way of running the file takes every node that the checked one takes: reference kernels, optimised"
    " kernels, and the default delegate.",
    why="A model that passes with reference kernels can fail to load in an application, which opens it with XNNPACK by"
    " default. When XNNPACK fails in preparing a node that it took, the whole model fails, not the node alone.",
    enforced="XNNPACK: per-tensor s8 filters of convolutions with a zero point, weights and bias of different"
    " granularity, multipliers of 256 and more, subnormal scales, unequal parameters of PAD, SLICE, STRIDED_SLICE,"
    " TRANSPOSE, SPLIT, SPACE_TO_DEPTH and DEPTH_TO_SPACE (docs/facts/xnnpack.md 1.2, run). Reference kernels lack ELU"
    " and the newest versions of some operators (docs/facts/litert.md 2.0, run).",
    fix="Fix what the finding names, or pin the kernels that the application uses.",
    source="docs/facts/xnnpack.md 1.2, docs/facts/litert.md 2.0 (run)",
    find=find,
    formats=("tflite",),
)
