"""leaky_relu: x where it is not negative, alpha * x elsewhere, each side with a multiplier of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..graph import DATA_TYPES
from ..rules import rescale, sign, slope, store
from .accumulator import multiplier_arrays
from .base import Call, Lowered, Operator, Step, same_shape
from .elementwise import blockwise
from .logistic import table_lowered


def _bent(x: np.ndarray, alpha: np.float32) -> np.ndarray:
    """x where x >= 0, else f32(alpha * x), in binary32."""
    real = np.asarray(x, np.float32)
    return np.where(real >= 0, real, alpha * real)


def lower(call: Call) -> Lowered:
    """A table where the row has a rule for it.

    Else two multipliers; the negative side's is that of |alpha|, and the rule of the slot `sign` says where its sign
    enters, unless the rule of `rescale` takes negative multipliers.
    """
    source, output, alpha = call.input(0), call.output, float(call.attribute("alpha"))
    if not output.type.is_integer:
        return Lowered(parameters={"alpha": alpha})
    if "table" in call.rules:
        # A lookup like any other.
        return replace(table_lowered(call, partial(_bent, alpha=np.float32(alpha))), operator="logistic")
    signed = rescale.RULES[call.rules["rescale"]].signed
    return Lowered(
        parameters={
            "input_zero_point": source.zero_point,
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "negated": alpha < 0 and not signed,
            "dtype": output.dtype,
        },
        arrays={
            **multiplier_arrays(call, source.scale, 1, "identity_"),
            **multiplier_arrays(call, source.scale, alpha if signed else abs(alpha), "alpha_"),
        },
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both sides are computed, the sign of the centred input selects."""
    if not step.arrays:
        alpha, scaled = np.float32(step["alpha"]), slope.RULES[step.rules["slope"]]
        return [blockwise(lambda x: scaled(x, alpha), [inputs[0]], np.dtype(np.float32), np.dtype(np.float32))]
    rule, finish = step.rules["rescale"], store.RULES[step.rules["store"]]
    zero_point, low, high = step["output_zero_point"], step["low"], step["high"]

    def below(x: np.ndarray) -> np.ndarray:
        return rescale.apply(rule, x, step.arrays, "alpha_")

    if step["negated"]:
        below = partial(sign.RULES[step.rules["sign"]], below)

    def one(block: np.ndarray) -> np.ndarray:
        x = block - step["input_zero_point"]
        negative = below(x)
        rescaled = np.where(x >= 0, rescale.apply(rule, x, step.arrays, "identity_"), negative)
        return finish(rescaled, zero_point, low, high)

    return [blockwise(one, [inputs[0]], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = Operator(
    "leaky_relu",
    ("scale_form", "rescale", "sign", "slope", "store", "table"),
    same_shape,
    lower,
    reference,
    "x where x >= 0, else alpha * x",
    elementwise=1,
)
