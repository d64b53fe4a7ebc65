"""space_to_batch and batch_to_space: blocks of positions against groups of batches, with padding or cropping.

space_to_batch: out[(i * bw + j) * N + n, h, w, c] = padded[n, h * bh + i, w * bw + j, c]; batch_to_space undoes it.
Tensors of rank 3 have one spatial axis; they are handled as rank 4 of width 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import zero_points
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded, fresh, parameters_or_zero


def _blocks(call: Call, role: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Block dimensions, and the pairs of paddings or crops, one per spatial axis."""
    call.expect(3)
    call.rank(call.input(0), 3, 4)
    spatial = call.input(0).rank - 2
    block, pairs = call.input(1, "block shape"), call.input(2, role)
    if block.shape != (spatial,) or pairs.shape != (spatial, 2):
        raise call.invalid(
            "BT-BLOCK-SHAPE",
            f"block shape and {role} must have the shapes [{spatial}] and [{spatial}, 2], "
            f"found {list(block.shape)} and {list(pairs.shape)}",
        )
    sizes, values = call.integers(1, "block shape"), call.integers(2, role)
    if min(sizes) < 1:
        raise call.invalid("BT-BLOCK-SHAPE", f"block shape {sizes} must be at least 1")
    return sizes, list(zip(values[0::2], values[1::2], strict=True))


def infer_space_to_batch(call: Call) -> list[Shape]:
    """Padded dimensions divide by the block; a negative padding cuts off."""
    sizes, pairs = _blocks(call, "paddings")
    batch, *spatial, depth = call.input(0).shape
    shape = []
    for dimension, size, (before, after) in zip(spatial, sizes, pairs, strict=True):
        padded = dimension + before + after
        if padded < 0 or padded % size:
            raise call.invalid("BT-BLOCK-SHAPE", f"a padded size of {padded} cannot be cut into blocks of {size}")
        shape.append(padded // size)
        batch *= size
    return [bounded(call, (batch, *shape, depth))]


def infer_batch_to_space(call: Call) -> list[Shape]:
    """The batch divides by the block; crops are taken from the result."""
    sizes, pairs = _blocks(call, "crops")
    batch, *spatial, depth = call.input(0).shape
    if any(min(pair) < 0 for pair in pairs):
        raise call.invalid("BT-BLOCK-SHAPE", f"crops {pairs} must not be negative")
    for size in sizes:
        if batch % size:
            raise call.invalid("BT-BLOCK-SHAPE", f"a batch of {call.input(0).shape[0]} cannot be cut into {sizes}")
        batch //= size
    shape = [dimension * size - sum(pair) for dimension, size, pair in zip(spatial, sizes, pairs, strict=True)]
    return [bounded(call, (batch, *shape, depth))]


def lower(call: Call) -> Lowered:
    """Blocks and borders of two spatial axes, and what padding is filled with."""
    sizes, pairs = _blocks(call, "borders")
    one = call.input(0).rank == 3
    sizes, pairs = ([*sizes, 1], [*pairs, (0, 0)]) if one else (sizes, pairs)
    # Source: docs/facts/litert.md 2.7; only one- and two-byte types are filled with the zero point.
    narrow = call.output.type.bits <= 16
    point = parameters_or_zero(call.output)[1] if narrow else 0
    if "zero_points" in call.rules:
        point = int(zero_points.RULES[call.rules["zero_points"]](np.asarray(point)))
    biggest = max(call.input(0).size, call.output.size)
    return Lowered(
        parameters={
            "block": tuple(sizes),
            "before": tuple(before for before, _ in pairs),
            "shape": call.output.shape,
            "value": point,
        },
        scratch=biggest * call.output.type.numpy.itemsize,
    )


def _wide(shape: Sequence[int]) -> tuple[int, ...]:
    """A rank 3 shape with a width of 1."""
    return (*shape[:2], 1, shape[2]) if len(shape) == 3 else tuple(shape)


def _placement(size: int, padded: int, before: int) -> tuple[slice, slice]:
    """Where `size` elements that start at `before` (maybe negative) meet an axis of `padded` elements."""
    start, stop = max(0, -before), min(size, padded - before)
    return slice(start, max(start, stop)), slice(start + before, max(start, stop) + before)


def reference_space_to_batch(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Padded, then the block's axes in front of the batch."""
    (block_h, block_w), (top, left) = step["block"], step["before"]
    x = inputs[0].reshape(_wide(inputs[0].shape))
    _, out_h, out_w, depth = _wide(step["shape"])
    out = np.full(step["shape"], step["value"], x.dtype)
    if not out.size or not x.size:
        return [out]
    from_h, to_h = _placement(x.shape[1], out_h * block_h, top)
    from_w, to_w = _placement(x.shape[2], out_w * block_w, left)
    padded = np.full((x.shape[0], out_h * block_h, out_w * block_w, depth), step["value"], x.dtype)
    padded[:, to_h, to_w] = x[:, from_h, from_w]
    view = padded.reshape(x.shape[0], out_h, block_h, out_w, block_w, depth).transpose(2, 4, 0, 1, 3, 5)
    out.reshape(view.shape)[...] = view
    return [out]


def reference_batch_to_space(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The block's axes beside the positions, then cropped."""
    (block_h, block_w), (top, left) = step["block"], step["before"]
    x = inputs[0].reshape(_wide(inputs[0].shape))
    batch, out_h, out_w, depth = _wide(step["shape"])
    if not batch * out_h * out_w * depth:
        return [np.empty(step["shape"], x.dtype)]
    height, width = x.shape[1:3]
    view = x.reshape(block_h, block_w, batch, height, width, depth).transpose(2, 3, 0, 4, 1, 5)
    full = fresh(view, (batch, height * block_h, width * block_w, depth))
    return [fresh(full[:, top : top + out_h, left : left + out_w], step["shape"])]


OPERATORS = (
    Operator(
        "space_to_batch",
        ("zero_points",),
        infer_space_to_batch,
        lower,
        reference_space_to_batch,
        "blocks of positions become batches",
        moves=True,
    ),
    Operator(
        "batch_to_space",
        (),
        infer_batch_to_space,
        lower,
        reference_batch_to_space,
        "batches become blocks of positions",
        moves=True,
        unread=("value",),
    ),
)
