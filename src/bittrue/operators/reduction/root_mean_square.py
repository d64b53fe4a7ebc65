"""root_mean_square: rows over the root of the mean of their squares, perhaps times a scale.

Operands: x [..., G * C], scale [C]; every C neighbours are a row, or, without a scale, all of the last axis.
y = x * f32(1 / sqrt(f32(s / C) + epsilon)) * scale, where s adds the squares from the first element to the last by the
slot `multiply_add`, but with `in_fours`, in rows of 10 and more, rounded squares of whole fours; every other operation
is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step

_LONG = 10


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect((1, 2))
    x = call.input(0)
    if not call.has(1):
        call.rank(x, 1, 8)
        return [x.shape]
    scale = call.input(1)
    if not scale.size or not x.rank or x.shape[-1] % scale.size:
        raise call.invalid(
            "BT-NORMALIZATION-SHAPE", f"{scale.size} scales do not divide the last axis of {list(x.shape)}"
        )
    return [x.shape]


def lower(call: Call) -> Lowered:
    """Epsilon, as a binary32 number, and the length of rows."""
    epsilon = float(np.float32(call.attribute("epsilon")))
    length = call.input(1).size if call.has(1) else call.input(0).shape[-1]
    in_fours = call.node.attributes.get("in_fours") and length >= _LONG
    apart = {"apart": length // 4 * 4} if in_fours else {}
    return Lowered({"epsilon": epsilon, "length": length, **apart}, scratch=16 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Row by row."""
    x, length = inputs[0], step["length"]
    if not x.size:
        return [x.copy()]
    rows, rule = x.reshape(-1, length), multiply_add.RULES[step.rules["multiply_add"]]
    with np.errstate(all="ignore"):
        sums: np.ndarray = np.zeros((len(rows), 1), np.float32)
        apart = int(step["apart"]) if "apart" in step.parameters else 0
        for column in range(length):
            one = rows[:, column : column + 1]
            adding = multiply_add.RULES["rounded_twice"] if column < apart else rule
            sums = adding.apply(one, one, sums)
        result = rows * (np.float32(1) / np.sqrt(sums / np.float32(length) + np.float32(step["epsilon"])))
        if len(inputs) > 1:
            result = result * inputs[1].reshape(-1)
        return [result.reshape(x.shape)]


OPERATOR = Operator(
    "root_mean_square", ("multiply_add",), infer, lower, reference, "rows over the root of the mean of their squares"
)
