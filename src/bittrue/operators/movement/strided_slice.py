"""strided_slice: every stride-th element between begin and end of each axis, as Python's x[a:b:s, ..., None].

Masks are bits per index: begin_mask and end_mask reach to the ends, ellipsis_mask stands for all axes that no other
index names, new_axis_mask inserts a dimension of 1, shrink_axis_mask takes one element and drops the axis. With
`offset`, end counts from begin, and begin may be known only at run time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np

from ...errors import ModelFormatError, RunError
from ...records import dataclass
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded, fresh

_MAX_INDICES = 31


@dataclass(frozen=True)
class _Axis:
    """One axis after new axes are inserted. `index` is its place in begin, end and strides; -1: taken as a whole."""

    size: int
    index: int = -1
    end: int = 0
    stride: int = 1
    from_start: bool = True
    to_end: bool = True
    shrink: bool = False

    def span(self, begin: int, offset: bool) -> range:
        """Positions that are read; start and end are clamped before masks apply. Source: docs/facts/litert.md 2.7."""
        forward = self.stride > 0
        low, high = (0, self.size) if forward else (-1, self.size - 1)
        start = min(max(begin + self.size if begin < 0 else begin, low), high)
        if self.from_start:
            start = 0 if forward else self.size - 1
        if self.shrink:
            return range(start, start if start >= self.size else start + 1, self.stride)
        stop = self.end + start if offset else self.end
        stop = min(max(stop + self.size if stop < 0 else stop, low), high)
        if self.to_end:
            stop = self.size if forward else -1
        return range(start, stop, self.stride)


def _axes(call: Call) -> list[_Axis]:
    call.expect(4)
    source = call.input(0)
    for position, role in ((1, "begin"), (2, "end"), (3, "strides")):
        call.rank(call.input(position, role), 1)
    ends, strides = call.integers(2, "end"), call.integers(3, "strides")
    count = call.input(1).shape[0]
    if count != len(ends) or count > _MAX_INDICES:
        raise call.invalid(
            "BT-STRIDED-SLICE",
            f"begin and end must have the same length of at most {_MAX_INDICES}, found {count} and {len(ends)}",
        )
    ellipsis, new = int(call.attribute("ellipsis_mask")), int(call.attribute("new_axis_mask"))
    masks = [int(call.attribute(name)) for name in ("begin_mask", "end_mask", "shrink_axis_mask")]
    inserted = sum(not ellipsis >> i & 1 and bool(new >> i & 1) for i in range(count))
    rank = source.rank + inserted
    if rank > _MAX_INDICES:
        raise call.unsupported("BT-SHAPE-RANK", f"rank {rank} is more than masks can describe")
    whole, added, expanded, first = _special_axes(rank, ellipsis, new, inserted + source.rank - count)
    misfit = call.invalid(
        "BT-STRIDED-SLICE", f"the masks do not fit {count} indices and {len(strides)} strides into rank {source.rank}"
    )
    if len(added) != inserted:
        # Bits of indices that do not exist: the kernel would read the tensor under another shape.
        raise misfit
    axes: list[_Axis] = []
    sizes = iter(source.shape)
    skipped = 0
    for at in range(rank):
        if at in whole:
            skipped = max(0, at - first)
        elif at in added:
            axes.append(_Axis(1))
            continue
        size, index = next(sizes), at - skipped
        if at not in whole and at < count + expanded:
            if not 0 <= index < min(count, len(strides)):
                raise misfit
            begin_mask, end_mask, shrink_mask = (bool(mask >> index & 1) for mask in masks)
            axes.append(_Axis(size, index, ends[index], strides[index], begin_mask, end_mask, shrink_mask))
        else:
            axes.append(_Axis(size))
    for axis in axes:
        if axis.stride == 0 or axis.stride == -(2**31):
            raise call.invalid("BT-STRIDED-SLICE", f"a stride of {axis.stride} is not allowed")
    return axes


def _special_axes(rank: int, ellipsis: int, new: int, free: int) -> tuple[set[int], set[int], int, int]:
    """Axes that an ellipsis covers, axes that are inserted, how many axes the ellipsis adds, and where it begins."""
    whole: set[int] = set()
    inserted: set[int] = set()
    first, expanded, at = rank, 0, 0
    while at < rank:
        if ellipsis >> at & 1:
            end = max(at + 1, min(at + 1 + free, rank))
            first, expanded = at, end - at - 1
            whole.update(range(at, end))
            at = end
            continue
        if new >> (at - expanded) & 1:
            inserted.add(at)
        at += 1
    return whole, inserted, expanded, first


def _spans(axes: Sequence[_Axis], begins: Sequence[int], offset: bool) -> list[range]:
    return [axis.span(0 if axis.index < 0 else begins[axis.index], offset) for axis in axes]


def _counts(call: Call, axes: Sequence[_Axis]) -> list[int]:
    """Positions per axis, as far as the output's shape says."""
    if not call.attribute("offset"):
        spans = _spans(axes, call.integers(1, "begin"), False)
        return [1 if axis.shrink else len(span) for axis, span in zip(axes, spans, strict=True)]
    # The kernel takes the size of axis i from end[i] itself, also where indices and axes are not the same.
    ends = call.integers(2, "end")
    if len(axes) > len(ends):
        raise call.invalid("BT-STRIDED-SLICE", "offset needs one index per axis")
    pairs = zip(axes, ends, strict=False)
    return [1 if axis.shrink else len(range(0, end, axis.stride)) for axis, end in pairs]


