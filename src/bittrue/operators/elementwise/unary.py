"""neg, round_to_integer and sign: one exact operation on the stored values; scales are ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, nothing_to_prepare, same_shape
from .logistic import evaluate


def reference(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """`function`; integers wrap, binary32 rounds once, ties to even."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return [np.asarray(function(inputs[0]), inputs[0].dtype)]


_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"down": np.floor, "up": np.ceil, "even": np.rint}


def lower_round(call: Call) -> Lowered:
    """The direction: ``down``, ``up``, or ``even`` for the nearest integer."""
    direction = str(call.attribute("direction"))
    if direction not in _ROUNDINGS:
        raise call.invalid("BT-ROUND-DIRECTION", f"direction '{direction}' is not among {list(_ROUNDINGS)}")
    return Lowered({"direction": direction})


def reference_round(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The integer, in the type of the number; by a rule, where a row has one."""
    if "real_function" in step.rules:
        return [evaluate(step, inputs[0], "round_to_integer")]
    return reference(step, inputs, _ROUNDINGS[step["direction"]])


def _negated(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    if "real_function" in step.rules:
        return [evaluate(step, inputs[0], "neg")]
    return reference(step, inputs, np.negative)


def _sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; NaN stays as it is, but gives 0 in types of 16 bits, as -0 does in all."""
    result = (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)
    return np.where(np.isnan(x), x, result) if x.dtype.kind == "f" and x.itemsize > 2 else result


def _lower_sign(call: Call) -> Lowered:
    """Which of the types of 16 bits it is, where it is one."""
    return Lowered({"type": call.output.dtype} if call.output.dtype in ("f16", "bf16") else {})


OPERATORS = (
    Operator(
        "neg",
        ("real_function",),
        same_shape,
        nothing_to_prepare,
        _negated,
        "the number with the opposite sign",
        elementwise=1,
    ),
    Operator(
        "round_to_integer",
        ("real_function",),
        same_shape,
        lower_round,
        reference_round,
        "an integer near the number: below it, above it or the nearest one, ties to even",
        elementwise=1,
    ),
    Operator("sign", (), same_shape, _lower_sign, partial(reference, function=_sign), "-1, 0 or 1", elementwise=1),
)
