"""hardmax: 1 where the largest number of a row stands first, 0 elsewhere.

Rows lie along `axis`, or, where `flattened`, hold all axes from it on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    call.axis(int(call.attribute("axis")), call.input(0).rank)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Rows as [before, row, after]."""
    shape = call.input(0).shape
    axis = call.axis(int(call.attribute("axis")), len(shape))
    after = 1 if call.attribute("flattened") else int(np.prod(shape[axis + 1 :], dtype=np.int64))
    return Lowered({"before": int(np.prod(shape[:axis], dtype=np.int64)), "after": after}, scratch=9 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Comparisons only."""
    x = inputs[0]
    out = np.zeros(x.shape, x.dtype)
    if x.size:
        rows, marks = (part.reshape(step["before"], -1, step["after"]) for part in (x, out))
        np.put_along_axis(marks, rows.argmax(axis=1, keepdims=True), 1, axis=1)
    return [out]


OPERATOR = Operator("hardmax", (), infer, lower, reference, "marks the first largest number of each row", compares=True)
