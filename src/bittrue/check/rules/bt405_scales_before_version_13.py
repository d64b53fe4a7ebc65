"""BT405: several scales in operator sets that know one per tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..finding import Finding
from ..linear import linear_nodes
from ..onnx_operands import shown
from ..rule import Rule, Subject

_SINCE = 13


def find(subject: Subject) -> Iterator[Finding]:
    """Each node of version 10 with several scales."""
    for one in linear_nodes(subject):
        contributed = one.node.attributes.get("domain", "") != ""
        if contributed or one.node.version >= _SINCE or one.scale_shape is None or math.prod(one.scale_shape) == 1:
            continue
        yield RULE.finding(
            f"scale '{one.scale.name}' has shape {shown(one.scale_shape)}, but version {one.node.version} of"
            f" {one.node.source} has one scale for the tensor",
            graph=one.graph,
            node=one.node,
            tensor=one.scale,
            expected="a scalar",
            found=shown(one.scale_shape),
            advice="export with operator set 13 or later, and set axis",
        )


RULE = Rule(
    code="BT405",
    name="scales-before-version-13",
    severity="error",
    what="In operator sets 10 to 12 the scale of QuantizeLinear and DequantizeLinear is a scalar. Scales per axis came"
    " with operator set 13, scales per block with 21.",
    why="Version 10 has no attribute `axis`, so nothing says which axis several scales belong to.",
    enforced="onnx.checker does not look. ONNX Runtime 1.31 takes axis 1 and runs the model (run); other runtimes"
    " refuse it.",
    fix="Raise the operator set to 13.",
    source="ONNX operators QuantizeLinear 10 and 13 (read); onnx 1.23.2, ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)
