"""slice: a box of the tensor, given by its begin and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import fresh


def _box(call: Call) -> list[tuple[int, int]]:
    """(begin, size) per axis; a size of -1 reaches to the end."""
    call.expect(3)
    source = call.input(0)
    for position, role in ((1, "begin"), (2, "size")):
        call.rank(call.input(position, role), 1)
    begins, sizes = call.integers(1, "begin"), call.integers(2, "size")
    if len(begins) != source.rank or len(sizes) != source.rank:
        raise call.invalid(
            "BT-SLICE", f"begin and size must have {source.rank} numbers, found {len(begins)} and {len(sizes)}"
        )
    box = []
    for axis, dimension in enumerate(source.shape):
        begin, size = begins[axis], sizes[axis]
        size = dimension - begin if size == -1 else size
        if begin < 0 or size < 0 or begin + size > dimension:
            raise call.invalid(
                "BT-SLICE", f"begin {begin} and size {sizes[axis]} do not fit a dimension of {dimension} (axis {axis})"
            )
        box.append((begin, size))
    return box


def infer(call: Call) -> list[Shape]:
    """The sizes. A declared output shape without free dimensions must agree, as the kernel checks."""
    shape = tuple(size for _, size in _box(call))
    declared = call.output.tensor
    fixed = declared.shape and -1 not in (declared.shape_signature or ())
    if fixed and declared.shape != shape:
        raise call.invalid(
            "BT-SLICE-SHAPE",
            f"the file declares the shape {list(declared.shape)}, begin and size give {list(shape)}",
            "declare a free dimension (-1 in shape_signature) where the input is to be resized",
        )
    return [shape]


def lower(call: Call) -> Lowered:
    """Begins and sizes."""
    box = _box(call)
    return Lowered(parameters={"begin": tuple(begin for begin, _ in box), "size": tuple(size for _, size in box)})


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A copy of the box."""
    box: list[Any] = [slice(b, b + s) for b, s in zip(step["begin"], step["size"], strict=True)]
    view = inputs[0][(*box, ...)]
    return [fresh(view, view.shape)]


OPERATOR = Operator("slice", (), infer, lower, reference, "a box of the tensor", moves=True)
