"""Slot `activation_range`: the integer interval that a fused activation leaves of the output type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats

_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "none": (None, None),
    "relu": (0.0, None),
    "relu6": (0.0, 6.0),
    "relu_n1_to_1": (-1.0, 1.0),
    "relu_0_to_1": (0.0, 1.0),
    # Accepted and ignored by the reference kernels: no clamp beyond the type.
    "tanh": (None, None),
    "sign_bit": (None, None),
}


def _between(
    activation: str,
    scale: float,
    zero_point: int,
    minimum: int,
    maximum: int,
    steps: Callable[[float, float], np.ndarray],
) -> tuple[int, int]:
    """[max(minimum, Q(lower)), min(maximum, Q(upper))] with Q(f) = zero_point + steps(f, scale), which fits 32 bits."""

    def quantized(bound: float) -> int:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = float(steps(bound, scale))
        if not -(2.0**31) <= found < 2.0**31:
            raise OverflowError(f"{bound} / {scale} does not fit 32 bits")
        moved = zero_point + int(found)
        if not -(2**31) <= moved < 2**31:
            raise OverflowError(f"{bound} / {scale} beside zero point {zero_point} does not fit 32 bits")
        return moved

    lower, upper = _BOUNDS[activation]
    low = minimum if lower is None else max(minimum, quantized(lower))
    high = maximum if upper is None else min(maximum, quantized(upper))
    return low, high


def binary32_quotient_away(
    activation: str, scale: float, zero_point: int, minimum: int, maximum: int
) -> tuple[int, int]:
    """[max(minimum, Q(lower)), min(maximum, Q(upper))] with Q(f) = zero_point + round_away(f32(f / scale)).

    Raises OverflowError when f / scale leaves 32 bits. Source: docs/facts/litert.md 1.6, verified by running.

    >>> binary32_quotient_away("relu6", 0.1, -128, -128, 127)
    (-128, -68)
    """

    def steps(bound: float, scale: float) -> np.ndarray:
        return floats.round_away(np.float32(bound) / np.float32(scale))

    return _between(activation, scale, zero_point, minimum, maximum, steps)


def binary32_sum_even(activation: str, scale: float, zero_point: int, minimum: int, maximum: int) -> tuple[int, int]:
    """[max(minimum, Q(lower)), min(maximum, Q(upper))] with Q(f) = round_even(f32(f32(f / scale) + f32(zero_point))).

    The quotient is not rounded to an integer before the zero point is added; infinities saturate.
    Source: docs/facts/xnnpack.md 1.3, verified by running.

    >>> binary32_sum_even("relu6", 4.0, 1, -128, 127), binary32_quotient_away("relu6", 4.0, 1, -128, 127)
    ((1, 2), (1, 3))
    """

    def quantized(bound: float) -> int:
        with np.errstate(over="ignore"):
            moved = np.float32(bound) / np.float32(scale) + np.float32(zero_point)
        return int(np.rint(np.clip(moved, np.float32(minimum), np.float32(maximum))))

    lower, upper = _BOUNDS[activation]
    return (minimum if lower is None else quantized(lower)), (maximum if upper is None else quantized(upper))


def binary64_quotient_even(
    activation: str, scale: float, zero_point: int, minimum: int, maximum: int
) -> tuple[int, int]:
    """[max(minimum, Q(lower)), min(maximum, Q(upper))] with Q(f) = zero_point + round_even(f64(f / scale)).

    Raises OverflowError when f / scale leaves 32 bits. Source: docs/facts/tvm_qnn.md 12 (fused activations), read.

    >>> binary64_quotient_even("relu6", 4.0, 1, -128, 127), binary64_quotient_even("relu_n1_to_1", 0.4, 0, -128, 127)
    ((1, 3), (-2, 2))
    """

    def steps(bound: float, scale: float) -> np.ndarray:
        return np.asarray(np.rint(np.float64(bound) / np.float64(np.float32(scale))))

    return _between(activation, scale, zero_point, minimum, maximum, steps)


def type_alone(activation: str, scale: float, zero_point: int, minimum: int, maximum: int) -> tuple[int, int]:
    """[minimum, maximum]: the activation plays no part. Source: docs/facts/tvm_qnn.md 12 (transposed convolutions).

    >>> type_alone("relu6", 4.0, 1, -128, 127)
    (-128, 127)
    """
    return minimum, maximum


RULES: dict[str, Callable[[str, float, int, int, int], tuple[int, int]]] = {
    "binary32_quotient_away": binary32_quotient_away,
    "binary32_sum_even": binary32_sum_even,
    "binary64_quotient_even": binary64_quotient_even,
    "type_alone": type_alone,
}
