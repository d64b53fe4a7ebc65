"""Operands that hold one scale or one zero point for a whole tensor."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .base import Call, Shape, same_shape
from .late import Values


def check_scalars(call: Call, scales: Iterable[int], zero_points: Iterable[int]) -> None:
    """Inputs at these positions hold one element, in a tensor of rank 0 or 1; zero points may be absent."""
    wanted = [(position, "scale") for position in scales] + [(position, "zero point") for position in zero_points]
    for position, role in wanted:
        if role == "zero point" and not call.has(position):
            continue
        operand = call.input(position, role)
        if operand.rank > 1 or operand.size != 1:
            raise call.invalid(
                "BT-QUANT-AXIS",
                f"{role} '{operand.name}' has shape {list(operand.shape)}, expected one value for the whole tensor",
            )


def unary_shape(call: Call) -> list[Shape]:
    """`infer` of x, then scale and zero point of x and of the result where these are operands: the shape of x."""
    if len(call.inputs) < 4:
        return same_shape(call)
    call.expect((4, 5))
    check_scalars(call, [position for position in (1, 3) if call.has(position)], (2, 4))
    return [call.input(0).shape]


def pair(values: Values, scale: int, zero_point: int) -> tuple[float, int]:
    """The binary32 scale and the zero point at two positions; 0 where the zero point is absent."""
    given = values[zero_point] if zero_point < len(values) else None
    return float(np.asarray(values[scale]).reshape(-1)[0]), 0 if given is None else int(np.asarray(given).flat[0])
