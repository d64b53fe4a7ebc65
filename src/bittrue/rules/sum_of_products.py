"""Slot `sum_of_products`: how a sum of binary32 products is added up, which decides its last bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# The NaN of an invalid operation on x86; other machines clear the sign bit.
_INVALID = np.uint32(0xFFC00000).view(np.float32)

SumRule = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]


def binary32_in_order(total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
    """total = f32(total + f32(first * second)), in place: one term of a sum that starts at +0.

    Both operations round to nearest, ties to even; subnormal numbers count. No fused multiply-add, no second sum
    beside the first. `room` has the shape of `total` and takes the products. Domain: all of binary32.
    Source: reference/conv.h, reference/fully_connected.h, verified by running.

    >>> total, room = np.zeros(1, np.float32), np.empty(1, np.float32)
    >>> for x in (2.0**24, 1.0, 1.0, -(2.0**24)):
    ...     binary32_in_order(total, np.float32([x]), np.float32([1]), room)
    >>> total.tolist()
    [0.0]
    """
    with np.errstate(all="ignore"):
        np.multiply(first, second, out=room)
        np.add(total, room, out=total)


def invalid_as_on_x86(result: np.ndarray, *operands: np.ndarray | None) -> np.ndarray:
    """`result` with the NaN that x86 makes of infinities, when none of the operands holds a NaN to hand on.

    >>> hex(int(invalid_as_on_x86(np.float32([np.nan]), np.float32([np.inf])).view(np.uint32)[0]))
    '0xffc00000'
    """
    wrong = np.isnan(result)
    if wrong.any() and not any(o is not None and np.isnan(o).any() for o in operands):
        result[wrong] = _INVALID
    return result


RULES: dict[str, SumRule] = {"binary32_in_order": binary32_in_order}
