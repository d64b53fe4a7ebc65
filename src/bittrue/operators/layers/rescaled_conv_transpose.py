"""Transposed convolutions of integers whose tensors carry their scales: exact sums, rescaled and stored.

acc[n, p stride + t - pad, o] += sum over c of (q[n, p, c] - z_in)(w[t, c, o] - z_w), and bias[o].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...graph import Attribute
from ...rules import lanes
from ..core.accumulator import (
    finish_accumulator,
    fused_range,
    multiplier_arrays,
    proven_bound,
    signed_span,
    stored_type,
    weight_sums,
)
from ..core.base import Call, Lowered, Shape, Step
from ..core.lanes import stored_in_lanes
from ..core.roles import turned
from .conv_geometry import filter_layout, spread, transposed_parameters
from .integer_layers import check_bias_type, check_weight_scales
from .window_sums import PATCH_BYTES


def _body(call: Call, shape: Shape) -> dict[str, Attribute]:
    """How many channels, or how many elements of the output where all share one multiplier, lie in whole vectors."""
    if "lanes" not in call.rules:
        return {}
    rule = lanes.RULES[call.rules["lanes"]]
    return {"flat_body": rule.body(math.prod(shape))} if call.output.dtype == "u8" else {"body": rule.body(shape[-1])}


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound."""
    source, weights, shape = call.input(0), call.input(1), call.output.shape
    terms, layout = weights.size // shape[-1], filter_layout(call, True)
    check_weight_scales(call, shape[-1], 0)
    check_bias_type(call)
    if source.dtype == "s16" and not call.has(2) and call.attribute("bias_type") == "s32":
        raise call.unsupported(
            "BT-BIAS-TYPE", "a 32-bit accumulator is declared, but there is no bias that says so", "add a bias of zeros"
        )
    # Signed weights are symmetric by definition; only the legacy unsigned type carries a zero point.
    weight_zero_point = weights.zero_point if weights.dtype == "u8" else 0
    span = signed_span(source, source.zero_point)
    if weights.value is not None:
        sums = weight_sums(turned(weights.value, layout, "OSI"), weight_zero_point)
    else:
        sums = np.asarray(terms * signed_span(weights, weight_zero_point))
    return Lowered(
        parameters={
            **transposed_parameters(call),
            **fused_range(call),
            "filter_layout": layout,
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            **_body(call, shape),
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=proven_bound(call, sums, span, call.input(2) if call.has(2) else None),
        work=source.size * (weights.size // source.shape[-1]),
        # One image's sums in 64 bits, and a block of filtered pixels.
        scratch=16 * math.prod(shape[1:]) + PATCH_BYTES + 8 * math.prod(source.shape[2:-1]) * weights.size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Exact sums of one image after the other, rescaled and stored."""
    x, bias = inputs[0], inputs[2] if len(inputs) > 2 else None
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(limit)
    weights = turned(inputs[1], step["filter_layout"], "IOS").astype(work_type)
    weights -= work_type.type(step["weight_zero_point"])
    _, channels, *inner = step["output_shape"]
    out = np.empty((len(x), *inner, channels), stored_type(step, x.dtype))
    for n, image in enumerate(x):
        centered = np.moveaxis(image, -1, 0)[None].astype(work_type) - work_type.type(step["input_zero_point"])
        (sums,) = spread(
            step, centered, weights, np.int64, lambda a, b: exact_matmul(a, b, limit).astype(np.int64), PATCH_BYTES
        )
        acc = np.ascontiguousarray(np.moveaxis(sums, 0, -1))
        if bias is not None:
            acc += bias.reshape(-1).astype(np.int64)
        acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
        if "flat_body" in step.parameters:
            body = min(max(step["flat_body"] - n * acc.size, 0), acc.size)
            out[n] = stored_in_lanes(step, acc.reshape(1, -1), body, out.dtype).reshape(acc.shape)
        else:
            out[n] = stored_in_lanes(step, acc, step["body"] if "body" in step.parameters else 0, out.dtype)
    return [out]
