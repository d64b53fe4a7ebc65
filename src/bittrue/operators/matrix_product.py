"""matmul and gemm: products of matrices of real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_product
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step
from .qlinear_matmul import matmul_shape
from .roles import PAIR


def infer_matmul(call: Call) -> list[Shape]:
    """As NumPy's matmul."""
    call.expect(2)
    return [matmul_shape(call, 0, 1)]


def _scratch(call: Call) -> int:
    return 32 * (call.input(0).size + call.input(1).size + min(call.output.size, 1 << 20))


def _packed(call: Call) -> bool:
    """Constants are packed before they are used, but not what rewrites mark as computed in every run."""
    return call.input(1).value is not None and not call.node.attributes.get("computed_weights", False)


def lower_matmul(call: Call) -> Lowered:
    """The output's shape, the factor `alpha`, and how the runtime's operands lie in memory, as rewrites mark it.

    `turned_a`, `turned_b`: that operand lies transposed; `apart`: the matrices on the left lie apart from each other,
    which matters where they are single rows.
    """
    marks = call.node.attributes
    alpha = marks.get("alpha", 1.0)
    assert isinstance(alpha, float)
    a, packed = call.input(0), _packed(call)
    apart = bool(marks.get("apart", False)) and not packed and a.rank > 2 and a.shape[-2] == 1
    return Lowered(
        parameters={
            "output_shape": call.output.shape,
            "packed": packed,
            "alpha": float(np.float32(alpha)),
            "turned_a": bool(marks.get("turned_a", False)),
            "turned_b": bool(marks.get("turned_b", False)),
            "apart": apart,
        },
        work=call.output.size * call.input(0).shape[-1],
        scratch=_scratch(call),
    )


def reference_matmul(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product, times alpha. A vector on the left is a matrix of one row, one on the right meets every row.

    Matrices on the left that meet a single one are one matrix.
    """
    a, b = inputs
    left, right = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    rule = real_product.RULES[step.rules["real_product"]]
    layout = Layout(step["packed"] and right.ndim == 2, step["turned_a"], step["turned_b"])
    if b.ndim == 1:
        left, layout = left.reshape(-1, 1, left.shape[-1]), Layout()
    elif math.prod(right.shape[:-2]) == 1 and right.ndim <= left.ndim and not step["apart"]:
        left, right = left.reshape(-1, left.shape[-1]), right.reshape(right.shape[-2:])
    return [real_product.products(rule, left, right, layout, step["alpha"]).reshape(step["output_shape"])]


def infer_gemm(call: Call) -> list[Shape]:
    """[M, N]; a third operand broadcasts over it."""
    call.expect((2, 3))
    for position in (0, 1):
        call.rank(call.input(position), 2)
    a, b = (call.input(i).shape for i in (0, 1))
    m, k = a[::-1] if call.attribute("transpose_a") else a
    depth, n = b[::-1] if call.attribute("transpose_b") else b
    if k != depth:
        raise call.invalid("BT-MATMUL-DEPTH", f"{k} columns meet {depth} rows")
    if call.has(2):
        c = call.input(2)
        if c.rank > 2 or any(e not in (1, o) for e, o in zip(c.shape[::-1], (n, m), strict=False)):
            raise call.invalid(
                "BT-SHAPE-BROADCAST", f"operand '{c.name}' of shape {list(c.shape)} does not broadcast over [{m}, {n}]"
            )
    return [(m, n)]


def lower_gemm(call: Call) -> Lowered:
    """Factors, which operands are transposed, and how the runtime's operands lie in memory, as rewrites mark it."""
    marks = call.node.attributes
    turned_a, turned_b = (
        bool(call.attribute(f"transpose_{side}")) != bool(marks.get(f"turned_{side}", False)) for side in "ab"
    )
    depth = call.input(0).shape[0 if call.attribute("transpose_a") else 1]
    return Lowered(
        parameters={
            "alpha": float(np.float32(call.attribute("alpha"))),
            "beta": float(np.float32(call.attribute("beta"))),
            "transpose_a": bool(call.attribute("transpose_a")),
            "transpose_b": bool(call.attribute("transpose_b")),
            "turned_a": turned_a,
            "turned_b": turned_b,
            "packed": _packed(call),
        },
        work=call.output.size * depth,
        scratch=_scratch(call),
    )


def reference_gemm(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product with both factors."""
    a = inputs[0].T if step["transpose_a"] else inputs[0]
    b = inputs[1].T if step["transpose_b"] else inputs[1]
    c = inputs[2] if len(inputs) > 2 else None
    if not math.prod((a.shape[0], b.shape[1])):
        return [np.zeros((a.shape[0], b.shape[1]), np.float32)]
    rule = real_product.RULES[step.rules["real_product"]]
    layout = Layout(step["packed"], step["turned_a"], step["turned_b"])
    return [rule.apply(a, b, c, step["alpha"], step["beta"], layout)]


OPERATORS = (
    Operator(
        "matmul",
        ("real_product",),
        infer_matmul,
        lower_matmul,
        reference_matmul,
        "matrix product of real numbers",
        roles=PAIR,
        multiplies=True,
    ),
    Operator(
        "gemm", ("real_product",), infer_gemm, lower_gemm, reference_gemm, "alpha * a b + beta * c", multiplies=True
    ),
)
