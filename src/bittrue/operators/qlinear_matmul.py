"""qlinear_matmul: acc[..., m, n] = sum over k of (a[..., m, k] - z_a)(b[..., k, n] - z_b), then rescale and store.

Operands: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point; b's may hold one value per column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arithmetic.matmul import exact_matmul
from ..graph import data_type
from ..rules import accumulate, rescale, scale_form, store
from .base import Call, Lowered, Operator, Shape, Step
from .late import Prepared, Values, prepare_late, prepare_now

_PARAMETERS = (1, 2, 4, 5, 6, 7)


def matmul_shape(call: Call, first: int, second: int) -> Shape:
    """The shape of a NumPy matrix product of inputs `first` and `second`."""
    a, b = call.input(first), call.input(second)
    if min(a.rank, b.rank) < 1:
        raise call.invalid("BT-SHAPE-RANK", "a matrix product needs operands of rank 1 or more")
    left = a.shape if a.rank > 1 else (1, *a.shape)
    right = b.shape if b.rank > 1 else (*b.shape, 1)
    shown = f"shapes {list(a.shape)} and {list(b.shape)}"
    if left[-1] != right[-2]:
        raise call.invalid("BT-MATMUL-DEPTH", f"{shown} meet with {left[-1]} columns and {right[-2]} rows")
    rank = max(len(left), len(right))
    batches = [(1,) * (rank - len(shape)) + shape[:-2] for shape in (left, right)]
    if any(p != q and 1 not in (p, q) for p, q in zip(*batches, strict=True)):
        raise call.invalid("BT-SHAPE-BROADCAST", f"{shown} do not broadcast together")
    rows = left[-2:-1] if a.rank > 1 else ()
    columns = right[-1:] if b.rank > 1 else ()
    return (*(q if p == 1 else p for p, q in zip(*batches, strict=True)), *rows, *columns)


def check_columns(call: Call, position: int, columns: int, role: str) -> None:
    """Input `position` holds one value, or one per column."""
    if call.has(position) and call.input(position).size not in (1, columns):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"{role} has shape {list(call.input(position).shape)}, expected one value or {columns} (one per column)",
        )


def infer(call: Call) -> list[Shape]:
    """As NumPy's matmul."""
    call.expect(8)
    shape = matmul_shape(call, 0, 3)
    columns = call.input(3).shape[-1] if call.input(3).rank > 1 else 1
    for position, role in ((1, "a_scale"), (2, "a_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        check_columns(call, position, 1, role)
    for position, role in ((4, "b_scale"), (5, "b_zero_point")):
        check_columns(call, position, columns, role)
    return [shape]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    flat = [np.asarray(value).reshape(-1) for value in values]
    real = scale_form.form(rules["scale_form"], flat[1][0], flat[4], flat[6][0])
    return (
        {"input_zero_point": int(flat[2][0]), "output_zero_point": int(flat[7][0])},
        {**rescale.prepare(rules["rescale"], real), "weight_zero_points": np.asarray(flat[5], np.int64)},
    )


def lower(call: Call) -> Lowered:
    """Multipliers per column and zero points."""
    dtype = data_type(call.output.dtype)
    parameters, arrays = prepare_now(
        call,
        _PARAMETERS,
        {"low": dtype.minimum, "high": dtype.maximum, "output_shape": call.output.shape, "output_dtype": dtype.name},
        _prepare,
    )
    depth = call.input(0).shape[-1]
    return Lowered(parameters, arrays, work=call.output.size * depth, scratch=16 * call.output.size)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product of the centred operands."""
    step = prepare_late(step, inputs, _prepare)
    a = inputs[0].astype(np.int64) - step["input_zero_point"]
    b = inputs[3].astype(np.int64) - step.arrays["weight_zero_points"]
    # Differences of 8-bit numbers are at most 255.
    bound = 255 * 255 * a.shape[-1]
    shape = step["output_shape"]
    exact = exact_matmul(a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None], bound).astype(np.int64)
    acc = accumulate.RULES[step.rules["accumulate"]].finish(exact)
    dtype = data_type(step["output_dtype"]).numpy
    return [store.rescale_and_store(acc, step.rules, step.arrays, step.parameters, dtype).reshape(shape)]


OPERATOR = Operator(
    "qlinear_matmul",
    ("accumulate", "scale_form", "rescale", "store"),
    infer,
    lower,
    reference,
    "matrix product whose scales and zero points are operands",
)
