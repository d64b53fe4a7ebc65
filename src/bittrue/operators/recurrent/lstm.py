"""lstm: long short-term memory, for one time step, along an axis of time (`sequence`), or both ways (`bidirectional`).

The formulas stand in `lstm_integer.py` (8-bit input and weights), in `lstm_real.py` (real input), in `lstm_basic.py`
(layers of five inputs) and in `lstm_bidirectional.py`; these have a tensor per gate and direction, and variable
tensors as states (`operands` is separate). Where the weights of all gates and directions are stacked in one tensor and
states are operands (`operands` is stacked), they stand in `lstm_stacked.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from . import lstm_basic, lstm_bidirectional, lstm_integer, lstm_layout, lstm_real, lstm_stacked
from .sequences import stacked


def _basic(call: Call) -> bool:
    return not call.attribute("sequence") and call.attribute("kernel_type") == "basic"


def infer(call: Call) -> list[Shape]:
    """As the kind of layer asks."""
    if stacked(call):
        return lstm_stacked.infer(call)
    if call.attribute("bidirectional"):
        return lstm_bidirectional.infer(call)
    return lstm_basic.infer(call) if _basic(call) else lstm_layout.infer(call, bool(call.attribute("sequence")))


def lower(call: Call) -> Lowered:
    """As the kind of layer and the input's type ask."""
    if stacked(call):
        return lstm_stacked.lower(call)
    if call.attribute("bidirectional"):
        return lstm_bidirectional.lower(call)
    if _basic(call):
        return lstm_basic.lower(call)
    sizes = lstm_layout.Sizes.of(call, bool(call.attribute("sequence")))
    return (lstm_real if call.input(0).dtype == "f32" else lstm_integer).lower(call, sizes)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the new output state and cell state, of both directions where there are two."""
    if "recurrence" in step.rules:
        return lstm_stacked.reference(step, inputs)
    if step.parameters.get("bidirectional"):
        return lstm_bidirectional.reference(step, inputs)
    if len(inputs) == 5:
        return lstm_basic.reference(step, inputs)
    return (lstm_real if inputs[0].dtype == np.float32 else lstm_integer).reference(step, inputs)


OPERATOR = Operator(
    "lstm",
    (
        *("accumulate", "scale_form", "rescale", "store", "gate", "layer_norm"),
        *("dot", "row_product", "activation", "multiply_add", "gate_normalization", "real_product", "recurrence"),
        *("dynamic_range", "quotient", "to_integer", "scale_back"),
    ),
    infer,
    lower,
    reference,
    "long short-term memory, for one time step, along time or both ways",
    stateful=True,
    multiplies=True,
)
