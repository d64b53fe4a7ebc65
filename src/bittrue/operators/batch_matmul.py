"""batch_matmul: acc[..., m, n] = sum over k of (x[..., m, k] - z_x)(y[..., k, n] - z_y), then rescale and store.

`adj_x` and `adj_y` say that an operand is stored with its last two axes exchanged. The other axes broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic.matmul import exact_matmul, product_type
from ..arithmetic.ordered_sums import add_products
from ..graph import Attribute, data_type
from ..rules import store, sum_of_products
from .accumulator import finish_accumulator, fused_range, multiplier_arrays, proven_bound, signed_span, weight_sums
from .base import Call, Lowered, Operand, Operator, Shape, Step

_LARGEST_RANK = 5


def _exchanged(shape: Shape, exchange: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if exchange else shape


def infer(call: Call) -> list[Shape]:
    """[..., M, K] and [..., K, N] give [..., M, N]."""
    call.expect(2)
    first, second = call.input(0), call.input(1)
    call.rank(first, 2, _LARGEST_RANK)
    call.rank(second, 2, _LARGEST_RANK)
    left = _exchanged(first.shape, call.attribute("adj_x"))
    right = _exchanged(second.shape, call.attribute("adj_y"))
    shown = f"shapes {list(first.shape)} and {list(second.shape)}"
    if left[-1] != right[-2]:
        raise call.invalid("BT-MATMUL-DEPTH", f"{shown} meet with {left[-1]} columns and {right[-2]} rows")
    rank = max(len(left), len(right))
    batches = [(1,) * (rank - len(shape)) + shape[:-2] for shape in (left, right)]
    if any(a != b and 1 not in (a, b) for a, b in zip(*batches, strict=True)):
        raise call.invalid("BT-SHAPE-BROADCAST", f"{shown} do not broadcast together")
    return [(*(b if a == 1 else a for a, b in zip(*batches, strict=True)), left[-2], right[-1])]


def _worst_sums(call: Call, operand: Operand, zero_point: int) -> np.ndarray:
    """sum |y - zero_point| over k: of every column where the operand is constant, at most otherwise."""
    if operand.value is None or not operand.size:
        rows = operand.shape[-1 if call.attribute("adj_y") else -2]
        return np.asarray(rows * signed_span(operand, zero_point))
    # Columns of all matrices become rows of one.
    value = operand.value if call.attribute("adj_y") else operand.value.swapaxes(-1, -2)
    return weight_sums(np.ascontiguousarray(value).reshape(-1, value.shape[-1]), zero_point)


def lower(call: Call) -> Lowered:
    """The multiplier, zero points and the accumulator bound; nothing but the layout for plain numbers."""
    first, second, output = call.input(0), call.input(1), call.output
    depth = first.shape[-2 if call.attribute("adj_x") else -1]
    parameters: dict[str, Attribute] = {
        "adj_x": bool(call.attribute("adj_x")),
        "adj_y": bool(call.attribute("adj_y")),
        "output_shape": tuple(output.shape),
        "output_dtype": output.dtype,
        "form": "plain",
    }
    work = output.size * depth
    scratch = 8 * (first.size + second.size + 2 * output.size)
    if "accumulate" not in call.rules:
        return Lowered(parameters=parameters, work=work, scratch=scratch)
    rescaled = "rescale" in call.rules
    zero_points = (first.zero_point, second.zero_point) if rescaled else (0, 0)
    bound = proven_bound(call, _worst_sums(call, second, zero_points[1]), signed_span(first, zero_points[0]), None)
    parameters |= {"input_zero_point": zero_points[0], "weight_zero_point": zero_points[1]}
    if not rescaled:
        return Lowered(parameters=parameters | {"form": "sums"}, accumulator=bound, work=work, scratch=scratch)
    return Lowered(
        parameters=parameters | fused_range(call) | {"form": "quantized"},
        arrays=multiplier_arrays(call, first.scale, [second.scale]),
        accumulator=bound,
        work=work,
        scratch=scratch,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One matrix product per output matrix: exact for integers, in order for binary32."""
    shape, dtype = step["output_shape"], data_type(step["output_dtype"]).numpy
    left, right = (
        np.broadcast_to(exchanged, (*shape[:-2], *exchanged.shape[-2:]))
        for exchanged in (
            operand.swapaxes(-1, -2) if step[name] else operand
            for operand, name in zip(inputs, ("adj_x", "adj_y"), strict=True)
        )
    )
    if step["form"] == "plain":
        total = np.zeros(shape, np.float32)
        if "sum_of_products" not in step.rules:
            add_products(total, left, right)
            return [total]
        rule = sum_of_products.RULES[step.rules["sum_of_products"]]
        for index in np.ndindex(*shape[:-2]):
            sum_of_products.add_matrix(rule, total[index], left[index], np.ascontiguousarray(right[index]))
        return [total]
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(bound)
    out = np.empty(shape, dtype)
    for index in np.ndindex(*shape[:-2]):
        x = left[index].astype(work_type) - work_type.type(step["input_zero_point"])
        y = right[index].astype(work_type) - work_type.type(step["weight_zero_point"])
        acc = exact_matmul(x, y, bound).astype(np.int64)
        acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
        if step["form"] == "quantized":
            acc = store.rescale_and_store(acc, step.rules, step.arrays, step.parameters, dtype)
        out[index] = acc
    return [out]


OPERATOR = Operator(
    "batch_matmul",
    ("accumulate", "scale_form", "rescale", "store", "activation_range", "sum_of_products"),
    infer,
    lower,
    reference,
    "matrix products of two operands, either of which may be computed",
)
