"""Quantized values as they are stored: in binary32, where they may be any number, or in 8 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...graph import DATA_TYPES, Attribute
from ...rules.level_sum import Pair
from ..core.base import Call, Role, Step
from ..core.elementwise import blockwise
from ..core.role_quantization import of_call

_F32 = np.dtype(np.float32)


def scales_of(call: Call, roles: Sequence[Role]) -> dict[str, Attribute]:
    """Scale and zero point of these roles as step parameters: `input_scale`, `first_zero_point` ...

    Roles that have none hold real numbers: scale 1, zero point 0.
    """
    found: dict[str, Attribute] = {}
    for role in roles:
        given, name = of_call(call, role), role.name.split()[0]
        if given.late:
            raise call.unsupported(
                "BT-QUANT-OPERAND",
                f"scale or zero point of the {role.name} are only known at run time",
                "give them as constants",
            )
        found[f"{name}_scale"] = 1.0 if given.scales is None else float(given.scales.reshape(-1)[0])
        found[f"{name}_zero_point"] = 0 if given.zero_points is None else int(given.zero_points.reshape(-1)[0])
    return found


def pair(known: Mapping[str, Any] | Step, name: str) -> Pair:
    """What `scales_of` has put into a step."""
    return known[f"{name}_scale"], known[f"{name}_zero_point"]


def limits(call: Call) -> dict[str, Attribute]:
    """Attributes `low` and `high`, between which results are stored, and the output's type, as step parameters."""
    return {
        "low": float(call.attribute("low")),
        "high": float(call.attribute("high")),
        "dtype": call.output.dtype,
    }


def store(y: np.ndarray, low: float, high: float, dtype: np.dtype, place: str) -> np.ndarray:
    """min(max(y, low), high) of binary32 numbers or integers; NaN stays where the type has one.

    Raises:
        RunError: the type cannot hold a result.
    """
    with np.errstate(invalid="ignore"):
        if y.dtype.kind == "f":
            limited = np.minimum(np.maximum(y, np.float32(low)), np.float32(high))
        else:
            # Sums of 64 bits are rounded to binary32 once, and limits are integers or infinite.
            limited = np.clip(y.astype(np.float32), np.float32(low), np.float32(high))
        if dtype.kind == "f":
            return limited.astype(dtype)
        stored = limited.astype(dtype)
        if not (stored == limited).all():
            wrong = limited[stored != limited].reshape(-1)[0]
            raise RunError(
                "BT-LEVEL",
                f"a result is {float(wrong)!r}, which {dtype} does not hold",
                place=place,
                advice="inputs that are no numbers, or no whole ones, have no place in a tensor of 8 bits",
            )
    return stored


def stored_blocks(
    function: Callable[..., np.ndarray], arrays: list[np.ndarray], known: Mapping[str, Any], place: str
) -> np.ndarray:
    """`function` of binary32 numbers, element by element, stored as the parameters `low`, `high` and `dtype` say.

    ValueError of `function` becomes a RunError: for these numbers, nothing is defined.
    """
    dtype, low, high = DATA_TYPES[known["dtype"]].numpy, known["low"], known["high"]
    try:
        return blockwise(lambda *parts: store(function(*parts), low, high, dtype, place), arrays, dtype, _F32)
    except ValueError as error:
        raise undefined(str(error), place) from None


def undefined(message: str, place: str) -> RunError:
    """The error for numbers for which the arithmetic has no defined result."""
    return RunError("BT-LEVEL", message, place=place, advice="the runtime has no defined result for these numbers")


def at_plan_time(call: Call, make: Callable[[], np.ndarray]) -> np.ndarray:
    """`make()`, whose RunError becomes an error about the node."""
    try:
        return make()
    except RunError as error:
        raise call.invalid(error.code, error.message, error.advice) from None


def check(call: Call, prepare: Callable[[], Any]) -> Any:
    """`prepare()`, whose ValueError becomes an error about the node's scales."""
    try:
        return prepare()
    except ValueError as error:
        raise call.invalid(
            "BT-MULTIPLIER", str(error), "scales and zero points are operands of this node: check their values"
        ) from None


def quantized(dtype: str) -> np.ndarray:
    """All values of an 8-bit type, ascending."""
    kind = DATA_TYPES[dtype]
    return np.arange(kind.minimum, kind.maximum + 1).astype(kind.numpy)


__all__ = [
    "Pair",
    "at_plan_time",
    "check",
    "limits",
    "pair",
    "quantized",
    "scales_of",
    "store",
    "stored_blocks",
    "undefined",
]
