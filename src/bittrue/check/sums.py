"""What the accumulators of a layer can hold, channel by channel, and an input that makes them hold it.

A channel's accumulator is sum over k of (q_k - z) w_k + bias, with constant w. It is largest where every quantized
value q_k is at the end of its range that goes with the sign of w_k; this input is a `Witness`. Taps that lie in the
padding count nothing, so the bounds of a witness are those at the output position with the most taps inside of the
image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..graph import data_type
from ..operators import Step, find
from ..operators.core.geometry import Window, step_windows
from ..operators.core.roles import LayerForm, layer_form, seats_of
from ..plan.survey import Survey
from ..rules import accumulate, store
from .surveys import code_range

# Elements of the input beyond which no witness is made: it is as large as the input.
_LARGEST_INPUT = 1 << 26
_SIDES = ("left", "right", "top", "bottom", "front", "back")
# Weights looked at together, which bounds memory.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Sums:
    """One layer with constant weights.

    Attributes:
        step: of the layer.
        input: index of the tensor whose quantized values vary, and its shape.
        low, high: the quantized values that it can hold.
        zero_point: that is subtracted from them.
        rows: constant factors [channels, K], zero points subtracted.
        bias: [channels].
        places: of the K quantized values of each group of channels in the flat input, -1 in the padding [groups, K].
    """

    step: Step
    input: int
    shape: tuple[int, ...]
    low: int
    high: int
    zero_point: int
    rows: np.ndarray
    bias: np.ndarray
    places: np.ndarray

    @property
    def channels(self) -> int:
        return self.rows.shape[0]

    def _places(self, channel: int) -> np.ndarray:
        places: np.ndarray = self.places[channel // (self.channels // self.places.shape[0])]
        return places

    def _ends(self, low: int, high: int, masked: bool) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest accumulators for quantized values in [low, high]; `masked`: without taps in the
        padding.
        """
        up, down = np.zeros((2, self.channels), np.int64)
        each = self.channels // self.places.shape[0]
        block = max(1, _BLOCK // max(1, self.rows.shape[1]))
        for first in range(0, self.channels, block):
            rows = self.rows[first : first + block]
            if masked:
                groups = np.arange(first, first + rows.shape[0]) // each
                rows = np.where(self.places[groups] >= 0, rows, rows.dtype.type(0))
            up[first : first + block] = np.maximum(rows, 0).sum(axis=1, dtype=np.int64)
            down[first : first + block] = np.minimum(rows, 0).sum(axis=1, dtype=np.int64)
        low, high = low - self.zero_point, high - self.zero_point
        return up * low + down * high + self.bias, up * high + down * low + self.bias

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """No accumulator is below or above these, wherever the window is; s64 [channels]."""
        low, high = self.low, self.high
        if any(self.step.parameters.get(f"pad_{side}") for side in _SIDES):
            low, high = min(low, self.zero_point), max(high, self.zero_point)
        return self._ends(low, high, False)

    @cached_property
    def reached(self) -> tuple[np.ndarray, np.ndarray]:
        """Accumulators that some input gives; s64 [channels]."""
        return self._ends(self.low, self.high, bool((self.places < 0).any()))

    def witness(self, channel: int, high: bool) -> np.ndarray | None:
        """The input whose window makes the channel's accumulator largest (or smallest); None for enormous inputs."""
        if int(np.prod(self.shape)) > _LARGEST_INPUT:
            return None
        places, row = self._places(channel), self.rows[channel]
        # Elsewhere anything goes; the zero point, where the type has it, shows best what matters.
        rest = min(max(self.zero_point, self.low), self.high)
        quantized = np.full(int(np.prod(self.shape)), rest, np.int64)
        inside = places >= 0
        quantized[places[inside]] = np.where((row[inside] > 0) == high, self.high, self.low)
        return quantized.reshape(self.shape)

    def pattern(self, channel: int, high: bool) -> str:
        """The witness in words."""
        inside = self._places(channel) >= 0
        row = self.rows[channel][inside]
        positive, negative = (self.high, self.low) if high else (self.low, self.high)
        return (
            f"quantized value {positive} where the weight is positive ({int((row > 0).sum())} of {row.size} taps), "
            f"{negative} where it is negative ({int((row < 0).sum())})"
        )


def layers(made: Survey) -> Iterator[Sums]:
    """Every layer of a survey with constant weights and bias and known zero points."""
    for step in made.steps:
        found = _layer(made, step)
        if found is not None and found.rows.size:
            yield found


def _constant(made: Survey, step: Step, position: int) -> np.ndarray | None:
    index = step.inputs[position] if position < len(step.inputs) else None
    return None if index is None else made.values.get(index)


def _layer(made: Survey, step: Step) -> Sums | None:
    operator = find(step.operator)
    seats = seats_of(operator)
    if seats is None or "accumulate" not in step.rules:
        return None
    weights, source = _constant(made, step, seats.weights), step.inputs[seats.image]
    if source is None or not data_type(made.graph.tensors[source].dtype).is_integer:
        return None
    zero_point = step.parameters.get("input_zero_point")
    if step.parameters.get("late") or not isinstance(zero_point, int) or source not in made.shapes:
        return None
    shape = made.shapes[source]
    if weights is None or weights.dtype.kind not in "iu":
        return None
    form = layer_form(operator, step, shape, weights.shape)
    rows = None if form is None else _rows(form, step, weights)
    places = None if form is None else _places(form, step, shape)
    if rows is None or places is None or places.shape[0] == 0 or rows.shape[0] % places.shape[0]:
        return None
    bias = np.zeros(rows.shape[0], np.int64)
    if seats.bias is not None and seats.bias < len(step.inputs) and step.inputs[seats.bias] is not None:
        given = _constant(made, step, seats.bias)
        if given is None or given.dtype.kind not in "iu" or given.size not in (1, rows.shape[0]):
            return None
        bias = bias + given.reshape(-1).astype(np.int64)
    low, high = code_range(made, source)
    return Sums(step, source, shape, low, high, zero_point, rows, bias, places)


def _rows(form: LayerForm, step: Step, weights: np.ndarray) -> np.ndarray | None:
    """Weights [channels, K], zero points subtracted, in a type that holds the differences."""
    points = step.arrays.get("weight_zero_points", step.parameters.get("weight_zero_point"))
    if points is None or isinstance(points, (str, tuple)):
        return None
    wide = form.weights(weights.astype(np.int16 if weights.dtype.itemsize == 1 else np.int64))
    wide = wide.reshape(wide.shape[0], -1)
    offset = np.asarray(points).astype(np.int64).reshape(-1)
    if offset.size not in (1, wide.shape[0]):
        return None
    return wide - offset[:, None].astype(wide.dtype)


def _places(form: LayerForm, step: Step, shape: tuple[int, ...]) -> np.ndarray | None:
    """Flat input positions [groups, K] of the window with the most taps inside of the image."""
    if not form.axes:
        return (np.arange(form.depth) * (shape[1] if form.transposed else 1))[None]
    spatial = shape[1:-1] if form.channels_last else shape[2:]
    channels = shape[-1] if form.channels_last else shape[1]
    flat, outside = np.zeros(1, np.int64), np.zeros(1, bool)
    for one in step_windows(step, spatial)[-len(spatial) :]:
        taps = _taps(one)
        flat = (flat[:, None] * one.size + taps).reshape(-1)
        outside = (outside[:, None] | (taps < 0)).reshape(-1)
    step_channel = 1 if form.channels_last else math.prod(spatial)
    step_pixel = channels if form.channels_last else 1
    # Weights in the layer's form: [O, taps, channels of a group].
    each = np.arange(channels).reshape(form.groups, -1) * step_channel
    places = flat.reshape(1, -1, 1) * step_pixel + each[:, None, :]
    return np.where(outside.reshape(1, -1, 1), -1, places).reshape(form.groups, -1)


def _taps(one: Window) -> np.ndarray:
    """Where the taps of the window with the most of them inside lie along one axis; -1 outside."""
    if not one.out:
        return np.full(one.taps, -1)
    found = int(one.counts().argmax()) * one.stride - one.before + np.arange(one.taps) * one.dilation
    return np.where((found >= 0) & (found < one.size), found, -1)


def multipliers(step: Step) -> np.ndarray | None:
    """The real multiplier of each channel as the step has it encoded, binary64; None where the step has none."""
    if "factor" in step.arrays:
        return np.atleast_1d(step.arrays["factor"].astype(np.float64))
    if "multiplier" in step.arrays and "exponent" in step.arrays and step.rules.get("rescale", "").startswith("q31"):
        significand, exponent = step.arrays["multiplier"], step.arrays["exponent"]
        return np.atleast_1d(np.ldexp(significand.astype(np.float64), exponent.astype(np.int64) - 31))
    return None


def stored(sums: Sums, accumulators: np.ndarray) -> np.ndarray | None:
    """The quantized values that the step makes of one accumulator per channel; None for steps without rescaling."""
    step = sums.step
    if not {"rescale", "store"} <= step.rules.keys() or not {"low", "high", "output_zero_point"} <= set(
        step.parameters
    ):
        return None
    if multipliers(step) is None:
        return None
    held = accumulate.RULES[step.rules["accumulate"]].finish(accumulators)
    quantized = store.rescale_and_store(held[None], step.rules, step.arrays, step.parameters, np.dtype(np.int64))
    found: np.ndarray = quantized[0]
    return found


def meant(sums: Sums, accumulators: np.ndarray) -> np.ndarray:
    """The same by real numbers: accumulator * multiplier + zero point, limited, not rounded; binary64."""
    step, real = sums.step, multipliers(sums.step)
    assert real is not None
    moved = accumulators.astype(np.float64) * real + step["output_zero_point"]
    limited: np.ndarray = np.minimum(np.maximum(moved, step["low"]), step["high"])
    return limited


def without_overflow(sums: Sums) -> np.ndarray:
    """For each channel whether no register on the way from sum to quantized value can overflow, wherever the window
    is.
    """
    least, most = sums.bounds
    limit = 2**31 - 1
    exponent = np.maximum(np.atleast_1d(sums.step.arrays.get("exponent", np.zeros(1, np.int64))), 0).astype(np.int64)
    room = limit >> exponent
    fits: np.ndarray = np.maximum(np.abs(least), np.abs(most)) <= np.minimum(room, limit - (1 << 16))
    return fits
