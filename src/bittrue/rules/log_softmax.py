"""Slot `log_softmax`: x - max - ln(sum of exp(x - max)) along a row, in units of 1/16 below the largest value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..arithmetic import elementary, fixed_point, floats, multiplier, transcendental
from ..records import dataclass
from . import rescale, softmax

# F5 to F4 with 8 bits: 31 - 5 - 4 fractional bits go.
_OUTPUT_RIGHT_SHIFT = 22
# Stands for "below everything that is representable": any clamp turns it into the smallest output.
_NOTHING = -(1 << 16)


@dataclass(frozen=True, eq=False)
class LogSoftmaxRule:
    """`prepare(input scale)` raises ValueError for unusable scales; `apply(rows, arrays)` takes int64 rows and gives
    sixteenths, 0 or less, not yet clamped or moved to the output's zero point. Raises OverflowError where a row has no
    defined result.
    """

    prepare: Callable[[float], dict[str, np.ndarray]]
    apply: Callable[[np.ndarray, Mapping[str, np.ndarray]], np.ndarray]
    formula: str
    source: str
    # Results are in units of the output's scale, which `apply` finds as `output_scale` among the arrays (binary32).
    scaled: bool = False


def _prepare(input_scale: float) -> dict[str, np.ndarray]:
    raw, smallest, encoded, exponent = softmax.scaled_differences(input_scale, 1.0)
    inverse = float(1 << (31 - exponent)) / encoded
    if not 0.0 < inverse < 1.0:
        raise ValueError(f"the inverse of the scale's multiplier is {inverse!r}, it must lie between 0 and 1")
    inverse_multiplier, inverse_exponent = multiplier.encode_q31(inverse)
    return {
        "scaled": raw,
        "exponentials": softmax.exponentials(raw, smallest),
        "smallest": np.asarray(smallest, np.int64),
        "multiplier": inverse_multiplier,
        "exponent": inverse_exponent,
    }


def _apply(rows: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """Two equal values get -16 * ln(2) = -11.09, one of many its own value, one too far below the smallest output.

    >>> rule = RULES["exp_f5_sum_f12_logarithm_away"]
    >>> rule.apply(np.array([[4, 4, -128], [4, 3, -128]]), rule.prepare(1.0)).tolist()
    [[-11, -11, -65536], [-5, -21, -65536]]
    """
    differences = rows - rows.max(axis=-1, keepdims=True)
    total = softmax.sum_of_exponentials(prepared["exponentials"][differences + 255])
    logarithm = transcendental.logarithm(total)
    threshold = rescale.RULES["q31_two_step_up_away"].apply(
        fixed_point.wrap_s32(logarithm + fixed_point.S32_MIN), prepared
    )
    threshold = np.maximum(prepared["smallest"] - 1, threshold)
    result = fixed_point.divide_by_power_of_two_away(
        fixed_point.wrap_s32(prepared["scaled"][differences + 255] - logarithm), _OUTPUT_RIGHT_SHIFT
    )
    return np.where(differences > threshold, result, _NOTHING)


def _prepare_binary32(input_scale: float) -> dict[str, np.ndarray]:
    return {
        "exponentials": softmax.binary32_exponentials(input_scale, 1.0),
        "input_scale": np.asarray(input_scale, np.float32),
    }


def _apply_binary32(rows: np.ndarray, prepared: Mapping[str, np.ndarray]) -> np.ndarray:
    """scale * x - (input scale * max + ln S) / output scale, each operation rounded, then ties to even.

    >>> rule = RULES["binary32_table_even"]
    >>> rule.apply(np.array([[4, 4, -128]]), {**rule.prepare(1.0), "output_scale": np.float32(1 / 16)}).tolist()
    [[-11, -11, -2123]]
    """
    greatest = rows.max(axis=-1, keepdims=True)
    total = softmax.sum_in_order(prepared["exponentials"][rows - greatest + 255])
    scale, output_scale = np.float32(prepared["input_scale"]), np.float32(prepared["output_scale"])
    with np.errstate(all="ignore"):
        moved = (scale * greatest.astype(np.float32) + elementary.log(total)) / output_scale
        return floats.truncate_to_s32(np.rint((scale / output_scale) * rows.astype(np.float32) - moved))


RULES: dict[str, LogSoftmaxRule] = {
    "exp_f5_sum_f12_logarithm_away": LogSoftmaxRule(
        _prepare,
        _apply,
        "S = sum of round_away(exp(x - max) / 2^12) in F12; round_away((scale * (x - max) - ln S in F5) / 2^22) where "
        "x - max > max(smallest - 1, (ln S - 2^31) / scale), else the smallest output",
        "docs/facts/litert.md 2.5 (LOG_SOFTMAX), verified by running",
    ),
    "binary32_table_even": LogSoftmaxRule(
        _prepare_binary32,
        _apply_binary32,
        "S = sum of exp(x - max) by a table in binary32, from left to right; round_even((scale / output scale) * x - "
        "(scale * max + ln S) / output scale) + zero point",
        "kernels/internal/optimized/optimized_ops.h (LogSoftmax), verified by running",
        scaled=True,
    ),
}
