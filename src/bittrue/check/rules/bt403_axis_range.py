"""BT403: axes that the tensor does not have."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..linear import linear_nodes
from ..rule import Rule, Subject

_DEFAULT = 1


def find(subject: Subject) -> Iterator[Finding]:
    """Each axis outside of [-r, r - 1]."""
    for one in linear_nodes(subject):
        if one.data_shape is None or one.axis_in_range or one.scale_shape is None:
            continue
        # Per tensor nobody reads the axis; the default says nothing.
        if one.per_tensor and one.axis == _DEFAULT:
            continue
        rank = len(one.data_shape)
        yield RULE.finding(
            f"axis {one.axis} lies outside of '{one.data.name}' of rank {rank}"
            + (", and is ignored since there is one scale" if one.per_tensor else ""),
            graph=one.graph,
            node=one.node,
            tensor=one.data,
            severity="note" if one.per_tensor else "",
            expected=f"{-rank} to {rank - 1}",
            found=one.axis,
            advice="leave the attribute out" if one.per_tensor else "set axis to the one that the scales belong to",
        )


RULE = Rule(
    code="BT403",
    name="axis-range",
    severity="error",
    what="`axis` lies in [-r, r - 1] with r the rank of the input. A note where there is one scale for the whole"
    " tensor and the axis is not used. The default of 1 is outside for vectors, so scales per element of a vector need"
    " axis = 0.",
    why="Scales belong to slices of that axis; there are none.",
    enforced="onnx.checker (1.23, full_check=True) does not look. ONNX Runtime 1.31 loads the model and fails when it"
    " runs ('axis ... is not in valid range') unless there is one scale, for which it ignores the axis. bittrue:"
    " BT-SHAPE-AXIS.",
    fix="Set `axis` to the axis of the scales. Biases [M] with a scale per channel need axis = 0.",
    source="ONNX operators QuantizeLinear 13 to 25 (read); onnx 1.23.2, ONNX Runtime 1.31.1 (run)",
    find=find,
    formats=("onnx",),
)
