"""relu: a change of scale followed by a clamp to an interval of real numbers, named by the attribute `activation`.

With slot `extreme` (its rules of vectors), max(x, low) of real numbers, and then the upper end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...records import replace
from ...rules import activation_range, extreme
from ..core.accumulator import signed_span
from ..core.base import Call, Lowered, Operator, Step
from ..core.elementwise import blockwise
from ..core.functions import IDENTITY
from ..core.roles import OPERAND_UNARY
from ..core.scalar_operands import unary_shape
from ..quantization.quantize import rescale_blocks, rescale_input
from . import level_functions

_INTERVALS = {
    "relu": (0.0, None),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
    "relu_0_to_1": (0.0, 1.0),
}


def lower(call: Call) -> Lowered:
    """The multiplier and the stored interval; real numbers need only the interval."""
    if "levels" in call.rules:
        return level_functions.lower(call, "relu")
    # Nodes of functions that are mistaken for this one do not name an interval.
    output, activation = call.output, str(call.node.attributes.get("activation", "relu"))
    if activation not in _INTERVALS:
        raise call.invalid("BT-ACTIVATION", f"activation '{activation}' is not among {list(_INTERVALS)}")
    if not output.type.is_integer:
        lower_end, upper_end = _INTERVALS[activation]
        return Lowered(parameters={"low": lower_end} if upper_end is None else {"low": lower_end, "high": upper_end})
    lowered = rescale_input(call)
    # The interval is that of the input where it is clamped before its scale changes.
    before = "input_range" in call.rules
    rule = activation_range.RULES[call.rules["input_range" if before else "activation_range"]]
    bounded = call.input(0) if before else output
    try:
        low, high = rule(activation, float(bounded.scale), bounded.zero_point, output.type.minimum, output.type.maximum)
    except OverflowError as error:
        raise call.invalid("BT-ACTIVATION-RANGE", f"{activation}: {error}", "the scale is too small") from None
    if before:
        low, high = _after_rescaling(call, lowered, low, high)
    return replace(lowered, parameters={**lowered.parameters, "low": low, "high": high})


def _after_rescaling(call: Call, lowered: Lowered, low: int, high: int) -> tuple[int, int]:
    """What the ends of an interval of stored input integers become: rescaling keeps the order of what does not wrap."""
    source = call.input(0)
    largest = signed_span(source, source.zero_point) * float(source.scale) / float(call.output.scale)
    if not largest < 2.0**30:
        raise call.invalid(
            "BT-MULTIPLIER",
            f"inputs of up to {largest:.3g} steps of the output leave 32 bits",
            "quantize the model again",
        )
    # Crossed ends give the upper one.
    step = Step(0, "relu", "", (), (), call.rules, lowered.parameters, lowered.arrays)
    ends = rescale_blocks(step, np.array([min(low, high), high], np.int64))
    return int(ends[0]), int(ends[1])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rescale and clamp; NaN and negative zero pass."""
    if level_functions.made(step):
        return level_functions.reference(step, inputs, "relu")
    if step.arrays:
        return [rescale_blocks(step, inputs[0])]
    real = np.promote_types(inputs[0].dtype, np.float32)
    low, high = real.type(step["low"]), real.type(step.parameters.get("high", np.inf))
    if "extreme" in step.rules:
        found = _larger(step, inputs[0], low)
        return [np.where(found > high, high, found)]

    def one(x: np.ndarray) -> np.ndarray:
        return np.where(x < low, low, np.where(x > high, high, x))

    return [blockwise(one, [inputs[0]], real, real)]


def _larger(step: Step, x: np.ndarray, low: np.floating[Any]) -> np.ndarray:
    """The larger one of every element and `low`, of one array as it lies in memory."""
    flat, rule = x.reshape(-1), extreme.RULES[step.rules["extreme"]]
    width = 16 // x.itemsize
    vectors = np.arange(flat.size) < flat.size // width * width
    return np.asarray(rule.apply(np.stack([flat, np.full_like(flat, low)], axis=1), 1, vectors)).reshape(x.shape)


def limits(step: Step, values: Sequence[np.ndarray | None]) -> tuple[float, float] | None:
    """The interval of real numbers."""
    if level_functions.made(step) or step.arrays or "scale_form" in step.rules or "extreme" in step.rules:
        return None
    return float(step["low"]), float(step.parameters.get("high", np.inf))  # type: ignore[arg-type]


OPERATOR = Operator(
    "relu",
    ("scale_form", "rescale", "shift_count", "store", "activation_range", "input_range", "levels", "extreme"),
    unary_shape,
    lower,
    reference,
    "clamp to an interval: max(x, 0), min(max(x, 0), 6) and others",
    roles=OPERAND_UNARY,
    limits=limits,
    elementwise=1,
    function=IDENTITY,
)
