"""abs: the magnitude of the real number, rescaled when the output scale differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import DATA_TYPES
from ..rules import rescale, store
from .base import Call, Lowered, Operator, Step, same_shape
from .elementwise import blockwise
from .quantize import rescale_input


def lower(call: Call) -> Lowered:
    """Zero points and a multiplier. Plain numbers have neither."""
    source = call.input(0)
    if "store" not in call.rules or (source.dtype == "s16" and source.tensor.quantization is None):
        return Lowered()
    # Equal scales give a multiplier of exactly 1.
    return rescale_input(call)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Plain integers wrap, so the smallest one stays negative."""
    if "dtype" not in step.parameters:
        return [np.abs(inputs[0])]
    finish = store.RULES[step.rules["store"]]
    zero_point, low, high = step["output_zero_point"], step["low"], step["high"]

    def one(block: np.ndarray) -> np.ndarray:
        magnitude = np.abs(block - step["input_zero_point"])
        return finish(rescale.apply(step.rules["rescale"], magnitude, step.arrays), zero_point, low, high)

    return [blockwise(one, [inputs[0]], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = Operator("abs", ("scale_form", "rescale", "store"), same_shape, lower, reference, "magnitude", elementwise=1)
