"""Mappings of fused nodes: a convolution or fully-connected layer with what follows it, as calibrated graphs have them.

Real weights become quantized values when the node first runs: nodes in front of the layer, which the planner folds.
"""

from __future__ import annotations

import numpy as np

from ...graph import Attribute
from .base import Inner, Mappers, Source
from .layers import (
    LAYER_NAMES,
    add_bias,
    check_outputs,
    convolution_attributes,
    expect_images,
    filter_count,
    product_range,
    range_of,
    rows,
    turned,
)
from .quantized import calibrated

_CONVOLUTION_NAMES = ("_output", "_output_min", "_output_max")
# Attributes that say what a fused node holds.
_FORMS = (
    *("with_bn", "with_act", "with_sum", "with_postsum_act", "with_eltwise", "min_calib_range", "max_calib_range"),
    *("channel_wise_quantize", "enable_float_output"),
)
_LAYERS, _OPERANDS = ("Convolution", "FullyConnected"), {"BatchNorm": 4, "elemwise_add": 1, "_plus": 1, "_Plus": 1}
_PREPARED = ("_weights", "_bias", "_scales")
_PREPARED_TYPES = ("s8", "f32", "f32")


def inside(source: Source, inner: Inner) -> Source:
    """An operator of the subgraph, to read its attributes; operands are those of the fused node."""
    return Source(
        inner.operator,
        f"{source.label}/{inner.operator}",
        source.inputs,
        inner.attributes,
        (),
        source.builder,
        source.position,
    )


def _is_relu(source: Source, inner: Inner, clips: bool) -> bool:
    """Whether the activation is relu; where a clip may stand, its bounds are read by nobody: the runtime drops them."""
    one = inside(source, inner)
    relu = inner.operator == "Activation" and one.text("act_type", "") == "relu"
    if not relu and not (clips and inner.operator == "clip"):
        raise source.unsupported(
            "BT-MXNET-ACTIVATION",
            f"{inner.operator} {dict(inner.attributes)} is fused, only relu is known (and clip without a sum)"[:300],
        )
    one.ignore("a_min", "a_max")
    one.check_attributes()
    return relu


def _real(source: Source) -> None:
    """A node that was left out of quantization: its operators one by one, on real numbers."""
    from . import mapper_of

    source.ignore(*_FORMS)
    operands = list(source.inputs)
    if not operands:
        raise source.invalid("BT-NODE-ARITY", "the node has no inputs")
    current = operands.pop(0)
    for number, inner in enumerate(source.inner):
        mapper = mapper_of(inner.operator)
        one = inside(source, inner)
        if mapper is None or inner.operator.startswith("_sg_"):
            raise source.unsupported("BT-MXNET-SUBGRAPH", f"{inner.operator} is fused, which is not known")
        count = 2 - one.flag("no_bias") if inner.operator in _LAYERS else _OPERANDS.get(inner.operator, 0)
        one.inputs, operands = [current, *operands[:count]], operands[count:]
        one.label = f"{one.label}{number}"
        mapper(one)
        one.check_attributes()
        current = one.results[0]
    if operands:
        raise source.invalid("BT-NODE-ARITY", f"{len(operands)} inputs are left over")
    dtype = source.builder.tensors[current].dtype
    source.give(*source.emit("identity", [current], [dtype], ["_output"]))


def _end(source: Source, attribute: str, role: str) -> int:
    """An end of the calibrated range, as the node gives it."""
    return source.end(source.real(attribute), role)


