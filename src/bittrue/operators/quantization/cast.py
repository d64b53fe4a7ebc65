"""cast: the same number in another type, as far as the type can hold it; scales and zero points are ignored."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ...graph import DATA_TYPES
from ...rules import cast as cast_rules
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise

_QUIET_NAN = 0x7E00
_QUIET_NAN_BRAIN = 0x7FC0
_SIGN = 0x8000


def lower(call: Call) -> Lowered:
    """The two types."""
    return Lowered(parameters={"from": call.input(0).dtype, "to": call.output.dtype})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Float to integer by the rule; integer to narrower integer keeps the low bits; anything but 0 is true."""
    x, source, target = inputs[0], DATA_TYPES[step["from"]], DATA_TYPES[step["to"]]
    if step["from"] == step["to"]:
        return [x.copy()]
    if target.name == "bool":
        return [x != 0]
    if source.is_float and target.is_integer:
        rule = cast_rules.RULES[step.rules["cast"]]
        real = x.astype(np.float32) if source.name == "bf16" else x
        low, high = target.minimum, target.maximum
        return [blockwise(lambda block: rule(block, low, high), [real], target.numpy, np.dtype(np.float64))]
    if source.name == "bool":
        # Integers take the byte as it is, real numbers the truth value.
        x = x.view(np.uint8) if target.is_integer else (x.view(np.uint8) != 0).view(np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        if target.name in ("f16", "bf16"):
            return [narrow(x.astype(np.float32), target.numpy)]
        return [x.astype(np.float32).astype(target.numpy) if source.name == "bf16" else x.astype(target.numpy)]


def narrow(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """binary32 to 16 bits, ties to even; every NaN becomes the quiet one with its sign."""
    result = x.astype(dtype)
    missing = np.isnan(x)
    if missing.any():
        quiet = _QUIET_NAN_BRAIN if dtype == ml_dtypes.bfloat16 else _QUIET_NAN
        bits = result.view(np.uint16)
        bits[missing] = np.where(np.signbit(x[missing]), quiet | _SIGN, quiet)
    return result


OPERATOR = Operator("cast", ("cast",), same_shape, lower, reference, "change of the element type", elementwise=1)
