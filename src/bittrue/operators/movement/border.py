"""border: a border around a tensor, or pieces cut off where the width is negative.

constant: one value; reflect: the tensor mirrored without its edge; edge: the edge repeated; wrap: the other end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded

_LARGEST = 2**31 - 1


def _widths(call: Call) -> list[tuple[int, int]]:
    """(before, after) per axis; axes that the fourth input does not name have no border."""
    call.expect((2, 4))
    source = call.input(0)
    call.rank(call.input(1, "widths"), 1, 2 if call.attribute("row_of_widths") else 1)
    widths = call.integers(1, "widths")
    axes = list(range(source.rank))
    if call.has(3):
        call.rank(call.input(3, "axes"), 1)
        axes = [call.axis(axis, source.rank) for axis in call.integers(3, "axes")]
        if len(set(axes)) != len(axes) or (axes and not source.rank):
            raise call.invalid("BT-SHAPE-AXIS", f"axes {axes} of a tensor of rank {source.rank} must be different")
    if len(widths) != 2 * len(axes) or any(abs(width) > _LARGEST for width in widths):
        raise call.invalid("BT-PAD", f"widths {widths} must be {2 * len(axes)} numbers: all before, then all after")
    found = [(0, 0)] * source.rank
    for at, axis in enumerate(axes):
        found[axis] = (widths[at], widths[at + len(axes)])
    return found


def infer(call: Call) -> list[Shape]:
    """Each dimension grows by the widths before and after it."""
    mode, source = call.attribute("mode"), call.input(0)
    call.rank(source, 1, max(1, source.rank))
    if mode not in ("constant", "reflect", "edge", "wrap") or (mode == "wrap" and not source.size):
        raise call.invalid("BT-PAD", f"a tensor of shape {list(source.shape)} has no border of mode '{mode}'")
    if call.has(2) and call.input(2).size != 1:
        raise call.invalid("BT-PAD", f"the value must be one number, found {call.input(2).size}")
    widths = _widths(call)
    shape = [extent + before + after for extent, (before, after) in zip(source.shape, widths, strict=True)]
    for axis, (extent, pair) in enumerate(zip(source.shape, widths, strict=True)):
        # What negative widths leave is what is mirrored or repeated.
        kept = extent + min(pair[0], 0) + min(pair[1], 0)
        wide = max(*pair, 0)
        # An empty tensor may stay empty along an axis that is cut and grows again.
        nothing = mode != "constant" and kept <= 0 and (pair != (0, 0) if source.size else extent + sum(pair) > 0)
        if extent + sum(pair) < 0 or nothing or (mode == "reflect" and source.size and 0 < wide > kept - 1):
            raise call.invalid(
                "BT-PAD",
                f"a dimension of {extent} (axis {axis}) cannot get a border of {pair[0]} and {pair[1]} ({{mode}})",
            )
    return [bounded(call, shape)]


def lower(call: Call) -> Lowered:
    """A box and a value, a mirror, or the source position of every position of each axis."""
    mode, source, widths = call.attribute("mode"), call.input(0), _widths(call)
    before = tuple(pair[0] for pair in widths)
    grows = all(width >= 0 for pair in widths for width in pair)
    item = call.output.type.numpy.itemsize
    if grows and (mode == "constant" or not call.output.size):
        parameters: dict[str, Attribute] = {
            "before": before,
            "shape": call.output.shape,
            "value_is_input": call.has(2),
            **({} if call.has(2) else {"value": 0}),
        }
        return Lowered(parameters, operator="pad")
    if mode == "reflect" and grows:
        parameters = {"before": before, "after": tuple(pair[1] for pair in widths), "edge": 1}
        return Lowered(parameters, operator="mirror_pad", inputs=(0, 1), scratch=call.output.size * item)
    arrays = {}
    for axis, (extent, (ahead, behind)) in enumerate(zip(source.shape, widths, strict=True)):
        first, last = max(-ahead, 0), extent - max(-behind, 0)
        at = np.arange(-ahead, extent + behind, dtype=np.int64)
        inside = np.clip(at, first, last - 1)
        if mode == "wrap" and last > first:
            inside = first + (at - first) % (last - first)
        if mode == "reflect" and last > first:
            mirrored = np.where(at < first, 2 * first - at, np.where(at >= last, 2 * (last - 1) - at, at))
            inside = np.clip(mirrored, first, last - 1)
        if mode == "constant":
            inside = np.where((at < first) | (at >= last), -1, at)
        arrays[f"positions_{axis}"] = inside
    return Lowered(arrays=arrays, scratch=2 * call.output.size * item)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One axis after the other, by position; -1 stands for the value."""
    out = inputs[0]
    value = inputs[2].reshape(()) if len(inputs) > 2 and inputs[2] is not None else out.dtype.type(0)
    for axis in range(out.ndim):
        positions = step.arrays[f"positions_{axis}"]
        outside = positions < 0
        if outside.any() and not out.shape[axis]:
            shape = (*out.shape[:axis], positions.size, *out.shape[axis + 1 :])
            out = np.full(shape, value, out.dtype)
            continue
        out = np.take(out, np.where(outside, 0, positions), axis=axis)
        if outside.any():
            out[(slice(None),) * axis + (outside,)] = value
    return [out.copy() if out is inputs[0] else out]


OPERATOR = Operator("border", (), infer, lower, reference, "a border around a tensor, or pieces cut off", moves=True)
