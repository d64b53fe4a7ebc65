"""Slot `compare`: what two quantized values are turned into before their order is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point
from . import rescale


def rescaled_left_8(
    q: np.ndarray, zero_point: int, rescale_rule: str, arrays: Mapping[str, np.ndarray], prefix: str
) -> np.ndarray:
    """rescale((q - zero_point) * 2^8) with the input's own scale as real multiplier: 1/256 steps of the real value.

    Ties: those of the rescale rule; values closer than about 1/256 compare as equal. Domain: scale below 1 (the
    encoded exponent must not be positive), s16 and narrower. The shifted value wraps to 32 bits.
    Source: docs/facts/litert.md 2.2, verified by running.

    >>> small = rescale.prepare("q31_two_step_up_away", 2.0**-9, "a_")
    >>> rescaled_left_8(np.int64([1, -1, 1 << 23]), 0, "q31_two_step_up_away", small, "a_").tolist()
    [1, -1, -4194304]
    """
    return rescale.apply(rescale_rule, fixed_point.wrap_s32(np.left_shift(q - zero_point, 8)), arrays, prefix)


def raw(q: np.ndarray, zero_point: int, rescale_rule: str, arrays: Mapping[str, np.ndarray], prefix: str) -> np.ndarray:
    """The quantized value itself: scales and zero points are ignored. No ties, no saturation.

    Source: docs/facts/litert.md 2.2 (16-bit order comparisons), verified by running.

    >>> raw(np.int64([-3, 7]), 5, "", {}, "").tolist()
    [-3, 7]
    """
    return q


RULES: dict[str, Callable[[np.ndarray, int, str, Mapping[str, np.ndarray], str], np.ndarray]] = {
    "rescaled_left_8": rescaled_left_8,
    "raw": raw,
}
