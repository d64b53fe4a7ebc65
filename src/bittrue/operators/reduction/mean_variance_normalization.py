"""mean_variance_normalization: what lies along some axes brought to mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import real_normalization
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The axes in order; those that a tensor of this rank has not do not count."""
    x = call.input(0)
    axes = {axis % x.rank for axis in call.attribute("axes") if -x.rank <= axis < x.rank}
    return Lowered({"axes": tuple(sorted(axes))}, work=8 * x.size, scratch=96 * x.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows of the numbers along the axes, by the rule."""
    x, axes = inputs[0], step["axes"]
    if not x.size:
        return [x.copy()]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = np.transpose(x, (*kept, *axes))
    rows = np.ascontiguousarray(moved).reshape(-1, math.prod(x.shape[axis] for axis in axes))
    rule = real_normalization.RULES[step.rules["real_normalization"]]
    found = rule.by_rows(rows, None, None, 0.0, True, "moments")[0].reshape(moved.shape)
    return [np.ascontiguousarray(np.transpose(found, np.argsort((*kept, *axes))))]


OPERATOR = Operator(
    "mean_variance_normalization",
    ("real_normalization",),
    infer,
    lower,
    reference,
    "numbers along some axes brought to mean 0 and variance 1",
)
