"""rank and zeros_like: results that follow from the input's shape alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Shape, Step, same_shape


def infer_rank(call: Call) -> list[Shape]:
    """A scalar."""
    call.expect(1)
    call.input(0)
    return [()]


def lower_rank(call: Call) -> Lowered:
    """The number of axes."""
    return Lowered(parameters={"rank": call.input(0).rank})


def reference_rank(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The number, as s32."""
    return [np.asarray(step["rank"], np.int32)]


def lower_zeros(call: Call) -> Lowered:
    """Shape and type."""
    return Lowered(parameters={"shape": call.output.shape, "dtype": call.output.dtype})


def reference_zeros(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros."""
    return [np.zeros(step["shape"], DATA_TYPES[step["dtype"]].numpy)]


OPERATORS = (
    Operator("rank", (), infer_rank, lower_rank, reference_rank, "number of axes", needs_only_shapes=True),
    Operator(
        "zeros_like", (), same_shape, lower_zeros, reference_zeros, "zeros in the input's shape", needs_only_shapes=True
    ),
)
