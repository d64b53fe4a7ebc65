"""conv_transpose_integer: acc[n, o, s p + d t - pad] += sum over c of (x[n, c, p] - z_x)(w[c, o, t] - z_w).

x: integers [N, C, H, W], or [N, H, W, C] with `channels_last`; w: [C, O / groups, kh, kw]; z_x: one; z_w: one, or one
per output channel of a group. Both differences are taken modulo 2^16. Attributes: `strides`, `dilations` (vertical,
horizontal), `pads` (top, left, bottom, right), `output_padding` (below, right), `groups`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arithmetic import fixed_point
from ..arithmetic.matmul import exact_matmul, product_type
from ..graph import DATA_TYPES
from .accumulator import finish_accumulator
from .base import Bound, Call, Lowered, Operator, Role, Shape, Step
from .geometry import meeting, numbers, transposed_windows
from .indexing import bounded
from .integer_layers import check_single


def _geometry(call: Call) -> tuple[Shape, Shape, int, tuple[int, int]]:
    """Shapes of x with its channels first and of the weights, output channels, extents of the result."""
    call.expect(4)
    source, weights, groups = call.input(0), call.input(1, "weights"), int(call.attribute("groups"))
    call.rank(source, 4)
    call.rank(weights, 4)
    shape = source.shape
    first = (shape[0], shape[3], *shape[1:3]) if call.attribute("channels_last") else shape
    if groups < 1 or first[1] != weights.shape[0] or first[1] % groups or not weights.size or not source.size:
        raise call.invalid(
            "BT-CONV-CHANNELS", f"{first[1]} input channels, {groups} groups, weights of shape {list(weights.shape)}"
        )
    strides, dilations = numbers(call, "strides", 2, 1), numbers(call, "dilations", 2, 1)
    more, pads = numbers(call, "output_padding", 2, 0), numbers(call, "pads", 4, 0)
    found = transposed_windows(call, first[2:], weights.shape[2:], strides, dilations, pads, more)
    check_single(call, 2, "x_zero_point")
    per_group = weights.shape[1]
    if call.has(3) and (call.input(3).rank > 1 or call.input(3).size not in (1, per_group)):
        raise call.invalid("BT-QUANT-AXIS", f"w_zero_point has shape {list(call.input(3).shape)}")
    return first, weights.shape, groups * per_group, (found[0].extent, found[1].extent)


def infer(call: Call) -> list[Shape]:
    """[N, O, H', W'], or with the channels last."""
    first, _, filters, out = _geometry(call)
    last = call.attribute("channels_last")
    return [bounded(call, (first[0], *out, filters) if last else (first[0], filters, *out))]


def _centered(array: np.ndarray, point: np.ndarray | int) -> np.ndarray:
    return fixed_point.wrap_s16(array.astype(np.int64) - point)


def lower(call: Call) -> Lowered:
    """Geometry and the bound of the sums."""
    first, weights, filters, out = _geometry(call)
    spans = []
    for position in (0, 1):
        operand = call.input(position)
        point = call.constant(position + 2, "zero point").astype(np.int64)
        ends = np.array([operand.type.minimum, operand.type.maximum], np.int64)[:, None] - point.reshape(-1)
        spans.append(32768 if np.abs(ends).max() > 32767 else int(np.abs(ends).max()))
    magnitude = spans[0] * spans[1] * (first[1] // int(call.attribute("groups"))) * weights[2] * weights[3]
    wide = call.output.dtype == "s64"
    return Lowered(
        {
            "channels_last": bool(call.attribute("channels_last")),
            "groups": int(call.attribute("groups")),
            "strides": numbers(call, "strides", 2, 1),
            "dilations": numbers(call, "dilations", 2, 1),
            "pads": numbers(call, "pads", 4, 0),
            "out": out,
            "filters": filters,
            "dtype": call.output.dtype,
        },
        accumulator=Bound(magnitude, not wide and magnitude > fixed_point.S32_MAX),
        work=call.output.size * weights[0] * weights[2] * weights[3],
        scratch=24 * (call.output.size + call.input(0).size * weights[1]),
    )


def _meeting(step: Step, at: int, tap: int, extent: int) -> tuple[slice, slice]:
    """Positions of x whose tap meets the result, and of the result."""
    shift = tap * step["dilations"][at] - step["pads"][at]
    return meeting(extent, step["out"][at], step["strides"][at], shift)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Tap by tap, one exact matrix product each."""
    x = np.moveaxis(inputs[0], 1, -1) if not step["channels_last"] else inputs[0]
    points = [inputs[2].reshape(-1)[0].astype(np.int64), inputs[3].reshape(-1)[:, None, None].astype(np.int64)]
    limit = step.accumulator.magnitude if step.accumulator else 2**62
    work_type, groups = product_type(limit), step["groups"]
    centered = _centered(x, points[0]).astype(work_type)
    weights = _centered(inputs[1], points[1]).astype(work_type)
    depth, per_group = weights.shape[0] // groups, weights.shape[1]
    total = np.zeros((x.shape[0], *step["out"], step["filters"]), np.int64)
    for u in range(weights.shape[2]):
        rows, target_rows = _meeting(step, 0, u, x.shape[1])
        for v in range(weights.shape[3]):
            columns, target_columns = _meeting(step, 1, v, x.shape[2])
            pixels = centered[:, rows, columns]
            if not pixels.size:
                continue
            for g in range(groups):
                part = np.ascontiguousarray(pixels[..., g * depth : (g + 1) * depth]).reshape(-1, depth)
                taps = np.ascontiguousarray(weights[g * depth : (g + 1) * depth, :, u, v])
                sums = exact_matmul(part, taps, limit).astype(np.int64).reshape(*pixels.shape[:3], per_group)
                total[:, target_rows, target_columns, g * per_group : (g + 1) * per_group] += sums
    found = finish_accumulator(step.rules["accumulate"], step.accumulator, total)
    found = found.astype(DATA_TYPES[step["dtype"]].numpy)
    return [found if step["channels_last"] else np.ascontiguousarray(np.moveaxis(found, -1, 1))]


OPERATOR = Operator(
    "conv_transpose_integer",
    ("accumulate",),
    infer,
    lower,
    reference,
    "transposed convolution of integers that gives its sums",
    roles=(Role("input", 0, None, 2), Role("weights", 1, None, 3)),
    weights="IOS",
    transposed=True,
    multiplies=True,
)