def _convolution(source: Source) -> None:
    if not source.flag("quantized"):
        return _real(source)
    with_bn, with_act = source.flag("with_bn"), source.flag("with_act")
    with_sum, with_last = source.flag("with_sum"), source.flag("with_postsum_act")
    wanted = ["Convolution", *["BatchNorm"] * with_bn, *["act"] * with_act, *["sum"] * with_sum, *["act"] * with_last]
    kinds = {"Activation": "act", "clip": "act", "elemwise_add": "sum", "_plus": "sum", "_Plus": "sum"}
    found = [kinds.get(inner.operator, inner.operator) for inner in source.inner]
    if found != wanted:
        raise source.invalid("BT-MXNET-SUBGRAPH", f"the node is said to hold {wanted}, its subgraph holds {found}")
    activations = [inner for inner in source.inner if kinds.get(inner.operator) == "act"]
    relus = [_is_relu(source, inner, not with_sum) for inner in activations]
    convolution = inside(source, source.inner[0])
    bias = not convolution.flag("no_bias")
    source.expect(2 + bias + 4 * with_bn + with_sum + 2 + 2 * with_sum)
    attributes = convolution_attributes(convolution)
    check_outputs(convolution, "num_filter", 1)
    convolution.check_attributes()
    groups = convolution.integer("num_group", 1)
    expect_images(source, groups, 1)
    data = source.type(0, "s8")
    if data not in ("s8", "u8") or len(convolution.integers("kernel")) not in (2, 3):
        raise source.unsupported("BT-MXNET-CONVOLUTION", f"data {data}, or another number of axes than two or three")
    ends = source.ranges(*range(len(source.inputs) - 2 - 2 * with_sum, len(source.inputs)))
    known = calibrated(source)
    weights, wide, scales, real = _weights(source, bias, with_bn, ends[:2], data, known)
    relu = bool(relus) and relus[-1]
    if not known:
        low, high = range_of("values", source, [real], ["_weights_low", "_weights_high"])
        levels = (127, 255) if data == "u8" else (127, 127)
        pairs = [low, high, *ends[:2]]
        result = product_range(source, pairs, levels, _CONVOLUTION_NAMES[1:])
    else:
        result = [
            _end(source, f"{end}_calib_range", role) for end, role in (("min", "output_min"), ("max", "output_max"))
        ]
    unsigned = with_last or (with_act and not with_sum)
    dtype = ("u8" if unsigned else "s8") if known else "s32"
    if known and not with_sum:
        operands = [source.inputs[0], weights, wide, *ends[:2], scales, None, *result]
        (output,) = source.emit("conv", operands, [dtype], ["_output"], {**attributes, "ranged": True})
    else:
        (output,) = source.emit("conv", [source.inputs[0], weights], ["s32"], ["_sums"], {**attributes, "fused": True})
        if with_sum:
            other = 2 + bias + 4 * with_bn
            flags: dict[str, Attribute] = {
                "data_type": data,
                "relu_first": with_act,
                "relu_last": with_last,
            }
            source.type(other, "s8")
            operands = [output, wide, source.inputs[other], *ends[:2], scales, *result, *ends[2:]]
            (output,) = source.emit("finish_sums", operands, [dtype], ["_output"], flags)
        else:
            output = add_bias(source, output, wide, data, relu, bias or with_bn or relu)
    source.give(output, *result)


def _weights(
    source: Source, bias: bool, with_bn: bool, data: list[int], quantized: str, per_channel: bool
) -> tuple[int, int, int, int]:
    """Quantized values, bias and scales of real weights, after a normalization was folded into them; and those
    weights.
    """
    weights = source.inputs[1]
    own = source.inputs[2] if bias else None
    for position in range(1, 2 + bias + 4 * with_bn):
        if source.type(position) != "f32":
            raise source.invalid("BT-NODE-TYPE", f"input {position} must be float32: weights as they were trained")
    if with_bn:
        normalization = inside(source, source.inner[1])
        fixed, epsilon = normalization.flag("fix_gamma", True), normalization.wide("eps", 1e-3)
        normalization.flag("use_global_stats")
        normalization.flag("output_mean_var")
        if normalization.integer("axis", 1) != 1:
            raise source.unsupported("BT-MXNET-ATTRIBUTE", "a fused normalization goes along axis 1")
        normalization.ignore("momentum", "cudnn_off", "min_calib_range", "max_calib_range")
        normalization.check_attributes()
        numbers = list(source.inputs[2 + bias : 6 + bias])
        if fixed:
            shape = source.known(1) or (filter_count(inside(source, source.inner[0])),)
            numbers[0] = source.builder.constant(np.ones(shape[0], np.float32), f"{source.label}_gamma")
        weights, own = source.emit(
            "fold_normalization",
            [weights, *numbers, *([] if own is None else [own])],
            ["f32"] * 2,
            ["_folded", "_folded_bias"],
            {"epsilon": epsilon},
        )
    operands = [weights, own, *data]
    flags: dict[str, Attribute] = {"data_type": quantized, "per_channel": per_channel}
    prepared = source.emit("range_weights", operands, _PREPARED_TYPES, _PREPARED, flags)
    return prepared[0], prepared[1], prepared[2], weights


