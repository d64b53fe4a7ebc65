"""hardmax: 1 where the largest number of a row stands first, 0 elsewhere.

Rows lie along `axis`, or, where `flattened`, hold all axes from it on. Slot `extreme`: which number that is where some
are NaN; nothing equals NaN, so a row whose largest number it is has no mark. Without it the first NaN is marked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import extreme
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(1)
    call.axis(int(call.attribute("axis")), call.input(0).rank)
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """Rows as [before, row, after]."""
    shape = call.input(0).shape
    axis = call.axis(int(call.attribute("axis")), len(shape))
    rule = extreme.RULES.get(call.rules.get("extreme", ""))
    if rule is not None and not rule.in_packets:
        raise call.unsupported("BT-HARDMAX-EXTREME", f"rows by '{call.rules['extreme']}'", "choose other numerics")
    after = 1 if call.attribute("flattened") else int(np.prod(shape[axis + 1 :], dtype=np.int64))
    parameters = {"before": int(np.prod(shape[:axis], dtype=np.int64)), "after": after}
    if rule is not None:
        parameters["last"] = shape[-1] if after > 1 else 1
    return Lowered(parameters, scratch=24 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Comparisons only."""
    x = inputs[0]
    out = np.zeros(x.shape, x.dtype)
    if x.size:
        rows, marks = (part.reshape(step["before"], -1, step["after"]) for part in (x, out))
        if "extreme" in step.rules:
            # Rows change places with the last axis.
            turned = rows.reshape(*rows.shape[:2], -1, step["last"]).transpose(0, 3, 2, 1)
            lines = turned.reshape(-1, rows.shape[1])
            largest = extreme.RULES[step.rules["extreme"]].apply(lines, 1, "rows", ()).reshape(turned.shape[:3])
            hits = rows == largest.transpose(0, 2, 1).reshape(len(rows), 1, -1)
            marks[...] = hits & (np.add.accumulate(hits, axis=1, dtype=np.int64) == 1)
        else:
            np.put_along_axis(marks, rows.argmax(axis=1, keepdims=True), 1, axis=1)
    return [out]


OPERATOR = Operator(
    "hardmax",
    ("extreme",),
    infer,
    lower,
    reference,
    "marks the first largest number of each row",
    compares=True,
)
