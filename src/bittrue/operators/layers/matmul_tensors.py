"""What `matmul` does where scales and zero points belong to the tensors: the formulas and habits of one runtime.

acc[..., m, n] = sum over k of (x[..., m, k] - z_x)(y[..., k, n] - z_y), then rescaled and stored;
real rows are quantized one by one where y has 8 bits, and real numbers are added up in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import floats
from ...arithmetic.matmul import exact_matmul, product_type
from ...arithmetic.ordered_sums import add_products
from ...graph import Attribute, data_type
from ...rules import accumulate, scale_back, store, sum_of_products
from ..core.accumulator import (
    finish_accumulator,
    fused_range,
    multiplier_arrays,
    proven_bound,
    signed_span,
    weight_sums,
)
from ..core.base import Call, Lowered, Operand, Shape, Step
from . import hybrid_layers

_LARGEST_RANK = 5


def _exchanged(shape: Shape, exchange: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if exchange else shape


def _worst_sums(call: Call, operand: Operand, zero_point: int) -> np.ndarray:
    """sum |y - zero_point| over k: of every column where the operand is constant, at most otherwise."""
    if operand.value is None or not operand.size:
        rows = operand.shape[-1 if call.attribute("transpose_b") else -2]
        return np.asarray(rows * signed_span(operand, zero_point))
    # Columns of all matrices become rows of one.
    value = operand.value if call.attribute("transpose_b") else operand.value.swapaxes(-1, -2)
    return weight_sums(np.ascontiguousarray(value).reshape(-1, value.shape[-1]), zero_point)


def lower(call: Call) -> Lowered:
    """The multiplier, zero points and the accumulator bound; nothing but the layout for plain numbers."""
    first, second, output = call.input(0), call.input(1), call.output
    for operand in (first, second):
        call.rank(operand, 2, _LARGEST_RANK)
    depth = first.shape[-2 if call.attribute("transpose_a") else -1]
    parameters: dict[str, Attribute] = {
        "transpose_a": bool(call.attribute("transpose_a")),
        "transpose_b": bool(call.attribute("transpose_b")),
        "output_shape": tuple(output.shape),
        "output_dtype": output.dtype,
        "form": "plain",
    }
    work = output.size * depth
    scratch = 8 * (first.size + second.computed_size + 2 * output.size)
    if "quantize_symmetric" in call.rules:
        return _lower_hybrid(call, parameters, work, scratch)
    if "quantize_asymmetric" in call.rules:
        return _lower_dynamic(call, parameters, work, scratch)
    if "accumulate" not in call.rules:
        return Lowered(parameters=parameters, work=work, scratch=scratch)
    zero_points = first.zero_point, second.zero_point
    bound = proven_bound(call, _worst_sums(call, second, zero_points[1]), signed_span(first, zero_points[0]), None)
    parameters |= {"input_zero_point": zero_points[0], "weight_zero_point": zero_points[1]}
    return Lowered(
        parameters=parameters | fused_range(call) | {"form": "quantized"},
        arrays=multiplier_arrays(call, first.scale, [second.scale]),
        accumulator=bound,
        work=work,
        scratch=scratch,
    )


def _column_scales(call: Call) -> np.ndarray:
    """One scale of the second operand, or one per column."""
    second, columns = call.input(1), call.output.shape[-1]
    scales = second.quantization.scales
    if scales.size not in (1, columns):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"'{second.name}' has {scales.size} scales, expected one or {columns}, one per column",
            "the kernel would read scales that are not there",
        )
    return scales.astype(np.float32)


def _lower_dynamic(call: Call, parameters: dict[str, Attribute], work: int, scratch: int) -> Lowered:
    """Rows that are always quantized around zero points of their own."""
    return Lowered(
        parameters=parameters | {"form": "dynamic", "quantize": "asymmetric"},
        arrays={"weight_scales": _column_scales(call)},
        accumulator=proven_bound(call, _worst_sums(call, call.input(1), 0), 255, None),
        work=work,
        scratch=scratch,
    )


def _dynamic(step: Step, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every row of x is quantized; the sums of (q - zero point) * y are scaled back."""
    shape = step["output_shape"]
    if not math.prod(shape):
        return np.zeros(shape, np.float32)
    q, scales, zero_points = hybrid_layers.quantize(step, x.reshape(-1, x.shape[-1]))
    left = np.broadcast_to((q - zero_points[:, None]).reshape(x.shape), (*shape[:-2], *x.shape[-2:]))
    right = np.broadcast_to(y.astype(np.int64), (*shape[:-2], *y.shape[-2:]))
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    acc = exact_matmul(left, right, bound).astype(np.int64)
    acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
    rows = np.broadcast_to(scales.astype(np.float32).reshape(*x.shape[:-1], 1), (*shape[:-1], 1))
    return scale_back.RULES[step.rules["scale_back"]](acc, rows, step.arrays["weight_scales"])


