"""Layers with accumulators in plain NumPy: other ways to make accumulators, and to end them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...operators import Role, Step, find
from ...operators.core.accumulator import finish_accumulator
from ...operators.core.geometry import SIDES
from ...operators.core.role_quantization import of_step, role_of
from ...operators.core.roles import LayerForm, layer_form, seats_of
from ...operators.layers.integer_layers import adds_exactly
from ...plan import Plan
from ...rules import requantize, rescale, store

# Bytes of unfolded input held at a time.
_BLOCK = 16 << 20
Array = np.ndarray


@dataclass(frozen=True)
class Layer:
    """One layer and what its end may use. Accumulators have the channels last, whatever the step's layout is.

    Attributes:
        step: the plan's step.
        bias: per output channel, as s64; None without one. Accumulators contain it, also where the rule adds it.
        addend: the part of it that the rule adds, so that the step's own sums are without it.
        real: the real multiplier per output channel, in the longest floating type of the machine.
        dtype: of the result.
    """

    step: Step
    bias: Array | None
    real: Array
    dtype: np.dtype
    addend: Array | None = None

    def rescaled(self, acc: Array) -> Array:
        """Accumulators behind the step's own rule of `rescale` or `requantize`."""
        rules = self.step.rules
        if self.addend is not None:
            acc = acc - self.addend
        if "requantize" in rules:
            return np.asarray(requantize.RULES[rules["requantize"]].apply(acc, self.step.arrays))
        return rescale.apply(rules["rescale"], acc, self.step.arrays)

    def stored(self, rescaled: Array) -> Array:
        """The step's own rule of `store`."""
        zero_point, low, high = (int(self.step[k]) for k in ("output_zero_point", "low", "high"))
        rule = store.RULES[self.step.rules["store"]]
        return np.asarray(rule(rescaled, zero_point, low, high)).astype(self.dtype)


