"""matrix_set_diag: given diagonals in matrices, which the last two axes hold, or in zeros where there are none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def infer(call: Call) -> list[Shape]:
    """The first input's shape; one diagonal per matrix. Without matrices, the diagonals' last axis twice."""
    call.expect(2)
    diagonal = call.input(1, "diagonal")
    if not call.has(0):
        if diagonal.rank < 1:
            raise call.invalid("BT-SHAPE-RANK", f"tensor '{diagonal.name}' must have rank 1 or more, found a scalar")
        return [bounded(call, (*diagonal.shape, diagonal.shape[-1]))]
    source = call.input(0)
    if source.rank < 2:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must hold matrices, found {list(source.shape)}")
    needed = math.prod(source.shape[:-2]) * min(source.shape[-2:])
    if diagonal.size < needed:
        raise call.invalid(
            "BT-DIAGONAL", f"the diagonals of {list(source.shape)} have {needed} elements, found {diagonal.size}"
        )
    return [source.shape]


def lower(call: Call) -> Lowered:
    """Matrices as [batch, rows, columns]."""
    shape = call.output.shape
    return Lowered(
        parameters={"batch": math.prod(shape[:-2]), "rows": shape[-2], "columns": shape[-1], "shape": shape},
        scratch=call.output.size * call.output.type.numpy.itemsize,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The matrices, or zeros, around the diagonal."""
    diagonal = inputs[1]
    out = np.zeros(step["shape"], diagonal.dtype) if inputs[0] is None else inputs[0].copy()
    length = min(step["rows"], step["columns"])
    place = np.arange(length)
    matrices = out.reshape(step["batch"], step["rows"], step["columns"])
    matrices[:, place, place] = diagonal.reshape(-1)[: step["batch"] * length].reshape(step["batch"], length)
    return [matrices.reshape(step["shape"])]


OPERATOR = Operator("matrix_set_diag", (), infer, lower, reference, "matrices with given diagonals", moves=True)
