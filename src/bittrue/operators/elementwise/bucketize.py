"""bucketize: how many of some sorted boundaries are not above each element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, same_shape


def lower(call: Call) -> Lowered:
    """The boundaries, binary32, ascending."""
    boundaries = np.array(call.attribute("boundaries"), np.float32)
    if np.isnan(boundaries).any() or (boundaries[1:] < boundaries[:-1]).any():
        raise call.invalid("BT-BUCKETIZE", "the boundaries must be ascending numbers", "sort them")
    size = call.input(0).size
    return Lowered(arrays={"boundaries": boundaries}, scratch=24 * size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Integers are compared after rounding to binary32, binary64 as it is; NaN is above all boundaries."""
    x, boundaries = inputs[0], step.arrays["boundaries"]
    if x.dtype == np.float64:
        boundaries = boundaries.astype(np.float64)
    elif x.dtype != np.float32:
        x = x.astype(np.float32)
    return [np.searchsorted(boundaries, x, side="right").astype(np.int32).reshape(x.shape)]


OPERATOR = Operator(
    "bucketize", (), same_shape, lower, reference, "the number of boundaries not above each element", elementwise=1
)
