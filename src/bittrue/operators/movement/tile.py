"""tile, broadcast_to and fill: the same elements several times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Shape, Step, same_shape
from ..core.indexing import bounded, fresh


def infer_tile(call: Call) -> list[Shape]:
    """Dimensions times their multiples."""
    call.expect(2)
    source, multiples = call.input(0), call.integers(1, "multiples")
    if len(multiples) != source.rank or any(multiple < 0 for multiple in multiples):
        raise call.invalid("BT-TILE", f"multiples {multiples} must be {source.rank} numbers of at least 0")
    return [bounded(call, [size * multiple for size, multiple in zip(source.shape, multiples, strict=True)])]


def lower_tile(call: Call) -> Lowered:
    """The multiples."""
    return Lowered(parameters={"multiples": tuple(call.integers(1, "multiples")), "shape": call.output.shape})


def reference_tile(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Every axis split in (copy, position), broadcast along the copies."""
    x, multiples = inputs[0], step["multiples"]
    if not x.size or 0 in multiples:
        return [np.empty(step["shape"], x.dtype)]
    apart = x.reshape([part for size in x.shape for part in (1, size)])
    pairs = zip(multiples, x.shape, strict=True)
    return [fresh(np.broadcast_to(apart, [part for pair in pairs for part in pair]), step["shape"])]


def infer_broadcast(call: Call) -> list[Shape]:
    """The second input; dimensions of 1 and missing leading axes are repeated.

    With `both_ways`, those of the second input are, too.
    """
    call.expect(2)
    source, target = call.input(0), call.integers(1, "shape")
    call.rank(call.input(1, "shape"), 1)
    both = bool(call.node.attributes.get("both_ways", False))
    rank = max(source.rank, len(target)) if both else len(target)
    one, two = ((1,) * (rank - len(part)) + tuple(part) for part in (source.shape, target))
    if len(one) != rank or any(a not in (1, b) and not (both and b == 1) for a, b in zip(one, two, strict=True)):
        raise call.invalid("BT-SHAPE-BROADCAST", f"shape {list(source.shape)} cannot be broadcast to {target}")
    return [bounded(call, [b if a == 1 else a for a, b in zip(one, two, strict=True)])]


def reference_broadcast(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of the broadcast view."""
    return [fresh(np.broadcast_to(inputs[0], step["shape"]), step["shape"])]


def infer_fill(call: Call) -> list[Shape]:
    """The first input; with `like`, that input's own shape."""
    if call.node.attributes.get("like"):
        return same_shape(call)
    call.expect(2)
    call.rank(call.input(0, "shape"), 1)
    call.rank(call.input(1, "value"), 0)
    return [bounded(call, call.integers(0, "shape"))]


def reference_fill(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One value everywhere."""
    if "dtype" in step.parameters:
        return [np.zeros(step["shape"], DATA_TYPES[step["dtype"]].numpy)]
    return [np.full(step["shape"], inputs[1], inputs[1].dtype)]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered(parameters={"shape": call.output.shape})


def lower_fill(call: Call) -> Lowered:
    """The output shape; with `like`, zeros of a type, for which nothing is read."""
    if call.node.attributes.get("like"):
        return Lowered(parameters={"shape": call.output.shape, "dtype": call.output.dtype}, inputs=())
    return lower(call)


OPERATORS = (
    Operator("tile", (), infer_tile, lower_tile, reference_tile, "the tensor repeated along each axis", moves=True),
    Operator(
        "broadcast_to",
        (),
        infer_broadcast,
        lower,
        reference_broadcast,
        "dimensions of 1 repeated to a shape",
        moves=True,
    ),
    Operator(
        "fill", (), infer_fill, lower_fill, reference_fill, "one value in a given shape, or zeros in another tensor's"
    ),
)
