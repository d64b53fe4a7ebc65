"""root_mean_square: rows over the root of the mean of their squares, times a scale.

Operands: x [..., G * C], scale [C]; every C neighbours are a row. y = x * f32(1 / sqrt(f32(s / C) + epsilon)) * scale,
where s adds the squares from the first element to the last; every operation is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(2)
    x, scale = call.input(0), call.input(1, "scale")
    if not scale.size or not x.rank or x.shape[-1] % scale.size:
        raise call.invalid(
            "BT-NORMALIZATION-SHAPE", f"{scale.size} scales do not divide the last axis of {list(x.shape)}"
        )
    return [x.shape]


def lower(call: Call) -> Lowered:
    """Epsilon, as a binary32 number."""
    return Lowered({"epsilon": float(np.float32(call.attribute("epsilon")))}, scratch=16 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Row by row."""
    x, scale = inputs[0], inputs[1].reshape(-1)
    rows = x.reshape(-1, scale.size)
    with np.errstate(all="ignore"):
        sums = np.add.accumulate(rows * rows, axis=1)[:, -1:]
        inverse = np.float32(1) / np.sqrt(sums / np.float32(scale.size) + np.float32(step["epsilon"]))
        return [(rows * inverse * scale).reshape(x.shape)]


OPERATOR = Operator("root_mean_square", (), infer, lower, reference, "rows over the root of the mean of their squares")
