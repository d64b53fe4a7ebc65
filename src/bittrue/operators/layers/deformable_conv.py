"""deformable_conv: convolutions of images [N, C, H, W] whose taps lie anywhere between pixels.

Inputs: x, weights [M, C / `group`, kh, kw], offsets [N, 2 G kh kw, oh, ow] (down and across of each tap, for each of
`offset_group` G groups of channels), bias [M] (may be missing), factors of taps [N, G kh kw, oh, ow] (may be missing).
A tap is the sum of four neighbours times their weights, by slot `multiply_add`; outside of the image,
from a whole pixel on, it is 0. The product of weights and taps is the rule's, for each image and group, the bias comes
last.

Source: ONNX Runtime 1.31.1, onnxruntime/core/providers/cpu/nn/deform_conv.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...rules import multiply_add, real_product
from ..core.base import Call, Lowered, Operator, Shape, Step
from ..core.indexing import bounded
from ..core.stopping import check_stop


def _pair(call: Call, name: str, default: int, count: int = 2) -> tuple[int, ...]:
    return tuple(int(size) for size in call.attribute(name)) or (default,) * count


def infer(call: Call) -> list[Shape]:
    """[N, M, rows, columns], as for a convolution."""
    call.expect((3, 5))
    x, weights, offsets = call.input(0), call.input(1, "weights"), call.input(2, "offsets")
    for operand in (x, weights, offsets):
        call.rank(operand, 4)
    count, kernel = weights.shape[0], weights.shape[2:]
    group, parts = int(call.attribute("group")), int(call.attribute("offset_group"))
    strides, dilations = _pair(call, "strides", 1), _pair(call, "dilations", 1)
    pads, given = _pair(call, "pads", 0, 4), tuple(call.attribute("kernel"))
    lists = len(strides) == len(dilations) == 2 and len(pads) == 4 and given in ((), kernel)
    if not lists or min(*strides, *dilations, group, parts) < 1 or min(pads) < 0 or 0 in (*weights.shape, *x.shape):
        raise call.invalid(
            "BT-CONV-GEOMETRY",
            f"a kernel {list(kernel)} with kernel_shape {list(given)}, strides {list(strides)}, dilations"
            f" {list(dilations)}, pads {list(pads)}, {group} groups and {parts} of offsets is no window",
        )
    if x.shape[1] != weights.shape[1] * group or x.shape[1] % parts or count % group:
        raise call.invalid(
            "BT-CONV-GROUPS",
            f"{x.shape[1]} channels, weights {list(weights.shape)}, {group} groups and {parts} of offsets do not fit",
        )
    spans = [x.shape[2 + i] + pads[i] + pads[2 + i] - dilations[i] * (kernel[i] - 1) - 1 for i in range(2)]
    sizes = tuple(span // strides[i] + 1 for i, span in enumerate(spans))
    if min(spans) < 0:
        raise call.invalid("BT-CONV-GEOMETRY", f"a kernel {list(kernel)} is larger than images {list(x.shape[2:])}")
    taps = parts * kernel[0] * kernel[1]
    wanted: list[tuple[int, str, Shape]] = [
        (2, "offsets", (x.shape[0], 2 * taps, *sizes)),
        (3, "bias", (count,)),
        (4, "factors", (x.shape[0], taps, *sizes)),
    ]
    for position, name, shape in wanted:
        given_operand = (*call.inputs, None, None)[position]
        if given_operand is not None and given_operand.shape != shape:
            raise call.invalid("BT-SHAPE", f"{name} have shape {list(given_operand.shape)}, expected {list(shape)}")
    return [bounded(call, (x.shape[0], count, *sizes))]


def lower(call: Call) -> Lowered:
    """The window and the groups."""
    weights = call.input(1)
    columns = call.output.size // weights.shape[0] * weights.size // weights.shape[0] * int(call.attribute("group"))
    return Lowered(
        {
            "strides": _pair(call, "strides", 1),
            "dilations": _pair(call, "dilations", 1),
            "pads": _pair(call, "pads", 0, 4),
            "group": int(call.attribute("group")),
            "offset_group": int(call.attribute("offset_group")),
        },
        work=call.output.size * weights.size // weights.shape[0],
        scratch=64 * columns // max(1, call.input(0).shape[0]) + 8 * call.output.size,
    )


def _neighbours(
    at: tuple[np.ndarray, np.ndarray], sizes: tuple[int, ...]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, columns and weights of the four pixels around places; those that count for nothing are the first pixel."""
    real = at[0].dtype.type
    one, zero = real(1), real(0)
    inside = (at[0] > -1) & (at[0] < sizes[0]) & (at[1] > -1) & (at[1] < sizes[1])
    low = [np.floor(np.where(inside, place, zero)) for place in at]
    part = [np.where(inside, place, zero) - floor for place, floor in zip(at, low, strict=True)]
    found = []
    for below in (0, 1):
        for right in (0, 1):
            row, column = low[0].astype(np.int64) + below, low[1].astype(np.int64) + right
            counts = inside & (row >= 0) & (row < sizes[0]) & (column >= 0) & (column < sizes[1])
            weights = (part[0] if below else one - part[0]) * (part[1] if right else one - part[1])
            found.append((np.where(counts, row, 0), np.where(counts, column, 0), np.where(counts, weights, zero)))
    return found


