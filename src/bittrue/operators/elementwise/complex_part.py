"""complex_part: the real or the imaginary part of complex numbers made of two binary32 ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Step, same_shape

_PARTS = {"real": np.real, "imaginary": np.imag}


def lower(call: Call) -> Lowered:
    """Which part."""
    part = str(call.attribute("part"))
    if part not in _PARTS:
        raise call.invalid("BT-COMPLEX-PART", f"part '{part}' is not among {list(_PARTS)}")
    return Lowered({"part": part})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One part."""
    return [np.ascontiguousarray(_PARTS[step["part"]](inputs[0])).reshape(inputs[0].shape)]


OPERATOR = Operator("complex_part", (), same_shape, lower, reference, "real or imaginary part", elementwise=1)
