"""fake_quant: real numbers moved to the nearest of 2^bits evenly spaced ones, of which one is 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic import floats
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise


def lower(call: Call) -> Lowered:
    """The ends and the step of the grid: the range is moved so that 0 lies on it, with binary32 operations."""
    bits = int(call.attribute("num_bits"))
    if call.attribute("narrow_range"):
        raise call.invalid("BT-FAKE-QUANT", "narrow_range is set; the runtime's kernel refuses it")
    if not 1 <= bits <= 16:
        raise call.invalid("BT-FAKE-QUANT", f"num_bits is {bits}, the kernel is defined for 1 to 16")
    f32 = np.float32
    low, high, largest = f32(call.attribute("min")), f32(call.attribute("max")), f32((1 << bits) - 1)
    with np.errstate(all="ignore"):
        scale = (high - low) / largest
        zero_point = f32(0) - low / scale
        if np.isnan(zero_point):
            raise call.invalid("BT-FAKE-QUANT", f"the range from {low} to {high} gives no scale")
        nudged = f32(0) if zero_point < 0 else largest if zero_point > largest else floats.round_away(zero_point)
        ends = (f32(0) - nudged) * scale, (largest - nudged) * scale
    return Lowered(parameters={"low": float(ends[0]), "high": float(ends[1]), "scale": float(scale)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """round_away((clamp(x) - low) * (1 / scale)) * scale + low; NaN becomes the lower end."""
    add = multiply_add.RULES[step.rules["multiply_add"]].apply
    low, high, scale = (np.float32(step[name]) for name in ("low", "high", "scale"))

    def one(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            raised = np.where(low < x, x, low)
            clamped = np.where(raised < high, raised, high)
            return add(floats.round_away((clamped - low) * (np.float32(1) / scale)), scale, low)

    return [blockwise(one, [inputs[0]], np.dtype(np.float32), np.dtype(np.float32))]


OPERATOR = Operator(
    "fake_quant",
    ("multiply_add",),
    same_shape,
    lower,
    reference,
    "real numbers on a grid with a zero",
    elementwise=1,
)
