"""causal_conv: convolutions of each channel along a sequence, over the places before and what an earlier call has seen.

Operands: x [B, C, L], weights [C, 1, K], bias [C] (may be missing), the places before the first one [B, C, P], P = (K -
1) * `dilation` (0 where it is missing). With `channels_last` x is [B, L, ...] and these are [B, P, ...], with as many
elements behind as there are channels. Results: y, shaped as x, and the last P places.

A sum begins with the bias and goes from the first tap to the last, by the slot `multiply_add`; with `gated` y is x / (1
+ e^-x) of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arithmetic import elementary
from ...rules import multiply_add
from ..core.base import Call, Lowered, Operator, Shape, Step

X, WEIGHTS, BIAS, PAST = range(4)
# So many neighbouring taps of a single place have a loop of their own, which rounds the last product.
_ALONE = (3, 4, 5)


def _sizes(call: Call) -> tuple[int, int, int, int]:
    """B, C, L, K."""
    x, weights = call.input(X), call.input(WEIGHTS, "weights")
    last = bool(call.attribute("channels_last"))
    call.rank(x, 3, None if not last else max(3, x.rank))
    call.rank(weights, 3)
    channels, length = (math.prod(x.shape[2:]), x.shape[1]) if last else x.shape[1:]
    if weights.shape[:2] != (channels, 1) or not weights.shape[2]:
        raise call.invalid(
            "BT-CONV-GROUPS", f"weights have shape {list(weights.shape)}, expected {[channels, 1]} and taps"
        )
    return x.shape[0], channels, length, weights.shape[2]


def infer(call: Call) -> list[Shape]:
    """y, and the last places."""
    call.expect((2, 4), 2)
    batch, channels, _, taps = _sizes(call)
    x, dilation = call.input(X), int(call.attribute("dilation"))
    if dilation < 1:
        raise call.invalid("BT-CONV-GEOMETRY", f"dilation {dilation}, expected 1 or more")
    places = (taps - 1) * dilation
    state: Shape = (batch, places, *x.shape[2:]) if call.attribute("channels_last") else (batch, channels, places)
    for position, wanted in ((BIAS, (channels,)), (PAST, state)):
        if call.has(position) and call.input(position).shape != wanted:
            found = list(call.input(position).shape)
            raise call.invalid("BT-CONV-STATE", f"input {position} has shape {found}, expected {list(wanted)}")
    return [x.shape, state]


def lower(call: Call) -> Lowered:
    """Sizes."""
    batch, channels, length, taps = _sizes(call)
    names = ("channels_last", "gated", "dilation")
    return Lowered(
        {
            **{name: call.attribute(name) for name in names},
            "batch": batch,
            "channels": channels,
            "length": length,
            "taps": taps,
            "shape": call.output.shape,
            "state_shape": call.outputs[1].shape,
        },
        work=call.output.size * taps,
        scratch=32 * (call.output.size + call.outputs[1].size),
    )


def reference(step: Step, inputs: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Tap by tap."""
    x, weights, bias, past = (*inputs, None, None)[:4]
    assert x is not None
    assert weights is not None
    batch, channels, length, taps = (step[name] for name in ("batch", "channels", "length", "taps"))
    places, last = (taps - 1) * step["dilation"], step["channels_last"]

    def by_places(array: np.ndarray, count: int) -> np.ndarray:
        """[B, count, C]."""
        return array.reshape(batch, count, channels) if last else array.swapaxes(1, 2)

    def as_given(array: np.ndarray, shape: Shape) -> np.ndarray:
        return np.ascontiguousarray(array if last else array.swapaxes(1, 2)).reshape(shape)

    before = np.zeros((batch, places, channels), np.float32) if past is None else by_places(past, places)
    seen = np.concatenate([before, by_places(x, length)], axis=1)
    total = np.zeros((batch, length, channels), np.float32)
    total += np.float32(0) if bias is None else bias
    rule = multiply_add.RULES[step.rules["multiply_add"]]
    alone = length == 1 and step["dilation"] == 1 and taps in _ALONE and (not last or channels == 1)
    with np.errstate(all="ignore"):
        for tap in range(taps):
            at = tap * step["dilation"]
            part, weight = seen[:, at : at + length], weights[:, 0, tap]
            total = total + weight * part if alone and tap == taps - 1 else rule.apply(part, weight, total)
        if step["gated"]:
            total = total / (np.float32(1) + elementary.exp(-total))
    return [as_given(total, step["shape"]), as_given(seen[:, length:], step["state_shape"])]


OPERATOR = Operator(
    "causal_conv",
    ("multiply_add",),
    infer,
    lower,
    reference,
    "convolutions of each channel along a sequence, over the places before",
    multiplies=True,
)
