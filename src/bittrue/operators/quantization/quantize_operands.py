"""quantize with scales and zero points that are operands: saturate(round(x / scale) + zero_point).

Inputs: x (f32, f16, bf16, s32), scale, zero point (may be absent: 0). Output: integers of 2 to 16 bits, or floats of 4
to 8 bits. Attributes: `axis`, `block_size`, `saturate`, `precision` and `domain`, all resolved.

A step has the arrays `scales` (f32; f64 for integer scales) and `zero_points` (s64; f32 for float outputs), one element
each per tensor, one per slice of parameter `axis` per axis (`axis` is -1 per tensor), or blocked in their own shape
(`block_size` is 0 otherwise). Parameters `low` and `high` are the ends of an integer output type, `dtype` is its name.
With parameter `late` both arrays are made while running. Rules: `quotient` divides; then either `to_integer` rounds,
adds the zero point and limits (`to_integer_tail` for elements that share no pair with a neighbour of their own scale,
see `granularity.split_pairs`), or `narrow` rounds to a float. A plain 8-bit step has binary32, clamp_even and no tail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...graph import DATA_TYPES, data_type
from ...rules import narrow, quotient, to_integer
from ..core.base import Call, Lowered, Shape, Step
from ..core.elementwise import blockwise
from ..core.granularity import granularity, prepare, split_pairs, spread
from ..core.late import prepare_late, prepare_now

_F64 = np.dtype(np.float64)


def infer(call: Call) -> list[Shape]:
    """The shape of x."""
    call.expect((2, 3))
    granularity(call)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Scales and zero points."""
    axis, block = granularity(call)
    output = data_type(call.output.dtype)
    ends = {"low": output.minimum, "high": output.maximum} if output.is_integer else {}
    parameters, arrays = prepare_now(
        call,
        (1, 2),
        {"axis": axis, "block_size": block, "dtype": output.name, "zero_point": call.has(2), **ends},
        prepare,
    )
    return Lowered(parameters, arrays, scratch=24 * call.output.size if block else 0)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Element by element; binary64 carries all operands exactly."""
    step = prepare_late(step, inputs, prepare)
    x, axis, block = inputs[0], step["axis"], step["block_size"]
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    operands = [x, *(spread(step.arrays[name], x.shape, axis, block) for name in ("scales", "zero_points"))]
    dtype, division = DATA_TYPES[step["dtype"]], quotient.RULES[step.rules["quotient"]]
    if not dtype.is_integer:
        return [_to_float(step, division, operands)]
    low, high = step["low"], step["high"]

    def one(slot: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        finish = to_integer.RULES[step.rules[slot]]
        return lambda x, scale, zero_point: finish(division.divide(x, scale), zero_point.astype(np.int64), low, high)

    result = blockwise(one("to_integer"), operands, dtype.numpy, _F64)
    if "to_integer_tail" in step.rules:
        alone = split_pairs(x.shape, axis, block)
        chosen = [np.broadcast_to(a, x.shape).reshape(-1)[alone].astype(_F64) for a in operands]
        result.reshape(-1)[alone] = one("to_integer_tail")(*chosen)
    return [result]


def _to_float(step: Step, division: quotient.QuotientRule, operands: list[np.ndarray]) -> np.ndarray:
    """Zero points of 0 leave the sign of a zero alone in 8-bit floats; in narrower ones they are always added."""
    name = step["dtype"]
    eight, given = name.startswith("f8"), step["zero_point"] and step.rules["zero_points"] == "used"
    rule = narrow.RULES[step.rules["narrow"]]

    def one(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        real = division.divide(x, scale)
        if given:
            real = np.where(eight & (zero_point == 0), real, division.add(real, zero_point))
        return rule(real, name)

    return blockwise(one, operands, np.dtype(np.uint8), _F64).view(DATA_TYPES[name].numpy)
