"""reshape, squeeze and expand_dims: the same elements in the same order under another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operand, Operator, Shape, Step, keeps_axes_of_nothing
from ..core.indexing import bounded, fresh

BATCH_ADVICE = (
    "where this comes from another batch than the file's: its runtime refuses it, too; prepare the model for the file's"
    " batch and call session.map(...) or session.run_batch(...), where every sample is a run of its own"
)


def _target(call: Call) -> list[int]:
    """The requested sizes: a vector as second input wins over the attribute, as in the kernels."""
    named = "new_shape" in call.node.attributes
    if len(call.inputs) > 1 and (not named or call.input(1, "new shape").rank == 1):
        call.rank(call.input(1, "new shape"), 1)
        return call.integers(1, "new shape")
    target = list(call.attribute("new_shape"))
    # Old converters wrote the shape of a scalar as [0].
    return [] if target == [0] else target


def _span(call: Call) -> tuple[int, int]:
    """Which axes the requested sizes replace: `first` and `end` are places between axes, -1 is behind all of them."""
    rank = call.input(0).rank
    places = [int(str(call.node.attributes.get(name, usual))) for name, usual in (("first", 0), ("end", -1))]
    first, end = (place + (rank + 1 if place < 0 else 0) for place in places)
    if not 0 <= first <= end <= rank:
        raise call.invalid("BT-SHAPE-AXIS", f"axes {places[0]} to {places[1]} of a tensor of rank {rank}")
    return first, end


def infer_reshape(call: Call) -> list[Shape]:
    """One size may be -1: it becomes what is left, sizes of 0 not counted.

    The attribute `zeros` says what a 0 means: `copied` takes the input's size at its place, `counted` is any size, and
    `alone` one that no -1 stands beside in sizes that are known before a run: the runtime's shape inference refuses
    them, its kernel does not. A third input is a tensor that the result goes along with, see `_beside`.
    """
    call.expect((1, 3))
    if call.has(2):
        return [_beside(call, call.input(0), call.input(2, "other tensor"))]
    source, target, zeros = call.input(0), _target(call), call.attribute("zeros")
    first, end = _span(call)
    inside = source.shape[first:end]
    free = [at for at, size in enumerate(target) if size == -1]
    if len(free) > 1 or any(size < -1 for size in target):
        raise call.invalid("BT-RESHAPE", f"new shape {target} must hold sizes >= 0 and at most one -1")
    for at, size in enumerate(target):
        if size == 0 and zeros == "copied":
            if first + at >= source.rank:
                raise call.invalid("BT-RESHAPE", f"the 0 at place {at} of {target} finds no size to copy")
            target[at] = source.shape[first + at]
    if free:
        others = [size for size in target if size != -1]
        computed = zeros == "alone" and call.input(1, "new shape").value is None
        if 0 in others and zeros != "counted" and not computed:
            raise call.invalid("BT-RESHAPE", f"the -1 has no meaning beside a size of 0 in {target}")
        counted = math.prod(size or 1 for size in inside)
        rest = math.prod(e or 1 for e in others)
        if 0 in others and computed and counted % rest:
            raise call.invalid("BT-RESHAPE", f"{counted} is no multiple of {rest}, so {target} has no size for the -1")
        target[free[0]] = 0 if 0 in inside and 0 not in others else counted // rest
    if math.prod(target) != math.prod(inside):
        raise call.invalid("BT-RESHAPE", f"{math.prod(inside)} elements cannot take shape {target}", BATCH_ADVICE)
    return [bounded(call, [*source.shape[:first], *target, *source.shape[end:]])]


def _beside(call: Call, source: Operand, other: Operand) -> Shape:
    """The shape in which the elements broadcast with another tensor.

    They lie along its axes from the attribute `axis` on, or take its shape where there is no such attribute.
    """
    if "axis" not in call.node.attributes:
        if source.size != other.size:
            raise call.invalid("BT-SHAPE-BROADCAST", f"{source.size} elements do not take shape {list(other.shape)}")
        return other.shape
    axis = call.axis(int(call.attribute("axis")), other.rank) if source.rank else 0
    behind = other.rank - axis - source.rank
    if behind < 0 or other.shape[axis : axis + source.rank] != source.shape:
        raise call.invalid(
            "BT-SHAPE-BROADCAST",
            f"shape {list(source.shape)} does not lie along the axes of {list(other.shape)} from axis {axis} on",
        )
    return (*source.shape, *(1,) * behind)


def infer_squeeze(call: Call) -> list[Shape]:
    """Drops the dimensions 1 that the second input and `squeeze_dims` name; all of them when none is named."""
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
            raise call.invalid("BT-SQUEEZE", f"dimension {source.shape[axis]} of axis {axis} cannot be squeezed")
    drop = named or {axis for axis, size in enumerate(source.shape) if size == 1}
    return [tuple(size for axis, size in enumerate(source.shape) if axis not in drop)]


def infer_expand_dims(call: Call) -> list[Shape]:
    """Dimensions 1 at the axes of the second input, counted in the result; see `keeps_axes_of_nothing`."""
    call.expect(2)
    source, axes = call.input(0), call.integers(1, "axes")
    if keeps_axes_of_nothing(call):
        axes = [axis for axis in axes if axis >= 0]
    rank = source.rank + len(axes)
    places = {call.axis(axis, rank, "new axis") for axis in axes}
    if len(places) != len(axes):
        raise call.invalid("BT-SHAPE-AXIS", f"axes {axes} name a place of rank {rank} twice")
    rest = iter(source.shape)
    return [bounded(call, [1 if at in places else next(rest) for at in range(rank)])]


def lower(call: Call) -> Lowered:
    """The output shape, which is all that the other operands decide."""
    return Lowered(parameters={"shape": call.output.shape}, inputs=(0,))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy under the new shape."""
    return [fresh(inputs[0], step["shape"])]


OPERATORS = (
    Operator("reshape", (), infer_reshape, lower, reference, "same elements, new shape", moves=True, keeps_order=True),
    Operator("squeeze", (), infer_squeeze, lower, reference, "drops dimensions of 1", moves=True, keeps_order=True),
    Operator(
        "expand_dims", (), infer_expand_dims, lower, reference, "inserts dimensions of 1", moves=True, keeps_order=True
    ),
)
