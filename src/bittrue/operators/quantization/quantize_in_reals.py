"""quantize and dequantize of quantized values that are real numbers, per element of an axis with parameters in turn.

Inputs: x (f32), scales (f32 vector), zero points (s32 vector); attributes `in_reals` and `axis`. Element i of the axis
has scale i mod their number and zero point i mod theirs. quantize: min(f32(round_away(f32(x / scale)) + zero point),
high), then at least low, for attributes `low` and `high`; NaN gives high. dequantize: f32(f32(x - zero point) * scale).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...arithmetic.floats import round_away
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise

_F32 = np.dtype(np.float32)


def infer(call: Call) -> list[Shape]:
    """The shape of x."""
    call.expect(3)
    for position, role in ((1, "scales"), (2, "zero points")):
        call.rank(call.input(position, role), 1)
        if not call.input(position).size:
            raise call.invalid("BT-QUANT-AXIS", f"there are no {role}")
    if call.input(0).rank:
        call.axis(call.attribute("axis"), call.input(0).rank)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The axis and the ends."""
    rank = call.input(0).rank
    axis = call.axis(call.attribute("axis"), rank) if rank else 0
    ends = {name: float(call.attribute(name)) for name in ("low", "high") if name in call.node.attributes}
    return Lowered({"axis": axis, "in_reals": True, **ends})


def _spread(step: Step, x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Parameters in turn along the axis, in a shape that goes with x."""
    if not x.ndim:
        return values[0].astype(np.float32)
    axis = step["axis"]
    turned = values[np.arange(x.shape[axis]) % values.size].astype(np.float32)
    return turned.reshape((1,) * axis + (-1,) + (1,) * (x.ndim - axis - 1))


def _element_by_element(
    step: Step, inputs: Sequence[np.ndarray], function: Callable[..., np.ndarray]
) -> list[np.ndarray]:
    x = inputs[0]
    return [blockwise(function, [x, *(_spread(step, x, values) for values in inputs[1:3])], _F32, _F32)]


def reference_quantize(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Four binary32 operations."""
    low, high = np.float32(step["low"]), np.float32(step["high"])

    def one(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            moved = round_away(x / scale) + zero_point
        limited = np.where(moved < high, moved, high)
        return np.where(limited > low, limited, low)

    return _element_by_element(step, inputs, one)


def reference_dequantize(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Two binary32 operations."""

    def one(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return (x - zero_point) * scale

    return _element_by_element(step, inputs, one)
