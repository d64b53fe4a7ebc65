"""shrink: numbers drawn towards 0 by `bias`, those between -lambda and lambda to 0 itself.

Slot `cast`: how the results of integers become integers again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import cast
from ..core.base import Call, Lowered, Operator, Step, same_shape
from ..core.elementwise import blockwise

_F32 = np.float32


def lower(call: Call) -> Lowered:
    """Both numbers, as binary32."""
    return Lowered({name: float(_F32(call.attribute(name))) for name in ("bias", "lambda")})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """x + bias below -lambda, x - bias above lambda, in binary32."""
    dtype = inputs[0].dtype
    bias, limit = _F32(step["bias"]), _F32(step["lambda"])

    def block(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            y = x.astype(_F32)
            found = np.where(y < -limit, y + bias, np.where(y > limit, y - bias, _F32(0)))
        if dtype.kind == "f":
            return found
        ends = np.iinfo(dtype)
        return cast.RULES[step.rules["cast"]](found, int(ends.min), int(ends.max)).astype(dtype)

    return [blockwise(block, [inputs[0]], dtype, dtype)]


OPERATOR = Operator("shrink", ("cast",), same_shape, lower, reference, "numbers drawn towards 0", elementwise=1)
