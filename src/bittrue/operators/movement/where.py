"""where with one input: the positions of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """[how many, rank], or the other way round by `axes_first`; how many is in the values.

    A scalar counts as a vector of one with `axes_first`, and is refused without.
    """
    call.expect(1)
    source, axes_first = call.input(0), bool(call.node.attributes.get("axes_first", False))
    if not source.rank and not axes_first:
        raise call.invalid("BT-SHAPE-RANK", f"'{source.name}' must have an axis, found a scalar")
    count = -1 if source.value is None else int(np.count_nonzero(source.value))
    return [(max(1, source.rank), count) if axes_first else (count, source.rank)]


def lower(call: Call) -> Lowered:
    """Which axis of the result counts the axes of the input."""
    return Lowered(parameters={"axes_first": bool(call.node.attributes.get("axes_first", False))})


def refuse_odd_truths(step: Step, x: np.ndarray) -> None:
    """RunError for truth values stored as bytes other than 0 and 1, where kernels' results are undefined."""
    if x.dtype == np.bool_ and (x.view(np.uint8) > 1).any():
        raise RunError(
            "BT-TRUTH-BYTE",
            f"a truth value is stored as the byte {int(x.view(np.uint8).max())}, for which the kernel has no defined"
            " result",
            place=step.place,
            advice="store truth values as 0 and 1",
        )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """In row-major order. A NaN is not zero."""
    if not step["axes_first"]:
        refuse_odd_truths(step, inputs[0])
    places = np.array(np.nonzero(np.atleast_1d(inputs[0]) != 0), np.int64)
    return [places if step["axes_first"] else np.ascontiguousarray(places.T)]


OPERATOR = Operator("where", (), infer, lower, reference, "positions of elements that are not zero")
