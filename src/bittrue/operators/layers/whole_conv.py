"""Convolutions of integers over one to three axes, channels first, forward and transposed.

acc[n, o, p] = sum over c, t of (x[n, group(o) C + c, p stride + t dilation - pad] - z_x)(w[o, c, t] - z_w[o])

Padded positions hold real zero. The transposed one adds (x[n, i, q] - z_x)(w[i, o, t] - z_w) to
acc[n, o, q stride + t dilation - pad]. Operands and what becomes of acc: see `whole_numbers`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...records import replace
from ..core.base import Call, Lowered, Step
from ..core.geometry import LARGEST, spatial_parameters, spatial_shape, step_windows
from . import integer_conv
from .conv_geometry import convolution_windows, spread, transposed_parameters
from .whole_numbers import (
    BIAS,
    EXACT,
    W_SCALE,
    W,
    X,
    bound_8_bit,
    centered_reals,
    check_operands,
    finished,
    is_8_bit_layer,
    is_whole,
    multiply,
    prepared,
    products,
)
from .window_sums import grouped_products


def _check_sizes(call: Call) -> None:
    source, weights = call.input(X), call.input(W)
    if not all(1 <= size <= LARGEST for size in weights.shape[2:]) or min(source.shape) < 1:
        raise call.invalid(
            "BT-WINDOW", f"filters of shape {list(weights.shape)} over a tensor of shape {list(source.shape)}"
        )


def is_of_integers(call: Call) -> bool:
    """Whether a convolution of integers gives the same (see `is_8_bit_layer`), with windows that fit."""
    _check_sizes(call)
    check_operands(call, call.input(W).shape[0])
    if (
        call.rules.get("channel_parameters", "of_axis") != "of_axis"
        and call.input(W_SCALE).size > 1
        and call.input(X).shape[0] != 1
    ):
        return False
    if (
        call.attribute("padding") == "same_upper"
        or call.node.attributes.get("depthwise")
        or call.input(X).dtype != call.output.dtype
    ):
        return False
    fit = all(one.size + one.before + one.after >= one.reach for one in convolution_windows(call)[0])
    return fit and min(call.attribute("pads")) >= 0 and is_8_bit_layer(call)


def lower_integers(call: Call) -> Lowered:
    """The step of a convolution of integers, with what is proven of its sums."""
    return replace(integer_conv.lower(call), accumulator=bound_8_bit(call))


def lower(call: Call) -> Lowered:
    """Geometry, limits, zero points, multipliers."""
    windows, groups = convolution_windows(call)
    parameters, arrays = prepared(call)
    depth = call.input(W).size // call.input(W).shape[0]
    work = call.output.size * depth
    return Lowered(
        {**parameters, **spatial_parameters(windows), "groups": groups, "channels_last": False},
        arrays,
        None,
        work,
        # One unfolded image, once more in binary64 to prove its sums.
        12 * (work // max(1, call.output.size)) * math.prod(spatial_shape(windows)) * groups
        + 32 * call.output.size
        + 8 * call.input(X).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The filter matrix times unfolded images."""
    x, weights = centered_reals(step, inputs[X], inputs[W])
    windows, groups = step_windows(step, x.shape[2:]), step["groups"]
    matrices = weights.reshape(groups, weights.shape[0] // groups, -1)

    def times(_: int, g: int, __: slice, columns: np.ndarray) -> np.ndarray:
        return products(step, matrices[g], columns.reshape(matrices.shape[2], -1))

    out = grouped_products(x, len(weights), windows, groups, times)
    bias = inputs[BIAS] if len(inputs) > BIAS else None
    return [finished(step, out, bias, 1)]


# -- transposed ------------------------------------------------------------------------------------------------------
def lower_transpose(call: Call) -> Lowered:
    """Geometry, limits, zero points, multipliers."""
    _check_sizes(call)
    check_operands(call, call.input(W).shape[1] * int(call.attribute("groups")))
    parameters, arrays = prepared(call)
    taps = math.prod(call.input(W).shape[1:])
    return Lowered(
        {**parameters, **transposed_parameters(call)},
        arrays,
        None,
        call.input(X).size * taps,
        24 * taps * math.prod(call.input(X).shape[2:]) + 32 * call.output.size + 8 * call.input(X).size,
    )


def _is_exact(step: Step, x: np.ndarray, weights: np.ndarray) -> bool:
    """Whether all sums are of integers and stay below 2^24, in any order."""
    if not is_whole(x) or not is_whole(weights):
        return False
    groups = step["groups"]
    by_channel = np.abs(weights).reshape(groups, -1, *weights.shape[1:]).sum(axis=1, dtype=np.float64)
    sums = float(by_channel.reshape(groups, weights.shape[1], -1).sum(axis=2).max(initial=0))
    if sums * float(np.abs(x).max(initial=0)) < EXACT:
        return True
    wide = spread(step, np.abs(x).astype(np.float64), np.abs(weights).astype(np.float64), np.float64, np.matmul)
    return float(wide.max(initial=0)) < EXACT


def reference_transpose(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sums in binary32, then as all layers."""
    x, weights = centered_reals(step, inputs[X], inputs[W], 1)
    exact = _is_exact(step, x, weights)
    sums = spread(step, x, weights, np.float32, lambda left, right: multiply(step, left, right, exact))
    return [finished(step, sums, inputs[BIAS] if len(inputs) > BIAS else None, 1)]
