"""shift_softmax: probabilities of 8-bit codes by shifts and additions in 32 bits, then requantized.

Along attribute `axis`, with x = q - zero point - max and x0 = round_away(f32(1 / scale)):
p = x + (x >> 1) - (x >> 4), about x * log2(e); n = clamp(trunc(p / -x0), 0, 20); r = p + n * x0; b = (r >> 1) + x0;
e = b << (max n - n); S = sum e; y = (trunc(2^30 / S) * e) >> 23 has scale 1 / 128 and is requantized to the output's
scale and zero point.
Sums and products are modulo 2^32. Source: docs/facts/tvm_qnn.md 10, read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic import fixed_point
from ..arithmetic.floats import round_away
from ..errors import RunError
from ..graph import DATA_TYPES
from ..rules import center, store
from .accumulator import multiplier_arrays
from .base import Call, Lowered, Operator, Shape, Step

_MOST_STEPS = 20
_ONE = 1 << 30
_RIGHT_SHIFT = 23


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    call.axis(call.attribute("axis"), source.rank)
    return [source.shape]


def lower(call: Call) -> Lowered:
    """x0, and the multiplier of the last step."""
    source, output = call.input(0), call.output
    if not 0 < float(source.scale) <= 1:
        raise call.invalid(
            "BT-SOFTMAX-SCALE",
            f"the input's scale is {source.scale}, at most 1 is possible",
            "quantize the model again",
        )
    with np.errstate(over="ignore"):
        unit = float(round_away(np.float32(1) / np.float32(source.scale)))
    if unit > fixed_point.S32_MAX:
        raise call.invalid("BT-SOFTMAX-SCALE", f"1 / {source.scale} is no 32-bit integer")
    return Lowered(
        {
            "axis": call.axis(call.attribute("axis"), source.rank),
            "input_zero_point": source.zero_point,
            "unit": int(unit),
            "output_zero_point": output.zero_point,
            "low": output.type.minimum,
            "high": output.type.maximum,
            "dtype": output.dtype,
        },
        multiplier_arrays(call, np.float32(1 / 128), 1),
        scratch=64 * source.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All rows at once."""
    dtype = DATA_TYPES[step["dtype"]].numpy
    if not inputs[0].size:
        return [np.empty(inputs[0].shape, dtype)]
    wrap, unit = fixed_point.wrap_s32, np.int64(step["unit"])
    q = wrap(np.moveaxis(inputs[0], step["axis"], -1).astype(np.int64) - step["input_zero_point"])
    x = wrap(q - q.max(axis=-1, keepdims=True))
    power = wrap(x + (x >> 1) - (x >> 4))
    # Both are 32 bits: the binary64 quotient does not reach an integer that the real one does not reach.
    steps = np.clip(np.trunc(power / -unit).astype(np.int64), 0, _MOST_STEPS)
    rest = wrap(power + wrap(steps * unit))
    exponential = wrap(np.left_shift(wrap((rest >> 1) + unit), steps.max(axis=-1, keepdims=True) - steps))
    total = wrap(exponential.sum(axis=-1, keepdims=True))
    if not total.all():
        raise RunError("BT-SOFTMAX-SUM", "exponentials add up to 0 modulo 2^32", place=step.place)
    share = wrap(np.trunc(_ONE / total).astype(np.int64) * exponential) >> _RIGHT_SHIFT
    centered = center.RULES[step.rules["center"]](share, np.int64(0))
    stored = store.rescale_and_store(centered, step.rules, step.arrays, step.parameters, dtype)
    return [np.ascontiguousarray(np.moveaxis(stored, -1, step["axis"]))]


OPERATOR = Operator(
    "shift_softmax",
    ("center", "scale_form", "rescale", "store"),
    infer,
    lower,
    reference,
    "probabilities of codes by shifts and additions",
)
