"""Exact accumulators of a whole step, and how far its unrounded results are from ties.

The sums come from the reference kernels themselves, run with a rescale by 1 and without clamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..graph import Attribute
from ..operators import Operator, Step, find
from ..plan import Plan
from .late import settled

Inputs = Sequence["np.ndarray | None"]
# The rule that leaves integers below 2^53 alone when the factor is 1.
_PLAIN = {"rescale": "binary64_multiply_even", "store": "clamp_alone"}
_OPEN: dict[str, Attribute] = {
    "low": -(2**62),
    "high": 2**62,
    "output_zero_point": 0,
    "dtype": "s64",
    "output_dtype": "s64",
}


def accumulators(plan: Plan, step: Step, inputs: Inputs) -> np.ndarray | None:
    """What a step's accumulators hold before they are rescaled, s64 in the shape of its output.

    Args:
        plan: the step's plan.
        step: an accumulating layer on integers.
        inputs: one array per input of the step, None where it is absent.

    None for other steps, for layers whose scales only running tells, and where sums may leave 2^53.
    """
    step, bound = settled(step, inputs), step.accumulator
    if bound is None or bound.magnitude >= 2**53 or "accumulate" not in step.rules or step.parameters.get("late"):
        return None
    if step.rules["accumulate"] not in ("s32_wrap", "s16_pairs_s32_wrap", "s64"):
        return None
    operator = find(step.operator)
    scaled = {"rescale", "requantize"} & step.rules.keys() or "first_scale" in step.arrays
    if operator is None or not operator.multiplies or not scaled:
        return _as_it_is(step, inputs)
    return _layer(operator, step, list(inputs))


def _layer(operator: Operator, step: Step, inputs: list[np.ndarray | None]) -> np.ndarray:
    alone = replace(
        step,
        rules={"accumulate": step.rules["accumulate"], **_PLAIN},
        parameters={**step.parameters, **_OPEN},
        arrays={**{name: a for name, a in step.arrays.items() if "zero_point" in name}, "factor": np.ones(1)},
    )
    return np.asarray(operator.reference(alone, inputs)[0])


def _as_it_is(step: Step, inputs: Inputs) -> np.ndarray | None:
    operator = find(step.operator)
    if operator is None or step.rules["accumulate"] == "binary32" or len(step.rules) > 1:
        return None
    return np.asarray(operator.reference(step, inputs)[0]).astype(np.int64)


def channel_axis(step: Step, rank: int) -> int:
    """The axis of the output that prepared multipliers go with."""
    operator = find(step.operator)
    if operator is None or "S" not in operator.weights:
        return rank - 1
    return rank - 1 if step.parameters.get("channels_last") else 1


def _channelwise(step: Step, rank: int, name: str) -> np.ndarray | None:
    """Prepared values of one or all channels, ready to meet accumulators of `rank` axes."""
    array = step.arrays.get(name)
    if array is None or array.ndim > 1:
        return None
    shape = [1] * rank
    if array.size > 1:
        shape[channel_axis(step, rank)] = array.size
    return array.reshape(shape) if array.size == 1 or rank else None


def tie_distances(step: Step, acc: np.ndarray) -> np.ndarray | None:
    """How far acc times the plan's multiplier is from the nearest tie, 0 to 1/2, binary64, in the shape of `acc`.

    Exact before the last rounding to binary64 for encoded multipliers (the product has at most 62 bits), and for
    binary32 factors of accumulators below 2^29. None where the plan holds no multiplier for every channel.
    """
    encoded, exponent = (_channelwise(step, acc.ndim, name) for name in ("multiplier", "exponent"))
    if encoded is not None and exponent is not None:
        bits = 15 if step.rules.get("rescale", "").startswith("q15") else 31
        right = np.clip(bits - exponent.astype(np.int64), 0, 62)
        if bits == 31 and int(np.abs(acc).max(initial=0)) >= 2**32:
            return None
        behind = (acc * encoded.astype(np.int64)) & (np.left_shift(np.int64(1), right) - 1)
        return np.abs(np.ldexp(behind.astype(np.float64), -right) - 0.5)
    factor = _channelwise(step, acc.ndim, "factor")
    if factor is None:
        return None
    product = (
        acc.astype(np.float64) * factor.astype(np.float64) / (256 if step.rules["rescale"] == "q8_one_step_up" else 1)
    )
    return np.abs(product - np.floor(product) - 0.5)
