"""Batch normalization of a tensor [N, C, ...] with a range, normalized by given statistics per channel.

Operands: x, gamma, beta, mean, variance, minimum and maximum of x. Attributes: `epsilon`, `minimum` and `maximum` of
the result. With known statistics and ranges the step reads x alone. Arrays: `factor` and `summand` per channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...rules import range_normalization
from ..core.base import Call, Lowered, Shape, Step
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..quantization.range_operands import check_range, given_ends, given_span, span


def infer(call: Call) -> list[Shape]:
    """The shape of x; statistics per channel (axis 1)."""
    call.expect(7)
    x = call.input(0)
    call.rank(x, 2, 5)
    for position in range(1, 5):
        if call.input(position).shape != (x.shape[1],):
            raise call.invalid(
                "BT-NORM-SHAPE",
                f"input {position} has shape {list(call.input(position).shape)}, expected [{x.shape[1]}]: one number "
                "per channel",
            )
    check_range(call, 5, 6)
    return [x.shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    rule = range_normalization.RULES[rules["range_normalization"]]
    factor, summand = rule.prepare(*values[1:5], known["epsilon"], span(values, 5), given_span(known))
    return {}, {"factor": factor, "summand": summand}


def lower(call: Call) -> Lowered:
    """What the rule makes of statistics and ranges."""
    epsilon = float(call.attribute("epsilon"))
    known = {**given_ends(call), "epsilon": epsilon, "type": call.input(0).dtype, "channels_last": False}
    if not known["calibrated"]:
        raise call.invalid("BT-RANGE-MISSING", "the range of the result must be given", "calibrate the model")
    parameters, arrays = prepare_now(call, range(1, 7), known, _prepare)
    return Lowered(parameters, arrays, inputs=None if parameters["late"] else (0,), scratch=24 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule, with factors and summands along axis 1, or the last one."""
    step = prepare_late(step, inputs, _prepare)
    x, rule = inputs[0], range_normalization.RULES[step.rules["range_normalization"]]
    behind = 0 if step["channels_last"] else x.ndim - 2
    factor, summand = (step.arrays[name].reshape(-1, *(1,) * behind) for name in ("factor", "summand"))
    return [rule.apply(x, step["type"], factor, summand).astype(np.int8)]
