"""Activations with one scale per tensor."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import activations
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Activations with a scale per slice."""
    for found in activations(subject):
        tensor = found.tensor
        quantization = tensor.quantization
        if quantization is not None and quantization.per_axis:
            yield RULE.finding(
                f"{quantization.scales.size} scales along dimension {quantization.axis} of an activation "
                f"({found.title}), expected one per tensor",
                graph=found.graph,
                node=found.node,
                tensor=tensor,
                severity="error" if tensor.dtype == "s8" else "warning",
                place=f"dimension {quantization.axis}",
                expected="per-tensor",
                found="per-axis",
                advice="give the tensor one scale and one zero point, and quantize its values again",
                numbers={"scales": quantization.scales.size},
            )


RULE = Rule(
    code="BT206",
    name="activation-granularity",
    severity="error",
    what="Activations are quantized per tensor: one scale, one zero point.",
    why="Products of an input with several scales along the summed dimension cannot be added as integers.",
    enforced="LiteRT reads scale 0 and zero point 0 for such a tensor: CONV_2D stores the output's zero point "
    "everywhere, ADD aborts the process, RESHAPE copies the quantized values (run). QUANTIZE and DEQUANTIZE take "
    "per-axis tensors.",
    fix="Quantize the tensor with one scale. Constants may be dequantized instead (DEQUANTIZE).",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)
