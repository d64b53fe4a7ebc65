"""l2_normalization: every row of the last axis divided by its Euclidean length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import normalize
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.functions import LENGTH_ONE


def infer(call: Call) -> list[Shape]:
    """The input's shape, rank 1 or more; a fused activation is refused."""
    call.expect(1)
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    if call.attribute("activation") != "none":
        raise call.invalid("BT-ACTIVATION", f"fused activation '{call.attribute('activation')}' is refused here")
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Zero points and the output's range."""
    source, output = call.input(0), call.output
    parameters: dict[str, int] = {}
    if source.type.is_integer:
        parameters = {
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
        }
    return Lowered(parameters=parameters, work=2 * source.size, scratch=64 * max(BLOCK, source.shape[-1]))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks."""
    x = inputs[0]
    rule = normalize.RULES[step.rules["normalize"]]
    out = np.empty(x.shape, x.dtype)
    if not out.size:
        return [out]
    rows, results = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
    per_block = max(1, BLOCK // rows.shape[1])
    for begin in range(0, rows.shape[0], per_block):
        block = rows[begin : begin + per_block]
        if x.dtype == np.float32:
            results[begin : begin + per_block] = rule(block)
        else:
            values = rule(block.astype(np.int64) - step["input_zero_point"]) + step["output_zero_point"]
            results[begin : begin + per_block] = np.clip(values, step["low"], step["high"])
    return [out]


OPERATOR = Operator(
    "l2_normalization", ("normalize",), infer, lower, reference, "rows scaled to length 1", function=LENGTH_ONE
)
