"""unique: the different values of a vector in the order in which they first occur, and which one each element is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph import data_type
from .base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """[how many], which is in the values, and the input's shape."""
    call.expect(1, 2)
    source, indices = call.input(0), call.outputs[1]
    call.rank(source, 1)
    if call.attribute("idx_out_type") != indices.dtype:
        raise call.invalid(
            "BT-UNIQUE-TYPE",
            f"the indices' type is {call.attribute('idx_out_type')}, but their tensor is {indices.dtype}",
        )
    count = -1 if source.value is None else len(_unique(source.value)[0])
    return [(count,), source.shape]


def lower(call: Call) -> Lowered:
    """The type of the indices."""
    return Lowered(parameters={"type": call.outputs[1].dtype}, scratch=40 * call.input(0).size)


def _unique(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values in the order of their first occurrence, and an index into them for each element.

    The kernel keeps values in an ordered tree, in which a NaN counts as equal to whatever it is compared with first:
    a NaN after other values is taken for the smallest of them, and all values after a leading NaN for that NaN.

    >>> [part.tolist() for part in _unique(np.float32([3, 1, np.nan, 3]))]
    [[3.0, 1.0], [0, 1, 1, 0]]
    """
    if not x.size:
        return x.copy(), np.zeros(0, np.int64)
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, np.bool_)
    if missing[0]:
        return x[:1].copy(), np.zeros(x.size, np.int64)
    if missing.any():
        # fmin passes over NaNs.
        x = np.where(missing, np.fmin.accumulate(x), x)
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return x[first[order]], place[which.reshape(-1)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values, then indices."""
    values, indices = _unique(inputs[0])
    return [values, indices.astype(data_type(step["type"]).numpy)]


OPERATOR = Operator("unique", (), infer, lower, reference, "different values of a vector")
