"""atan2: the angle of the point (second, first). Slot `multiply_add`: whether its products are joined to sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...arithmetic import elementary
from ..core.base import Call, Operator, Shape, Step, nothing_to_prepare
from ..core.elementwise import blockwise
from .add_n import same_shapes


def infer(call: Call) -> list[Shape]:
    """The shape that both have."""
    call.expect(2)
    return [same_shapes(call, 2)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In binary32; binary16 is rounded back."""
    y, x = inputs
    angle = partial(elementary.atan2, joined=step.rules["multiply_add"] != "rounded_twice")
    with np.errstate(under="ignore"):
        return [blockwise(angle, [y, x], y.dtype, np.dtype(np.float32))]


OPERATOR = Operator(
    "atan2",
    ("multiply_add",),
    infer,
    nothing_to_prepare,
    reference,
    "angle of the point (second, first)",
    elementwise=2,
)
