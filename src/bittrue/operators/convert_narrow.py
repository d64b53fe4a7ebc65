"""convert_narrow: the same number in another type, where one of the two has fewer than 8 bits or is a float of 8.

Narrow numbers are exact in binary32. To narrow integers go the low bits of the number without its fraction; to narrow
floats what `narrow` gives, to f8e8m0 what `power_of_two` gives. Integers beyond 2^24 lie beyond all narrow floats.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import DATA_TYPES, DataType
from ..rules import cast as cast_rules
from ..rules import narrow as narrow_rules
from ..rules import power_of_two
from .base import Call, Lowered, Operator, Step, same_shape

_EXACT = 1 << 24


def lower(call: Call) -> Lowered:
    """The two types."""
    source, target = call.input(0), call.output
    return Lowered({"from": source.dtype, "to": target.dtype}, scratch=32 * source.size)


def _real(x: np.ndarray, source: DataType) -> np.ndarray:
    """The numbers in binary32, f64 as it is."""
    if source.is_integer:
        low, high = max(source.minimum, -_EXACT), min(source.maximum, _EXACT)
        return np.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(np.float32)
    return x if source.name == "f64" else x.astype(np.float32)


def low_bits(x: np.ndarray, target: DataType) -> np.ndarray:
    """Integers modulo 2^bits.

    >>> low_bits(np.int64([-9, 8, 15, 16]), DATA_TYPES["s4"]).tolist()
    [7, -8, -1, 0]
    """
    if target.bits >= 8:
        return x.astype(target.numpy)
    codes = x.astype(np.int64) & ((1 << target.bits) - 1)
    return np.where(codes > target.maximum, codes - (1 << target.bits), codes).astype(target.numpy)


def _to_float(step: Step, real: np.ndarray, target: DataType) -> np.ndarray:
    if target.name == "f64":
        return real.astype(np.float64)
    if "power_of_two" in step.rules:
        codes = power_of_two.RULES[step.rules["power_of_two"]](real)
    else:
        codes = narrow_rules.RULES[step.rules["narrow"]](real, target.name)
    return codes.view(target.numpy)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """By way of binary32 or integers."""
    source, target = DATA_TYPES[step["from"]], DATA_TYPES[step["to"]]
    x = np.ascontiguousarray(inputs[0]).reshape(inputs[0].shape)
    with np.errstate(over="ignore", invalid="ignore"):
        if source.name == target.name:
            result = x.copy()
        elif target.name == "bool":
            result = np.asarray(x.astype(np.float32) != 0)
        elif target.is_integer and not source.is_float:
            result = low_bits(x, target)
        elif target.is_integer:
            wide = DATA_TYPES["s32"] if target.bits < 8 else target
            rule = cast_rules.RULES[step.rules["cast"]]
            result = low_bits(rule(_real(x, source), wide.minimum, wide.maximum), target)
        else:
            result = _to_float(step, _real(x, source), target)
    return [result.reshape(x.shape)]


OPERATOR = Operator(
    "convert_narrow",
    ("cast", "narrow", "power_of_two"),
    same_shape,
    lower,
    reference,
    "the same number in another type, to or from narrow ones",
)
