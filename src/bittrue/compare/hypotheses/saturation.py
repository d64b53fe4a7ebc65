"""Results that saturate elsewhere, on steps without a clamp of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, Hypothesis
from .common import Array, of_result


def saturation(case: Case) -> Iterator[Hypothesis]:
    """The lowest and the highest quantized value never used, or used for more."""
    kind = case.theirs[0].dtype
    if kind.kind not in "iu" or kind.itemsize > 2:
        return
    ends = np.iinfo(kind)
    low, high = int(ends.min), int(ends.max)

    def between(first: int, last: int) -> Hypothesis:
        return of_result(
            f"result saturates to [{first}, {last}]",
            f"quantized values outside of [{first}, {last}] are not used",
            lambda y: y.clip(first, last),
        )

    yield between(low + 1, high)
    yield between(low, high - 1)
    yield between(low // 2, high // 2)
    if low < 0:
        yield between(0, high)
        yield between(low, 0)
    yield of_result(
        "highest quantized value wraps",
        "the highest quantized value comes out as the lowest",
        lambda y: _replaced(y, high, low),
    )
    yield of_result(
        "lowest quantized value wraps",
        "the lowest quantized value comes out as the highest",
        lambda y: _replaced(y, low, high),
    )


def _replaced(values: Array, one: int, other: int) -> Array:
    return np.where(values == one, values.dtype.type(other), values)