def _fits(spans: Sequence[range], counts: Sequence[int]) -> bool:
    """Whether exactly the output's elements would be written."""
    lengths = [len(span) for span in spans]
    return lengths == list(counts) or not (math.prod(lengths) or math.prod(counts))


def infer(call: Call) -> list[Shape]:
    """The numbers of positions, without the axes that shrink."""
    axes = _axes(call)
    counts = _counts(call, axes)
    if call.input(1).value is not None:
        spans = _spans(axes, call.integers(1, "begin"), bool(call.attribute("offset")))
        if not _fits(spans, counts):
            raise call.invalid(
                "BT-STRIDED-SLICE-RANGE",
                f"{[len(span) for span in spans]} positions are in reach, the output needs {counts}",
                "an index of an axis that shrinks, or an offset, lies outside the tensor (or runs backwards)",
            )
    return [bounded(call, [count for axis, count in zip(axes, counts, strict=True) if not axis.shrink])]


def lower(call: Call) -> Lowered:
    """The axes field by field; begin stays an input."""
    axes = _axes(call)
    fields = zip(*(astuple(axis) for axis in axes), strict=True) if axes else iter([()] * 7)
    names = ("sizes", "indices", "ends", "strides", "from_start", "to_end", "shrink")
    return Lowered(
        parameters={
            **dict(zip(names, fields, strict=True)),
            "offset": bool(call.attribute("offset")),
            "counts": tuple(_counts(call, axes)),
            "shape": call.output.shape,
        }
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of the positions."""
    names = ("sizes", "indices", "ends", "strides", "from_start", "to_end", "shrink")
    axes = [_Axis(*values) for values in zip(*(step[name] for name in names), strict=True)]
    spans = _spans(axes, [int(v) for v in inputs[1]], step["offset"])
    if not _fits(spans, step["counts"]):
        raise RunError(
            "BT-STRIDED-SLICE-RANGE",
            f"begin {inputs[1].tolist()} leaves {[len(span) for span in spans]} positions, {step['counts']} are needed",
        )
    if math.prod(step["counts"]) != math.prod(step["shape"]):
        raise ModelFormatError("BT-PLAN-STEP", f"{step['counts']} for shape {step['shape']}", place=step.place)
    if not math.prod(step["counts"]):
        return [np.empty(step["shape"], inputs[0].dtype)]
    view = inputs[0].reshape(step["sizes"])
    # A stop of -1 would count from the end in Python's slices.
    parts = tuple(slice(s.start, s.stop if s.stop >= 0 else None, s.step) for s in spans)
    return [fresh(view[(*parts, ...)], step["shape"])]


OPERATOR = Operator(
    "strided_slice", (), infer, lower, reference, "every n-th element between two positions of each axis", moves=True
)
