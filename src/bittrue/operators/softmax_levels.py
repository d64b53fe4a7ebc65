"""softmax_levels: shares of exponentials along an axis, of levels.

y = levels(e / S), e = expf(f32(r - largest)), S the binary32 sum of e in order, r = f32(f32(x - zero point) * scale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arithmetic import elementary
from ..graph import DATA_TYPES
from ..rules import levels
from .base import Call, Lowered, Operator, Shape, Step
from .elementwise import BLOCK
from .level_storage import limits, pair, scale_and_zero_point, store


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    call.rank(call.input(0), 1, 32)
    call.axis(int(call.attribute("axis")), call.input(0).rank)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """[outer, rows' length, inner], and scales."""
    shape = call.input(0).shape
    axis = call.axis(int(call.attribute("axis")), len(shape))
    parameters = {
        **limits(call),
        **scale_and_zero_point(call, "input"),
        **scale_and_zero_point(call, "output"),
        "view": (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])),
    }
    return Lowered(parameters, scratch=64 * max(BLOCK, shape[axis] * math.prod(shape[axis + 1 :])))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Some outer slices at a time."""
    x, dtype = inputs[0], DATA_TYPES[step["dtype"]].numpy
    if not x.size:
        return [np.zeros(x.shape, dtype)]
    view = x.reshape(step["view"])
    rule, out = levels.RULES[step.rules["levels"]], np.empty(view.shape, dtype)
    per_block = max(1, BLOCK // (view.shape[1] * view.shape[2]))
    for begin in range(0, view.shape[0], per_block):
        part = slice(begin, begin + per_block)
        real = levels.real(view[part].astype(np.float32), *pair(step, "input"))
        with np.errstate(all="ignore"):
            largest = real[:, 0].copy()
            for position in range(1, view.shape[1]):
                # As C++ compares: what is no number is kept or passed over.
                largest = np.where(largest < real[:, position], real[:, position], largest)
            entries = elementary.exp(real - largest[:, None])
            total = np.zeros_like(largest)
            for position in range(view.shape[1]):
                total = total + entries[:, position]
            shares = rule.apply(entries / total[:, None], *pair(step, "output"))
        out[part] = store(shares, step["low"], step["high"], dtype, step.place)
    return [out.reshape(x.shape)]


OPERATOR = Operator("softmax_levels", ("levels",), infer, lower, reference, "shares of exponentials, of levels")
