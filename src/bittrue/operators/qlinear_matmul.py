"""qlinear_matmul, matmul_integer: acc[..., m, n] = sum over k of (a[..., m, k] - z_a)(b[..., k, n] - z_b).

qlinear_matmul: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point; acc is rescaled and stored.
matmul_integer: a, b, a_zero_point, b_zero_point; acc is the result. Parameters of a may be one per row, those of b one
per column. matmul_integer_to_float: a, b, a_scale, b_scale, a_zero_point, b_zero_point, bias; acc is scaled to reals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import Attribute, data_type
from ..rules import scale_back
from .accumulator import stored_type
from .base import Call, Lowered, Operand, Operator, Role, Shape, Step
from .integer_layers import (
    REQUANTIZE_SLOTS,
    bound,
    centered_product,
    check_columns,
    check_rows,
    check_single,
    fits_columns,
    of_columns,
    of_rows,
    prepare_multiplier,
    requantized,
    single,
    weight_zero_points,
    zero_point_of,
    zero_points,
)
from .late import Prepared, Values, prepare_late, prepare_now
from .roles import OPERAND_PAIR


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


def infer(call: Call) -> list[Shape]:
    """As NumPy's matmul."""
    call.expect(8)
    shape = matmul_shape(call, 0, 3)
    for position, role in ((1, "a_scale"), (2, "a_zero_point")):
        check_rows(call, position, 0, role)
    for position, role in ((4, "b_scale"), (5, "b_zero_point")):
        check_columns(call, position, 3, role)
    for position, role in ((6, "y_scale"), (7, "y_zero_point")):
        check_single(call, position, role)
    return [shape]


def infer_integer(call: Call) -> list[Shape]:
    """As NumPy's matmul."""
    call.expect((2, 4))
    check_rows(call, 2, 0, "a_zero_point")
    check_columns(call, 3, 1, "b_zero_point")
    return [matmul_shape(call, 0, 1)]


def _order(call: Call) -> tuple[bool, tuple[Operand, bool], tuple[Operand, bool]]:
    """Whether s_b comes first, and both scales in order with whether they go into the multiplier."""
    scales = [call.input(2, "a_scale"), call.input(3, "b_scale")]
    swapped = scales[0].shape[-1:] not in ((), (1,))
    first, second = scales[::-1] if swapped else scales
    return swapped, (first, first.shape in ((), (1,))), (second, fits_columns(second.shape, call.input(1).shape))


def infer_to_float(call: Call) -> list[Shape]:
    """As NumPy's matmul. Scales may have any shape that broadcasts to the result's."""
    call.expect((4, 7))
    shape = matmul_shape(call, 0, 1)
    check_rows(call, 4, 0, "a_zero_point")
    check_columns(call, 5, 1, "b_zero_point")
    _, *scales = _order(call)
    for operand, inside in scales:
        fits = operand.rank <= len(shape) and all(
            p in (1, q) for p, q in zip(operand.shape[::-1], shape[::-1], strict=False)
        )
        if not inside and not fits:
            raise call.invalid(
                "BT-SHAPE-BROADCAST", f"'{operand.name}' {list(operand.shape)} does not broadcast to {list(shape)}"
            )
    columns = call.input(1).shape[-1] if call.input(1).rank > 1 else 1
    if call.has(6) and call.input(6).size != columns:
        raise call.invalid("BT-BIAS-LENGTH", f"bias has {call.input(6).size} values for {columns} columns")
    return [shape]


def _points(first: Any, second: Any) -> Prepared:
    rows, row_arrays = zero_points(None if first is None else of_rows(first), "input_zero_point", "input_zero_points")
    columns, column_arrays = weight_zero_points(None if second is None else of_columns(second))
    return {**rows, **columns}, {**row_arrays, **column_arrays}


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    parameters, arrays = _points(values[2], values[5])
    multipliers = prepare_multiplier(rules, of_rows(values[1]), of_columns(values[4]), single(values[6]))
    return {**parameters, "output_zero_point": zero_point_of(values[7])}, {**arrays, **multipliers}


def _at(values: Values, position: int) -> Any:
    return values[position] if position < len(values) else None


