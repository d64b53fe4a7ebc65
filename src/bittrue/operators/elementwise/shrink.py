"""shrink: numbers drawn towards 0 by `bias`, those between -lambda and lambda to 0 itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise

_F32 = np.float32


def lower(call: Call) -> Lowered:
    """Both numbers, as binary32."""
    return Lowered({name: float(_F32(call.attribute(name))) for name in ("bias", "lambda")})


def _integers(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The integer part, as x86-64 converts it: what a register cannot hold is its lowest value.

    Numbers of 64 bits without a sign from 2^63 on are converted less 2^63, which is added again.
    """
    if dtype == np.uint64:
        upper = np.where(x >= 2.0**63, _F32(2.0**63), _F32(0))
        return _integers(x - upper, np.dtype(np.int64)).view(np.uint64) + upper.astype(np.uint64)
    ends = np.iinfo(np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32)
    inside = (x >= float(ends.min)) & (x < -float(ends.min))
    return np.where(inside, np.where(inside, x, 0).astype(np.int64), np.int64(ends.min)).astype(dtype)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """x + bias below -lambda, x - bias above lambda, in binary32."""
    dtype = inputs[0].dtype
    bias, limit = _F32(step["bias"]), _F32(step["lambda"])

    def block(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            y = x.astype(_F32)
            found = np.where(y < -limit, y + bias, np.where(y > limit, y - bias, _F32(0)))
        return found if dtype.kind == "f" else _integers(found, dtype)

    return [blockwise(block, [inputs[0]], dtype, dtype)]


OPERATOR = Operator("shrink", (), same_shape, lower, reference, "numbers drawn towards 0", elementwise=1)
