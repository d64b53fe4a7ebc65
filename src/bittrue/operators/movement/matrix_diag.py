"""matrix_diag and matrix_set_diag: diagonals of the matrices that the last two axes hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded


def infer(call: Call) -> list[Shape]:
    """The last axis twice."""
    call.expect(1)
    source = call.input(0)
    if source.rank < 1:
        raise call.invalid("BT-SHAPE-RANK", f"tensor '{source.name}' must have rank 1 or more, found a scalar")
    return [bounded(call, (*source.shape, source.shape[-1]))]


def infer_set(call: Call) -> list[Shape]:
    """The first input's shape; one diagonal per matrix."""
    call.expect(2)
    source, diagonal = call.input(0), call.input(1, "diagonal")
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


def _with_diagonal(step: Step, out: np.ndarray, diagonal: np.ndarray) -> list[np.ndarray]:
    length = min(step["rows"], step["columns"])
    place = np.arange(length)
    matrices = out.reshape(step["batch"], step["rows"], step["columns"])
    matrices[:, place, place] = diagonal.reshape(-1)[: step["batch"] * length].reshape(step["batch"], length)
    return [matrices.reshape(step["shape"])]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zeros around the diagonal."""
    return _with_diagonal(step, np.zeros(step["shape"], inputs[0].dtype), inputs[0])


def reference_set(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The first input around the diagonal."""
    return _with_diagonal(step, inputs[0].copy(), inputs[1])


OPERATORS = (
    Operator("matrix_diag", (), infer, lower, reference, "matrices with given diagonals", moves=True),
    Operator(
        "matrix_set_diag", (), infer_set, lower, reference_set, "matrices whose diagonals are replaced", moves=True
    ),
)
