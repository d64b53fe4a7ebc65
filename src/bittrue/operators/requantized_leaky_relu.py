"""requantized_leaky_relu: codes brought to the output's scale; those below the zero point then times alpha.

With r = requantize(q) in 32 bits (the output's zero point z included): r where q >= input zero point, else
r * alpha + z * (1 - alpha), both products by the rule of the slot `slope_rescale`, their sum modulo 2^32; then clamped.
8 bits: a table with one entry per value, which the rule of the slot `table` reads. Source: docs/facts/tvm_qnn.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic import fixed_point
from ..rules import center, rescale, store
from .accumulator import multiplier_arrays
from .base import Call, Lowered, Operator, Step, same_shape
from .logistic import read_table


def lower(call: Call) -> Lowered:
    """The table."""
    source, output, alpha = call.input(0), call.output, float(call.attribute("alpha"))
    if not np.isfinite(alpha) or alpha == 1:
        raise call.invalid(
            "BT-NODE-ATTRIBUTE", f"alpha is {alpha}: its shift would be undefined", "a slope of 1 needs no operator"
        )
    codes = np.arange(source.type.minimum, source.type.maximum + 1)
    same = source.scale == output.scale and source.zero_point == output.zero_point
    if same:
        moved = codes
    else:
        centered = center.RULES[call.rules["center"]](codes, np.int64(source.zero_point))
        rescaled = rescale.apply(call.rules["rescale"], centered, multiplier_arrays(call, source.scale, 1))
        low, high = fixed_point.S32_MIN, fixed_point.S32_MAX
        moved = store.RULES[call.rules["store"]](rescaled, output.zero_point, low, high)
    rule = call.rules["slope_rescale"]
    try:
        below, share = (
            rescale.apply(rule, values, rescale.prepare(rule, factor))
            for values, factor in ((moved, alpha), (np.asarray(output.zero_point, np.int64), 1 - alpha))
        )
    except ValueError as error:
        raise call.invalid("BT-MULTIPLIER", f"alpha {alpha}: {error}") from None
    results = np.where(codes < source.zero_point, fixed_point.wrap_s32(below + share), moved)
    entries = np.clip(results, output.type.minimum, output.type.maximum)
    # A lookup like any other.
    return Lowered({"dtype": output.dtype, "minimum": source.type.minimum}, {"table": entries}, operator="logistic")


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Look up."""
    return [read_table(step, inputs[0])]


OPERATOR = Operator(
    "requantized_leaky_relu",
    ("center", "scale_form", "rescale", "slope_rescale", "store", "table"),
    same_shape,
    lower,
    reference,
    "codes requantized, those below the zero point scaled",
    elementwise=1,
)