def _taps(step: Step, image: np.ndarray, offsets: np.ndarray, kernel: tuple[int, ...]) -> np.ndarray:
    """[C, kh kw, rows, columns] of one image; offsets [G, kh kw, 2, rows, columns]."""
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    parts, taps, _, *sizes = offsets.shape
    channels = image.reshape(parts, -1, *image.shape[1:])
    out = np.empty((*channels.shape[:2], taps, *sizes), image.dtype)
    grid = [np.arange(size)[:, None] * stride for size, stride in zip(sizes, step["strides"], strict=True)]
    for part in range(parts):
        for tap, (i, j) in enumerate(np.ndindex(*kernel)):
            check_stop()
            down = (grid[0] - step["pads"][0] + i * step["dilations"][0]).astype(image.dtype) + offsets[part, tap, 0]
            across = (grid[1].T - step["pads"][1] + j * step["dilations"][1]).astype(image.dtype) + offsets[
                part, tap, 1
            ]
            factors = [
                (weights, channels[part][:, rows, columns])
                for rows, columns, weights in _neighbours((down, across), image.shape[1:])
            ]
            total = rule.pair(*factors[0], *factors[1])
            out[part, :, tap] = rule.apply(*factors[3], rule.apply(*factors[2], total))
    return out


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Image by image, group by group."""
    x, weights, offsets = inputs[:3]
    bias, factors = (*inputs[3:], None, None)[:2]
    group, parts, kernel, sizes = step["group"], step["offset_group"], weights.shape[2:], offsets.shape[2:]
    rule, count = real_product.RULES[step.rules["real_product"]], weights.shape[0] // group
    out = np.empty((x.shape[0], weights.shape[0], *sizes), x.dtype)
    rows = weights.reshape(group, count, -1)
    with np.errstate(all="ignore"):
        for number in range(x.shape[0]):
            taps = _taps(step, x[number], offsets[number].reshape(parts, -1, 2, *sizes), kernel)
            if factors is not None:
                taps = taps * factors[number].reshape(parts, 1, -1, *sizes)
            columns = taps.reshape(group, rows.shape[2], -1)
            for one in range(group):
                made = rule.apply(rows[one], columns[one], None, 1.0, 0.0, real_product.Layout())
                out[number, one * count : (one + 1) * count] = made.reshape(count, *sizes)
        if bias is not None:
            out += bias[:, None, None]
    return [out]


OPERATOR = Operator(
    "deformable_conv",
    ("real_product", "multiply_add"),
    infer,
    lower,
    reference,
    "convolutions whose taps lie between pixels",
)
