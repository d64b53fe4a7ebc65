"""maximum and minimum: of the stored numbers, whatever their scales say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .base import Operator, Step, broadcast_shape, nothing_to_prepare
from .elementwise import blockwise


def _choose(comparison: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., list[np.ndarray]]:
    """`first if comparison(first, second) else second`: a NaN on either side, or two equal zeros, give the second."""

    def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        first, second = inputs

        def block(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore"):
                return np.where(comparison(a, b), a, b)

        return [blockwise(block, [first, second], first.dtype, first.dtype)]

    return reference


OPERATORS = (
    Operator(
        "maximum",
        (),
        broadcast_shape,
        nothing_to_prepare,
        _choose(np.greater),
        "the larger of two elements",
        elementwise=2,
    ),
    Operator(
        "minimum",
        (),
        broadcast_shape,
        nothing_to_prepare,
        _choose(np.less),
        "the smaller of two elements",
        elementwise=2,
    ),
)
