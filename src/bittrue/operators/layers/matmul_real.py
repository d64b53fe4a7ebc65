"""What `matmul` does with real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ...rules import real_product
from ..core.base import Call, Lowered, Step


def lower(call: Call) -> Lowered:
    """Factors, which operands are transposed, and how the runtime's operands lie in memory, as rewrites mark it.

    `turned_a`, `turned_b`: that operand lies transposed; `apart`: the matrices on the left lie apart from each other,
    which matters where they are single rows. Elements of single columns on the right are no neighbours where their
    matrices lie so (`apart_b`). `heads_apart`: queries, keys and values of every head are a product of their own,
    unless they are packed: how many heads there are, and how many columns all values have (0: a third).
    """
    given = call.node.attributes
    a, packed = call.input(0), call.is_stored(1)
    factors = {name: given.get(name, 1.0) for name in ("alpha", "beta")}
    parameters: dict[str, Attribute] = {}
    for name, factor in factors.items():
        assert isinstance(factor, float)
        parameters[name] = float(np.float32(factor))
    for side, operand in zip("ab", (a, call.input(1)), strict=True):
        transposed = bool(given.get(f"transpose_{side}", False)) and operand.rank > 1
        parameters[f"transpose_{side}"] = transposed
        parameters[f"turned_{side}"] = transposed != bool(given.get(f"turned_{side}", False))
    b, shape = call.input(1), call.output.shape
    if given.get("apart_b") and math.prod(b.shape[:-2]) > 1 and shape[-1] == 1:
        parameters["turned_b"] = parameters["turned_b"] or shape[-2] != 1 or parameters["turned_a"]
    depth = a.shape[-2 if a.rank > 1 and parameters["transpose_a"] else -1]
    rule = real_product.RULES.get(call.rules.get("real_product", ""))
    if not depth and parameters["beta"] and rule is not None and rule.kept_alone:
        parameters["beta"] = 1.0
    return Lowered(
        parameters={
            **parameters,
            "output_shape": shape,
            "packed": packed,
            "groups": () if packed else _columns_of_heads(call),
            "apart": bool(given.get("apart", False)) and not packed and a.rank > 2 and a.shape[-2] == 1,
        },
        work=call.output.size * depth,
        scratch=16 * (a.size + b.computed_size + min(call.output.size, 1 << 20)),
    )


def _columns_of_heads(call: Call) -> tuple[int, ...]:
    if "heads_apart" not in call.node.attributes:
        return ()
    columns, (heads, values) = call.output.shape[-1], call.attribute("heads_apart")
    values = values or columns // 3
    keys = (columns - values) // 2
    if heads < 1 or keys % heads or values % heads or 2 * keys + values != columns:
        raise call.invalid("BT-ATTENTION-HEADS", f"{columns} columns do not belong to {heads} heads")
    return (keys // heads,) * (2 * heads) + (values // heads,) * heads


def _by_groups(step: Step, a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """Every matrix on the left meets some columns at a time."""
    rule, result = real_product.RULES[step.rules["real_product"]], np.empty(step["output_shape"], np.float32)
    for index in np.ndindex(*a.shape[:-2]):
        first = 0
        for width in step["groups"]:
            own = slice(first, first + width)
            start, first = None if c is None else c[own], first + width
            # The numbers of a single column are no neighbours, so it is made like any other matrix.
            layout = real_product.Layout(turned_b=step["turned_b"] or (width == 1 and a.shape[-2] > 1))
            result[(*index, slice(None), own)] = rule.apply(
                a[index], b[:, own], start, step["alpha"], step["beta"], layout
            )
    return result


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product. A vector on the left is a matrix of one row, one on the right meets every row.

    Matrices on the left that meet a single one are one matrix.
    """
    if not math.prod(step["output_shape"]):
        return [np.zeros(step["output_shape"], inputs[0].dtype)]
    a, b = (
        operand.swapaxes(-1, -2) if operand.ndim > 1 and step[f"transpose_{side}"] else operand
        for operand, side in zip(inputs[:2], "ab", strict=True)
    )
    c = inputs[2] if len(inputs) > 2 else None
    if step["groups"]:
        return [_by_groups(step, a, b, c)]
    left, right = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    rule = real_product.RULES[step.rules["real_product"]]
    layout = real_product.Layout(step["packed"] and right.ndim == 2, step["turned_a"], step["turned_b"])
    if b.ndim == 1:
        turned = bool(step["turned_a"])
        if turned:
            # Source: docs/facts/onnxruntime.md 5.6: what lies in memory is taken for rows.
            given = inputs[0] if step["transpose_a"] else np.ascontiguousarray(left.swapaxes(-1, -2))
            left = given.reshape(left.shape)
        left, layout = left.reshape(math.prod(left.shape[:-1]), 1, left.shape[-1]), real_product.Layout(turned_a=turned)
    elif math.prod(right.shape[:-2]) == 1 and right.ndim <= left.ndim and not step["apart"]:
        left, right = left.reshape(math.prod(left.shape[:-1]), left.shape[-1]), right.reshape(right.shape[-2:])
    product = real_product.products(rule, left, right, c, step["alpha"], step["beta"], layout)
    return [product.reshape(step["output_shape"])]
