"""shape: the extents of a tensor as a vector, known as soon as the graph is planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import data_type
from .base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """As many elements as the input has axes."""
    call.expect(1)
    if call.attribute("out_type") != call.output.dtype:
        raise call.invalid(
            "BT-SHAPE-TYPE",
            f"out_type is {call.attribute('out_type')}, but the output tensor is {call.output.dtype}",
        )
    return [(call.input(0).rank,)]


def lower(call: Call) -> Lowered:
    """The extents themselves."""
    return Lowered(parameters={"extents": call.input(0).shape, "type": call.output.dtype})


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The extents from the plan; the input is not read."""
    return [np.array(step["extents"], data_type(step["type"]).numpy)]


OPERATOR = Operator("shape", (), infer, lower, reference, "extents of a tensor", needs_only_shapes=True)
