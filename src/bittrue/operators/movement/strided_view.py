"""slice_axes, space_to_depth and depth_to_space: elements read in regular steps, written one after the other.

out[i, j, ...] = in[flat: start + i * s0 + j * s1 + ...] with i, j, ... below `sizes`; negative steps run backwards.

`largest_end_is_front` of slice_axes: backwards, the largest numbers of 32 and of 64 bits as an end mean the front.
`most_cut` of slice_axes, where there is one: what of an axis is left out at its end at most; nothing ends beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import ModelFormatError
from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

# The ends that stand for "as far as possible".
_LARGEST = (2**31 - 1, 2**63 - 1)


def steps_of(shape: Sequence[int]) -> list[int]:
    """Elements from one index to the next, per axis."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def strided(call: Call, start: int, sizes: Sequence[int], steps: Sequence[int]) -> Lowered:
    """The first input read so."""
    # A step along an axis of one element is never taken.
    taken = [(size, step) for size, step in zip(sizes, steps, strict=True) if size != 1]
    sizes, steps = zip(*taken, strict=True) if taken else ((), ())
    if not call.output.size:
        start, sizes, steps = 0, (0,), (0,)
    parameters: dict[str, Attribute] = {
        "start": start,
        "sizes": tuple(sizes),
        "steps": tuple(steps),
        "shape": call.output.shape,
    }
    return Lowered(parameters, inputs=(0,))


def _spans(call: Call) -> list[range]:
    """Positions per axis. Beginnings and ends beyond an axis mean its ends."""
    call.expect((3, 5))
    source = call.input(0)
    for position, role in ((1, "starts"), (2, "ends")):
        call.rank(call.input(position, role), 1)
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    axes = call.integers(3, "axes") if call.has(3) else list(range(len(starts)))
    steps = call.integers(4, "steps") if call.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise call.invalid(
            "BT-SLICE",
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps: they belong together",
        )
    most: Any = call.node.attributes.get("most_cut")
    spans = [range(size) for size in source.shape]
    if not source.rank and axes:
        raise call.invalid("BT-SHAPE-AXIS", "a scalar cannot be sliced")
    places = [call.axis(axis, source.rank) for axis in axes]
    if len(set(places)) != len(places) or 0 in steps:
        raise call.invalid("BT-SLICE", f"axes {axes} and steps {steps}: an axis occurs twice, or a step is 0")
    for axis, start, end, step in zip(places, starts, ends, steps, strict=True):
        size = source.shape[axis]
        if most is not None and not 0 <= size - end <= most:
            raise call.invalid("BT-SLICE", f"a slice of {size} positions ends at {end}")
        front = step < 0 and end in _LARGEST
        if front and not call.node.attributes.get("largest_end_is_front", False):
            raise call.unsupported(
                "BT-SLICE-END",
                f"an end of {end} with the negative step {step} means nothing to some runtimes, everything to others",
                f"write {-_LARGEST[-1] - 1} to slice backwards to the front, or the dimension for nothing",
            )
        start, end = (place + size if place < 0 else place for place in (start, end))
        end = -1 if front else end
        if step > 0:
            spans[axis] = range(min(max(start, 0), size), min(max(end, 0), size), step)
        else:
            spans[axis] = range(min(max(start, 0), size - 1), min(max(end, -1), size), step)
    return spans


def infer_slice(call: Call) -> list[Shape]:
    """The number of positions per axis."""
    return [bounded(call, [len(span) for span in _spans(call)])]


def lower_slice(call: Call) -> Lowered:
    """The first element, and the steps in elements."""
    spans, apart = _spans(call), steps_of(call.input(0).shape)
    start = sum(span.start * step for span, step in zip(spans, apart, strict=True))
    steps = [span.step * step for span, step in zip(spans, apart, strict=True)]
    return strided(call, start, call.output.shape, steps)


def _block(call: Call) -> int:
    call.expect(1)
    call.rank(call.input(0), 4)
    block = int(call.attribute("block_size"))
    if not 1 <= block < 2**15:
        raise call.invalid("BT-BLOCK-SIZE", f"block size {block} must be at least 1 and below {2**15}")
    return block


