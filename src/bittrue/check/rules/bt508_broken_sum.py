"""BT508: SUM of signed values, which LiteRT's reference kernel computes wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each SUM of s8 or s16 values."""
    for graph, node in subject.nodes("SUM"):
        source = graph.tensors[node.inputs[0]] if node.inputs and node.inputs[0] is not None else None
        if source is None or source.dtype not in ("s8", "s16"):
            continue
        wrong = (
            "reads and stores the quantized values as unsigned bytes"
            if source.dtype == "s8"
            else "reads the first bytes of them"
        )
        yield RULE.finding(
            f"SUM of {source.type.title} quantized values: LiteRT's reference kernel {wrong}, its result means "
            "nothing; optimised"
            " kernels and XNNPACK compute it in binary32, bittrue by the formula that is meant",
            graph=graph,
            node=node,
            tensor=source,
            found=source.dtype,
            expected="u8 or real numbers",
            advice="use MEAN with an output scale divided by the number of elements, or run with optimised kernels"
            " only" + (". --numerics litert-as-compiled gives the kernel's own bits" if source.dtype == "s8" else ""),
        )


RULE = Rule(
    code="BT508",
    name="broken-sum",
    severity="warning",
    what="No SUM of s8 or s16 values where reference kernels may run it. The 8-bit specification has the operator, and"
    " the TensorFlow converter emits it.",
    why="The reference kernel of LiteRT (up to 2.3.0) and TensorFlow 2.21 takes the quantized values for "
    "uint8 and clamps the"
    " result to 0..255: not an inaccuracy, but other numbers. TensorFlow Lite Micro has kernels of its own.",
    enforced="Nobody. LiteRT issue 4079 and pull request 7855 are open. "
    "`litert-as-compiled` has the bits of s8; of s16 the kernel writes the first half of the"
    " bytes alone.",
    fix="Replace it with MEAN and an output scale that is smaller by the number of elements added.",
    source="LiteRT fact sheet 2.4 (run: the fault was reproduced bit for bit)",
    find=find,
    formats=("tflite",),
)
