"""rnn: a layer that feeds its output back to itself, for one time step, along an axis of time, or both ways.

The formulas stand in `rnn_separate.py` (a tensor per direction, and variable tensors as states: `operands` is separate)
and in `rnn_stacked.py` (weights of all directions in one tensor, and states as operands: `operands` is stacked).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from . import rnn_separate, rnn_stacked
from .sequences import stacked


def infer(call: Call) -> list[Shape]:
    """As the operands ask."""
    return (rnn_stacked if stacked(call) else rnn_separate).infer(call)


def lower(call: Call) -> Lowered:
    """As the operands ask."""
    return (rnn_stacked if stacked(call) else rnn_separate).lower(call)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the new values of variable states."""
    return (rnn_stacked if "recurrence" in step.rules else rnn_separate).reference(step, inputs)


OPERATOR = Operator(
    "rnn",
    ("dot", "row_product", "activation", "real_product", "recurrence"),
    infer,
    lower,
    reference,
    "recurrent layer, for one time step, along time or both ways",
    stateful=True,
    multiplies=True,
)
