"""transpose: the axes in another order, reversed where none is given.

With the attribute `rows_first` the first axis goes behind the batch axes: [M, ..., K] becomes [..., M, K].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import fresh

# Source: docs/facts/litert.md 2.7; the kernel's rank limit, run.
_MAX_RANK = 8


def _permutation(call: Call) -> tuple[int, ...]:
    call.expect((1, 2))
    rank = call.input(0).rank
    if call.node.attributes.get("rows_first"):
        call.rank(call.input(0), 3, _MAX_RANK)
        return (*range(1, rank - 1), 0, rank - 1)
    if not call.has(1):
        return tuple(reversed(range(rank)))
    source, order = call.input(0), call.input(1, "permutation")
    call.rank(source, 1, _MAX_RANK)
    if order.shape != (source.rank,):
        raise call.invalid(
            "BT-TRANSPOSE", f"the permutation must have the shape [{source.rank}], found {list(order.shape)}"
        )
    axes = tuple(call.axis(axis, source.rank, "permuted axis") for axis in call.integers(1, "permutation"))
    if len(set(axes)) != len(axes):
        # The kernel does not check this; it would read diagonals and beyond the tensor.
        raise call.invalid("BT-TRANSPOSE", f"the permutation {list(axes)} names an axis twice")
    return axes


def infer(call: Call) -> list[Shape]:
    """Dimensions in the new order."""
    shape = call.input(0).shape
    return [tuple(shape[axis] for axis in _permutation(call))]


def lower(call: Call) -> Lowered:
    """The permutation, counted from the front."""
    return Lowered(parameters={"permutation": _permutation(call)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A contiguous copy in the new order."""
    view = inputs[0].transpose(step["permutation"])
    return [fresh(view, view.shape)]


OPERATOR = Operator("transpose", (), infer, lower, reference, "axes in another order", moves=True, layout="permutation")
