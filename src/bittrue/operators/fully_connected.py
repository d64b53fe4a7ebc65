"""fully_connected: acc[b, o] = sum over k of (x - z_in)(w - z_w) + bias, then rescale and store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic.matmul import exact_matmul
from ..rules import store
from .accumulator import finish_accumulator, fused_range, multiplier_arrays, proven_bound, signed_span
from .base import Call, Lowered, Operator, Shape, Step
from .conv2d import check_bias, check_bias_type, check_weight_scales


def infer(call: Call) -> list[Shape]:
    """[..., K] with weights [O, K] gives [elements / K, O], or [..., O] when `keep_num_dims` is set."""
    call.expect((2, 3))
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(weights, 2)
    if call.attribute("weights_format") != "default":
        raise call.unsupported("BT-FC-FORMAT", f"weights format '{call.attribute('weights_format')}' is not implemented")
    units, depth = weights.shape
    if depth < 1 or source.size % depth:
        raise call.invalid("BT-FC-DEPTH", f"input shape {list(source.shape)} does not split into rows of {depth}")
    check_bias(call, units)
    if call.attribute("keep_num_dims"):
        if not source.rank or source.shape[-1] != depth:
            raise call.invalid("BT-FC-DEPTH", f"last input extent {source.shape[-1:]} must equal filter depth {depth}")
        return [(*source.shape[:-1], units)]
    return [(source.size // depth, units)]


def lower(call: Call) -> Lowered:
    """Multipliers per unit, clamps and the accumulator bound.

    With one scale per unit the weights are symmetric by definition: a zero point that a file gives is not applied.
    """
    source, weights = call.input(0), call.input(1)
    units, depth = weights.shape
    check_weight_scales(call, units, 0)
    check_bias_type(call)
    weight_zero_point = 0 if weights.quantization.per_axis else weights.zero_point
    if weights.value is not None:
        sums = np.abs(weights.value.astype(np.int64) - weight_zero_point).sum(axis=1)
    else:
        sums = np.int64(depth * signed_span(weights, weight_zero_point))
    return Lowered(
        parameters={
            **fused_range(call),
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            "keep_shape": tuple(call.output.shape),
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=proven_bound(
            call, sums, signed_span(source, source.zero_point), call.input(2) if call.has(2) else None
        ),
        work=call.output.size * depth,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One exact matrix product."""
    x, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = np.dtype(np.float32 if bound < 2**24 else np.float64 if bound < 2**53 else np.int64)
    rows = x.reshape(-1, weights.shape[1]).astype(work_type) - work_type.type(step["input_zero_point"])
    matrix = (weights.astype(work_type) - work_type.type(step["weight_zero_point"])).T
    acc = exact_matmul(rows, matrix, bound).astype(np.int64)
    if bias is not None:
        acc += bias.reshape(-1).astype(np.int64)
    acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
    dtype = np.dtype(step["output_dtype"]) if "output_dtype" in step.parameters else x.dtype
    return [store.rescale_and_store(acc, step.rules, step.arrays, step.parameters, dtype).reshape(step["keep_shape"])]


OPERATOR = Operator(
    "fully_connected",
    ("accumulate", "scale_form", "rescale", "store", "activation_range"),
    infer,
    lower,
    reference,
    "matrix product with a constant or computed matrix",
)
