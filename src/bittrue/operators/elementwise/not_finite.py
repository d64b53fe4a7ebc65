"""not_finite: which real numbers are NaN or infinities, as far as the attributes ask for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, same_shape


def lower(call: Call) -> Lowered:
    """Whether NaN, and which infinities, count; `dtype` is the input's type."""
    counted = {kind: bool(call.attribute(kind)) for kind in ("nan", "negative", "positive")}
    return Lowered({**counted, "dtype": call.input(0).dtype})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """NaN, and infinities of the signs that count."""
    x = inputs[0]
    infinite = np.isinf(x) & np.where(np.signbit(x), step["negative"], step["positive"])
    return [np.asarray(infinite | (np.isnan(x) & step["nan"]), np.bool_)]


OPERATOR = Operator(
    "not_finite", (), same_shape, lower, reference, "whether an element is NaN or an infinity", elementwise=1
)
