"""Slot `gate`: the activation functions inside a recurrent cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import transcendental
from ..records import dataclass


@dataclass(frozen=True, eq=False)
class GateRule:
    """Both map 16-bit fixed point to 16-bit fixed point without integer bits.

    `logistic` reads its argument with 3 integer bits, `tanh` with as many as its second argument says.
    """

    logistic: Callable[[np.ndarray], np.ndarray]
    tanh: Callable[[np.ndarray, int], np.ndarray]
    formula: str
    source: str


RULES: dict[str, GateRule] = {
    "s16_polynomial_newton": GateRule(
        transcendental.logistic_s16,
        transcendental.tanh_s16,
        "16-bit exponential by a polynomial and factors, reciprocal by three Newton steps",
        "docs/facts/litert.md 1.8 (16-bit flavour), verified by running",
    ),
}
