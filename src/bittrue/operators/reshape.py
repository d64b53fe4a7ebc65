"""reshape, squeeze and expand_dims: the same elements in the same order under another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded, fresh

BATCH_ADVICE = (
    "where this comes from another batch than the file's: its runtime refuses it, too; prepare the model for the file's"
    " batch and call session.run_each(...), which runs the samples one after the other"
)


def _target(call: Call) -> list[int]:
    """The requested shape: a vector as second input wins over the attribute, as in the kernels."""
    if len(call.inputs) > 1 and call.input(1, "new shape").rank == 1:
        return call.integers(1, "new shape")
    target = list(call.attribute("new_shape"))
    # Old converters wrote the shape of a scalar as [0].
    return [] if target == [0] else target


def infer_reshape(call: Call) -> list[Shape]:
    """One extent may be -1: it becomes whatever is left, extents of 0 not counted."""
    call.expect((1, 2))
    source = call.input(0)
    target = _target(call)
    free = [i for i, extent in enumerate(target) if extent == -1]
    if len(free) > 1 or any(extent < -1 for extent in target):
        raise call.invalid("BT-RESHAPE", f"new shape {target} must hold extents >= 0 and at most one -1")
    if free:
        others = [extent for extent in target if extent != -1]
        inside = math.prod(extent or 1 for extent in source.shape)
        target[free[0]] = 0 if 0 in source.shape and 0 not in others else inside // math.prod(e or 1 for e in others)
    if math.prod(target) != source.size:
        raise call.invalid(
            "BT-RESHAPE",
            f"{source.size} elements cannot take shape {target}",
            BATCH_ADVICE,
        )
    return [bounded(call, target)]


def infer_squeeze(call: Call) -> list[Shape]:
    """Drops the extents 1 that the second input and `squeeze_dims` name; all of them when none is named."""
    call.expect((1, 2))
    source = call.input(0)
    axes = tuple(call.integers(1, "axes")) if call.has(1) else ()
    if "squeeze_dims" in call.node.attributes:
        axes = (*axes, *call.attribute("squeeze_dims"))
    named = {call.axis(axis, source.rank, "squeezed axis") for axis in axes}
    if axes and not source.rank:
        raise call.invalid("BT-SHAPE-AXIS", "a scalar has no axis to squeeze")
    for axis in named:
        if source.shape[axis] != 1:
            raise call.invalid("BT-SQUEEZE", f"extent {source.shape[axis]} of axis {axis} cannot be squeezed")
    drop = named or {axis for axis, extent in enumerate(source.shape) if extent == 1}
    return [tuple(extent for axis, extent in enumerate(source.shape) if axis not in drop)]


def infer_expand_dims(call: Call) -> list[Shape]:
    """Extents 1 at the axes of the second input, counted in the result."""
    call.expect(2)
    source, axes = call.input(0), call.integers(1, "axes")
    rank = source.rank + len(axes)
    places = {call.axis(axis, rank, "new axis") for axis in axes}
    if len(places) != len(axes):
        raise call.invalid("BT-SHAPE-AXIS", f"axes {axes} name a place of rank {rank} twice")
    rest = iter(source.shape)
    return [bounded(call, [1 if at in places else next(rest) for at in range(rank)])]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered(parameters={"shape": call.output.shape})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy under the new shape."""
    return [fresh(inputs[0], step["shape"])]


OPERATORS = (
    Operator("reshape", (), infer_reshape, lower, reference, "same elements, new shape", moves=True, keeps_order=True),
    Operator("squeeze", (), infer_squeeze, lower, reference, "drops extents of 1", moves=True, keeps_order=True),
    Operator(
        "expand_dims", (), infer_expand_dims, lower, reference, "inserts extents of 1", moves=True, keeps_order=True
    ),
)
