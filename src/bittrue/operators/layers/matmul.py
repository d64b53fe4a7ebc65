"""matmul: alpha * a[..., m, k] b[..., k, n] + beta * c of real numbers, or of quantized values by integers.

Operands: a, b, c, then scale and zero point of a, of b and of the result. Attributes: `transpose_a`, `transpose_b` (the
last two axes of an operand are exchanged), `matrices` (a and b have two axes, else batches broadcast and vectors are
matrices of one row or column), `most_axes` (of an operand, which then is no vector), `alpha`, `beta`. Absent ones stand
for a plain product.

Integers: acc = sum over k of (a - z_a)(b - z_b), plus c where it is an integer. acc is the result (s32), or is rescaled
and stored (8 bits), or is made real (f32); alpha is a factor of the multiplier, c is not scaled by it. With `ranged`,
ends of ranges stand in place of the scales and zero points of a and of the result; b's scale counts values per unit.

Integers of 32 and 64 bits wrap: see `matmul_wrapping`. Weights in blocks, packed (`block_size`, `bits`): see
`matmul_blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from . import matmul_blocks, matmul_integer, matmul_real, matmul_tensors, matmul_wrapping
from .matmul_integer import A_POINT, A_SCALE, B_POINT, B_SCALE, Y_POINT, Y_SCALE, A, B, C
from .slots import REQUANTIZE_SLOTS


def _product_shape(call: Call) -> Shape:
    """The shape of the product of a and b, as NumPy's matmul has it."""
    a, b = call.input(A), call.input(B)
    for operand in (a, b):
        if call.node.attributes.get("matrices"):
            call.rank(operand, 2)
        elif "most_axes" in call.node.attributes:
            call.rank(operand, 2, int(call.attribute("most_axes")))
    if min(a.rank, b.rank) < 1:
        raise call.invalid("BT-SHAPE-RANK", "a matrix product needs operands of rank 1 or more")
    left = _exchanged(a.shape, call, "transpose_a") if a.rank > 1 else (1, *a.shape)
    right = _exchanged(b.shape, call, "transpose_b") if b.rank > 1 else (*b.shape, 1)
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


def _exchanged(shape: Shape, call: Call, name: str) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if call.node.attributes.get(name) else shape


def infer(call: Call) -> list[Shape]:
    """As NumPy's matmul; c broadcasts over a matrix, or is one number per column."""
    if "block_size" in call.node.attributes:
        return matmul_blocks.infer(call)
    call.expect((2, 9))
    shape = _product_shape(call)
    if any(call.has(position) for position in range(A_SCALE, Y_POINT + 1)):
        matmul_integer.check_parameters(call, shape)
    if call.has(C):
        _check_addend(call, shape)
    return [shape]


def _check_addend(call: Call, shape: Shape) -> None:
    c = call.input(C)
    if call.node.attributes.get("matrices") and not call.node.attributes.get("ranged"):
        if c.rank > 2 or any(e not in (1, o) for e, o in zip(c.shape[::-1], shape[::-1], strict=False)):
            raise call.invalid(
                "BT-SHAPE-BROADCAST",
                f"operand '{c.name}' of shape {list(c.shape)} does not broadcast over {list(shape)}",
            )
        return
    columns = shape[-1] if call.input(B).rank > 1 else 1
    if c.size != columns:
        raise call.invalid("BT-BIAS-LENGTH", f"bias has {c.size} values for {columns} columns")


def lower(call: Call) -> Lowered:
    """What the row's arithmetic needs."""
    rules = call.rules
    if "block_size" in call.node.attributes:
        return matmul_blocks.lower(call)
    if "real_product" in rules:
        return matmul_real.lower(call)
    if call.input(A).dtype in matmul_wrapping.TYPES:
        return matmul_wrapping.lower(call)
    of_tensors = "accumulate" not in rules or "activation_range" in rules or "quantize_asymmetric" in rules
    return (matmul_tensors if of_tensors else matmul_integer).lower(call)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The product by the step's arithmetic."""
    if "block_size" in step.parameters:
        return matmul_blocks.reference(step, inputs)
    if "real_product" in step.rules:
        return matmul_real.reference(step, inputs)
    if "wraps" in step.parameters:
        return matmul_wrapping.reference(step, inputs)
    return (matmul_tensors if "form" in step.parameters else matmul_integer).reference(step, inputs)


OPERATOR = Operator(
    "matmul",
    (
        *("real_product", *REQUANTIZE_SLOTS, "shift_count", "center", "scale_back"),
        *(
            "activation_range",
            "quantize_symmetric",
            "quantize_asymmetric",
            "sum_of_products",
            "row_blocks",
            "block_product",
            "multiply_add",
        ),
    ),
    infer,
    lower,
    reference,
    "matrix product, of real numbers or of quantized values",
    roles=(
        Role("first input", A, A_SCALE, A_POINT),
        Role("second input", B, B_SCALE, B_POINT),
        Role("output", -1, Y_SCALE, Y_POINT),
        Role("bias", C),
    ),
    weights="IO",
    multiplies=True,
)