def _fully_connected(source: Source) -> None:
    if not source.flag("quantized"):
        return _real(source)
    activated, by_channel = source.flag("with_eltwise"), source.flag("channel_wise_quantize")
    real = source.flag("enable_float_output")
    found = [inner.operator for inner in source.inner]
    if len(found) != 1 + activated or found[0] != "FullyConnected":
        raise source.invalid("BT-MXNET-SUBGRAPH", f"a fused layer holds {found}, with_eltwise is {activated}")
    if activated:
        _is_relu(source, source.inner[1], False)
    layer = inside(source, source.inner[0])
    bias, flatten = not layer.flag("no_bias"), layer.flag("flatten", True)
    count = 2 + bias
    source.expect(count + 2 if by_channel else 3 * count)
    check_outputs(layer, "num_hidden", 1)
    layer.check_attributes()
    data, dtype = source.type(0, "s8"), "f32" if by_channel else "s8"
    if data not in ("s8", "u8") or any(source.type(i, dtype) != dtype for i in range(1, count)):
        raise source.invalid("BT-NODE-TYPE", f"data {data}; weights and bias must be {dtype}")
    ends = source.ranges(*range(count, len(source.inputs)))
    operands = [source.inputs[1], source.inputs[2] if bias else None, *ends]
    if by_channel:
        flags: dict[str, Attribute] = {"data_type": data, "per_channel": True}
    else:
        flags = {"data_type": data, "fused": True}
    quantized, wide, scales = source.emit("range_weights", operands, _PREPARED_TYPES, _PREPARED, flags)
    x, matrix = rows(source, flatten, data), turned(source, quantized, "s8")
    if calibrated(source) and not real:
        result = [
            _end(source, f"{end}_calib_range", role) for end, role in (("min", "min_output"), ("max", "max_output"))
        ]
        kind = "u8" if activated else "s8"
        product = [x, matrix, wide, *ends[:2], scales, None, *result]
        forms: dict[str, Attribute] = {"matrices": True, "ranged": True, "relu": activated}
        outputs = source.emit("matmul", product, [kind], ["_output"], forms)
        source.give(*outputs, *result)
        return
    plain = not real and not bias and not activated
    (acc,) = source.emit("matmul", [x, matrix], ["s32"], ["_output"] if plain else ["_sums"])
    if real:
        attributes: dict[str, Attribute] = {"data_type": data, "relu_last": activated}
        operands = [acc, wide, None, *ends[:2], scales]
        source.give(*source.emit("finish_sums", operands, ["f32"], ["_output"], attributes))
        return
    if by_channel:
        raise source.unsupported("BT-MXNET-LAYER", "sums of weights with a scale per channel have no range")
    levels = (127, 255) if data == "u8" else (127, 127)
    result = product_range(source, ends[:4], levels, LAYER_NAMES[1:])
    source.give(acc if plain else add_bias(source, acc, wide, data, activated), *result)


MAPPERS: Mappers = {
    "_sg_mkldnn_conv": _convolution,
    "_sg_mkldnn_fully_connected": _fully_connected,
}
