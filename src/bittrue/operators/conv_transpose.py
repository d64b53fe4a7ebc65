"""conv_transpose: every element of x adds its multiple of a filter to the output; channels first, in groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rules import real_product
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, meeting, transposed_windows
from .roles import LAYER


def _list(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    given = tuple(int(v) for v in call.attribute(name)) or (default,) * count
    if len(given) != count or any(not 0 <= abs(v) < 2**31 for v in given):
        raise call.invalid("BT-WINDOW", f"attribute '{name}' is {list(given)}, expected {count} small numbers")
    return given


def _windows(call: Call) -> tuple[Window, ...]:
    """Windows that gaps are left out of: those of the convolution that would turn the result into x."""
    x, w = call.input(0), call.input(1, "weights")
    call.rank(x, 3, 5)
    call.rank(w, x.rank)
    count, groups = x.rank - 2, int(call.attribute("groups"))
    taps = tuple(int(v) for v in call.attribute("kernel_shape")) or w.shape[2:]
    if taps != w.shape[2:] or groups < 1 or w.shape[0] != x.shape[1] or x.shape[1] % groups:
        raise call.invalid(
            "BT-CONV-GROUPS", f"{x.shape[1]} channels in {groups} groups do not meet weights {list(w.shape)}"
        )
    if call.has(2) and call.input(2).shape != (w.shape[1] * groups,):
        raise call.invalid("BT-CONV-BIAS", f"bias has shape {list(call.input(2).shape)}")
    strides, dilations = _list(call, "strides", count, 1), _list(call, "dilations", count, 1)
    more, pads = _list(call, "output_padding", count, 0), _list(call, "pads", 2 * count, 0)
    auto, wanted = str(call.attribute("auto_pad")), tuple(call.attribute("output_shape"))
    if min(more) < 0 or min(pads) < 0:
        raise call.invalid("BT-WINDOW", "pads begin at 0")
    if any(extra >= max(both) for extra, *both in zip(more, strides, dilations, strict=True)):
        raise call.invalid("BT-WINDOW", f"output_padding {list(more)} reaches strides and dilations")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.invalid("BT-WINDOW", f"attribute 'auto_pad' is '{auto}'")
    padding = auto.lower() if auto.startswith("SAME") else "same_lower" if wanted else "explicit"
    return transposed_windows(
        call, x.shape[2:], taps, strides, dilations, pads if auto == "NOTSET" else (), more, padding, wanted
    )


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] and weights [C, M / groups, ...] give [N, M, ...]."""
    call.expect((2, 3))
    x, w = call.input(0), call.input(1, "weights")
    found = _windows(call)
    return [(x.shape[0], w.shape[1] * int(call.attribute("groups")), *(one.extent for one in found))]


def lower(call: Call) -> Lowered:
    """Geometry."""
    found = _windows(call)
    x, w = call.input(0), call.input(1)
    terms = math.prod(w.shape[1:])
    return Lowered(
        parameters={
            "strides": tuple(one.stride for one in found),
            "dilations": tuple(one.dilation for one in found),
            "before": tuple(one.before for one in found),
            "packed": w.value is not None and terms > 1 and not call.node.attributes.get("computed_weights", False),
            "groups": int(call.attribute("groups")),
            "output_shape": call.output.shape,
        },
        work=x.size * terms,
        scratch=16 * terms * math.prod(call.output.shape[2:]) + 16 * x.size * math.prod(w.shape[2:]),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """One product of all, or one product per tap and then sums over the taps, as the rule has it."""
    rule = real_product.RULES[step.rules["real_product"]]
    by_taps = rule.blocked_channels
    x, w, shape, groups = inputs[0], inputs[1], tuple(step["output_shape"]), step["groups"]
    bias = inputs[2].reshape(groups, -1, 1) if len(inputs) > 2 else None
    depth, each = x.shape[1] // groups, w.shape[1]
    out = np.empty((shape[0], groups, each, math.prod(shape[2:])), np.float32)
    for n in range(shape[0]):
        for g in range(groups):
            part = slice(g * depth, (g + 1) * depth)
            combine = _by_taps if by_taps else _at_once
            out[n, g] = combine(step, rule, x[n, part], w[part], None if bias is None else bias[g])
    return [out.reshape(shape)]


def tap_slices(
    step: Step, tap: Sequence[int], extents: Shape, reached: Shape
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Elements of [channels, *extents] that a tap takes to the result, and where they go in [channels, *reached]."""
    geometry = zip(extents, reached, step["strides"], step["dilations"], step["before"], tap, strict=True)
    of, to = zip(*(meeting(e, r, s, t * d - before) for e, r, s, d, before, t in geometry), strict=True)
    return (slice(None), *of), (slice(None), *to)


def _by_taps(
    step: Step, rule: real_product.RealProductRule, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Sums over channels for every tap, added up by tap in row-major order from 0 on; bias at last."""
    extents, taps = step["output_shape"][2:], w.shape[2:]
    columns = rule.apply(
        w.reshape(w.shape[0], -1).T, x.reshape(x.shape[0], -1), None, 1.0, 1.0, Layout(turned_a=not step["packed"])
    )
    columns = columns.reshape(w.shape[1], *taps, *x.shape[1:])
    out = np.zeros((w.shape[1], *extents), np.float32)
    with np.errstate(all="ignore"):
        for tap in np.ndindex(*taps):
            of, to = tap_slices(step, tap, x.shape[1:], extents)
            out[to] += columns[(slice(None), *tap)][of]
        flat = out.reshape(w.shape[1], -1)
        return flat if bias is None else flat + bias


def _at_once(
    step: Step, rule: real_product.RealProductRule, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None
) -> np.ndarray:
    """Turned filters times the picture with zeros between its elements, unfolded."""
    extents, taps, rank = step["output_shape"][2:], w.shape[2:], x.ndim - 1
    spread = np.zeros(
        (x.shape[0], *((e - 1) * s + 1 for e, s in zip(x.shape[1:], step["strides"], strict=True))), x.dtype
    )
    spread[(slice(None), *(slice(None, None, s) for s in step["strides"]))] = x
    reach = [(t - 1) * d for t, d in zip(taps, step["dilations"], strict=True)]
    pads = [(0, 0)]
    cut: list[slice] = [slice(None)]
    for axis in range(rank):
        first = reach[axis] - step["before"][axis]
        last = extents[axis] + reach[axis] - first - spread.shape[axis + 1]
        pads.append((max(0, first), max(0, last)))
        begin = max(0, -first)
        cut.append(slice(begin, begin + extents[axis] + reach[axis]))
    spread = np.pad(spread, pads)[tuple(cut)]
    view = np.lib.stride_tricks.sliding_window_view(spread, [r + 1 for r in reach], axis=tuple(range(1, rank + 1)))
    taken: list[Any] = [..., *(slice(None, None, d) for d in step["dilations"])]
    view = view[tuple(taken)]
    unfolded = view.transpose(0, *range(rank + 1, 2 * rank + 1), *range(1, rank + 1)).reshape(-1, math.prod(extents))
    turned = np.flip(w, tuple(range(2, rank + 2)))
    weights = np.ascontiguousarray(np.moveaxis(turned, 1, 0)).reshape(w.shape[1], -1)
    return rule.apply(weights, unfolded, bias, 1.0, 1.0, Layout(added_last=True))


OPERATOR = Operator(
    "conv_transpose",
    ("real_product",),
    infer,
    lower,
    reference,
    "transposed convolution of real numbers, channels first",
    roles=LAYER,
    weights="IOS",
    transposed=True,
    multiplies=True,
)
