"""Whether a scale counts as a power of two."""

from __future__ import annotations

import math

import numpy as np


def nearly_power_of_two(scale: float) -> tuple[int, bool]:
    """The nearest binary exponent of `scale`, and whether `scale` counts as that power of two.

    In binary32: y = ln(scale) * (1 / ln(2)); n = y rounded away; a power of two when |y - n| < 0.001. Scales within
    0.07 % of a power of two therefore count, too. ln is rounded correctly to binary32.
    Domain: scale > 0. Source: docs/facts/litert.md 2.3, corrected by reading the runtime's CheckedLog2 and by running.

    >>> nearly_power_of_two(2.0**-12), nearly_power_of_two(1.0005 * 2**-12), nearly_power_of_two(0.75)
    ((-12, True), (-12, True), (0, False))
    """
    log2 = np.float32(math.log(float(np.float32(scale)))) * (np.float32(1) / np.float32(math.log(2.0)))
    nearest = np.copysign(np.floor(np.abs(log2) + np.float32(0.5)), log2)
    return int(nearest), bool(np.abs(log2 - nearest) < np.float32(1e-3))
