"""Zero points of activations lie among the values of their type."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding
from ..operands import activations, scheme
from ..rule import Rule, Subject
from ..specification import SOURCE

_RANGES = {"s8": (-128, 127), "u8": (0, 255), "s16": (0, 0)}


def find(subject: Subject) -> Iterator[Finding]:
    """Activations with a zero point that their type does not have; int16 ones with any but 0."""
    for graph, node, title, tensor in activations(subject):
        if tensor.dtype == "s16" and (node is None or scheme(graph, node) != "s16"):
            # What int8 operators make int16 (SOFTMAX, QUANTIZE) may have any.
            continue
        low, high = _RANGES[tensor.dtype]
        assert tensor.quantization is not None
        points = tensor.quantization.zero_points
        wrong = (points < low) | (points > high)
        if not wrong.any():
            continue
        worst = int(wrong.argmax())
        expected = f"[{low}, {high}]" if low < high else str(low)
        yield RULE.finding(
            f"zero point {int(points[worst])} of an {tensor.type.title} activation ({title}), expected {expected}",
            graph=graph,
            node=node,
            tensor=tensor,
            severity="error" if tensor.dtype == "s8" else "warning",
            place=f"slice {worst}" if points.size > 1 else "",
            expected=expected,
            found=int(points[worst]),
            advice="quantize the tensor so that its range includes 0; then its zero point is one of its values",
        )


RULE = Rule(
    code="BT203",
    name="activation-zero-point",
    severity="error",
    what="Zero points of int8 activations lie within [-128, 127]. Beyond the specification: those of uint8 within "
    "[0, 255], those of int16 are 0.",
    why="Padding and fused activations store the zero point as a value; one outside of the type cannot be stored, and "
    "hardware has 8 bits for it.",
    enforced="SUB and SQUARED_DIFFERENCE of LiteRT check the range, other int8 kernels do not; int16 kernels demand 0 "
    "(run).",
    fix="Quantize again with a range that includes 0: zero_point = round(low - min / scale).",
    source=SOURCE + "; int16: facts sheet of LiteRT (run)",
    find=find,
    formats=("tflite",),
)