def _lower_hybrid(call: Call, parameters: dict[str, Attribute], work: int, scratch: int) -> Lowered:
    """How rows are quantized, the scales of the columns, and the accumulator's bound."""
    second = call.input(1)
    if call.output.size and not work:
        raise call.invalid("BT-MATMUL-DEPTH", "rows without elements have no range to quantize them by")
    asymmetric = bool(call.attribute("asymmetric_quantize_inputs"))
    if asymmetric and second.value is None:
        raise call.unsupported(
            "BT-MATMUL-SUMS",
            f"'{second.name}' is computed while the model runs, but kernels add up its columns in the first run only",
            "set asymmetric_quantize_inputs to false, or make the operand constant",
        )
    left, right = (_padded(_seen(call, position)) for position in (0, 1))
    places = sum(size - 1 for size in right[:3]) + 1
    if asymmetric and places > right[1] * right[2]:
        raise call.invalid(
            "BT-MATMUL-SUMS", f"kernels read sums of matrices that do not exist for the shape {list(second.shape)}"
        )
    return Lowered(
        parameters=parameters
        | {
            "form": "hybrid",
            "quantize": "asymmetric" if asymmetric else "symmetric",
            "left_batches": tuple(left[:3]),
            "right_batches": tuple(right[:3]),
            "rows": left[3],
        },
        arrays={"weight_scales": _column_scales(call)},
        accumulator=proven_bound(call, _worst_sums(call, second, 0), 128, None),
        work=work,
        scratch=scratch,
    )


def _padded(shape: Shape) -> Shape:
    return (1,) * (_LARGEST_RANK - len(shape)) + tuple(shape)


def _seen(call: Call, position: int) -> Shape:
    """[..., M, K] or [..., K, N] as kernels see it: where the second operand has one matrix along its last batch axis,
    the first one's matrices along it are rows of one.
    """
    left = _exchanged(call.input(0).shape, call.attribute("transpose_a"))
    right = _exchanged(call.input(1).shape, call.attribute("transpose_b"))
    if not call.attribute("transpose_a") and len(left) > 2 and len(right) > 2 and right[-3] == 1:
        left, right = (*left[:-3], left[-3] * left[-2], left[-1]), (*right[:-3], *right[-2:])
    return (left, right)[position]


def _hybrid(step: Step, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every row of x is quantized; out = f32(total * scale of the row and column), where
    total = trunc(f32(f32(sum of q * y) - f32(f32(sum of the column) * zero point))).

    Batch axes: kernels find the scale and zero point of a row, and the sum of a column, at the *sum* of the three
    batch positions, which is another matrix's when several axes are longer than 1.
    """
    if not math.prod(step["output_shape"]):
        return np.zeros(step["output_shape"], np.float32)
    rows, depth = step["rows"], x.shape[-1]
    quantized = hybrid_layers.quantize(step, x.reshape(-1, depth))
    q = quantized[0].reshape(*step["left_batches"], rows, depth)
    scales, zero_points = (values.astype(np.float32).reshape(-1, rows) for values in quantized[1:])
    matrices = y.reshape(*step["right_batches"], *y.shape[-2:])
    sums = matrices.sum(axis=-2, dtype=np.int64).reshape(-1, y.shape[-1]).astype(np.float32)
    batches = [max(pair) for pair in zip(step["left_batches"], step["right_batches"], strict=True)]
    out = np.empty((*batches, rows, y.shape[-1]), np.float32)
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    rule = scale_back.RULES[step.rules["scale_back"]]
    for index in np.ndindex(*batches):
        at, behind = (
            tuple(i if size != 1 else 0 for i, size in zip(index, step[name], strict=True))
            for name in ("left_batches", "right_batches")
        )
        acc = exact_matmul(q[at], matrices[behind].astype(np.int64), bound).astype(np.int64)
        acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
        with np.errstate(all="ignore"):
            moved = acc.astype(np.float32) - sums[sum(behind) % len(sums)] * zero_points[sum(at)][:, None]
        total = floats.truncate_to_s32(moved)
        # Added to an output of zeros: -0 becomes 0.
        out[index] = rule(total, scales[sum(at)][:, None], step.arrays["weight_scales"]) + np.float32(0)
    return out.reshape(step["output_shape"])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One matrix product per output matrix: exact for integers, in order for binary32."""
    if step["form"] in ("hybrid", "dynamic"):
        x, y = (
            operand.swapaxes(-1, -2) if step[name] else operand
            for operand, name in zip(inputs, ("transpose_a", "transpose_b"), strict=True)
        )
        return [(_hybrid if step["form"] == "hybrid" else _dynamic)(step, x, y)]
    shape, dtype = step["output_shape"], data_type(step["output_dtype"]).numpy
    left, right = (
        np.broadcast_to(exchanged, (*shape[:-2], *exchanged.shape[-2:]))
        for exchanged in (
            operand.swapaxes(-1, -2) if step[name] else operand
            for operand, name in zip(inputs, ("transpose_a", "transpose_b"), strict=True)
        )
    )
    if step["form"] == "plain":
        total = np.zeros(shape, np.float32)
        if "sum_of_products" not in step.rules:
            add_products(total, left, right)
            return [total]
        rule = sum_of_products.RULES[step.rules["sum_of_products"]]
        chains = sum_of_products.chains_of_matrices(shape[-2]) if rule.in_chains else 1
        for index in np.ndindex(*shape[:-2]):
            sums = sum_of_products.Chains(total[index], chains)
            for first in range(chains):
                columns, rows = left[index][:, first::chains], right[index][first::chains]
                sum_of_products.add_matrix(rule, sums.of(first, chains), columns, np.ascontiguousarray(rows))
            total[index] = sums.folded()
        return [total]
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(bound)
    out = np.empty(shape, dtype)
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    for index in np.ndindex(*shape[:-2]):
        x = left[index].astype(work_type) - work_type.type(step["input_zero_point"])
        y = right[index].astype(work_type) - work_type.type(step["weight_zero_point"])
        acc = exact_matmul(x, y, bound).astype(np.int64)
        if lost is not None:
            acc -= lost(left[index], right[index])
        acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
        out[index] = store.rescale_and_store(acc, step.rules, step.arrays, step.parameters, dtype)
    return [out]
