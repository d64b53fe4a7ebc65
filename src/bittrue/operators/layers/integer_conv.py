"""Convolutions of integers: exact sums, less what the row's register loses, rescaled and stored where the row says so.

Padded positions hold z_x. w's scales and zero points may be one per output channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...arithmetic.matmul import product_type
from ...graph import Attribute, data_type
from ...rules import accumulate
from ..core.accumulator import finish_accumulator, stored_type
from ..core.base import Call, Lowered, Step
from ..core.geometry import spatial_bytes, spatial_parameters, spatial_shape, step_windows
from ..core.late import Prepared, Values, prepare_late, prepare_now
from ..core.roles import OPERAND_LAYER
from ..quantization.range_operands import range_multiplier
from . import window_sums
from .conv_geometry import channels_first, convolution_windows
from .integer_layers import (
    bound,
    centered,
    check_single,
    points_of,
    prepare_multiplier,
    requantized,
    single,
    weight_zero_points,
    zero_point_of,
)

# Ranges have no zero points.
_NOWHERE = 9


def _prepare(rules: Mapping[str, str], known: Mapping[str, Any], values: Values) -> Prepared:
    _, _, bias, x_scale, x_point, w_scale, w_point, y_scale, y_point = (*values, *[None] * 9)[:9]
    if known["ranged"]:
        ends, scales = ((x_scale, x_point), (y_scale, y_point)), np.reshape(w_scale, -1)
        none = {"input_zero_point": 0, "weight_zero_point": 0, "output_zero_point": 0}
        return none, range_multiplier(rules, known, ends[0], scales, ends[1], bias)
    parameters, arrays = weight_zero_points(w_point)
    parameters["input_zero_point"] = zero_point_of(x_point)
    if "store" not in rules:
        return parameters, arrays
    multiplier = prepare_multiplier(rules, single(x_scale), np.reshape(w_scale, -1), single(y_scale))
    return {**parameters, "output_zero_point": zero_point_of(y_point)}, {**arrays, **multiplier}


def lower(call: Call) -> Lowered:
    """Geometry, zero points, multipliers per channel and the accumulator bound.

    With `ranged`, operands hold the ends of ranges in place of scales and zero points, and `rescale` adds the bias.
    """
    for position, text in ((7, "output scale"), (8, "output zero point")):
        check_single(call, position, text)
    dtype, ranged = data_type(call.output.dtype), bool(call.node.attributes.get("ranged", False))
    known: dict[str, Attribute] = {"dtype": dtype.name, "ranged": ranged}
    if ranged:
        known["data_type"] = call.input(0).dtype
    odd = call.input(1).shape[1] % 2 != 0
    if odd and accumulate.RULES[call.rules["accumulate"]].lost and call.node.attributes.get("pairs_by_tap"):
        known["pairs_by_tap"] = True
    if "store" in call.rules:
        known |= {"low": dtype.minimum, "high": dtype.maximum}
    # Sums are stored as they are: what scale their tensor has is for those behind.
    roles = OPERAND_LAYER if "store" in call.rules else OPERAND_LAYER[:-1]
    parameters, arrays = prepare_now(call, range(2 if ranged else 3, 9), known, _prepare, roles)
    windows, groups = convolution_windows(call)
    weights, source = call.input(1), call.input(0)
    depth = weights.size // max(1, weights.shape[0])
    points = (_NOWHERE, _NOWHERE, None) if ranged else (4, 6, 2)
    return Lowered(
        {
            **parameters,
            **spatial_parameters(windows),
            "groups": groups,
            "channels_last": bool(call.attribute("channels_last")),
        },
        arrays,
        bound(call, (0, points[0]), (1, points[1]), depth, 0, points[2]),
        call.output.size * depth,
        spatial_bytes(windows, channels_first(call, source.shape)[1], 1) * 16 + 16 * window_sums.PATCH_BYTES,
        inputs=(0, 1) if ranged and not parameters["late"] else None,
    )


def _five(array: np.ndarray) -> np.ndarray:
    """[N, C, ...] as [N, C, D, H, W]."""
    return array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])


def _lost(step: Step, signed: bool, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """What sums lose in pairs, if the rule says so: of unfolded quantized values [groups, K, positions], [groups, O,
    positions].

    The u8 factor of such a product is the left one: the weights, [O, channels and taps], where x alone is `signed`, or
    windows, [positions, taps and channels]. There, one channel with one filter is multiplied on its own, without pairs,
    unless filters have different zero points.
    """
    lost = accumulate.RULES[step.rules["accumulate"]].lost
    groups, depth, filters = step["groups"], weights.shape[1], weights.shape[0] // step["groups"]
    alone = not signed and depth == filters == 1 and not np.ptp(points_of(step, "weight_zero_point"))
    if lost is None or alone:
        return None
    if signed:
        left = weights.reshape(groups, filters, -1)
        return lambda columns: lost(left, columns)
    anew = bool(step.parameters.get("pairs_by_tap"))
    right = accumulate.tap_by_tap(weights, anew).reshape(groups, filters, -1).swapaxes(1, 2)

    def of_windows(columns: np.ndarray) -> np.ndarray:
        windows = columns.reshape(groups, depth, -1, columns.shape[2])
        left = [accumulate.tap_by_tap(np.moveaxis(of_group, 2, 0), anew) for of_group in windows]
        return lost(np.stack(left), right).swapaxes(1, 2)

    return of_windows


def _sums(step: Step, x: np.ndarray, weights: np.ndarray) -> Iterator[tuple[tuple[int, int, slice], np.ndarray]]:
    """(image, depth, rows) of the output and its sums [O, rows, W'], exact but for what the rule loses, in blocks."""
    windows = step_windows(step, x.shape[2:])
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type = product_type(limit)
    groups, filters, zero_point = step["groups"], weights.shape[0], step["input_zero_point"]
    points = np.reshape(points_of(step, "weight_zero_point"), (-1, *(1,) * (weights.ndim - 1)))
    signed = x.dtype == np.int8
    lost = _lost(step, signed and weights.dtype == np.uint8, weights)
    unsigned = work_type.type(zero_point + (128 if signed and weights.dtype == np.int8 else 0))
    more = None if lost is None else lambda columns: -lost(columns + unsigned)
    matrices = centered(step, weights, points, work_type).reshape(groups, filters // groups, -1)
    for n, image in enumerate(_five(x)):
        pixels = centered(step, image, zero_point, work_type)
        for d, rows, sums in window_sums.integer_sums(pixels, matrices, windows, limit, more):
            yield (n, d, rows), sums


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The convolution with the zero points and multipliers of this run."""
    step = prepare_late(step, inputs, _prepare)
    bias = inputs[2] if len(inputs) > 2 and not step["ranged"] else None
    if "store" in step.rules:
        dtype = stored_type(step, np.dtype(np.int8 if step["low"] < 0 else np.uint8))
    else:
        dtype = data_type(step["dtype"]).numpy
    return [convolved(step, inputs[0], inputs[1], bias, dtype, step["channels_last"])]


def convolved(
    step: Step, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, dtype: np.dtype, last: bool
) -> np.ndarray:
    """The filter matrix times unfolded windows; exact because every partial sum is below the float's bound.

    Args:
        x: the image; `last`: with its channels last, as the result then has them.
        weights: [O, C / groups, spatial...].
        dtype: of the result.
    """
    first = np.moveaxis(x, -1, 1) if last else x
    out = np.empty((x.shape[0], weights.shape[0], *spatial_shape(step_windows(step, first.shape[2:]))), dtype)
    if out.size:
        for (n, d, rows), sums in _sums(step, first, weights):
            if bias is not None:
                sums += bias.astype(np.int64).reshape(-1, 1, 1)
            acc = finish_accumulator(step.rules["accumulate"], step.accumulator, sums)
            if "store" in step.rules:
                # Multipliers per channel go with the last axis.
                acc = np.moveaxis(requantized(step, np.moveaxis(acc, 0, -1), out.dtype), -1, 0)
            out[n, :, d, rows] = acc
    flat = out.reshape(*out.shape[:2], *out.shape[2:][5 - x.ndim :])
    return np.ascontiguousarray(np.moveaxis(flat, 1, -1)) if last else flat
