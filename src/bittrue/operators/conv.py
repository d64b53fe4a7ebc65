"""conv, conv_onto: convolution of real numbers over one to three spatial axes, channels first, in groups.

y[n, m, o] = bias[m] + sum over c, t of x[n, group(m) * C + c, o * stride + t * dilation - pad] * w[m, c, t].
conv_onto has a fourth operand of the result's shape, which the sums begin with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..rules import real_product
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step
from .geometry import Window, spatial_parameters, spatial_shape, step_windows
from .roles import LAYER
from .spatial import padded, sliding, spatial_windows

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


# Channels of a block of the runtime's vectors, and of a block of a convolution without neighbours.
_CHANNELS, _POINT_CHANNELS = 16, 128
# Channels come in multiples of this, or stay in planes.
_ALIGNED = 4


def can_block(outputs: int, channels: int, groups: int) -> bool:
    """Whether filters of so many channels can be held in blocks of channels."""
    if groups > 1:
        whole = channels % _CHANNELS == 0 and outputs // groups % _CHANNELS == 0
        return whole or (channels == 1 and outputs == groups and outputs % _ALIGNED == 0)
    return channels < _CHANNELS or channels % _ALIGNED == 0


def _split(call: Call, windows: tuple[Window, ...]) -> tuple[int, int]:
    """(channels of a block, terms of a sum) of a convolution whose channels are blocked; zeros for one that is not.

    Asked for are two spatial axes, constant weights and bias, and what `can_block` says.
    Rewrites mark nodes with `computed_weights` whose constants the runtime computes anew in every run.
    """
    rule = real_product.RULES[call.rules["real_product"]]
    weights, groups = call.input(1), int(call.attribute("groups"))
    known = weights.value is not None and (not call.has(2) or call.input(2).value is not None)
    known = known and not call.node.attributes.get("computed_weights", False)
    if not rule.blocked_channels or len(windows) != 2 or not known:
        return 0, 0
    outputs, channels = weights.shape[:2]
    taps = math.prod(weights.shape[2:])
    if not can_block(outputs, channels, groups):
        return 0, 0
    if channels < _CHANNELS:
        return 1, taps
    if taps == 1 and not any(one.before or one.after for one in windows):
        return channels, _POINT_CHANNELS
    return _CHANNELS, _CHANNELS * taps


def infer(call: Call) -> list[Shape]:
    """[N, C, ...] and weights [M, C / groups, ...] give [N, M, ...]."""
    call.expect((2, 3))
    return _infer(call)


def infer_onto(call: Call) -> list[Shape]:
    """The same; the fourth operand has the result's shape, the third one may be absent."""
    call.expect(4)
    found = _infer(call)
    if call.input(3).shape != found[0]:
        raise call.invalid(
            "BT-CONV-SUM",
            f"the sums begin with a tensor of shape {list(call.input(3).shape)}, expected {list(found[0])}",
        )
    return found


def _infer(call: Call) -> list[Shape]:
    windows = _windows(call)
    return [(call.input(0).shape[0], call.input(1).shape[0], *spatial_shape(windows))]


def lower(call: Call) -> Lowered:
    """Geometry."""
    windows, weights = _windows(call), call.input(1)
    terms = math.prod(weights.shape[1:])
    block, split = _split(call, windows)
    return Lowered(
        parameters={
            **spatial_parameters(windows),
            "block": block,
            "split": split,
            "groups": int(call.attribute("groups")),
            "output_shape": call.output.shape,
        },
        work=call.output.size * terms,
        scratch=24 * _BLOCK + 16 * call.input(0).size,
    )


def _by_blocks(array: np.ndarray, axis: int, block: int) -> np.ndarray:
    """[..., C, taps, ...] as [..., C / block, taps, block, ...], the last block filled with zeros."""
    lacking = -array.shape[axis] % block
    if lacking:
        array = np.pad(array, [(0, lacking if i == axis else 0) for i in range(array.ndim)])
    shape = array.shape
    split = array.reshape(*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :])
    return np.ascontiguousarray(np.swapaxes(split, axis + 1, axis + 2))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The rule's product of the weights with unfolded pictures.

    Terms go by channel, then row, then column of the filter; with blocks by block, row, column, and channel of the
    block.
    """
    x, w = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    begin = inputs[3] if len(inputs) > 3 else None
    shape, groups = tuple(step["output_shape"]), step["groups"]
    out = np.empty((shape[0], groups, shape[1] // groups, math.prod(shape[2:])), np.float32)
    if not out.size:
        return [out.reshape(shape)]
    windows = step_windows(step, x.shape[2:])
    rule = real_product.RULES[step.rules["real_product"]]
    block = step["block"] or 1
    weights = _by_blocks(w.reshape(*w.shape[:2], -1), 1, block).reshape(groups, shape[1] // groups, -1)
    layout = Layout(added_last=begin is None, split=step["split"])
    started = None if begin is None else begin.reshape(out.shape)
    added = None if bias is None else bias.reshape(groups, -1, 1)
    for n in range(shape[0]):
        picture = x[n].reshape(x.shape[1], *(one.extent for one in windows))
        patches = sliding(padded(picture, windows, 0), windows)
        for g in range(groups):
            part = patches[g * w.shape[1] : (g + 1) * w.shape[1]]
            # [C, D', H', W', taps...] to [C, taps, D' H' W']
            unfolded: np.ndarray = part.transpose(0, 4, 5, 6, 1, 2, 3).reshape(w.shape[1], math.prod(w.shape[2:]), -1)
            unfolded = _by_blocks(unfolded, 0, block).reshape(weights.shape[2], out.shape[3])
            more = None if added is None else added[g]
            if started is None:
                out[n, g] = rule.apply(weights[g], unfolded, more, 1.0, 1.0, layout)
                continue
            total = rule.apply(weights[g], unfolded, started[n, g], 1.0, 1.0, layout)
            with np.errstate(all="ignore"):
                out[n, g] = total if more is None else total + more
    return [out.reshape(shape)]


_SLOTS = ("real_product",)
OPERATORS = (
    Operator(
        "conv",
        _SLOTS,
        infer,
        lower,
        reference,
        "convolution of real numbers, channels first",
        roles=LAYER,
        weights="OIS",
        multiplies=True,
    ),
    Operator(
        "conv_onto",
        _SLOTS,
        infer_onto,
        lower,
        reference,
        "a convolution whose sums begin with another tensor",
        multiplies=True,
    ),
)
