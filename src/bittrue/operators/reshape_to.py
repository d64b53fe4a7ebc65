"""reshape_to, reshape_axes, flatten and identity: the same elements in the same order.

All of them are carried out as a reshape. reshape_to takes extents from the input where the new shape holds 0;
reshape_axes does so for some of the axes, the others stay as they are.
"""

from __future__ import annotations

import math

from .base import Call, Lowered, Operator, Shape, same_shape
from .indexing import bounded
from .reshape import BATCH_ADVICE, reference


def infer_reshape_to(call: Call) -> list[Shape]:
    """The second input; 0 copies the input's extent at its place (unless `allow_zero`), one -1 is what is left."""
    call.expect(2)
    source = call.input(0)
    call.rank(call.input(1, "new shape"), 1)
    target, zeros = call.integers(1, "new shape"), bool(call.attribute("allow_zero"))
    if any(extent < -1 for extent in target) or target.count(-1) > 1 or (zeros and -1 in target and 0 in target):
        raise call.invalid(
            "BT-RESHAPE", f"new shape {target} must hold extents >= 0 and at most one -1, which has no meaning beside 0"
        )
    if not zeros:
        beyond = [at for at, extent in enumerate(target) if extent == 0 and at >= source.rank]
        if beyond:
            raise call.invalid("BT-RESHAPE", f"the 0 at place {beyond[0]} of {target} finds no extent to copy")
        target = [source.shape[at] if extent == 0 else extent for at, extent in enumerate(target)]
    if -1 in target:
        others = math.prod(extent for extent in target if extent != -1)
        if not others or source.size % others:
            raise call.invalid("BT-RESHAPE", f"{source.size} elements leave no extent for the -1 in {target}")
        target[target.index(-1)] = source.size // others
    if math.prod(target) != source.size:
        raise call.invalid("BT-RESHAPE", f"{source.size} elements cannot take shape {target}", BATCH_ADVICE)
    return [bounded(call, target)]


def infer_axes(call: Call) -> list[Shape]:
    """The axes between `first` and `end` give way to the second input: 0 copies an extent, one -1 is what is left.

    `first` and `end` are places between axes: 0 is ahead of all of them, -1 behind.
    """
    call.expect(2)
    source = call.input(0)
    call.rank(call.input(1, "new shape"), 1)
    target = call.integers(1, "new shape")
    places = [int(call.attribute(name)) for name in ("first", "end")]
    first, end = (place + (source.rank + 1 if place < 0 else 0) for place in places)
    if not 0 <= first <= end <= source.rank:
        raise call.invalid("BT-SHAPE-AXIS", f"axes {places[0]} to {places[1]} of a tensor of rank {source.rank}")
    if any(extent < -1 for extent in target) or target.count(-1) > 1:
        raise call.invalid("BT-RESHAPE", f"new extents {target} must be >= 0, at most one may be -1")
    for at, extent in enumerate(target):
        if extent == 0:
            if first + at >= source.rank:
                raise call.invalid("BT-RESHAPE", f"the 0 at place {at} of {target} finds no extent to copy")
            target[at] = source.shape[first + at]
    inside = math.prod(source.shape[first:end])
    if -1 in target:
        others = math.prod(extent for extent in target if extent != -1)
        if not others or inside % others:
            raise call.invalid("BT-RESHAPE", f"{inside} elements leave no extent for the -1 in {target}")
        target[target.index(-1)] = inside // others
    if math.prod(target) != inside:
        raise call.invalid("BT-RESHAPE", f"{inside} elements cannot take shape {target}")
    return [bounded(call, [*source.shape[:first], *target, *source.shape[end:]])]


def infer_flatten(call: Call) -> list[Shape]:
    """[product of the extents ahead of `axis`, product of the others]; the axis may be the rank."""
    call.expect(1)
    shape, axis = call.input(0).shape, int(call.attribute("axis"))
    if not -len(shape) <= axis <= len(shape):
        raise call.invalid("BT-SHAPE-AXIS", f"axis {axis} is outside a tensor of rank {len(shape)}")
    axis += len(shape) if axis < 0 else 0
    return [bounded(call, (math.prod(shape[:axis]), math.prod(shape[axis:])))]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered(parameters={"shape": call.output.shape}, operator="reshape", inputs=(0,))


OPERATORS = (
    Operator(
        "reshape_to",
        (),
        infer_reshape_to,
        lower,
        reference,
        "same elements, new shape that may copy extents",
        moves=True,
        keeps_order=True,
    ),
    Operator(
        "reshape_axes",
        (),
        infer_axes,
        lower,
        reference,
        "same elements, new extents for some axes",
        moves=True,
        keeps_order=True,
    ),
    Operator("flatten", (), infer_flatten, lower, reference, "same elements as a matrix", moves=True, keeps_order=True),
    Operator("identity", (), same_shape, lower, reference, "the tensor itself", moves=True, keeps_order=True),
)
