"""Slot `sum_of_products`: how a sum of binary32 products is added up, which decides its last bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import floats
from ..records import dataclass

# The NaN of an invalid operation on x86; other machines clear the sign bit.
_INVALID = np.uint32(0xFFC00000).view(np.float32)


# Elements of a sum held at a time: one pass per term stays inside a level-2 cache.
_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class SumRule:
    """`rule(total, first, second, room)` adds one term in place; `room` has the shape of `total`.

    Attributes:
        from_bias: sums start with the bias, not with +0, and what lies outside of an image is a term with a zero.
        by_columns: a filter is walked column by column, not row by row, and sums end as f32(total + 0) where it does
            not fill 3, 4, 9 or 25 taps.
    """

    add: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]
    formula: str
    from_bias: bool = False
    by_columns: bool = False

    def __call__(self, total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
        self.add(total, first, second, room)


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


def binary32_fused(total: np.ndarray, first: np.ndarray, second: np.ndarray, room: np.ndarray) -> None:
    """total = f32(total + first * second) with one rounding, in place.

    Source: docs/facts/xnnpack.md 3.3, verified by running.

    >>> total, room = np.float32([-1 - 2.0**-11]), np.empty(1, np.float32)
    >>> binary32_fused(total, np.float32([1 + 2.0**-12]), np.float32([1 + 2.0**-12]), room)
    >>> float(total[0]) == 2.0**-24  # 0 if the product were rounded
    True
    """
    total[...] = floats.fused_multiply_add(first, second, total)


def add_matrix(rule: SumRule, total: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """total[m, n] += a[m, k] * b[k, n] for k = 0, 1, ..., in place, one term after the other.

    >>> total = np.zeros((1, 1), np.float32)
    >>> add_matrix(RULES["binary32_in_order"], total, np.float32([[2, 3]]), np.float32([[5], [7]]))
    >>> total.tolist()
    [[31.0]]
    """
    rows = max(1, _BLOCK // max(1, total.shape[1]))
    for first in range(0, total.shape[0], rows):
        block, part = total[first : first + rows], a[first : first + rows]
        room = np.empty_like(block)
        for k in range(b.shape[0]):
            rule(block, part[:, k, None], b[k], room)


def invalid_as_on_x86(result: np.ndarray, *operands: np.ndarray | None) -> np.ndarray:
    """`result` with the NaN that x86 makes of infinities, when none of the operands holds a NaN to hand on.

    >>> hex(int(invalid_as_on_x86(np.float32([np.nan]), np.float32([np.inf])).view(np.uint32)[0]))
    '0xffc00000'
    """
    wrong = np.isnan(result)
    if wrong.any() and not any(o is not None and np.isnan(o).any() for o in operands):
        result[wrong] = _INVALID
    return result


RULES: dict[str, SumRule] = {
    "binary32_in_order": SumRule(
        binary32_in_order, "f32(total + f32(x * w)) from +0 on, filters row by row, then f32(total + bias)"
    ),
    "binary32_fused_in_order": SumRule(
        binary32_fused, "f32(total + x * w), one rounding, from +0 on, filters row by row, then f32(total + bias)"
    ),
    "binary32_fused_from_bias": SumRule(
        binary32_fused, "f32(total + x * w), one rounding, from the bias on, filters row by row", from_bias=True
    ),
    "binary32_fused_from_bias_by_columns": SumRule(
        binary32_fused,
        "f32(total + x * w), one rounding, from the bias on, filters column by column",
        from_bias=True,
        by_columns=True,
    ),
}
