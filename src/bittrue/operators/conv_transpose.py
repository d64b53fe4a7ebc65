"""conv_transpose: every element of x adds its multiple of a filter to the output; channels first, in groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_product
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step


def _list(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    given = tuple(int(v) for v in call.attribute(name)) or (default,) * count
    if len(given) != count or any(not 0 <= abs(v) < 2**31 for v in given):
        raise call.invalid("BT-WINDOW", f"attribute '{name}' is {list(given)}, expected {count} small numbers")
    return given


def _geometry(call: Call) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, dilations, padding before every axis, and output extents."""
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
    more, pads = _list(call, "output_padding", count, 0), list(_list(call, "pads", 2 * count, 0))
    auto, wanted = str(call.attribute("auto_pad")), tuple(int(v) for v in call.attribute("output_shape"))
    if min(strides) < 1 or min(dilations) < 1 or min(more) < 0 or min(pads) < 0 or 0 in taps:
        raise call.invalid("BT-WINDOW", "strides and dilations begin at 1, pads at 0")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.invalid("BT-WINDOW", f"attribute 'auto_pad' is '{auto}'")
    if len(wanted) == count + 2:
        wanted = wanted[2:]
    before, out = [], []
    for axis in range(count):
        full = (x.shape[axis + 2] - 1) * strides[axis] + more[axis] + (taps[axis] - 1) * dilations[axis] + 1
        if wanted:
            if len(wanted) != count:
                raise call.invalid("BT-WINDOW", f"output_shape has {len(wanted)} entries, expected {count}")
            total = max(0, full - wanted[axis])
            first = total - total // 2 if auto in ("NOTSET", "VALID", "SAME_LOWER") else total // 2
            extent = wanted[axis]
        elif auto.startswith("SAME"):
            extent = x.shape[axis + 2] * strides[axis]
            total = max(0, full - extent)
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
        else:
            first = pads[axis] if auto == "NOTSET" else 0
            extent = full - (pads[axis] + pads[axis + count] if auto == "NOTSET" else 0)
        if extent < 1:
            raise call.invalid("BT-WINDOW", f"axis {axis + 2} of the result would have extent {extent}")
        before.append(first)
        out.append(extent)
    return strides, dilations, tuple(before), tuple(out)


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] and weights [C, M / groups, ...] give [N, M, ...]."""
    call.expect((2, 3))
    x, w = call.input(0), call.input(1, "weights")
    out = _geometry(call)[3]
    return [(x.shape[0], w.shape[1] * int(call.attribute("groups")), *out)]


def lower(call: Call) -> Lowered:
    """Geometry."""
    strides, dilations, before, _ = _geometry(call)
    x, w = call.input(0), call.input(1)
    terms = math.prod(w.shape[1:])
    return Lowered(
        parameters={
            "strides": strides,
            "dilations": dilations,
            "before": before,
            "groups": int(call.attribute("groups")),
            "output_shape": call.output.shape,
        },
        work=x.size * terms,
        scratch=16 * terms * math.prod(call.output.shape[2:]) + 16 * x.size * math.prod(w.shape[2:]),
    )


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product of turned filters with the picture, zeros between its elements, unfolded."""
    x, w = inputs[0], inputs[1]
    shape, groups, rank = tuple(step["output_shape"]), step["groups"], x.ndim - 2
    rule = real_product.RULES[step.rules["real_product"]]
    bias = inputs[2].reshape(groups, -1, 1) if len(inputs) > 2 else None
    depth = x.shape[1] // groups
    spread = np.zeros(
        (*x.shape[:2], *((e - 1) * s + 1 for e, s in zip(x.shape[2:], step["strides"], strict=True))), x.dtype
    )
    spread[(..., *(slice(None, None, s) for s in step["strides"]))] = x
    reach = [(t - 1) * d for t, d in zip(w.shape[2:], step["dilations"], strict=True)]
    pads = [(0, 0), (0, 0)]
    cut: list[slice] = []
    for axis in range(rank):
        first = reach[axis] - step["before"][axis]
        last = shape[axis + 2] + reach[axis] - first - spread.shape[axis + 2]
        pads.append((max(0, first), max(0, last)))
        begin = max(0, -first)
        cut.append(slice(begin, begin + shape[axis + 2] + reach[axis]))
    spread = np.pad(spread, pads)[(..., *cut)]
    view = np.lib.stride_tricks.sliding_window_view(spread, [r + 1 for r in reach], axis=tuple(range(2, rank + 2)))
    view = view[(..., *(slice(None, None, d) for d in step["dilations"]))]
    order = [0, *range(rank + 1, 2 * rank + 1), *range(1, rank + 1)]
    turned = np.flip(w, tuple(range(2, rank + 2)))
    out = np.empty((shape[0], groups, shape[1] // groups, math.prod(shape[2:])), np.float32)
    for n in range(shape[0]):
        for g in range(groups):
            part = slice(g * depth, (g + 1) * depth)
            unfolded = view[n, part].transpose(order).reshape(depth * math.prod(w.shape[2:]), -1)
            weights = np.ascontiguousarray(np.moveaxis(turned[part], 1, 0)).reshape(w.shape[1], -1)
            out[n, g] = rule.apply(
                weights, unfolded, None if bias is None else bias[g], 1.0, 1.0, Layout(added_last=True)
            )
    return [out.reshape(shape)]


OPERATOR = Operator(
    "conv_transpose",
    ("real_product",),
    infer,
    lower,
    reference,
    "transposed convolution of real numbers, channels first",
)
