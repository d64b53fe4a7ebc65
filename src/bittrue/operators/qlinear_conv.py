"""qlinear_conv and conv_integer: acc[n, o, p] = sum over c, t of (x[n, c, p + t] - z_x)(w[o, c, t] - z_w) + bias[o].

qlinear_conv: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias; acc is rescaled and
stored. conv_integer: x, w, x_zero_point, w_zero_point; acc is the result.
x is [N, C, D, H, W] with one to three spatial axes, or [N, D, H, W, C] with `channels_last`; w is [O, C / groups, ...].
Padded positions hold z_x. w's scales and zero points may be one per output channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..arithmetic.matmul import exact_matmul, product_type
from ..graph import data_type
from ..rules import accumulate
from .accumulator import finish_accumulator, stored_type
from .base import Call, Lowered, Operator, Role, Shape, Step
from .geometry import Window, spatial_bytes, spatial_parameters, spatial_shape, step_windows
from .integer_layers import (
    REQUANTIZE_SLOTS,
    bound,
    centered,
    check_channels,
    check_single,
    points_of,
    prepare_multiplier,
    requantized,
    single,
    weight_zero_points,
    zero_point_of,
)
from .late import Prepared, Values, prepare_late, prepare_now
from .roles import OPERAND_LAYER
from .spatial import padded, sliding, spatial_windows

# Bytes of unfolded input held at a time: stays inside the last-level cache and bounds memory on any input.
PATCH_BYTES = 4 << 20


def _channels_first(call: Call, shape: Shape) -> Shape:
    return (shape[0], shape[-1], *shape[1:-1]) if call.attribute("channels_last") else shape


def _geometry(call: Call, weights_at: int) -> tuple[tuple[Window, ...], int]:
    source, weights = call.input(0), call.input(weights_at, "weights")
    call.rank(source, 3, 5)
    call.rank(weights, source.rank)
    shape, groups = _channels_first(call, source.shape), call.attribute("groups")
    channels, filters, depth = shape[1], weights.shape[0], weights.shape[1]
    if groups < 1 or depth < 1 or channels != depth * groups:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{channels} input channels are no {groups} groups of {depth} filter channels"
        )
    if filters % groups:
        raise call.invalid("BT-CONV-CHANNELS", f"{filters} filters cannot be split into {groups} groups")
    kernel = tuple(call.attribute("kernel_shape"))
    if kernel and kernel != weights.shape[2:]:
        raise call.invalid(
            "BT-CONV-KERNEL", f"kernel_shape is {list(kernel)}, but the weights have shape {list(weights.shape)}"
        )
    return spatial_windows(call, shape, weights.shape[2:]), groups


def infer_layer(call: Call, weights_at: int) -> list[Shape]:
    """[N, O, extents of the windows], or with the channels last."""
    windows, _ = _geometry(call, weights_at)
    batch, filters = call.input(0).shape[0], call.input(weights_at).shape[0]
    inner = spatial_shape(windows)
    return [(batch, *inner, filters) if call.attribute("channels_last") else (batch, filters, *inner)]


def infer(call: Call) -> list[Shape]:
    """[N, O, extents of the windows], or with the channels last."""
    call.expect((8, 9))
    shapes = infer_layer(call, 3)
    channels = call.input(3).shape[0]
    for position, role in ((1, "x_scale"), (2, "x_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        check_single(call, position, role)
    for position, role in ((4, "w_scale"), (5, "w_zero_point")):
        check_channels(call, position, channels, role)
    if call.has(8) and call.input(8).shape != (channels,):
        raise call.invalid(
            "BT-BIAS-LENGTH", f"bias has shape {list(call.input(8).shape)} for {channels} output channels"
        )
    return shapes


def infer_integer(call: Call) -> list[Shape]:
    """As qlinear_conv."""
    call.expect((2, 4))
    shapes = infer_layer(call, 1)
    check_single(call, 2, "x_zero_point")
    check_channels(call, 3, call.input(1).shape[0], "w_zero_point")
    return shapes


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    parameters, arrays = weight_zero_points(values[5])
    points = {"input_zero_point": zero_point_of(values[2]), "output_zero_point": zero_point_of(values[7])}
    return {**parameters, **points}, {
        **arrays,
        **prepare_multiplier(rules, single(values[1]), np.reshape(values[4], -1), single(values[6])),
    }


def _prepare_integer(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    parameters, arrays = weight_zero_points(values[3] if len(values) > 3 else None)
    return {**parameters, "input_zero_point": zero_point_of(values[2] if len(values) > 2 else None)}, arrays


def lowered(
    call: Call,
    parameters: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    source: tuple[int, int],
    filters: tuple[int, int],
    bias: int | None = None,
) -> Lowered:
    """Geometry and bound beside what is given; positions of codes and their zero points, and of the bias."""
    windows, groups = _geometry(call, filters[0])
    weights = call.input(filters[0])
    depth = weights.size // max(1, weights.shape[0])
    return Lowered(
        {
            **parameters,
            **spatial_parameters(windows),
            "groups": groups,
            "channels_last": bool(call.attribute("channels_last")),
        },
        arrays,
        bound(call, source, filters, depth, 0, bias),
        call.output.size * depth,
        spatial_bytes(windows, _channels_first(call, call.input(0).shape)[1], 1) * 16 + 16 * PATCH_BYTES,
    )


def lower(call: Call) -> Lowered:
    """Geometry, zero points, multipliers per channel and the accumulator bound."""
    dtype = data_type(call.output.dtype)
    limits = {"low": dtype.minimum, "high": dtype.maximum}
    return lowered(call, *prepare_now(call, (1, 2, 4, 5, 6, 7), limits, _prepare), (0, 2), (3, 5), 8)


def lower_integer(call: Call) -> Lowered:
    """Geometry, zero points and the accumulator bound."""
    return lowered(call, *prepare_now(call, (2, 3), {"dtype": call.output.dtype}, _prepare_integer), (0, 2), (1, 3))


def _five(array: np.ndarray) -> np.ndarray:
    """[N, C, ...] as [N, C, D, H, W]."""
    return array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])


def _lost(step: Step, weights: np.ndarray, weights_first: bool) -> Callable[[np.ndarray], np.ndarray] | None:
    """What sums lose in pairs, if the rule says so: of unfolded codes [groups, K, positions], [groups, O, positions].

    The u8 factor of such a product is the left one: the weights, [O, channels and taps], or windows, [positions, taps
    and channels]. There, one channel with one filter is multiplied on its own, without pairs.
    """
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    groups, depth, filters = step["groups"], weights.shape[1], weights.shape[0] // step["groups"]
    if lost is None or (not weights_first and depth == filters == 1):
        return None
    if weights_first:
        left = weights.reshape(groups, filters, -1)
        return lambda columns: lost(left, columns)
    right = weights.reshape(groups, filters, depth, -1).transpose(0, 3, 2, 1).reshape(groups, -1, filters)

    def of_windows(columns: np.ndarray) -> np.ndarray:
        by_taps = columns.reshape(groups, depth, -1, columns.shape[2]).swapaxes(1, 2).reshape(columns.shape)
        return lost(by_taps.swapaxes(1, 2), right).swapaxes(1, 2)

    return of_windows


def _sums(
    step: Step, x: np.ndarray, weights: np.ndarray, weights_first: bool
) -> Iterator[tuple[tuple[int, int, slice], np.ndarray]]:
    """(picture, depth, rows) of the output and its sums [O, rows, W'], exact but for what the rule loses, in blocks."""
    windows = step_windows(step, x.shape[2:])
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(limit)
    groups, filters = step["groups"], weights.shape[0]
    points = np.reshape(points_of(step, "weight_zero_point"), (-1, *(1,) * (weights.ndim - 1)))
    lost = _lost(step, weights, weights_first)
    matrices = centered(weights, points, work_type).reshape(groups, filters // groups, -1)
    out_d, out_h, out_w = spatial_shape(windows)
    rows = max(1, PATCH_BYTES // max(1, out_w * matrices.shape[2] * groups * work_type.itemsize))
    for n, picture in enumerate(_five(x)):
        pixels = padded(centered(picture, step["input_zero_point"], work_type), windows, 0)
        # [C, taps, D', H', W']: unfolding copies whole rows of pixels.
        view = sliding(pixels, windows).transpose(0, 4, 5, 6, 1, 2, 3)
        for d in range(out_d):
            for top in range(0, out_h, rows):
                block = view[..., d, top : top + rows, :]
                columns = block.reshape(groups, matrices.shape[2], block.shape[-2] * out_w)
                sums = exact_matmul(matrices, columns, limit).astype(np.int64)
                if lost is not None:
                    sums -= lost(columns + work_type.type(step["input_zero_point"]))
                yield (n, d, slice(top, top + block.shape[-2])), sums.reshape(filters, -1, out_w)


def _outputs(step: Step, x: np.ndarray, weights: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """x with its channels first, and an output [N, O, D', H', W'] to fill."""
    first = np.moveaxis(x, -1, 1) if step["channels_last"] else x
    out = np.empty((x.shape[0], weights.shape[0], *spatial_shape(step_windows(step, first.shape[2:]))), dtype)
    return first, out


def _result(step: Step, out: np.ndarray, rank: int) -> list[np.ndarray]:
    flat = out.reshape(*out.shape[:2], *out.shape[2:][5 - rank :])
    return [np.ascontiguousarray(np.moveaxis(flat, 1, -1)) if step["channels_last"] else flat]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The filter matrix times unfolded windows; exact because every partial sum is below the float's bound."""
    step = prepare_late(step, inputs, _prepare)
    weights, bias = inputs[3], inputs[8] if len(inputs) > 8 else None
    x, out = _outputs(step, inputs[0], weights, stored_type(step, np.dtype(np.int8 if step["low"] < 0 else np.uint8)))
    if out.size:
        for (n, d, rows), sums in _sums(step, x, weights, False):
            if bias is not None:
                sums += bias.astype(np.int64)[:, None, None]
            acc = finish_accumulator(step.rules["accumulate"], step.accumulator, sums)
            # Multipliers per channel go with the last axis.
            out[n, :, d, rows] = np.moveaxis(requantized(step, np.moveaxis(acc, 0, -1), out.dtype), -1, 0)
    return _result(step, out, inputs[0].ndim)


def sums_alone(step: Step, inputs: Sequence[np.ndarray], weights_first: bool) -> list[np.ndarray]:
    """The sums as they are; `weights_first`: which factor a rule that loses something takes for the u8 one."""
    x, out = _outputs(step, inputs[0], inputs[1], data_type(str(step.parameters.get("dtype", "s32"))).numpy)
    if out.size:
        for (n, d, rows), sums in _sums(step, x, inputs[1], weights_first):
            out[n, :, d, rows] = finish_accumulator(step.rules["accumulate"], step.accumulator, sums)
    return _result(step, out, inputs[0].ndim)


def reference_integer(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The sums as they are."""
    return sums_alone(prepare_late(step, inputs, _prepare_integer), inputs, True)


OPERATORS = (
    Operator(
        "qlinear_conv",
        REQUANTIZE_SLOTS,
        infer,
        lower,
        reference,
        "convolution over one to three axes whose scales and zero points are operands",
        roles=OPERAND_LAYER,
        weights="OIS",
        multiplies=True,
    ),
    Operator(
        "conv_integer",
        ("accumulate",),
        infer_integer,
        lower_integer,
        reference_integer,
        "convolution of integers over one to three axes that gives its sums",
        roles=(Role("input", 0, None, 2), Role("weights", 1, None, 3)),
        weights="OIS",
        multiplies=True,
    ),
)
