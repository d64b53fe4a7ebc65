"""Scale and zero point of a range of real numbers, as the frameworks that the RFC covers find them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph import data_type
from . import checks

_F32 = np.float32
_MXNET_RANGES = {"s8": _F32(127.5), "u8": _F32(255.5)}


def _number(argument: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise checks.wrong("parameters_from_range", argument, f"expected a number, found {value!r}")
    if not math.isfinite(value):
        raise checks.wrong("parameters_from_range", argument, f"must be finite, found {value!r}")
    return float(value)


def parameters_from_range(
    minimum: Any, maximum: Any, dtype: Any = "uint8", framework: str = "tflite", *, narrow_range: bool = False
) -> tuple[np.float32, int]:
    """Scale (float32) and zero point for real numbers between `minimum` and `maximum`.

    - ``"tflite"``: scale = (maximum - minimum) / (largest - smallest integer) in float64; the zero point is that of the
      end whose terms are smaller, rounded half away from zero and limited to the integers. A range of 0 alone has scale
      0 and zero point 0. Source: tensorflow/lite/kernels/internal/quantization_util.h (ChooseQuantizationParams), which
      the RFC names, read.
    - ``"mxnet"``: scale = float32(1 / float32(R / max(|minimum|, |maximum|))) with R = 127.5 for int8 and 255.5 for
      uint8, zero point 0. Source: tvm v0.18.0, python/tvm/relay/frontend/mxnet_qnn_op_utils.py, read.

    Args:
        minimum, maximum: finite numbers; ``"tflite"`` wants minimum <= 0 <= maximum.
        dtype: ``"int8"`` or ``"uint8"``, for ``"tflite"`` also ``"int16"``.
        framework: who chooses.
        narrow_range: ``"tflite"`` leaves out the smallest integer.

    Raises:
        InputError: ranges, types and frameworks without parameters.

    >>> parameters_from_range(-1.0, 1.55)
    (np.float32(0.01), 100)
    >>> parameters_from_range(-1.0, 1.55, "int8", "mxnet")
    (np.float32(0.012156863), 0)
    """
    name = "parameters_from_range"
    low, high = _number("minimum", minimum), _number("maximum", maximum)
    if low > high:
        raise checks.wrong(name, "maximum", f"{high} is below the minimum {low}")
    if checks.choice(name, "framework", framework, ("tflite", "mxnet")) == "mxnet":
        kind = checks.element_type(name, "dtype", dtype, tuple(_MXNET_RANGES))
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            largest = max(np.abs(_F32(low)), np.abs(_F32(high)))
            scale = _F32(1) / (_MXNET_RANGES[kind] / largest)
        if not (np.isfinite(scale) and scale > 0):
            raise checks.wrong(name, "maximum", f"the range from {low} to {high} has no scale in float32")
        return _F32(scale), 0
    chosen = data_type(checks.element_type(name, "dtype", dtype, ("s8", "u8", "s16")))
    if low > 0 or high < 0:
        raise checks.wrong(name, "minimum" if low > 0 else "maximum", "the range must hold 0")
    if low == high:
        return _F32(0), 0
    ends = float(chosen.minimum + checks.truth(name, "narrow_range", narrow_range)), float(chosen.maximum)
    wide = (high - low) / (ends[1] - ends[0])
    if not (math.isfinite(wide) and wide > 0 and 0 < float(_F32(wide)) < math.inf):
        raise checks.wrong(name, "maximum", f"the range from {low} to {high} has no scale in float32")
    terms = [abs(end) + abs(bound / wide) for end, bound in zip(ends, (low, high), strict=True)]
    point = ends[0] - low / wide if terms[0] < terms[1] else ends[1] - high / wide
    nearest = math.copysign(math.floor(abs(point) + 0.5), point)
    return _F32(wide), int(min(max(nearest, ends[0]), ends[1]))
