"""Slot `store`: from the rescaled value to the quantized value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import fixed_point, floats
from . import rescale

# Elements rescaled at a time: the int64 temporaries of one block stay inside a level-2 cache.
BLOCK = 1 << 15


def zero_point_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """min(max(wrap32(rescaled + zero_point), low), high): if low > high the result is high.

    Source: docs/facts/litert.md 1.6, verified by running.

    >>> [int(v) for v in zero_point_then_clamp(np.array([2**31 - 1, 5, -400]), 1, -128, 127)]
    [-128, 6, -128]
    >>> [int(v) for v in zero_point_then_clamp(np.array([2**31]), 0, -128, 127)]
    [-128]
    """
    moved = fixed_point.wrap_s32(rescaled + zero_point)
    return np.minimum(np.maximum(moved, low), high)


def clamp_then_zero_point(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """min(max(rescaled, low - zero_point), high - zero_point) + zero_point: no wrap is possible.

    >>> [int(v) for v in clamp_then_zero_point(np.array([2**31 - 1, 5, -400]), 1, -128, 127)]
    [127, 6, -128]
    """
    return np.minimum(np.maximum(rescaled, low - zero_point), high - zero_point) + zero_point


def clamp_alone(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """min(max(rescaled, low), high): the zero point is not added.

    >>> [int(v) for v in clamp_alone(np.array([2**31 - 1, 5, -400]), 1, -128, 127)]
    [127, 5, -128]
    """
    return np.minimum(np.maximum(rescaled, low), high)


def wrap_s16_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """min(max(wrap16(rescaled + zero_point), low), high): sums beyond 16 bits come out on the other side.

    >>> [int(v) for v in wrap_s16_then_clamp(np.array([32767, 5, -40000]), 1, -128, 127)]
    [-128, 6, 127]
    """
    return np.minimum(np.maximum(fixed_point.wrap_s16(rescaled + zero_point), low), high)


def saturate_s16_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """As `wrap_s16_then_clamp`, but what is rescaled saturates to 16 bits before the zero point is added.

    >>> [int(v) for v in saturate_s16_then_clamp(np.array([40000, 5, -40000]), 1, -128, 127)]
    [-128, 6, -128]
    """
    saturated = np.clip(rescaled, fixed_point.S16_MIN, fixed_point.S16_MAX)
    return wrap_s16_then_clamp(saturated, zero_point, low, high)


def _moved(rescaled: np.ndarray, zero_point: int) -> np.ndarray:
    """rescaled + zero_point in the type of a real `rescaled`; integers count as binary64."""
    real = rescaled if rescaled.dtype.kind == "f" else rescaled.astype(np.float64)
    return real + real.dtype.type(zero_point)


def zero_point_half_up_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """clamp(to_s32(floor(rescaled + zero_point + 1/2))), both sums rounded to the type of `rescaled`, a real number.

    to_s32 is the x86 conversion: what 32 bits do not hold becomes -2^31. The sum with 1/2 can reach the next integer:
    Source: docs/facts/tvm_qnn.md 4 (UPWARD, float32 and float64), read.

    >>> [int(v) for v in zero_point_half_up_then_clamp(np.float32([2.5, -2.5, 0.49999997, 3e9]), 0, -128, 127)]
    [3, -2, 1, -128]
    """
    moved = _moved(rescaled, zero_point)
    return np.clip(floats.truncate_to_s32(np.floor(moved + moved.dtype.type(0.5))), low, high)


def zero_point_plus_half_up_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """clamp(to_s32(floor(rescaled + (zero_point + 1/2)))), both sums rounded to the type of `rescaled`, a real number.

    The constants are added to each other first. to_s32 as above.
    Source: docs/facts/tvm_qnn.md 4 (UPWARD with SSE 4.2), verified by running.

    >>> [int(v) for v in zero_point_plus_half_up_then_clamp(np.float32([2.5, 0.49999997, 16777216]), 1, 0, 2**31 - 1)]
    [4, 2, 16777218]
    """
    kind = rescaled.dtype.type if rescaled.dtype.kind == "f" else np.float64
    return np.clip(floats.truncate_to_s32(np.floor(rescaled + (kind(zero_point) + kind(0.5)))), low, high)


def zero_point_away_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """clamp(to_s32(round_away(rescaled + zero_point))), the sum rounded to the type of `rescaled`, a real number.

    Ties go away from zero as the sum has its sign, not `rescaled`. to_s32 as above.
    Source: docs/facts/tvm_qnn.md 4 (TONEAREST, float32 and float64), read.

    >>> [int(v) for v in zero_point_away_then_clamp(np.float32([2.5, -2.5, 0.49999997, 3e9]), 0, -128, 127)]
    [3, -3, 0, -128]
    >>> int(zero_point_away_then_clamp(np.float32([-2.5]), 10, -128, 127)[0])
    8
    """
    return np.clip(floats.truncate_to_s32(floats.round_away(_moved(rescaled, zero_point))), low, high)


def zero_point_half_away_then_clamp(rescaled: np.ndarray, zero_point: int, low: int, high: int) -> np.ndarray:
    """clamp(to_s32(x + 1/2 with the sign of x, cut off)), x = rescaled + zero_point; both sums rounded to the type of
    `rescaled`, a real number.

    The second sum can reach the next integer, on both sides. to_s32 as above.
    Source: tvm v0.18.0, src/relay/qnn/op/requantize.cc (TONEAREST without SSE 4.1), read; its value for 0.49999997 run.

    >>> [int(v) for v in zero_point_half_away_then_clamp(np.float32([2.5, -2.5, 0.49999997, 3e9]), 0, -128, 127)]
    [3, -3, 1, -128]
    """
    moved = _moved(rescaled, zero_point)
    half = np.copysign(moved.dtype.type(0.5), moved)
    return np.clip(floats.truncate_to_s32(moved + half), low, high)


StoreRule = Callable[[np.ndarray, int, int, int], np.ndarray]

RULES: dict[str, StoreRule] = {
    "zero_point_then_clamp": zero_point_then_clamp,
    "clamp_then_zero_point": clamp_then_zero_point,
    "clamp_alone": clamp_alone,
    "wrap_s16_then_clamp": wrap_s16_then_clamp,
    "saturate_s16_then_clamp": saturate_s16_then_clamp,
    "zero_point_half_up_then_clamp": zero_point_half_up_then_clamp,
    "zero_point_plus_half_up_then_clamp": zero_point_plus_half_up_then_clamp,
    "zero_point_away_then_clamp": zero_point_away_then_clamp,
    "zero_point_half_away_then_clamp": zero_point_half_away_then_clamp,
}


def rescale_and_store(
    acc: np.ndarray,
    rules: Mapping[str, str],
    arrays: Mapping[str, np.ndarray],
    parameters: Mapping[str, object],
    dtype: np.dtype,
    prefix: str = "",
) -> np.ndarray:
    """Rescale int64 accumulators of any shape and store them as `dtype`, block by block.

    `parameters` holds `output_zero_point`, `low` and `high`; per-axis multipliers broadcast over the last axis.
    """
    zero_point, low, high = (int(parameters[key]) for key in ("output_zero_point", "low", "high"))  # type: ignore[call-overload]
    apply = rescale.RULES[rules["rescale"]].apply
    prepared = {key[len(prefix) :]: value for key, value in arrays.items() if key.startswith(prefix)}
    finish = RULES[rules["store"]]
    last = acc.shape[-1] if acc.ndim else 1
    rows = acc.reshape(-1, last) if last else acc.reshape(0, 1)
    out = np.empty(rows.shape, dtype)
    step = max(1, BLOCK // max(1, last))
    for start in range(0, rows.shape[0], step):
        block = rows[start : start + step]
        out[start : start + step] = finish(apply(block, prepared), zero_point, low, high)
    return out.reshape(acc.shape)
