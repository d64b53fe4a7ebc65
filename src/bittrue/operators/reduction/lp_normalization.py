"""lp_normalization: rows along an axis divided by their length: the sum of magnitudes, or the Euclidean one.

Rules of the slot `normalize` divide the last axis by the Euclidean length, of quantized values, too; those of
`real_normalization` take any axis of real numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import normalize, real_normalization
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.elementwise import BLOCK
from ..core.functions import LENGTH_ONE


def infer(call: Call) -> list[Shape]:
    """The input's shape, rank 1 or more; a fused activation is refused."""
    call.expect(1)
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    activation = call.node.attributes.get("activation", "none")
    if activation != "none":
        raise call.invalid("BT-ACTIVATION", f"fused activation '{activation}' is refused here")
    return [source.shape]


def lower(call: Call) -> Lowered:
    """The axis and the kind of length; zero points and the output's range."""
    source, output, p = call.input(0), call.output, int(call.attribute("p"))
    axis = call.axis(int(call.attribute("axis")), source.rank)
    if p not in (1, 2):
        raise call.invalid("BT-NORM-P", f"p is {p}, expected 1 or 2")
    if "real_normalization" in call.rules:
        return Lowered(parameters={"axis": axis, "p": p}, scratch=64 * source.size)
    if p != 2 or axis != source.rank - 1:
        raise call.unsupported("BT-NORM-P", f"no rule for axis {axis} and p = {p}: the last axis and p = 2 are needed")
    parameters: dict[str, int] = {}
    if source.type.is_integer:
        parameters = {
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
        }
    return Lowered(parameters=parameters, work=2 * source.size, scratch=64 * max(BLOCK, source.shape[-1]))


def _along(step: Step, x: np.ndarray) -> np.ndarray:
    if not x.size:
        return x.copy()
    moved = np.moveaxis(x, step["axis"], -1)
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    rows = rule.by_length(np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]), step["p"])
    return np.ascontiguousarray(np.moveaxis(rows.reshape(moved.shape), -1, step["axis"]))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows in blocks, or along any axis."""
    x = inputs[0]
    if "real_normalization" in step.rules:
        return [_along(step, x)]
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
    "lp_normalization",
    ("normalize", "real_normalization"),
    infer,
    lower,
    reference,
    "rows along an axis over their length",
    function=LENGTH_ONE,
)
