"""What `fully_connected` does with integers in binary32: acc[m, o] = sum over k of (x[m, k] - z_x)(w[o, k] - z_w).

x is [..., K] with the axes from `axis` on taken together: the result is [dimensions ahead of axis, O]. w is [O, K].
Operands and what becomes of acc: see `whole_numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.base import Call, Lowered, Shape, Step
from .whole_numbers import (
    BIAS,
    W,
    X,
    bound_8_bit,
    centered_reals,
    check_operands,
    finished,
    is_8_bit_layer,
    prepared,
    products,
)


def infer(call: Call) -> list[Shape]:
    """Dimensions ahead of `axis`, and one per row of w."""
    source, weights = call.input(X), call.input(W, "weights")
    call.rank(weights, 2)
    axis = call.axis(int(call.attribute("axis")), source.rank)
    depth = math.prod(source.shape[axis:])
    if depth != weights.shape[1] or not weights.size:
        raise call.invalid(
            "BT-FC-DEPTH",
            f"{depth} numbers from axis {axis} on of {list(source.shape)} do not meet weights {list(weights.shape)}",
        )
    check_operands(call, weights.shape[0])
    return [(*source.shape[:axis], weights.shape[0])]


def lower(call: Call) -> Lowered:
    """Limits, zero points, multipliers; a step of integers where that gives the same."""
    parameters, arrays = prepared(call)
    depth = call.input(W).shape[1]
    work = call.output.size * depth
    if is_8_bit_layer(call):
        limits = call.output.type
        parameters |= {"low": limits.minimum, "high": limits.maximum, "output_shape": call.output.shape}
        return Lowered(
            parameters,
            arrays,
            bound_8_bit(call),
            work,
            8 * (call.input(X).size + 2 * call.output.size),
            inputs=(X, W, BIAS) if call.has(BIAS) else (X, W),
        )
    return Lowered(
        {**parameters, "output_shape": call.output.shape, "arithmetic": "whole"},
        arrays,
        None,
        work,
        32 * call.output.size + 12 * (call.input(X).size + call.input(W).size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A matrix product in binary32."""
    x, weights = centered_reals(step, inputs[X], inputs[W])
    sums = products(step, x.reshape(-1, weights.shape[1]), weights.T)
    bias = inputs[BIAS] if len(inputs) > BIAS else None
    return [finished(step, sums, bias, 1).reshape(step["output_shape"])]
