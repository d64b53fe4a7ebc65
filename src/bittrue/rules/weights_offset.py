"""Slot `weights_offset`: a number that kernels add to weights, so that they are no longer negative; its products with
the sums of the rows are scaled back on their own, before the others, and begin with the bias.
"""

from __future__ import annotations

import numpy as np

from ..arithmetic import floats
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class OffsetRule:
    """f32(start + f32(f32(-offset * sum of the row) * scale of the row) * scale of the weights), where the last product
    is rounded before it is added, unless both are `joined`.

    Source: optimized/4bit/sse_fully_connected.cc, neon_fully_connected.cc, verified by running.

    >>> parts = np.array([[3]]), np.float32([[0.1]]), np.float32([0.3]), np.float32([0.6300001])
    >>> [float(rule.begin(*parts)[0, 0]) for rule in RULES.values()]
    [5.960464477539063e-08, 4.649162121950212e-08]
    """

    offset: int
    joined: bool
    formula: str

    def begin(self, row_sums: np.ndarray, rows: np.ndarray, weights: np.ndarray, start: np.ndarray) -> np.ndarray:
        """What the scaled sums are added to. Domain: row sums s64 [rows, 1], scales binary32."""
        with np.errstate(all="ignore"):
            scaled = (-self.offset * row_sums).astype(np.float32) * rows
            if self.joined:
                return floats.fused_multiply_add(scaled, weights, start)
            return np.asarray(scaled * weights + start)


RULES: dict[str, OffsetRule] = {
    "seven_apart": OffsetRule(
        7, False, "f32(bias + f32(f32(f32(-7 * sum of the row) * row) * weights)), sums of w + 7"
    ),
    "seven_apart_joined": OffsetRule(
        7, True, "f32(bias + f32(f32(-7 * sum of the row) * row) * weights), one rounding, sums of w + 7"
    ),
}
