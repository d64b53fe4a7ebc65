"""is_nan and is_infinite: which real numbers are no numbers, or infinite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, nothing_to_prepare, same_shape


def reference_nan(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Any NaN."""
    return [np.asarray(np.isnan(inputs[0]), np.bool_)]


def lower_infinite(call: Call) -> Lowered:
    """Which signs count."""
    return Lowered({sign: bool(call.attribute(f"detect_{sign}")) for sign in ("negative", "positive")})


def reference_infinite(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Infinities of the signs that count."""
    x = inputs[0]
    low = np.signbit(x)
    return [np.asarray(np.isinf(x) & np.where(low, step["negative"], step["positive"]), np.bool_)]


OPERATORS = (
    Operator("is_nan", (), same_shape, nothing_to_prepare, reference_nan, "whether an element is NaN", elementwise=1),
    Operator(
        "is_infinite",
        (),
        same_shape,
        lower_infinite,
        reference_infinite,
        "whether an element is infinite",
        elementwise=1,
    ),
)
