"""Layers with accumulators in plain NumPy: other ways to make accumulators, and to end them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...operators import Step, find
from ...operators.accumulator import finish_accumulator, stored_type
from ...operators.conv2d import tap_windows
from ...plan import Plan
from ...rules import rescale, store

LAYERS = ("conv2d", "depthwise_conv2d", "fully_connected")
# Bytes of unfolded input held at a time.
_BLOCK = 16 << 20
Array = np.ndarray


@dataclass(frozen=True)
class Layer:
    """One layer and what its end may use.

    Attributes:
        step: the plan's step.
        bias: per output channel, as s64; None without one.
        real: the real multiplier per output channel, in the longest floating type of the machine.
        dtype: of the result.
    """

    step: Step
    bias: Array | None
    real: Array
    dtype: np.dtype

    def rescaled(self, acc: Array) -> Array:
        """Accumulators behind the step's own rule of `rescale`."""
        return rescale.apply(self.step.rules["rescale"], acc, self.step.arrays)

    def stored(self, rescaled: Array) -> Array:
        """The step's own rule of `store`."""
        zero_point, low, high = (int(self.step[k]) for k in ("output_zero_point", "low", "high"))
        rule = store.RULES[self.step.rules["store"]]
        return np.asarray(rule(rescaled, zero_point, low, high)).astype(self.dtype)


@dataclass(frozen=True)
class Ways:
    """Other ways of a layer; what is None stays as it is.

    Attributes:
        pad_code: stored integer at padded positions (the input's zero point is subtracted from it as from any other).
        products: makes accumulators of taps: centred inputs [rows, K] or [rows, K, C] and weights, both s64.
        register: what becomes of the sum of products and bias.
        end: from accumulators to stored integers.
        bias: of the layer, s64, as it is used.
        weights: changes the centred weights, s64.
        pad_mode: how `np.pad` continues the centred picture instead of with a constant.
        plain: nothing but NumPy instead of kernels, whose windows may lie anywhere.
    """

    pad_code: Callable[[Step], int] | None = None
    products: Callable[[Step, Array, Array], Array] | None = None
    register: Callable[[Array], Array] | None = None
    end: Callable[[Layer, Array], Array | None] | None = None
    bias: Callable[[Layer], Array] | None = None
    weights: Callable[[Array], Array] | None = None
    pad_mode: str = ""
    plain: bool = False

    @property
    def ends_alone(self) -> bool:
        """Whether accumulators are made as always."""
        return not (self.pad_code or self.products or self.bias or self.weights or self.pad_mode or self.plain)


def last_layer(plan: Plan) -> Step | None:
    """The last step with accumulators of integers; None without one."""
    for step in reversed(plan.steps):
        if step.operator in LAYERS and {"accumulate", "rescale", "store"} <= set(step.rules):
            return step
    return None


@dataclass(frozen=True)
class Sums:
    """The accumulators of the last layer, and what was known before it."""

    layer: Layer
    acc: Array
    known: dict[int, Array]


def run(plan: Plan, values: Mapping[str, Array], ways: Ways) -> Array | None:
    """The plan's output with `ways` in its last layer; None where there is none."""
    found = sums(plan, values, ways)
    return None if found is None else finish(plan, found, ways)


def sums(plan: Plan, values: Mapping[str, Array], ways: Ways) -> Sums | None:
    """The plan up to the accumulators of its last layer; None where there is none."""
    changed = last_layer(plan)
    known = _constants(plan, values)
    for step in plan.steps:
        inputs = [None if i is None else known[i] for i in step.inputs]
        if step is changed:
            layer = _layer(plan, step, inputs)
            acc = _accumulate(step, inputs, layer.bias if ways.bias is None else ways.bias(layer), ways)
            return Sums(layer, finish_accumulator(step.rules["accumulate"], step.accumulator, acc), known)
        _carry_out(step, inputs, known)
    return None


def finish(plan: Plan, found: Sums, ways: Ways) -> Array | None:
    """From the last layer's accumulators to the plan's output."""
    layer, known = found.layer, dict(found.known)
    acc = found.acc if ways.register is None else ways.register(found.acc)
    stored = layer.stored(layer.rescaled(acc)) if ways.end is None else ways.end(layer, acc)
    if stored is None:
        return None
    known[layer.step.outputs[0]] = stored
    place = next(k for k, step in enumerate(plan.steps) if step.outputs == layer.step.outputs)
    for step in plan.steps[place + 1 :]:
        _carry_out(step, [None if i is None else known[i] for i in step.inputs], known)
    return known[plan.outputs[0]]


def _carry_out(step: Step, inputs: list[Any], known: dict[int, Array]) -> None:
    operator = find(step.operator)
    assert operator is not None
    known.update(zip(step.outputs, operator.reference(step, inputs), strict=True))


