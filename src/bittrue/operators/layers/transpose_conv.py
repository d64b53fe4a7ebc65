"""transpose_conv: every input pixel adds its filtered copies to the output, `stride` apart; then rescale and store.

acc[n, y, x, o] = sum over input pixels i, j and channels c of (q[n, i, j, c] - z_in) * (w[o, u, v, c] - z_w) + bias[o],
where u = y + pad_top - i * stride_h and v = x + pad_left - j * stride_w lie inside the filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...arithmetic.ordered_sums import add_products
from ...errors import RunError
from ...graph import Attribute
from ...rules import lanes, plain_range, sum_of_products
from ..core.accumulator import (
    finish_accumulator,
    fused_range,
    multiplier_arrays,
    proven_bound,
    signed_span,
    stored_type,
    weight_sums,
)
from ..core.base import Call, Lowered, Operator, Role, Shape, Step
from ..core.geometry import (
    LARGEST,
    Window,
    by_letter,
    meeting,
    numbers,
    spatial_shape,
    transposed_windows,
    windows_by_letter,
)
from ..core.lanes import stored_in_lanes
from ..elementwise.add import plain_parameters
from . import hybrid_layers
from .conv2d import check_bias, check_bias_type, check_weight_scales
from .integer_conv import PATCH_BYTES

# Positions of the inputs.
_SHAPE, _WEIGHTS, _SOURCE, _BIAS = range(4)


def planned_shape(call: Call, rank: int) -> Shape:
    """The output shape that input 0 gives; where it is only known at run time, what the file says of the output."""
    call.rank(call.input(_SHAPE, "output shape"), 1)
    if call.input(_SHAPE).value is None:
        shape = call.output.tensor.shape
    else:
        shape = tuple(call.integers(_SHAPE, "output shape"))
    if len(shape) != rank or min(shape) < 0:
        raise call.invalid("BT-SHAPE-OUTPUT", f"the output shape must be {rank} dimensions, found {list(shape)}")
    return shape


def check_shape_input(step: Step, given: np.ndarray, planned: Sequence[int]) -> None:
    """RunError unless the output shape of this run is the planned one."""
    if given.tolist() != list(planned):
        raise RunError(
            "BT-RUN-SHAPE",
            f"the output shape is {given.tolist()} in this run, planned for {list(planned)}",
            place=step.place,
            advice="shapes are planned ahead of the run; export the model with a constant output shape",
        )


def _geometry(call: Call) -> tuple[Shape, tuple[Window, ...]]:
    """The output shape, and the windows of the convolution that would turn the output into the input."""
    call.expect((3, 4))
    source, weights = call.input(_SOURCE), call.input(_WEIGHTS, "weights")
    call.rank(source, 4)
    call.rank(weights, 4)
    explicit, strides = call.attribute("padding") == "explicit", by_letter(call, "stride", 2)
    shape = () if explicit else planned_shape(call, 4)
    if min(source.shape[1:], default=0) < 1 or weights.shape[0] < 1 or source.shape[3] != weights.shape[3]:
        raise call.invalid(
            "BT-CONV-CHANNELS",
            f"input shape {list(source.shape)} and filter shape {list(weights.shape)} must agree in their last "
            "dimension "
            "and have none of 0",
        )
    if explicit:
        more, pads = numbers(call, "adjust", 2, 0), numbers(call, "pads", 4, 0)
        if max(strides) > LARGEST or any(map(int.__gt__, more, strides)):
            raise call.invalid(
                "BT-WINDOW", f"strides {strides} and adjustments {more}: at most {LARGEST}, and at most the stride"
            )
        found = transposed_windows(call, source.shape[1:3], weights.shape[1:3], strides, (), pads, more, least=0)
        return (source.shape[0], found[0].extent, found[1].extent, weights.shape[0]), found
    if (shape[0], shape[3]) != (source.shape[0], weights.shape[0]):
        raise call.invalid(
            "BT-SHAPE-OUTPUT",
            f"output shape {list(shape)} must begin with the batch {source.shape[0]} and end with the "
            f"{weights.shape[0]} filters",
        )
    found = windows_by_letter(call, shape[1:3], weights.shape[1:3], dilated=False)
    if spatial_shape(found) != source.shape[1:3]:
        raise call.invalid(
            "BT-SHAPE-OUTPUT",
            f"an output of {list(shape[1:3])} belongs to an input of {list(spatial_shape(found))} with strides "
            f"{list(strides)}, found {list(source.shape[1:3])}",
            "export the model again; the output shape contradicts the input's",
        )
    return shape, found


def infer(call: Call) -> list[Shape]:
    """The first input is the output's shape, but with explicit pads; filters [O, kh, kw, C], input [N, H, W, C]."""
    shape, _ = _geometry(call)
    check_bias(call, shape[3], _BIAS)
    return [shape]


