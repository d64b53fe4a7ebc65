"""flatten, identity and inference: the same elements in the same order, carried out as a reshape.

inference takes a flag, too: where it asks for training there is no result, since what is dropped is random.
"""

from __future__ import annotations

import math

from ..core.base import Call, Lowered, Operator, Shape, same_shape
from ..core.indexing import bounded
from .reshape import reference


def infer_flatten(call: Call) -> list[Shape]:
    """[product of the dimensions ahead of `axis`, product of the others]; the axis may be the rank."""
    call.expect(1)
    shape, axis = call.input(0).shape, int(call.attribute("axis"))
    if not -len(shape) <= axis <= len(shape):
        raise call.invalid("BT-SHAPE-AXIS", f"axis {axis} is outside a tensor of rank {len(shape)}")
    axis += len(shape) if axis < 0 else 0
    return [bounded(call, (math.prod(shape[:axis]), math.prod(shape[axis:])))]


def infer_inference(call: Call) -> list[Shape]:
    """The first input's shape."""
    call.expect(2)
    if call.value(1, "training mode").any():
        raise call.unsupported("BT-TRAINING", "training drops elements at random", "export the model for inference")
    return [call.input(0).shape]


def lower(call: Call) -> Lowered:
    """The output shape."""
    return Lowered(parameters={"shape": call.output.shape}, operator="reshape", inputs=(0,))


OPERATORS = (
    Operator("flatten", (), infer_flatten, lower, reference, "same elements as a matrix", moves=True, keeps_order=True),
    Operator("identity", (), same_shape, lower, reference, "the tensor itself", moves=True, keeps_order=True),
    Operator(
        "inference",
        (),
        infer_inference,
        lower,
        reference,
        "the tensor itself, but in training",
        moves=True,
        keeps_order=True,
    ),
)
