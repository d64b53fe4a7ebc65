"""reverse_v2: neighbouring axes read backwards. The axes may be known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import fresh

# Source: docs/facts/litert.md 2.7; the kernel's rank limit, run.
_MAX_RANK = 8


def _axes(values: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """Sorted axes from the front. Raises ValueError with the reason when they cannot be reversed."""
    rank = len(shape)
    if any(not -rank <= value < rank for value in values):
        raise ValueError(f"axes {list(values)} are outside a tensor of rank {rank}")
    axes = sorted(value % rank for value in values)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise ValueError(f"axes {list(values)} are not neighbours")
    if 0 in shape and 0 not in shape[: axes[-1] + 1]:
        # The kernel would still move an element, outside its buffers.
        raise ValueError(f"axes {list(values)} of the empty shape {list(shape)} have a dimension of 0 behind them")
    return tuple(axes)


def infer(call: Call) -> list[Shape]:
    """The input's shape."""
    call.expect(2)
    source, axes = call.input(0), call.input(1, "axes")
    call.rank(source, 0, _MAX_RANK)
    call.rank(axes, 1)
    if not 1 <= axes.size <= source.rank:
        raise call.invalid("BT-REVERSE", f"{axes.size} axes named, expected 1 to {source.rank}")
    if axes.value is not None:
        try:
            _axes(call.integers(1, "axes"), source.shape)
        except ValueError as problem:
            raise call.invalid("BT-REVERSE", str(problem)) from None
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Nothing but the shape: the axes stay an input."""
    return Lowered(parameters={"shape": call.output.shape})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of the flipped view."""
    try:
        axes = _axes([int(v) for v in inputs[1]], inputs[0].shape)
    except ValueError as problem:
        raise RunError("BT-REVERSE", str(problem)) from None
    return [fresh(np.flip(inputs[0], axes), step["shape"])]


OPERATOR = Operator("reverse_v2", (), infer, lower, reference, "neighbouring axes read backwards", moves=True)
