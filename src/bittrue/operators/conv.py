"""conv: convolution of real numbers over one to three spatial axes, channels first, in groups.

y[n, m, o] = bias[m] + sum over c, t of x[n, group(m) * C + c, o * stride + t * dilation - pad] * w[m, c, t].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_product
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window
from .spatial import padded, sliding, spatial_parameters, spatial_shape, spatial_windows, step_windows

# Elements of unfolded pictures held at a time.
_BLOCK = 1 << 22


def _windows(call: Call) -> tuple[Window, ...]:
    x, w = call.input(0), call.input(1, "weights")
    call.rank(x, 3, 5)
    call.rank(w, x.rank)
    taps = tuple(int(v) for v in call.attribute("kernel_shape")) or w.shape[2:]
    if taps != w.shape[2:]:
        raise call.invalid("BT-WINDOW", f"kernel_shape {list(taps)} and weights of shape {list(w.shape)} differ")
    groups, channels = int(call.attribute("groups")), x.shape[1]
    if groups < 1 or channels != w.shape[1] * groups or w.shape[0] % groups:
        raise call.invalid(
            "BT-CONV-GROUPS",
            f"{channels} channels in {groups} groups do not meet weights of shape {list(w.shape)}",
        )
    if call.has(2) and call.input(2).shape != w.shape[:1]:
        raise call.invalid("BT-CONV-BIAS", f"bias of shape {list(call.input(2).shape)}, expected [{w.shape[0]}]")
    return spatial_windows(call, x.shape, taps)


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] and weights [M, C / groups, ...] give [N, M, ...]."""
    call.expect((2, 3))
    windows = _windows(call)
    return [(call.input(0).shape[0], call.input(1).shape[0], *spatial_shape(windows))]


def lower(call: Call) -> Lowered:
    """Geometry."""
    windows, weights = _windows(call), call.input(1)
    terms = math.prod(weights.shape[1:])
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            "groups": int(call.attribute("groups")),
            "output_shape": call.output.shape,
        },
        work=call.output.size * terms,
        scratch=24 * _BLOCK + 16 * call.input(0).size,
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product of the weights with unfolded pictures; terms by channel, then row, then column of the filter."""
    x, w = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    shape, groups = tuple(step["output_shape"]), step["groups"]
    out = np.empty((shape[0], groups, shape[1] // groups, math.prod(shape[2:])), np.float32)
    if not out.size:
        return [out.reshape(shape)]
    windows = step_windows(step, x.shape)
    rule = real_product.RULES[step.rules["real_product"]]
    weights = w.reshape(groups, shape[1] // groups, -1)
    added = None if bias is None else bias.reshape(groups, -1, 1)
    for n in range(shape[0]):
        picture = x[n].reshape(x.shape[1], *(one.extent for one in windows))
        patches = sliding(padded(picture, windows, 0), windows)
        for g in range(groups):
            part = patches[g * w.shape[1] : (g + 1) * w.shape[1]]
            # [C, D', H', W', taps...] to [C, taps..., D', H', W']
            unfolded = part.transpose(0, 4, 5, 6, 1, 2, 3).reshape(weights.shape[2], -1)
            more = None if added is None else added[g]
            out[n, g] = rule.apply(weights[g], unfolded, more, 1.0, 1.0)
    return [out.reshape(shape)]


OPERATOR = Operator("conv", ("real_product",), infer, lower, reference, "convolution of real numbers, channels first")