def _prepare_integer(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    return _points(_at(values, 2), _at(values, 3))


def _prepare_to_float(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    return _points(_at(values, 4), _at(values, 5))


def lowered(
    call: Call,
    parameters: Mapping[str, Attribute],
    arrays: Mapping[str, np.ndarray],
    a: tuple[int, int],
    b: tuple[int, int],
) -> Lowered:
    """Bound and work beside what is given; positions of codes and their zero points."""
    depth = call.input(a[0]).shape[-1]
    return Lowered(
        {**parameters, "output_shape": call.output.shape},
        arrays,
        bound(call, a, b, depth, -1),
        call.output.size * depth,
        8 * (call.input(a[0]).size + call.input(b[0]).size) + 24 * call.output.size,
    )


def lower(call: Call) -> Lowered:
    """Multipliers per column, zero points and the accumulator bound."""
    dtype = data_type(call.output.dtype)
    limits = {"low": dtype.minimum, "high": dtype.maximum}
    return lowered(call, *prepare_now(call, (1, 2, 4, 5, 6, 7), limits, _prepare), (0, 2), (3, 5))


def lower_integer(call: Call) -> Lowered:
    """Zero points and the accumulator bound."""
    known: dict[str, Attribute] = {"dtype": call.output.dtype}
    return lowered(call, *prepare_now(call, (2, 3), known, _prepare_integer), (0, 2), (1, 3))


def lower_to_float(call: Call) -> Lowered:
    """Zero points, the accumulator bound, and which scales go into one multiplier per column."""
    swapped, (_, first), (_, second) = _order(call)
    forms: dict[str, Attribute] = {
        "b_scale_first": swapped,
        "first_in_multiplier": first,
        "second_in_multiplier": second,
    }
    return lowered(call, *prepare_now(call, (4, 5), forms, _prepare_to_float), (0, 4), (1, 5))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product of the centred operands."""
    step = prepare_late(step, inputs, _prepare)
    acc = centered_product(step, inputs[0], inputs[3])
    return [requantized(step, acc, stored_type(step, inputs[7].dtype)).reshape(step["output_shape"])]


def reference_integer(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sums as they are."""
    step = prepare_late(step, inputs, _prepare_integer)
    product = centered_product(step, inputs[0], inputs[1])
    return [product.astype(data_type(str(step.parameters.get("dtype", "s32"))).numpy).reshape(step["output_shape"])]


def reference_to_float(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """f32(f32(f32(acc) * multiplier) + bias), then times every scale that is not in the multiplier.

    The first scale is s_a, or s_b if s_a varies along the last axis; the second one is the other. The multiplier is the
    rounded product of the first one, if it is one value, and of the second one, if it is one value or one per column.
    """
    step = prepare_late(step, inputs, _prepare_to_float)
    bias, scales = _at(inputs, 6), list(inputs[2:4])
    if step["b_scale_first"]:
        scales.reverse()
    inside = [step["first_in_multiplier"], step["second_in_multiplier"]]
    factors = [of_columns(s) if fits else np.float32(1) for s, fits in zip(scales, inside, strict=True)]
    total = scale_back.RULES[step.rules["scale_back"]](centered_product(step, inputs[0], inputs[1]), *factors)
    with np.errstate(all="ignore"):
        if bias is not None:
            total = total + bias.reshape(-1)
        total = total.reshape(step["output_shape"])
        for scale, fits in zip(scales, inside, strict=True):
            if not fits:
                total = total * scale
    return [np.asarray(total, np.float32).reshape(step["output_shape"])]


OPERATORS = (
    Operator(
        "qlinear_matmul",
        REQUANTIZE_SLOTS,
        infer,
        lower,
        reference,
        "matrix product whose scales and zero points are operands",
        roles=OPERAND_PAIR,
        weights="IO",
        multiplies=True,
    ),
    Operator(
        "matmul_integer",
        ("accumulate",),
        infer_integer,
        lower_integer,
        reference_integer,
        "matrix product of integers that gives its sums",
        roles=(Role("first input", 0, None, 2), Role("second input", 1, None, 3)),
        weights="IO",
        multiplies=True,
    ),
    Operator(
        "matmul_integer_to_float",
        ("accumulate", "scale_back"),
        infer_to_float,
        lower_to_float,
        reference_to_float,
        "matrix product of integers whose sums are scaled to real numbers",
        multiplies=True,
    ),
)
