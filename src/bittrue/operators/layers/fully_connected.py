"""fully_connected: acc[b, o] = sum over k of (x - z_in)(w - z_w) + bias, then rescale and store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...graph import DATA_TYPES
from ...records import replace
from ...rules import accumulate, store
from ..core.accumulator import (
    finish_accumulator,
    fused_range,
    multiplier_arrays,
    proven_bound,
    signed_span,
    weight_sums,
)
from ..core.base import Bound, Call, Lowered, Operator, Shape, Step
from ..core.roles import OPERAND_LAYER
from . import hybrid_layers, real_layers, whole_product
from .conv_geometry import check_bias
from .integer_layers import check_bias_type
from .slots import HYBRID_SLOTS, REAL_SLOTS

# Weights converted at a time: a large matrix is never held twice.
_BLOCK = 1 << 20


def infer(call: Call) -> list[Shape]:
    """[..., K] with weights [O, K] gives [elements / K, O], or [..., O] when `keep_num_dims` is set.

    Where the node names the `axis` from which on axes are taken together, those ahead of it stay.
    """
    if "axis" in call.node.attributes:
        return whole_product.infer(call)
    call.expect((2, 3))
    source, weights = call.input(0), call.input(1, "weights")
    call.rank(weights, 2)
    if call.attribute("weights_format") != "default":
        raise call.unsupported(
            "BT-FC-FORMAT", f"weights format '{call.attribute('weights_format')}' is not implemented"
        )
    units, depth = weights.shape
    # Kernels divide and drop what is left over; a model that relies on it is taken for a mistake.
    if depth < 1 or source.size % depth:
        raise call.invalid("BT-FC-DEPTH", f"input shape {list(source.shape)} does not split into rows of {depth}")
    check_bias(call, units)
    if call.attribute("keep_num_dims"):
        if not source.rank or source.shape[-1] != depth:
            raise call.invalid(
                "BT-FC-DEPTH", f"last input dimension {source.shape[-1:]} must equal filter depth {depth}"
            )
        return [(*source.shape[:-1], units)]
    return [(source.size // depth, units)]


def _check_weight_scales(call: Call, units: int) -> None:
    quantization = call.input(1, "weights").quantization
    if quantization.per_axis and (quantization.axis != 0 or quantization.scales.size != units):
        raise call.invalid(
            "BT-QUANT-AXIS",
            f"weights have {quantization.scales.size} scales along axis {quantization.axis}, expected {units} along 0",
            "only one scale per output unit, or one for all, is defined",
        )
    if call.input(1).dtype == "u8" and quantization.per_axis:
        raise call.invalid("BT-QUANT-PER-AXIS", "uint8 weights cannot have several scales")
    if call.input(1).type.is_packed and quantization.zero_points.any():
        raise call.invalid("BT-QUANT-ZERO-POINT", f"{call.input(1).type.title} weights must have zero point 0")


def _bound(call: Call, weight_zero_point: int) -> Bound:
    source, weights = call.input(0), call.input(1)
    if weights.value is not None:
        sums = weight_sums(weights.value, weight_zero_point)
    else:
        sums = np.asarray(weights.shape[1] * signed_span(weights, weight_zero_point))
    bound = proven_bound(call, sums, signed_span(source, source.zero_point), call.input(2) if call.has(2) else None)
    # Without a bias tensor the declared type alone decides how wide the kernel's register is.
    narrow = source.dtype == "s16" and weights.dtype != "s16" and call.attribute("bias_type") == "s32"
    if narrow and not call.has(2) and bound.magnitude >= 2**31:
        raise call.unsupported(
            "BT-FC-WRAP",
            f"the declared 32-bit accumulator can overflow ({bound.magnitude} > 2^31 - 1) and there is no bias",
            "set quantized_bias_type to int64 when converting",
        )
    return bound


def lower(call: Call) -> Lowered:
    """Multipliers per unit, clamps and the accumulator bound.

    With one scale per unit the weights are symmetric by definition: a zero point that a file gives is not applied.
    """
    if call.rules.get("accumulate") == "binary32":
        return whole_product.lower(call)
    source, weights = call.input(0), call.input(1)
    units, depth = weights.shape
    if "sum_of_products" in call.rules:
        return Lowered(
            {
                **real_layers.real_range(call),
                **real_layers.product_chains(call, units, source.size == depth),
                "output_shape": tuple(call.output.shape),
            },
            work=call.output.size * depth,
            scratch=4 * (source.size + 2 * call.output.size + (1 << 20)),
        )
    if "scale_back" in call.rules:
        return _lower_hybrid(call)
    _check_weight_scales(call, units)
    check_bias_type(call)
    per_axis = weights.quantization.per_axis
    weight_zero_point = 0 if per_axis else weights.zero_point
    if per_axis and "scale_form_per_axis" in call.rules:
        call = replace(call, rules={**call.rules, "scale_form": call.rules["scale_form_per_axis"]})
    return Lowered(
        parameters={
            **fused_range(call),
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            "output_shape": tuple(call.output.shape),
            "output_dtype": call.output.dtype,
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=_bound(call, weight_zero_point),
        work=call.output.size * depth,
        # A centred copy of the input, and the accumulators in two types.
        scratch=8 * (source.size + 2 * call.output.size),
    )


def _lower_hybrid(call: Call) -> Lowered:
    asked = bool(call.attribute("asymmetric_quantize_inputs")) and "quantize_asymmetric" in call.rules
    asymmetric = asked or "quantize_symmetric" not in call.rules
    units = call.input(1).shape[0]
    if asymmetric and call.input(1).value is None:
        raise call.unsupported(
            "BT-FC-COMPUTED",
            "computed integer weights with asymmetrically quantized inputs: the kernel keeps the weights' sums of the "
            "first run for all later ones",
        )
    if call.input(1).type.is_packed and call.input(1).quantization.zero_points.any():
        raise call.invalid("BT-QUANT-ZERO-POINT", f"{call.input(1).type.title} weights must have zero point 0")
    return hybrid_layers.lower_layer(
        call,
        "asymmetric" if asymmetric else "symmetric",
        hybrid_layers.weight_scales(call, units),
        {"output_shape": tuple(call.output.shape)},
        scratch=24 * (call.input(0).size + call.output.size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product, over blocks of units."""
    if "arithmetic" in step.parameters:
        return whole_product.reference(step, inputs)
    if "sum_of_products" in step.rules:
        return real_layers.multiply(step, inputs)
    if "scale_back" in step.rules:
        return hybrid_layers.multiply(step, inputs)
    x, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(bound)
    rows = x.reshape(-1, weights.shape[1]).astype(work_type) - work_type.type(step["input_zero_point"])
    acc = np.empty((len(rows), len(weights)), np.int64)
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    units = max(1, _BLOCK // weights.shape[1])
    for first in range(0, len(weights), units):
        block = weights[first : first + units].astype(work_type) - work_type.type(step["weight_zero_point"])
        acc[:, first : first + units] = exact_matmul(rows, block.T, bound)
        if lost is not None:
            acc[:, first : first + units] -= lost(x.reshape(rows.shape), weights[first : first + units].T)
    if bias is not None:
        acc += bias.reshape(-1).astype(np.int64)
    acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
    dtype = DATA_TYPES[step["output_dtype"]].numpy
    stored = store.rescale_and_store(acc, step.rules, step.arrays, step.parameters, dtype)
    return [stored.reshape(step["output_shape"])]


OPERATOR = Operator(
    "fully_connected",
    (
        "accumulate",
        "scale_form",
        "scale_form_per_axis",
        "rescale",
        "store",
        "activation_range",
        *REAL_SLOTS,
        *HYBRID_SLOTS,
        *("row_sums", "weights_offset", "real_product", "channel_parameters"),
    ),
    infer,
    lower,
    reference,
    "matrix product with a constant or computed matrix",
    roles=OPERAND_LAYER,
    weights="OI",
    multiplies=True,
)
