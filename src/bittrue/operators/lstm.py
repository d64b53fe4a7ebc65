"""lstm and unidirectional_sequence_lstm: long short-term memory, for one time step or along an axis of time.

The formulas stand in `lstm_integer.py` (8-bit input and weights), in `lstm_real.py` (real input) and in `lstm_basic.py`
(layers of five inputs).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from . import lstm_basic, lstm_integer, lstm_layout, lstm_real
from .base import Call, Lowered, Operator, Shape, Step


def _basic(call: Call, sequence: bool) -> bool:
    return not sequence and call.attribute("kernel_type") == "basic"


def infer(call: Call, sequence: bool) -> list[Shape]:
    """As the kind of layer asks."""
    return lstm_basic.infer(call) if _basic(call, sequence) else lstm_layout.infer(call, sequence)


def lower(call: Call, sequence: bool) -> Lowered:
    """As the kind of layer and the input's type ask."""
    if _basic(call, sequence):
        return lstm_basic.lower(call)
    sizes = lstm_layout.Sizes.of(call, sequence)
    return (lstm_real if call.input(0).dtype == "f32" else lstm_integer).lower(call, sizes)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the new output state and cell state."""
    if len(inputs) == 5:
        return lstm_basic.reference(step, inputs)
    return (lstm_real if inputs[0].dtype == np.float32 else lstm_integer).reference(step, inputs)


def _operator(stem: str, sequence: bool, summary: str) -> Operator:
    integer = ("accumulate", "scale_form", "rescale", "store", "gate", "layer_norm")
    return Operator(
        stem,
        (*integer, "dot", "row_product", "activation"),
        partial(infer, sequence=sequence),
        partial(lower, sequence=sequence),
        reference,
        summary,
        stateful=True,
        multiplies=True,
    )


OPERATORS = (
    _operator("lstm", False, "long short-term memory, one time step"),
    _operator("unidirectional_sequence_lstm", True, "long short-term memory along one axis"),
)
