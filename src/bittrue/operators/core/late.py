"""Scales and zero points that are operands: prepared at plan time when they are constants, else while running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...graph import Attribute
from ...records import replace
from . import role_quantization
from .base import Call, Role, Step

# One array per operand, None where it is absent (or not named to `prepare_now` and not known).
Values = Sequence[Any]
Prepared = tuple[Mapping[str, Attribute], Mapping[str, np.ndarray]]
# (rules, what is known of the step, operand values) to what they add to the step's parameters and arrays. Operands that
# `lower` does not name may be None at plan time, and are not to be read.
Prepare = Callable[[Mapping[str, str], Mapping[str, Any], Values], Prepared]


def prepare_now(
    call: Call,
    positions: Sequence[int],
    parameters: Mapping[str, Attribute],
    prepare: Prepare,
    roles: Sequence[Role] = (),
) -> tuple[dict[str, Attribute], dict[str, np.ndarray]]:
    """Parameters and arrays of a step whose operands at `positions` hold scales and zero points.

    What belongs to tensors instead, `prepare` finds where the operands of `roles` would be.

    When all of those that are present are known, `prepare` runs now; else the step says `late`, and `prepare_late` runs
    it for every run. A ValueError of `prepare` becomes a typed error about the node.
    """
    values = role_quantization.settled_values(call, roles)
    if any(call.has(position) and values[position] is None for position in positions):
        if any(role_quantization.at(values, position) is not None and not call.has(position) for position in positions):
            raise call.unsupported(
                "BT-QUANT-OPERAND",
                "some scales and zero points belong to tensors, others are operands that only running tells",
                "give all of them as operands",
            )
        return {**parameters, "late": True}, {}
    try:
        more, arrays = prepare(call.rules, parameters, values)
    except ValueError as error:
        raise call.invalid(
            "BT-QUANT-OPERAND", str(error), "scales and zero points are operands of this node: check their values"
        ) from None
    return {**parameters, **more, "late": False}, dict(arrays)


def prepare_late(step: Step, inputs: Values, prepare: Prepare) -> Step:
    """The step with what `prepare` makes of this run's operands, where that was left open.

    Raises:
        RunError: the operands have no defined meaning.
    """
    if not step["late"]:
        return step
    try:
        more, arrays = prepare(step.rules, step.parameters, inputs)
    except ValueError as error:
        raise RunError("BT-QUANT-OPERAND", str(error), place=step.place) from None
    return replace(step, parameters={**step.parameters, **more}, arrays={**step.arrays, **arrays})
