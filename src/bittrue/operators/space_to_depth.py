"""space_to_depth and depth_to_space: squares of b x b positions against groups of b * b channels.

out[n, h, w, (i * b + j) * C + c] = in[n, h * b + i, w * b + j, c], and the inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Call, Lowered, Operator, Shape, Step
from .indexing import bounded, fresh


def _block(call: Call) -> int:
    call.expect(1)
    call.rank(call.input(0), 4)
    block = int(call.attribute("block_size"))
    if block < 1:
        raise call.invalid("BT-BLOCK-SIZE", f"block size {block} must be at least 1")
    return block


def infer_space_to_depth(call: Call) -> list[Shape]:
    """[N, H, W, C] -> [N, H / b, W / b, C * b * b]; b divides H and W."""
    block = _block(call)
    batch, height, width, depth = call.input(0).shape
    if height % block or width % block:
        raise call.invalid("BT-BLOCK-SIZE", f"{height} x {width} positions cannot be cut into blocks of {block}")
    return [bounded(call, (batch, height // block, width // block, depth * block * block))]


def infer_depth_to_space(call: Call) -> list[Shape]:
    """[N, H, W, C] -> [N, H * b, W * b, C / (b * b)]; b * b divides C."""
    block = _block(call)
    batch, height, width, depth = call.input(0).shape
    if depth % (block * block):
        raise call.invalid("BT-BLOCK-SIZE", f"{depth} channels cannot be cut into {block} x {block} groups")
    return [bounded(call, (batch, height * block, width * block, depth // (block * block)))]


def lower(call: Call) -> Lowered:
    """The output shape and the six axes between which the two middle pairs change places."""
    block = int(call.attribute("block_size"))
    batch, height, width, depth = call.input(0).shape
    if call.node.operator == "space_to_depth":
        split = (batch, height // block, block, width // block, block, depth)
    else:
        split = (batch, height, width, block, block, depth // (block * block))
    return Lowered(parameters={"shape": call.output.shape, "split": split, "block_size": block})


def _space_to_depth(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    if not inputs[0].size:
        return [np.empty(step["shape"], inputs[0].dtype)]
    return [fresh(inputs[0].reshape(step["split"]).transpose(0, 1, 3, 2, 4, 5), step["shape"])]


# From [N, H, W, i, j, C] to [N, H, i, W, j, C]: the same exchange of axes 2 and 3.
_depth_to_space = _space_to_depth

OPERATORS = (
    Operator(
        "space_to_depth",
        (),
        infer_space_to_depth,
        lower,
        _space_to_depth,
        "squares of positions become channels",
        moves=True,
    ),
    Operator(
        "depth_to_space",
        (),
        infer_depth_to_space,
        lower,
        _depth_to_space,
        "groups of channels become positions",
        moves=True,
    ),
)