def _body(call: Call, shape: Shape) -> dict[str, Attribute]:
    """How many channels, or how many elements of the output where all share one multiplier, lie in whole vectors."""
    if "lanes" not in call.rules:
        return {}
    rule = lanes.RULES[call.rules["lanes"]]
    return {"flat_body": rule.body(math.prod(shape))} if call.output.dtype == "u8" else {"body": rule.body(shape[3])}


def lower(call: Call) -> Lowered:
    """Multipliers per channel, clamps, geometry and the accumulator bound."""
    shape, (vertical, horizontal) = _geometry(call)
    source, weights = call.input(_SOURCE), call.input(_WEIGHTS)
    geometry = {
        "filter_h": vertical.taps,
        "filter_w": horizontal.taps,
        "stride_h": vertical.stride,
        "stride_w": horizontal.stride,
        "pad_top": vertical.before,
        "pad_left": horizontal.before,
        "out_h": shape[1],
        "out_w": shape[2],
    }
    taps = vertical.taps * horizontal.taps
    work = source.size * taps * shape[3]
    if "plain_range" in call.rules and weights.dtype == "f32":
        return Lowered(
            parameters={**geometry, **plain_parameters(call)}, work=work, scratch=8 * call.output.size + 4 * source.size
        )
    check_weight_scales(call, shape[3], 0)
    if "quantize_asymmetric" in call.rules:
        return Lowered(
            parameters={**geometry, **plain_parameters(call), "form": "hybrid", "quantize": "asymmetric"},
            arrays={"weight_scales": weights.quantization.scales.astype(np.float32)},
            work=work,
            scratch=8 * call.output.size + 12 * source.size,
        )
    check_bias_type(call, _SOURCE, _BIAS)
    if source.dtype == "s16" and not call.has(_BIAS) and call.attribute("bias_type") == "s32":
        raise call.unsupported(
            "BT-BIAS-TYPE", "a 32-bit accumulator is declared, but there is no bias that says so", "add a bias of zeros"
        )
    # Signed weights are symmetric by definition; only the legacy unsigned type carries a zero point.
    weight_zero_point = weights.zero_point if weights.dtype == "u8" else 0
    span = signed_span(source, source.zero_point)
    if weights.value is not None:
        sums = weight_sums(weights.value, weight_zero_point)
    else:
        sums = np.asarray(taps * source.shape[3] * signed_span(weights, weight_zero_point))
    return Lowered(
        parameters={
            **geometry,
            **fused_range(call),
            "form": "quantized",
            "input_zero_point": source.zero_point,
            "weight_zero_point": weight_zero_point,
            **_body(call, shape),
        },
        arrays=multiplier_arrays(call, source.scale, weights.quantization.scales),
        accumulator=proven_bound(call, sums, span, call.input(_BIAS) if call.has(_BIAS) else None),
        work=work,
        # One image's sums in 64 bits, and a block of filtered pixels.
        scratch=8 * shape[1] * shape[2] * shape[3] + PATCH_BYTES + 8 * source.shape[2] * taps * shape[3],
    )


def _meeting(step: Step, axis: str, side: str, tap: int, extent: int) -> tuple[slice, slice]:
    """Input positions whose copy under `tap` falls into the output, and where it falls."""
    stride, shift = step[f"stride_{axis}"], tap - step[f"pad_{side}"]
    return meeting(extent, step[f"out_{axis}"], stride, shift)


def _taps(step: Step, height: int, width: int) -> Iterator[tuple[int, int, slice, slice, slice, slice]]:
    """All taps, the last one first: so every output pixel meets input pixels in the order of memory."""
    for u in reversed(range(step["filter_h"])):
        rows, target_rows = _meeting(step, "h", "top", u, height)
        for v in reversed(range(step["filter_w"])):
            columns, target_columns = _meeting(step, "w", "left", v, width)
            yield u, v, rows, columns, target_rows, target_columns


