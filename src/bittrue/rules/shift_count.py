"""Slot `shift_count`: what a left shift by more bits than the register has is; rows without the slot refuse it.

C++ leaves it undefined, so a rule is about compiled code: what the instruction that a compiler chose does with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def modulo_32(exponent: np.ndarray) -> np.ndarray:
    """Exponents with left shifts as shift instructions of 32-bit registers count them (x86-64: SHL, aarch64: LSL).

    Domain: int64, of which negative ones (right shifts) stay as they are. Source: docs/facts/litert.md 1.10, run.

    >>> modulo_32(np.int64([-40, 30, 31, 32, 102])).tolist()
    [-40, 30, 31, 0, 6]
    """
    return np.where(exponent > 0, exponent & 31, exponent)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"modulo_32": modulo_32}
