"""Slot `accumulate`: the width of the accumulator.

Sums are exact integers, so their order cannot matter; only the width can, once a sum leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arithmetic import fixed_point


@dataclass(frozen=True)
class AccumulateRule:
    """`limit`: largest magnitude that is certainly kept; `finish` maps the exact sum to what the register holds."""

    limit: int
    finish: Callable[[np.ndarray], np.ndarray]
    formula: str


RULES: dict[str, AccumulateRule] = {
    "s32_wrap": AccumulateRule(2**31 - 1, fixed_point.wrap_s32, "two's complement, modulo 2^32"),
    "s64": AccumulateRule(2**63 - 1, lambda exact: exact, "64 bits; the planner proves that no sum leaves them"),
}
