"""Transposed convolutions of binary32 numbers whose products are added up in an order that the rule says.

Hybrid ones have weights of integers: every image is quantized first, and its products are scaled back one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic.tiled_products import TiledProduct
from ...graph import Attribute
from ...records import replace
from ...rules import multiply_add, plain_range, sum_of_products
from ..core.base import Call, Lowered, Step
from ..core.roles import turned
from . import hybrid_layers
from .conv_geometry import filter_layout, tap_slices, transposed_geometry, transposed_parameters
from .integer_layers import check_weight_scales
from .real_layers import chain_count, real_range

_IN_ORDER = sum_of_products.RULES["binary32_in_order"]


def lower(call: Call) -> Lowered:
    """The geometry and the clamp."""
    source, weights = call.input(0), call.input(1)
    geometry = transposed_parameters(call)
    return Lowered(
        parameters={
            **geometry,
            **real_range(call),
            **_chains(call, call.output.shape),
            "filter_layout": filter_layout(call, True),
        },
        work=source.size * (weights.size // source.shape[-1]),
        scratch=8 * call.output.size + 12 * source.size,
    )


def _chains(call: Call, shape: Sequence[int]) -> dict[str, Attribute]:
    """How many `chains` terms take turns in, where the rule has several; `shape` has the channels last.

    Steps that filters are not smaller than make products for every remainder of a position: single ones are those of
    one image then.
    """
    name = call.rules.get("sum_of_products")
    if name is None or not sum_of_products.RULES[name].in_chains:
        return {}
    taps = call.input(1).shape[1:-1]
    strides = [one.stride for one in transposed_geometry(call)]
    by_remainders = max(strides) > 1 and all(s <= t for s, t in zip(strides, taps, strict=True))
    single = shape[0] == 1 if by_remainders else math.prod(shape[1:-1]) == 1
    return {"chains": sum_of_products.chains_of_windows(shape[-1], single)}


def lower_hybrid(call: Call) -> Lowered:
    """The same with the scales of the weights."""
    lowered, weights = lower(call), call.input(1)
    check_weight_scales(call, call.output.shape[-1], 0)
    return replace(
        lowered,
        parameters={**lowered.parameters, "quantize": "asymmetric"},
        arrays={"weight_scales": weights.quantization.scales.astype(np.float32)},
    )


def _add_scaled(step: Step, total: np.ndarray, pixels: np.ndarray, filters: np.ndarray, scale: np.float32) -> None:
    """total += f32(f32(q * w) * scale of the filter) * scale of the image, channel by channel, in place."""
    add, scales = multiply_add.RULES[step.rules["multiply_add"]].apply, step.arrays["weight_scales"]
    with np.errstate(all="ignore"):
        for k in range(len(filters)):
            total[...] = add((pixels[:, k, None] * filters[k]).astype(np.float32) * scales, scale, total)


def _add_planes(step: Step, tiles: TiledProduct, image: np.ndarray, weights: np.ndarray, total: np.ndarray) -> None:
    """One product of all positions and filters of all taps, whose results are added in the order of positions."""
    channels, depth = weights.shape[-1], weights.shape[-2]
    rows = image.reshape(-1, depth)
    filters = np.ascontiguousarray(weights.swapaxes(-1, -2)).reshape(-1, depth)
    planes = tiles(filters, rows, len(rows), 0).reshape(*image.shape[:-1], *weights.shape[:-2], channels)
    with np.errstate(all="ignore"):
        for tap in reversed(list(np.ndindex(*weights.shape[:-2]))):
            of, to = tap_slices(step, tap, image.shape[:-1], total.shape[:-1])
            total[to] += planes[(*of, *tap)]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One pass per tap over all input positions whose copy falls into the result.

    Every result meets input positions in the order of memory, then the bias; or, from the bias on, taps in that order.
    """
    x, weights = inputs[0], turned(inputs[1], step["filter_layout"], "SIO")
    bias = inputs[2] if len(inputs) > 2 else None
    hybrid = step["arithmetic"] == "hybrid"
    rule = _IN_ORDER if hybrid else sum_of_products.RULES[step.rules["sum_of_products"]]
    batch, channels, *reached = step["output_shape"]
    total = np.zeros((batch, *reached, channels), np.float32)
    if rule.from_bias and bias is not None:
        total[...] = bias.reshape(-1)
    taps, chains = list(np.ndindex(*weights.shape[:-2])), chain_count(step)
    for at, image in enumerate(x):
        if rule.tiles is not None:
            _add_planes(step, rule.tiles, image, weights, total[at])
            continue
        results = sum_of_products.Chains(total[at], chains)
        scale = np.float32(1)
        if hybrid:
            q, (scale,), (zero_point,) = hybrid_layers.quantize(step, image.reshape(1, -1))
            image = (q - zero_point).reshape(image.shape)
        for tap in taps if rule.from_bias else reversed(taps):
            of, to = tap_slices(step, tap, image.shape[:-1], reached)
            pixels = image[of]
            if not pixels.size:
                continue
            filters, rows = np.ascontiguousarray(weights[tap]), pixels.reshape(-1, pixels.shape[-1])
            for first in range(chains):
                result = results.of(first, chains)
                part = np.ascontiguousarray(result[to])
                sums = part.reshape(-1, channels)
                if hybrid:
                    _add_scaled(step, sums, rows, filters.astype(np.int32), scale)
                else:
                    sum_of_products.add_matrix(rule, sums, rows[:, first::chains], filters[first::chains])
                result[to] = part
        total[at] = results.folded()
    if bias is not None and not rule.from_bias:
        with np.errstate(all="ignore"):
            total += bias.reshape(-1)
    return [plain_range.clamp(total, step["low"], step["high"])]