def _orders(call: Call) -> tuple[str, str]:
    """The axes of the wide and of the deep tensor; row i and column j of the blocks are axes of their own.

    `channels_first`: the image's two axes come last; `columns_first`: channels come before i and j in deep channels.
    """
    deep = "cij" if call.node.attributes.get("columns_first", False) else "ijc"
    first = call.node.attributes.get("channels_first", False)
    return ("nchiwj", f"n{deep}hw") if first else ("nhiwjc", f"nhw{deep}")


def _blocks(call: Call, to_depth: bool) -> dict[str, int]:
    """Dimensions of the axes of `_orders`; the block size divides height and width, or its square the channels."""
    block, shape = _block(call), call.input(0).shape
    first = call.node.attributes.get("channels_first", False)
    batch, height, width, depth = (shape[axis] for axis in ((0, 2, 3, 1) if first else (0, 1, 2, 3)))
    if to_depth and (height % block or width % block):
        raise call.invalid("BT-BLOCK-SIZE", f"{height} x {width} positions cannot be cut into blocks of {block}")
    if not to_depth and depth % (block * block):
        raise call.invalid("BT-BLOCK-SIZE", f"{depth} channels cannot be cut into {block} x {block} groups")
    if to_depth:
        height, width = height // block, width // block
    else:
        depth //= block * block
    return {"n": batch, "h": height, "w": width, "c": depth, "i": block, "j": block}


def infer_block(call: Call, to_depth: bool) -> list[Shape]:
    """Blocks of b x b positions against groups of b * b channels."""
    batch, height, width, depth, block, _ = _blocks(call, to_depth).values()
    if to_depth:
        depth *= block * block
    else:
        height, width = height * block, width * block
    first = call.node.attributes.get("channels_first", False)
    return [bounded(call, (batch, depth, height, width) if first else (batch, height, width, depth))]


def lower_block(call: Call, to_depth: bool) -> Lowered:
    """The axes of the source in the order of the target."""
    sizes, (wide, deep) = _blocks(call, to_depth), _orders(call)
    source, target = (wide, deep) if to_depth else (deep, wide)
    steps = dict(zip(source, steps_of(tuple(sizes[axis] for axis in source)), strict=True))
    return strided(call, 0, [sizes[axis] for axis in target], [steps[axis] for axis in target])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of a view whose first and last element are checked."""
    x, start, sizes, steps = inputs[0], step["start"], step["sizes"], step["steps"]
    if math.prod(sizes) != math.prod(step["shape"]):
        raise ModelFormatError("BT-PLAN-STEP", f"{sizes} elements for shape {step['shape']}", place=step.place)
    if 0 in sizes:
        return [np.empty(step["shape"], x.dtype)]
    reach = [(size - 1) * stride for size, stride in zip(sizes, steps, strict=True)]
    low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
    if not 0 <= low <= high < x.size:
        raise ModelFormatError("BT-PLAN-STEP", f"elements {low} to {high} of {x.size} are read", place=step.place)
    flat = np.ascontiguousarray(x).reshape(-1)[start:]
    strides = [stride * x.itemsize for stride in steps]
    view = np.lib.stride_tricks.as_strided(flat, sizes, strides, writeable=False)
    return [np.array(view, order="C").reshape(step["shape"])]


def _exchange(stem: str, to_depth: bool, summary: str) -> Operator:
    infer, lower = partial(infer_block, to_depth=to_depth), partial(lower_block, to_depth=to_depth)
    mistaken_for = ("reshape",) if to_depth else ()
    return Operator(stem, (), infer, lower, reference, summary, moves=True, mistaken_for=mistaken_for)


OPERATORS = (
    Operator(
        "slice_axes",
        (),
        infer_slice,
        lower_slice,
        reference,
        "every n-th element between two places of axes",
        moves=True,
    ),
    _exchange("space_to_depth", True, "squares of positions become channels"),
    _exchange("depth_to_space", False, "groups of channels become positions"),
)
