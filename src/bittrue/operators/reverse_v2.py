"""reverse_v2: neighbouring axes read backwards. The axes may be known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import RunError
from .base import Call, Lowered, Operator, Shape, Step
from .indexing import fresh

# Source: facts/litert.md 2.7; the kernel's rank limit, run.
_MAX_RANK = 8


def _axes(values: Sequence[int], rank: int) -> tuple[int, ...] | None:
    """Sorted axes from the front, or None when they are outside the tensor or not neighbours."""
    if any(not -rank <= value < rank for value in values):
        return None
    axes = sorted(value % rank for value in values)
    return tuple(axes) if axes == list(range(axes[0], axes[0] + len(axes))) else None


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(2)
    source, axes = call.input(0), call.input(1, "axes")
    call.rank(source, 0, _MAX_RANK)
    call.rank(axes, 1)
    if not 1 <= axes.size <= source.rank:
        raise call.invalid("BT-REVERSE", f"{axes.size} axes named, expected 1 to {source.rank}")
    if axes.value is not None and _axes(call.integers(1, "axes"), source.rank) is None:
        raise call.invalid("BT-REVERSE", f"axes {call.integers(1, 'axes')} must be neighbours in rank {source.rank}")
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Nothing but the shape: the axes stay an input."""
    return Lowered(parameters={"shape": call.output.shape})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of the flipped view."""
    axes = _axes([int(v) for v in inputs[1]], inputs[0].ndim)
    if axes is None:
        raise RunError("BT-REVERSE", f"axes {inputs[1].tolist()} must be neighbours in rank {inputs[0].ndim}")
    return [fresh(np.flip(inputs[0], axes), step["shape"])]


OPERATOR = Operator("reverse_v2", (), infer, lower, reference, "neighbouring axes read backwards")
