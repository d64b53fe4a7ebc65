"""zeros_like: zeros in the shape of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Step, same_shape


def lower(call: Call) -> Lowered:
    """Shape and type."""
    return Lowered(parameters={"shape": call.output.shape, "dtype": call.output.dtype})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros."""
    return [np.zeros(step["shape"], DATA_TYPES[step["dtype"]].numpy)]


OPERATOR = Operator(
    "zeros_like", (), same_shape, lower, reference, "zeros in the input's shape", needs_only_shapes=True
)
