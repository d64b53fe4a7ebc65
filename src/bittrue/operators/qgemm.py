"""qgemm: acc[m, n] = sum over k of (a[m, k] - z_a)(b[k, n] - z_b) + c[m, n], rescaled and stored, or made real.

Operands: a, a_scale, a_zero_point, b, b_scale, b_zero_point, c, y_scale, y_zero_point. `trans_a` and `trans_b` say that
a is [K, M] and b is [N, K]. The multiplier is f32(f32(alpha * s_a) * s_b), over s_y where that is present; c is not
scaled by alpha. Without y_zero_point the result is f32(f32(acc) * multiplier).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import Attribute, data_type
from ..rules import accumulate, scale_back
from .accumulator import stored_type
from .base import Call, Lowered, Operator, Role, Shape, Step
from .integer_layers import (
    REQUANTIZE_SLOTS,
    bound,
    centered_product,
    check_channels,
    check_single,
    prepare_multiplier,
    requantized,
    single,
    weight_zero_points,
    zero_point_of,
)
from .late import Prepared, Values, prepare_late, prepare_now


def infer(call: Call) -> list[Shape]:
    """[M, N]."""
    call.expect((6, 9))
    a, b = call.input(0), call.input(3)
    call.rank(a, 2)
    call.rank(b, 2)
    rows, depth = a.shape[::-1] if call.attribute("trans_a") else a.shape
    inner, columns = b.shape[::-1] if call.attribute("trans_b") else b.shape
    if depth != inner:
        raise call.invalid(
            "BT-MATMUL-DEPTH",
            f"shapes {list(a.shape)} and {list(b.shape)} meet with {depth} columns and {inner} rows",
        )
    for position, role in ((1, "a_scale"), (2, "a_zero_point"), (7, "y_scale"), (8, "y_zero_point")):
        check_single(call, position, role)
    for position, role in ((4, "b_scale"), (5, "b_zero_point")):
        check_channels(call, position, columns, role)
    if call.input(4).shape != call.input(5).shape:
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"b_scale has shape {list(call.input(4).shape)}, b_zero_point has {list(call.input(5).shape)}",
            "both must have the same shape",
        )
    if call.has(6):
        found = call.input(6).shape
        wanted = (rows, columns)[2 - len(found) :]
        if len(found) > 2 or any(p not in (1, q) for p, q in zip(found, wanted, strict=True)):
            raise call.invalid(
                "BT-SHAPE-BROADCAST", f"c of shape {list(found)} does not broadcast to {[rows, columns]}"
            )
    return [(rows, columns)]


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    y_scale, y_zero_point = (values[p] if p < len(values) else None for p in (7, 8))
    with np.errstate(all="ignore"):
        first = np.float32(known["alpha"]) * np.float32(single(values[1]))
    output = np.float32(1) if y_scale is None else single(y_scale)
    parameters, arrays = weight_zero_points(values[5])
    points = {"input_zero_point": zero_point_of(values[2]), "output_zero_point": zero_point_of(y_zero_point)}
    multipliers = prepare_multiplier(rules, first, np.reshape(values[4], -1), output)
    return {**parameters, **points}, {**arrays, **multipliers}


def lower(call: Call) -> Lowered:
    """Multipliers per column, zero points and the accumulator bound."""
    known: dict[str, Attribute] = {name: call.attribute(name) for name in ("alpha", "trans_a", "trans_b")}
    if call.output.dtype != "f32":
        dtype = data_type(call.output.dtype)
        known |= {"low": dtype.minimum, "high": dtype.maximum}
    parameters, arrays = prepare_now(call, (1, 2, 4, 5, 7, 8), known, _prepare)
    depth = call.input(0).shape[0 if call.attribute("trans_a") else 1]
    return Lowered(
        parameters,
        arrays,
        bound(call, (0, 2), (3, 5), depth, 0 if call.attribute("trans_b") else -1, 6),
        call.output.size * depth,
        8 * (call.input(0).size + call.input(3).size) + 24 * call.output.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product of the centred operands."""
    step = prepare_late(step, inputs, _prepare)
    a, b = inputs[0].T if step["trans_a"] else inputs[0], inputs[3].T if step["trans_b"] else inputs[3]
    acc = centered_product(step, a, b)
    if len(inputs) > 6 and inputs[6] is not None:
        acc = accumulate.RULES[step.rules["accumulate"]].finish(acc + inputs[6].astype(np.int64))
    if "low" in step.parameters:
        return [requantized(step, acc, stored_type(step, np.dtype(np.int8 if step["low"] < 0 else np.uint8)))]
    factor = step.arrays["factor" if "factor" in step.arrays else "open_factor"]
    return [scale_back.RULES[step.rules["scale_back"]](acc, factor, np.float32(1))]


OPERATOR = Operator(
    "qgemm",
    (*REQUANTIZE_SLOTS, "scale_back"),
    infer,
    lower,
    reference,
    "matrix product with addend, whose scales and zero points are operands",
    roles=(Role("input", 0, 1, 2), Role("weights", 3, 4, 5), Role("output", -1, 7, 8), Role("bias", 6)),
    weights="IO",
    multiplies=True,
)
