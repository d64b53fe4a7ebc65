"""BT510: the depth_multiplier of depthwise convolutions, which kernels do not read."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each depthwise convolution of quantized values whose option is not output channels / input channels."""
    for graph, node in subject.nodes("DEPTHWISE_CONV_2D"):
        declared = node.attributes.get("depth_multiplier")
        if not isinstance(declared, int) or len(node.inputs) < 2 or None in node.inputs[:2]:
            continue
        source, filters = (graph.tensors[i] for i in node.inputs[:2] if i is not None)
        if not source.type.is_integer or len(source.shape) != 4 or len(filters.shape) != 4 or not source.shape[3]:
            continue
        real = filters.shape[3] / source.shape[3]
        if real != declared:
            yield RULE.finding(
                f"depth_multiplier is {declared}, but {filters.shape[3]} output channels of {source.shape[3]} input"
                f" channels make it {real:g}",
                graph=graph,
                node=node,
                tensor=filters,
                expected=f"{real:g}",
                found=declared,
                advice="write the real multiplier into the file: tools that read the option build another layer",
            )


RULE = Rule(
    code="BT510",
    name="depth-multiplier",
    severity="warning",
    what="The option depth_multiplier of DEPTHWISE_CONV_2D is output channels / input channels.",
    why="LiteRT's kernels for integers divide the channels themselves and do not read the option; converters,"
    " compilers for accelerators and other importers read it. They disagree on what the layer is.",
    enforced="Ignored by LiteRT for integers (run with 0, 1, 2 and 7), checked by its kernels for real numbers.",
    fix="Write filters.shape[3] / input.shape[3].",
    source="LiteRT fact sheet 2.1 (run)",
    find=find,
    formats=("tflite",),
)
