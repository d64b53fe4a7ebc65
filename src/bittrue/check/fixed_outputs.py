"""Operators whose output has one scale and zero point that are allowed: what their five rules share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .finding import Finding
from .operands import parameters, scheme, tensor_at
from .rule import Rule, Subject
from .specification import SOURCE, SPECIFICATION

# LiteRT's int16 kernels of these operators store fractions of 2^15.
_INT16 = ("SOFTMAX", "LOGISTIC", "TANH")


def fixed_output(code: str, source: str, why: str, enforced: str) -> Rule:
    """The rule for the output of one operator."""
    fixed = SPECIFICATION[source].fixed
    assert fixed is not None
    title = source.replace("_", "-").lower()

    def find(subject: Subject) -> Iterator[Finding]:
        for graph, node in subject.nodes(source):
            kind, output = scheme(graph, node), tensor_at(graph, node, "output", 0)
            if output is None or output.dtype != kind or output.quantization is None:
                continue
            scale, zero_point = np.float32(fixed.scale), fixed.zero_point
            if kind == "u8":
                zero_point += 128
            elif kind == "s16":
                if source not in _INT16:
                    continue
                scale, zero_point = np.float32(2**-15), 0
            quantization = output.quantization
            if (quantization.scales == scale).all() and (quantization.zero_points == zero_point).all():
                continue
            expected = f"scale {float(scale):.9g} zero point {zero_point}"
            yield rule.finding(
                f"output of {source} has {parameters(output)}, expected {expected}",
                graph=graph,
                node=node,
                tensor=output,
                severity="error" if kind == "s8" else "warning",
                expected=expected,
                found=parameters(output),
                advice=f"set them to {expected}; where the tensor must keep its own, add a QUANTIZE behind {source}",
                numbers={"scale_ratio": float(quantization.scales[0]) / float(scale)},
            )

    rule = Rule(
        code=code,
        name=f"{title}-output",
        severity="error",
        what=f"The int8 output of {source} has (scale, zero point) = ({fixed.numerator}/{fixed.denominator}, "
        f"{fixed.zero_point}).",
        why=why,
        enforced=enforced,
        fix=f"Set scale {fixed.scale:.9g} and zero point {fixed.zero_point}; add a QUANTIZE behind the operator where "
        "what follows needs others.",
        source=SOURCE,
        find=find,
        formats=("tflite",),
    )
    return rule
