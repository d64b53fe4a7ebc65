"""BT612: fused activations and clamps that leave a single quantized value."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject
from ..surveys import in_file, survey


def find(subject: Subject) -> Iterator[Finding]:
    """See `RULE`."""
    made = survey(subject)
    for step in made.steps:
        low, high = step.parameters.get("low"), step.parameters.get("high")
        if not isinstance(low, int) or not isinstance(high, int) or isinstance(low, bool) or low < high:
            continue
        graph, node = in_file(subject, made, step)
        output = made.graph.tensors[step.outputs[0]]
        activation = node.attributes.get("activation", "none") if node is not None else "none"
        yield RULE.finding(
            f"the clamp to [{low}, {high}] leaves the one quantized value {high} of '{output.name}' for every input"
            + (f" (fused {activation})" if activation != "none" else ""),
            graph=graph,
            node=node,
            tensor=output,
            expected="low < high",
            found=f"[{low}, {high}]",
            advice="the output's scale or zero point does not go with its activation: calibrate it again",
            numbers={"low": low, "high": high},
        )


RULE = Rule(
    "BT612",
    "clamped-to-one-value",
    "error",
    what="The range that a fused activation leaves, [zero point + round(lower / scale), zero point + round(upper /"
    " scale)] within the type, holds at least two quantized values.",
    why="With a zero point at the top of the type RELU leaves one quantized value, with a huge scale RELU6 "
    "does: the output is"
    " constant. Where the lower end is above the upper one, the quantized value is the upper end.",
    enforced="LiteRT clamps with min(max(x, low), high) and does not look (fact sheet 1.6, run). XNNPACK refuses the"
    " model when RELU leaves one quantized value (docs/facts/xnnpack.md, run).",
    fix="Calibrate the output behind its activation: for RELU the zero point is the smallest quantized value "
    "of the type.",
    find=find,
    source="docs/facts/litert.md 1.6 (run)",
)
