"""Slot `beyond_32_bits`: what an integer in binary64 becomes as a 32-bit one that cannot hold it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats

# Integers in binary64 to s64.
RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    # The conversion of x86-64.
    "lowest": floats.truncate_to_s32,
    # The conversion of aarch64.
    "limited": floats.saturate_to_s32,
}