def _from_bias(
    step: Step, rule: sum_of_products.SumRule, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """binary32 under a rule of the slot `sum_of_products`: filters row by row, channels in order, from the bias on."""
    total = np.zeros((x.shape[0], step["out_h"], step["out_w"], weights.shape[0]), np.float32)
    if bias is not None:
        total[...] = bias.reshape(-1)
    for u, v, rows, columns, target_rows, target_columns in reversed(list(_taps(step, *x.shape[1:3]))):
        filters = np.ascontiguousarray(weights[:, u, v].T)
        for n in range(x.shape[0]):
            pixels = x[n, rows, columns]
            if pixels.size:
                part = np.ascontiguousarray(total[n, target_rows, target_columns])
                sums = part.reshape(-1, part.shape[-1])
                sum_of_products.add_matrix(rule, sums, pixels.reshape(-1, pixels.shape[-1]), filters)
                total[n, target_rows, target_columns] = part
    return plain_range.clamp(total, step["low"], step["high"])


def _add_scaled(
    total: np.ndarray, pixels: np.ndarray, filters: np.ndarray, scale: np.float32 | np.ndarray, scales: np.ndarray
) -> None:
    """total += f32(f32(f32(q * w) * scale of the filter) * scale of the image), channel by channel, in place."""
    with np.errstate(all="ignore"):
        for k in range(len(filters)):
            total += (pixels[:, k, None] * filters[k]).astype(np.float32) * scales * scale


def _plain(step: Step, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """binary32 sums: pixels in the order of memory, channels in order, each product and sum rounded; then the bias.

    hybrid: every image is quantized first, its products are integers that are scaled back one by one.
    """
    if "sum_of_products" in step.rules:
        return _from_bias(step, sum_of_products.RULES[step.rules["sum_of_products"]], x, weights, bias)
    batch, height, width, _ = x.shape
    total = np.zeros((batch, step["out_h"], step["out_w"], weights.shape[0]), np.float32)
    hybrid = step["form"] == "hybrid"
    for n, picture in enumerate(x):
        scale: np.float32 | np.ndarray = np.float32(1)
        if hybrid:
            q, (scale,), (zero_point,) = hybrid_layers.quantize(step, picture.reshape(1, -1))
            picture = (q - zero_point).reshape(picture.shape)
            weights = weights.astype(np.int32)
        for u, v, rows, columns, target_rows, target_columns in _taps(step, height, width):
            pixels = picture[rows, columns]
            if not pixels.size:
                continue
            filters = np.ascontiguousarray(weights[:, u, v].T)
            part = np.ascontiguousarray(total[n, target_rows, target_columns])
            flat, seen = part.reshape(-1, part.shape[-1]), pixels.reshape(-1, pixels.shape[-1])
            if hybrid:
                _add_scaled(flat, seen, filters, scale, step.arrays["weight_scales"])
            else:
                add_products(flat, seen, filters)
            total[n, target_rows, target_columns] = part
    if bias is not None:
        with np.errstate(all="ignore"):
            total += bias.reshape(-1)
    return plain_range.clamp(total, step["low"], step["high"])


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """An exact matrix product filters blocks of rows of the input; its copies are added up, rescaled and stored."""
    weights, x = inputs[_WEIGHTS], inputs[_SOURCE]
    if inputs[_SHAPE] is not None:
        check_shape_input(step, inputs[_SHAPE], (x.shape[0], step["out_h"], step["out_w"], weights.shape[0]))
    bias = inputs[_BIAS] if len(inputs) > _BIAS else None
    if step["form"] != "quantized":
        return [_plain(step, x, weights, bias)]
    bound = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(bound)
    filters, taps_h, taps_w, depth = weights.shape
    matrix = weights.astype(work_type) - work_type.type(step["weight_zero_point"])
    matrix = np.ascontiguousarray(matrix.reshape(-1, depth).T)
    batch, height, width, _ = x.shape
    out = np.empty((batch, step["out_h"], step["out_w"], filters), stored_type(step, x.dtype))
    rows = max(1, PATCH_BYTES // max(1, width * matrix.shape[1] * work_type.itemsize))
    for n, picture in enumerate(x):
        acc = np.zeros(out.shape[1:], np.int64)
        if bias is not None:
            acc += bias.reshape(-1).astype(np.int64)
        for top in range(0, height, rows):
            block = picture[top : top + rows].astype(work_type) - work_type.type(step["input_zero_point"])
            copies = exact_matmul(block.reshape(-1, depth), matrix, bound).astype(np.int64)
            copies = copies.reshape(len(block), width, filters, taps_h, taps_w)
            for u, v, band, columns, target_rows, target_columns in _taps(step, height, width):
                first, last = max(band.start or 0, top), min(band.stop, top + len(block))
                if last > first and columns.stop:
                    low = (first - (band.start or 0)) * step["stride_h"] + target_rows.start
                    high = low + (last - first - 1) * step["stride_h"] + 1
                    part = copies[first - top : last - top, columns, :, u, v]
                    acc[low : high : step["stride_h"], target_columns] += part
        acc = finish_accumulator(step.rules["accumulate"], step.accumulator, acc)
        if "flat_body" in step.parameters:
            body = min(max(step["flat_body"] - n * acc.size, 0), acc.size)
            out[n] = stored_in_lanes(step, acc.reshape(1, -1), body, out.dtype).reshape(acc.shape)
        else:
            out[n] = stored_in_lanes(step, acc, step["body"] if "body" in step.parameters else 0, out.dtype)
    return [out]


OPERATOR = Operator(
    "transpose_conv",
    (
        *("accumulate", "scale_form", "rescale", "rescale_tail", "lanes", "store", "activation_range"),
        *("plain_range", "quantize_asymmetric", "sum_of_products"),
    ),
    infer,
    lower,
    reference,
    "transposed 2-D convolution (deconvolution)",
    roles=(Role("input", 2), Role("weights", 1), Role("bias", 3)),
    weights="OSI",
    channels_last=True,
    transposed=True,
    multiplies=True,
)
