"""reduce_prod: the product along axes; integers wrap, quantized ones are rescaled after every factor.

Rules of the slot `real_sum` multiply in orders of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...rules import rescale
from ..core.accumulator import prepare_rescale
from ..core.base import Call, Lowered, Operator, Step
from ..core.elementwise import BLOCK
from . import real_reduce
from .reduce import in_order, infer, row_major, starts_with_first
from .reduce import lower as lower_axes


def lower(call: Call) -> Lowered:
    """Quantized integers: one multiplier, by which every partial product is scaled so that it fits its register."""
    if "real_sum" in call.rules:
        return real_reduce.lower(call, "prod")
    lowered = lower_axes(call)
    source, output = call.input(0), call.output
    if source.dtype not in ("s8", "s16"):
        return lowered
    if source.tensor.quantization is None:
        if output.tensor.quantization is not None:
            raise call.invalid(
                "BT-QUANT-SAME", f"output '{output.name}' has a scale and input '{source.name}' has none"
            )
        return lowered
    parameters = {
        **lowered.parameters,
        "input_zero_point": source.zero_point,
        "output_zero_point": output.zero_point,
        "low": output.type.minimum,
        "high": output.type.maximum,
    }
    if not source.size:
        if output.size:
            raise call.invalid(
                "BT-REDUCE-EMPTY", f"'{source.name}' has no elements: the kernel leaves its output as it was"
            )
        return Lowered(parameters, work=0)
    root = math.pow(float(output.scale), 1.0 / (source.size // output.size))
    arrays = prepare_rescale(call, float(source.scale) / root)
    return Lowered(parameters, arrays, work=lowered.work, scratch=9 * source.size + 64 * BLOCK)


def _scaled_product(step: Step, x: np.ndarray) -> list[np.ndarray]:
    """P = x0 - z, then P = rescale(P * (x - z)) for the others in order, and rescale(P) at last."""
    rows = row_major(x, step["axes"])
    out = np.empty(rows.shape[0], x.dtype)
    rule, zero_point = step.rules["rescale"], step["input_zero_point"]
    per_block = max(1, BLOCK // max(1, rows.shape[1]))
    for begin in range(0, rows.shape[0], per_block):
        factors = rows[begin : begin + per_block].astype(np.int64) - zero_point
        product = factors[:, 0]
        for position in range(1, rows.shape[1]):
            product = rescale.apply(rule, product * factors[:, position], step.arrays)
        stored = rescale.apply(rule, product, step.arrays) + step["output_zero_point"]
        out[begin : begin + per_block] = np.clip(stored, step["low"], step["high"])
    return [out.reshape(step["shape"])]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Factor by factor, as the rules say."""
    if "real_sum" in step.rules:
        return real_reduce.reference(step, inputs)
    x, axes = inputs[0], step["axes"]
    if step.arrays:
        return _scaled_product(step, x)
    if x.dtype == np.float32:
        result = in_order(np.multiply, x, axes, 1.0, starts_with_first(step, x))
    else:
        # Wraps modulo 2^bits, so the order cannot matter.
        result = np.multiply.reduce(x, axis=axes, dtype=x.dtype)
    return [np.asarray(result, x.dtype).reshape(step["shape"])]


OPERATOR = Operator(
    "reduce_prod", ("real_sum", "rescale", "start"), infer, lower, reference, "product along axes", reduces=True
)
