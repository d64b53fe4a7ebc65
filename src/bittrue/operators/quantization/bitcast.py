"""bitcast: the same bytes read as another type; the last axis appears or disappears with the change of width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import DATA_TYPES
from ..core.base import Call, Lowered, Operator, Shape, Step


def infer(call: Call) -> list[Shape]:
    """[..., n] of narrow elements becomes [...] of elements n times as wide, and the other way round."""
    call.expect(1)
    source = call.input(0)
    before, after = source.type.numpy.itemsize, call.output.type.numpy.itemsize
    if before >= after:
        return [(*source.shape, before // after) if before > after else source.shape]
    if not source.shape or source.shape[-1] != after // before:
        raise call.invalid(
            "BT-SHAPE-BITCAST",
            f"'{source.name}' of shape {list(source.shape)} must end in an axis of {after // before}: "
            f"that many {source.type.title} make one {call.output.type.title}",
        )
    return [source.shape[:-1]]


def lower(call: Call) -> Lowered:
    """The type and the shape to read the bytes with."""
    return Lowered(parameters={"dtype": call.output.dtype, "shape": tuple(call.output.shape)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The bytes in C order."""
    flat = np.ascontiguousarray(inputs[0]).reshape(-1).copy()
    return [flat.view(DATA_TYPES[step["dtype"]].numpy).reshape(step["shape"])]


OPERATOR = Operator("bitcast", (), infer, lower, reference, "the same bytes as another type")
