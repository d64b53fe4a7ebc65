"""prelu: x where it is not negative, alpha * x elsewhere, with one alpha per broadcast element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ...rules import rescale, store
from ..core.accumulator import multiplier_arrays
from ..core.base import Call, Lowered, Operator, Shape, Step, broadcast_shape
from ..core.elementwise import blockwise


def infer(call: Call) -> list[Shape]:
    """The input's shape, over which alpha must broadcast."""
    (shape,) = broadcast_shape(call)
    source, alpha = call.input(0), call.input(1)
    if shape != source.shape:
        raise call.invalid(
            "BT-SHAPE-BROADCAST",
            f"alpha '{alpha.name}' of shape {list(alpha.shape)} is larger than the input of shape {list(source.shape)}",
            "alpha needs a dimension of 1 or the input's in every axis",
        )
    return [shape]


def lower(call: Call) -> Lowered:
    """A multiplier for each side."""
    source, alpha, output = call.input(0), call.input(1, "alpha"), call.output
    if not output.type.is_integer:
        return Lowered()
    return Lowered(
        parameters={
            "input_zero_point": source.zero_point,
            "alpha_zero_point": alpha.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        },
        arrays={
            **multiplier_arrays(call, source.scale, 1, "identity_"),
            **multiplier_arrays(call, source.scale, alpha.scale, "alpha_"),
        },
    )


def _real(x: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(x >= 0, x, x * alpha)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both sides are computed, the sign of the centred input selects."""
    x, alpha = inputs
    if not step.arrays:
        return [blockwise(_real, [x, alpha], x.dtype, x.dtype)]
    rule, finish = step.rules["rescale"], store.RULES[step.rules["store"]]
    zero_point, low, high = step["output_zero_point"], step["low"], step["high"]

    def one(block: np.ndarray, alphas: np.ndarray) -> np.ndarray:
        centred = block - step["input_zero_point"]
        product = centred * (alphas - step["alpha_zero_point"])
        negative = rescale.apply(rule, product, step.arrays, "alpha_")
        rescaled = np.where(centred >= 0, rescale.apply(rule, centred, step.arrays, "identity_"), negative)
        return finish(rescaled, zero_point, low, high)

    return [blockwise(one, [x, alpha], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = Operator(
    "prelu",
    ("scale_form", "rescale", "shift_count", "store"),
    infer,
    lower,
    reference,
    "x where x >= 0, else alpha * x",
    elementwise=2,
)
