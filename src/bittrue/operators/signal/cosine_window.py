"""cosine_window: a vector of as many numbers as the operand says, a0 - a1 cos(t i) + a2 cos(2 t i).

t is 2 pi over the number, or over one less where the window is not `periodic`. Products enter sums by slot
`multiply_add`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arithmetic import rational_wide
from ...graph import DATA_TYPES
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

_TURN = 2 * math.pi
_NAMES = ("a0", "a1", "a2")


def _size(call: Call) -> int:
    values = call.integers(0, "size")
    if len(values) != 1 or values[0] < 0:
        raise call.invalid("BT-WINDOW-SIZE", f"the size must be one number of at least 0, found {values[:4]}")
    return values[0]


def infer(call: Call) -> list[Shape]:
    """[size]."""
    call.expect(1)
    return [bounded(call, (_size(call),))]


def lower(call: Call) -> Lowered:
    """The factors as binary32 numbers, and the angle between neighbours."""
    size = _size(call)
    parts = size if call.attribute("periodic") else size - 1
    return Lowered(
        {
            "size": size,
            "angle": _TURN / parts if parts > 0 else math.inf,
            "type": call.output.dtype,
            **{name: float(np.float32(call.attribute(name))) for name in _NAMES},
        },
        inputs=(),
    )


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """In binary64 by the C library's cosine, rounded once; integers lose the fraction."""
    a0, a1, a2 = (step[name] for name in _NAMES)
    add, places = multiply_add.RULES[step.rules["multiply_add"]].apply, np.arange(step["size"])
    with np.errstate(all="ignore"):
        # A window of one sample: 0 times infinity.
        found = add(-a1, rational_wide.library_cos(step["angle"] * places), a0)
        if a2:
            found = add(a2, rational_wide.library_cos(2 * step["angle"] * places), found)
        return [found.astype(DATA_TYPES[step["type"]].numpy)]


OPERATOR = Operator(
    "cosine_window", ("multiply_add",), infer, lower, reference, "a window of cosines", needs_only_shapes=False
)
