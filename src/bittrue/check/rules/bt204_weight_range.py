"""Weights within [-127, 127]."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...graph import Tensor
from ..finding import Finding
from ..operands import specified_places
from ..rule import Rule, Subject
from ..specification import SOURCE


def find(subject: Subject) -> Iterator[Finding]:
    """Constant int8 weights that hold -128: how many, and the first one."""
    known: dict[int, tuple[int, tuple[int, ...]]] = {}
    for place in specified_places(subject, "weight", ("s8", "s16")):
        tensor = place.tensor
        if tensor.dtype != "s8" or not tensor.is_constant:
            continue
        if id(tensor) not in known:
            known[id(tensor)] = _outside(tensor)
        count, first = known[id(tensor)]
        if not count:
            continue
        axis = place.operand.axis or 0
        channel = first[axis] if axis < len(first) else 0
        yield RULE.finding(
            f"-128 in {count:,} of {math.prod(tensor.shape):,} weights, expected [-127, 127]; the first one is "
            f"{list(first)}, in output channel {channel}",
            graph=place.graph,
            node=place.node,
            tensor=tensor,
            severity=place.severity,
            place=f"element {list(first)}",
            expected="[-127, 127]",
            found=-128,
            advice="clamp the weights to -127, and check the accuracy; or quantize them again with scale = max|w| "
            "/ 127",
            numbers={"count": count, "channel": channel},
        )


def _outside(tensor: Tensor) -> tuple[int, tuple[int, ...]]:
    """How many quantized values are -128, and the indices of the first one."""
    wrong = tensor.values() == -128
    count = int(np.count_nonzero(wrong))
    return count, tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape)) if count else ()


RULE = Rule(
    code="BT204",
    name="weight-range",
    severity="error",
    what="int8 weights of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED lie within [-127, 127].",
    why="Symmetric weights have no -128. Hardware may negate weights or add up two products in 16 bits, and both need "
    "the range: -(-128) is no int8, and (-128)(-128) + (-128)(-128) is no int16.",
    enforced="LiteRT's reference, optimized and XNNPACK kernels use -128 as it is (run): the model runs there and goes "
    "wrong on the chip. Converters write values within the range (run).",
    fix="Set -128 to -127 and measure the accuracy, or quantize the weights again with scale = max|w| / 127.",
    source=SOURCE,
    find=find,
    formats=("tflite",),
)