@dataclass(frozen=True)
class Ways:
    """Other ways of a layer; what is None stays as it is.

    Attributes:
        pad_code: quantized value at padded positions (the input's zero point is subtracted from it as from any other).
        products: makes accumulators of taps: centred inputs and weights, both s64, as [rows, K, 1] and [1, K, O], or
            [rows, K, C] and [1, K, C] where every channel has its own.
        register: what becomes of the sum of products and bias.
        end: from accumulators to quantized values.
        bias: of the layer, s64, as it is used.
        weights: changes the centred weights, s64.
        pad_mode: how `np.pad` continues the centred image instead of with a constant.
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
    """The last step with accumulators of integers that are rescaled and stored; None without one."""
    for step in reversed(plan.steps):
        scaled = {"rescale", "requantize"} & step.rules.keys() and {"accumulate", "store"} <= step.rules.keys()
        if scaled and form_of(plan, step) is not None:
            whole = adds_exactly(step) and not step.parameters.get("late")
            return step if whole and "input_zero_point" in step.parameters else None
    return None


def own_padding(plan: Plan) -> Plan:
    """The plan with what a step of its own puts around the last layer's image as padding of the layer itself.

    Only for `run`: the layer then reads the smaller image. Plans without such a step are as they were.
    """
    layer = last_layer(plan)
    form = None if layer is None else form_of(plan, layer)
    seats = seats_of(find("" if layer is None else layer.operator))
    if layer is None or form is None or seats is None or not form.axes:
        return plan
    image = layer.inputs[seats.image]
    around = next((s for s in plan.steps if s.outputs == (image,) and {"before", "value"} <= s.parameters.keys()), None)
    if around is None or any(image in s.inputs for s in plan.steps if s is not layer):
        return plan
    value, source = around["value"], around.inputs[0]
    assert source is not None, "it has an image"
    small, wide = plan.tensors[source].shape, around["shape"]
    spatial = range(1, 1 + len(form.axes)) if form.channels_last else range(2, 2 + len(form.axes))
    outside = {axis for axis in range(len(wide)) if wide[axis] != small[axis]}
    if around.parameters.get("value_is_input") or value != layer["input_zero_point"] or not outside <= set(spatial):
        return plan
    pads = dict(layer.parameters)
    for axis, letter in zip(spatial, form.axes, strict=True):
        before = int(around["before"][axis])
        first, last = SIDES[letter]
        pads[first] = layer[first] + before
        pads[last] = layer[last] + wide[axis] - small[axis] - before
    changed = replace(layer, parameters=pads, inputs=tuple(source if i == image else i for i in layer.inputs))
    return replace(plan, steps=tuple(changed if s is layer else s for s in plan.steps if s is not around))


def form_of(plan: Plan, step: Step) -> LayerForm | None:
    """The form of a layer; None for other steps."""
    operator = find(step.operator)
    seats = seats_of(operator)
    if seats is None or max(seats.image, seats.weights) >= len(step.inputs):
        return None
    image, weights = step.inputs[seats.image], step.inputs[seats.weights]
    if image is None or weights is None:
        return None
    return layer_form(operator, step, plan.tensors[image].shape, plan.tensors[weights].shape)


@dataclass(frozen=True)
class Sums:
    """The accumulators of the last layer, its form, and what was known before it."""

    layer: Layer
    form: LayerForm
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
            layer, form = _layer(plan, step, inputs), form_of(plan, step)
            assert form is not None, "it is a layer"
            acc = _accumulate(form, step, inputs, layer.bias if ways.bias is None else ways.bias(layer), ways)
            return Sums(layer, form, finish_accumulator(step.rules["accumulate"], step.accumulator, acc), known)
        carry_out(step, inputs, known)
    return None


def finish(plan: Plan, found: Sums, ways: Ways) -> Array | None:
    """From the last layer's accumulators to the plan's output."""
    layer, known = found.layer, dict(found.known)
    acc = found.acc if ways.register is None else ways.register(found.acc)
    stored = layer.stored(layer.rescaled(acc)) if ways.end is None else ways.end(layer, acc)
    if stored is None:
        return None
    target = layer.step.outputs[0]
    known[target] = found.form.result(stored, plan.tensors[target].shape)
    place = next(k for k, step in enumerate(plan.steps) if step.outputs == layer.step.outputs)
    for step in plan.steps[place + 1 :]:
        carry_out(step, [None if i is None else known[i] for i in step.inputs], known)
    return known[plan.outputs[0]]


def carry_out(step: Step, inputs: list[Any], known: dict[int, Array]) -> None:
    """One step by its reference; `known` takes its results."""
    operator = find(step.operator)
    assert operator is not None
    known.update(zip(step.outputs, operator.reference(step, inputs), strict=True))


def real_multiplier(plan: Plan, step: Step) -> Array:
    """scale of the input * scale of the weights / scale of the output, one or one per output channel.

    Where these scales are unknown, or are not what the step was prepared from (ranges), it is what the step has.

    Raises:
        ValueError: the step has no multiplier, either.
    """
    prepared = real_of(step)
    alike = (("input", "first input"), ("weights", "second input"), ("output",))
    scales = [scales_of(plan, step, *names) for names in alike]
    if any(s is None for s in scales):
        if prepared is None:
            raise ValueError("a scale is missing")
        return prepared
    first, second, result = (s for s in scales if s is not None)
    real = first * second / result
    if prepared is not None and not np.allclose(real.astype(np.float64), prepared.astype(np.float64), 1e-4, 0):
        return prepared
    return real


def real_of(step: Step) -> Array | None:
    """The real multipliers that a step has, where it keeps them in a known form."""
    arrays = step.arrays
    if "factor" in arrays:
        return np.atleast_1d(arrays["factor"].astype(np.longdouble)) * arrays.get("second", 1)
    if {"multiplier", "exponent"} <= arrays.keys() and step.rules.get("rescale", "").startswith("q31"):
        significand = arrays["multiplier"].astype(np.longdouble)
        return np.atleast_1d(np.ldexp(significand, arrays["exponent"].astype(np.int32) - 31))
    return None


def scales_of(plan: Plan, step: Step, *names: str) -> Array | None:
    """The scales of the operand with one of these roles, or of the result where none has one.

    They are an operand of the step or belong to the tensor; None where there are none, or only running tells.
    """
    role = role_of(find(step.operator), *names) or Role(names[0], -1)
    scales = of_step(plan.tensors, step, role).scales
    return None if scales is None else scales.reshape(-1).astype(np.longdouble)


def _layer(plan: Plan, step: Step, inputs: list[Any]) -> Layer:
    seats = seats_of(find(step.operator))
    assert seats is not None, "it is a layer"
    bias = inputs[seats.bias] if seats.bias is not None and seats.bias < len(inputs) else None
    whole = None if bias is None else bias.reshape(-1).astype(np.int64)
    addend = step.arrays["addend"].astype(np.int64) if "addend" in step.arrays else None
    if addend is not None:
        whole = addend if whole is None else whole + addend
    return Layer(step, whole, real_multiplier(plan, step), plan.tensors[step.outputs[0]].type.numpy, addend)


def _constants(plan: Plan, values: Mapping[str, Array]) -> dict[int, Array]:
    known = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
    known.update({i: values[plan.tensors[i].name] for i in plan.inputs})
    return known


def _accumulate(form: LayerForm, step: Step, inputs: list[Any], bias: Array | None, ways: Ways) -> Array:
    """Sums and bias, [N, spatial..., O]."""
    seats = seats_of(find(step.operator))
    assert seats is not None, "it is a layer"
    x, filters = form.image(inputs[seats.image]), form.weights(inputs[seats.weights]).astype(np.int64)
    points = step.arrays.get("weight_zero_points", step.parameters.get("weight_zero_point"))
    filters = filters - np.asarray(points).astype(np.int64).reshape(-1, *(1,) * (filters.ndim - 1))
    if ways.weights is not None:
        filters = ways.weights(filters)
    if not form.axes:
        acc = _product(step, x.astype(np.int64) - step["input_zero_point"], filters.T, ways)
    else:
        images = [_image(form, step, image, filters, ways) for image in x]
        acc = np.stack(images) if images else np.zeros((0, *_out(form, step), len(filters)), np.int64)
    return acc if bias is None else acc + bias


def _out(form: LayerForm, step: Step) -> tuple[int, ...]:
    return tuple(int(step[f"out_{axis}"]) for axis in form.axes)


def _windows(form: LayerForm, step: Step, image: Array) -> Array:
    """A view [out..., taps..., C] of all windows of a padded image."""
    count = len(form.axes)
    reach = [(step[f"filter_{axis}"] - 1) * step[f"dilation_{axis}"] + 1 for axis in form.axes]
    view = np.lib.stride_tricks.sliding_window_view(image, reach, axis=tuple(range(count)))
    index = [slice(None, None, step[f"stride_{axis}"]) for axis in form.axes]
    index += [slice(None), *(slice(None, None, step[f"dilation_{axis}"]) for axis in form.axes)]
    view = np.moveaxis(view[tuple(index)], count, -1)
    return view[tuple(slice(0, size) for size in _out(form, step))]


def _image(form: LayerForm, step: Step, image: Array, filters: Array, ways: Ways) -> Array:
    zero_point = step["input_zero_point"]
    outside = 0 if ways.pad_code is None else ways.pad_code(step) - zero_point
    wide = image.astype(np.int64) - zero_point
    for axis, suffix in enumerate(form.axes):
        wide = padded(wide, axis, step, suffix, int(step[SIDES[suffix][0]]), outside, ways.pad_mode)
    out, view, groups = _out(form, step), _windows(form, step, wide), form.groups
    depth, per_group = filters.shape[-1], len(filters) // groups
    if depth == 1 and groups > 1:
        taps = filters.reshape(len(filters), -1).T
        rows = view.reshape(int(np.prod(out)), len(taps), -1)
        if per_group > 1:
            rows = np.repeat(rows, per_group, axis=2)
        if ways.products is not None:
            acc = ways.products(step, rows, taps[None])
        else:
            acc = np.einsum("rkc,kc->rc", rows.astype(np.float64), taps.astype(np.float64)).astype(np.int64)
        return acc.reshape(*out, len(filters))
    found = np.empty((*out, len(filters)), np.int64)
    for g in range(groups):
        matrix = filters[g * per_group : (g + 1) * per_group].reshape(per_group, -1).T
        lines = max(1, _BLOCK // max(1, int(np.prod(out[1:])) * len(matrix) * 8))
        for top in range(0, out[0], lines):
            part = view[top : top + lines, ..., g * depth : (g + 1) * depth]
            acc = _product(step, part.reshape(-1, len(matrix)), matrix, ways)
            found[top : top + lines, ..., g * per_group : (g + 1) * per_group] = acc.reshape(-1, *out[1:], per_group)
    return found


def padded(image: Array, axis: int, step: Step, suffix: str, before: int, outside: int, mode: str) -> Array:
    """One axis padded as far as its windows reach; `before` may be negative: windows begin inside then."""
    reach = (step[f"filter_{suffix}"] - 1) * step[f"dilation_{suffix}"] + 1
    needed = (step[f"out_{suffix}"] - 1) * step[f"stride_{suffix}"] + reach
    if before < 0:
        image, before = np.take(image, range(-before, image.shape[axis]), axis), 0
    pads = [(0, 0)] * image.ndim
    pads[axis] = before, max(0, needed - before - image.shape[axis])
    if mode:
        return np.asarray(np.pad(image, pads, mode=mode))  # type: ignore[call-overload]
    return np.pad(image, pads, constant_values=outside)


def _product(step: Step, rows: Array, matrix: Array, ways: Ways) -> Array:
    if ways.products is not None:
        # [rows, K, N]: every product on its own, so that the order of sums can be chosen.
        return ways.products(step, rows[:, :, None], matrix[None])
    # Sums of 8- and 16-bit products stay far below 2^53, so binary64 is exact.
    return (rows.astype(np.float64) @ matrix.astype(np.float64)).astype(np.int64)