def real_multiplier(plan: Plan, step: Step) -> Array:
    """scale of the input * scale of the weights / scale of the output, per output channel."""
    scales = []
    for index in (step.inputs[0], step.inputs[1], step.outputs[0]):
        quantization = plan.tensors[index].quantization if index is not None else None
        if quantization is None:
            raise ValueError("a scale is missing")
        scales.append(quantization.scales.astype(np.longdouble))
    return scales[0] * scales[1] / scales[2]


def _layer(plan: Plan, step: Step, inputs: list[Any]) -> Layer:
    bias = inputs[2] if len(inputs) > 2 else None
    if step.operator == "fully_connected":
        from ...graph import DATA_TYPES

        dtype = DATA_TYPES[step["output_dtype"]].numpy
    else:
        dtype = stored_type(step, inputs[0])
    whole = None if bias is None else bias.reshape(-1).astype(np.int64)
    return Layer(step, whole, real_multiplier(plan, step), dtype)


def _constants(plan: Plan, values: Mapping[str, Array]) -> dict[int, Array]:
    known = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
    known.update({i: values[plan.tensors[i].name] for i in plan.inputs})
    return known


def _accumulate(step: Step, inputs: list[Any], bias: Array | None, ways: Ways) -> Array:
    x, weights = inputs[0], inputs[1]
    filters = weights.astype(np.int64) - step["weight_zero_point"]
    if ways.weights is not None:
        filters = ways.weights(filters)
    if step.operator == "fully_connected":
        rows = x.reshape(-1, weights.shape[1]).astype(np.int64) - step["input_zero_point"]
        acc = _product(step, rows, filters.T, ways)
        acc = acc if bias is None else acc + bias
        return acc.reshape(step["output_shape"])
    pictures = [_picture(step, picture, filters, ways) for picture in x]
    acc = np.stack(pictures) if pictures else np.zeros((0, step["out_h"], step["out_w"], 1), np.int64)
    return acc if bias is None else acc + bias


def _picture(step: Step, picture: Array, filters: Array, ways: Ways) -> Array:
    zero_point = step["input_zero_point"]
    outside = 0 if ways.pad_code is None else ways.pad_code(step) - zero_point
    wide = picture.astype(np.int64) - zero_point
    for axis, (suffix, first) in enumerate((("h", "pad_top"), ("w", "pad_left"))):
        wide = padded(wide, axis, step, suffix, int(step[first]), outside, ways.pad_mode)
    height, width = step["out_h"], step["out_w"]
    view = tap_windows(wide, step)[:height, :width]
    if step.operator == "depthwise_conv2d":
        multiplier = step["multiplier"]
        taps, channels = filters[0].reshape(-1, filters.shape[3]), filters.shape[3]
        rows = view.reshape(height * width, len(taps), -1)
        if multiplier > 1:
            rows = np.repeat(rows, multiplier, axis=2)
        if ways.products is not None:
            acc = ways.products(step, rows, taps[None])
        else:
            acc = np.einsum("rkc,kc->rc", rows.astype(np.float64), taps.astype(np.float64)).astype(np.int64)
        return acc.reshape(height, width, channels)
    groups, depth = step["groups"], filters.shape[3]
    per_group = len(filters) // groups
    found = np.empty((height, width, len(filters)), np.int64)
    for g in range(groups):
        matrix = filters[g * per_group : (g + 1) * per_group].reshape(per_group, -1).T
        lines = max(1, _BLOCK // max(1, width * len(matrix) * 8))
        for top in range(0, height, lines):
            part = view[top : top + lines, ..., g * depth : (g + 1) * depth]
            acc = _product(step, part.reshape(-1, len(matrix)), matrix, ways)
            found[top : top + lines, :, g * per_group : (g + 1) * per_group] = acc.reshape(-1, width, per_group)
    return found


def padded(picture: Array, axis: int, step: Step, suffix: str, before: int, outside: int, mode: str) -> Array:
    """One axis padded as far as its windows reach; `before` may be negative: windows begin inside then."""
    reach = (step[f"filter_{suffix}"] - 1) * step[f"dilation_{suffix}"] + 1
    needed = (step[f"out_{suffix}"] - 1) * step[f"stride_{suffix}"] + reach
    if before < 0:
        picture, before = np.take(picture, range(-before, picture.shape[axis]), axis), 0
    pads = [(0, 0)] * 3
    pads[axis] = before, max(0, needed - before - picture.shape[axis])
    if mode:
        return np.asarray(np.pad(picture, pads, mode=mode))  # type: ignore[call-overload]
    return np.pad(picture, pads, constant_values=outside)


def _product(step: Step, rows: Array, matrix: Array, ways: Ways) -> Array:
    if ways.products is not None:
        # [rows, K, N]: every product on its own, so that the order of sums can be chosen.
        return ways.products(step, rows[:, :, None], matrix[None])
    # Sums of 8- and 16-bit products stay far below 2^53, so binary64 is exact.
    return (rows.astype(np.float64) @ matrix.astype(np.float64)).astype(np.int64)
