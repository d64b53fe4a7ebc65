"""BT512: DIV of quantized values, which has no defined result for small numerators."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..rule import Rule, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Each DIV of quantized values."""
    for graph, node in subject.nodes("DIV"):
        if len(node.inputs) != 2 or None in node.inputs:
            continue
        first, second = (graph.tensors[i] for i in node.inputs if i is not None)
        if first.dtype not in ("s8", "u8", "s16") or first.quantization is None or second.quantization is None:
            continue
        divisor = second.quantization
        inside = not divisor.per_axis and second.type.minimum <= divisor.zero_points[0] <= second.type.maximum
        zero = " and stops at a divisor of 0, which this one can hold" if inside else ""
        yield RULE.finding(
            f"DIV of {first.type.title} quantized values shifts by more than 31 bits where the numerator is small "
            "beside the"
            f" divisor: the result is chance{zero}",
            graph=graph,
            node=node,
            tensor=second,
            found=first.dtype,
            advice="divide in real numbers, or multiply by the reciprocal when the divisor is constant. Where a product"
            " is shipped with this model, --numerics litert-as-compiled gives the bits that it has",
        )


RULE = Rule(
    code="BT512",
    name="quantized-division",
    severity="warning",
    what="No DIV of 8- and 16-bit values. The 8-bit specification does not have it.",
    why="LiteRT divides by a reciprocal in fixed point and shifts right by -e bits, which exceeds 31 for small"
    " numerators and large divisors: undefined in C++; on x86 the result is off by up to 254 quantized values. About 3 "
    "% of"
    " random operands do it. A divisor that is its zero point stops the run with an error.",
    enforced="LiteRT checks for a divisor of 0 while running, and nothing else (run). bittrue stops at undefined"
    " elements, but under `litert-as-compiled`, which has the bits of the released builds for x86-64 and aarch64.",
    fix="MUL with the reciprocal, or leave the division in real numbers.",
    source="LiteRT fact sheet 2.2 (run: 23 300 defined values, undefined ones reproduced on x86-64 and aarch64)",
    find=find,
    formats=("tflite",),
)
