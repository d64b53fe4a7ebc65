"""Transposed convolutions of real numbers: one product of all, or one per tap, as the rule has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...rules import real_product
from ..core.base import Call, Lowered, Step
from .conv_geometry import spread, transposed_parameters, transposed_shape


def lower(call: Call) -> Lowered:
    """Geometry, and whether the runtime has packed the weights."""
    x, w = call.input(0), call.input(1)
    terms = math.prod(w.shape[1:])
    packed = call.is_stored(1) and terms > 1
    return Lowered(
        parameters={**transposed_parameters(call), "packed": packed},
        work=x.size * terms,
        scratch=16 * terms * math.prod(transposed_shape(call)[2:]) + 16 * x.size * math.prod(w.shape[2:]),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One product of all, or one product per tap and then sums over the taps, as the rule has it."""
    rule = real_product.RULES[step.rules["real_product"]]
    x, w, shape, groups = inputs[0], inputs[1], tuple(step["output_shape"]), step["groups"]
    bias = inputs[2].reshape(groups, -1, 1) if len(inputs) > 2 else None
    if rule.blocked_channels is not None:
        layout = real_product.Layout(turned_a=not step["packed"])
        with np.errstate(all="ignore"):
            sums = spread(step, x, w, np.float32, lambda a, b: rule.apply(a, b, None, 1.0, 1.0, layout))
            return [sums if bias is None else sums + bias.reshape(-1, *(1,) * (x.ndim - 2))]
    depth, each = x.shape[1] // groups, w.shape[1]
    out = np.empty((shape[0], groups, each, math.prod(shape[2:])), np.float32)
    for n, g in np.ndindex(shape[0], groups):
        part = slice(g * depth, (g + 1) * depth)
        out[n, g] = _at_once(step, rule, x[n, part], w[part], None if bias is None else bias[g])
    return [out.reshape(shape)]


def _at_once(
    step: Step, rule: real_product.RealProductRule, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Turned filters times the image with zeros between its elements, unfolded."""
    sizes, taps, rank = step["output_shape"][2:], w.shape[2:], x.ndim - 1
    spread = np.zeros(
        (x.shape[0], *((e - 1) * s + 1 for e, s in zip(x.shape[1:], step["strides"], strict=True))), x.dtype
    )
    spread[(slice(None), *(slice(None, None, s) for s in step["strides"]))] = x
    reach = [(t - 1) * d for t, d in zip(taps, step["dilations"], strict=True)]
    pads = [(0, 0)]
    cut: list[slice] = [slice(None)]
    for axis in range(rank):
        first = reach[axis] - step["before"][axis]
        last = sizes[axis] + reach[axis] - first - spread.shape[axis + 1]
        pads.append((max(0, first), max(0, last)))
        begin = max(0, -first)
        cut.append(slice(begin, begin + sizes[axis] + reach[axis]))
    spread = np.pad(spread, pads)[tuple(cut)]
    view = np.lib.stride_tricks.sliding_window_view(spread, [r + 1 for r in reach], axis=tuple(range(1, rank + 1)))
    taken: list[Any] = [..., *(slice(None, None, d) for d in step["dilations"])]
    view = view[tuple(taken)]
    unfolded = view.transpose(0, *range(rank + 1, 2 * rank + 1), *range(1, rank + 1)).reshape(-1, math.prod(sizes))
    turned = np.flip(w, tuple(range(2, rank + 2)))
    weights = np.ascontiguousarray(np.moveaxis(turned, 1, 0)).reshape(w.shape[1], -1)
    return rule.apply(weights, unfolded, bias, 1.0, 1.0, real_product.Layout(added_last=True))
