"""Which products make one sum of a layer: the quantized values, where they lie, their zero points, and the bias.

From the definition of convolutions and matrix products (index arithmetic alone) and the roles that operators state, so
that it is independent of how the reference unfolds windows; `accumulators` of `accumulators.py` come from the
reference, and both are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..operators import Operator, Step, find
from ..operators.core.role_quantization import at
from ..operators.core.roles import Seats, position_of, weights_order
from .late import settled

Inputs = Sequence["np.ndarray | None"]


@dataclass(frozen=True, eq=False)
class Terms:
    """The products (x - x_zero_point) * (w - w_zero_point) of one sum, in the order of the filter's memory.

    Attributes:
        x, w: quantized values, one per product; a padded position holds the zero point.
        x_zero_point, w_zero_point: subtracted from every quantized value.
        x_places, w_places: indices of the quantized values in their tensors, one row per product.
        inside: whether a product's input lies in the image; False for padding.
        x_input, w_input: positions of both tensors among the step's inputs.
        channel: position of the element along the axis of the prepared multipliers.
        bias: what is added; None without one.
        bias_input, bias_place: where it lies.
    """

    x: np.ndarray
    w: np.ndarray
    x_zero_point: int
    w_zero_point: int
    x_places: np.ndarray
    w_places: np.ndarray
    inside: np.ndarray
    x_input: int
    w_input: int
    channel: int
    bias: int | float | None = None
    bias_input: int = -1
    bias_place: tuple[int, ...] = ()

    @property
    def products(self) -> np.ndarray:
        """s64 (binary64 where they are real), one per product."""
        kind = np.int64 if self.x.dtype.kind in "iu" and self.w.dtype.kind in "iu" else np.float64
        return (self.x.astype(kind) - kind(self.x_zero_point)) * (self.w.astype(kind) - kind(self.w_zero_point))


def _made(
    inputs: Inputs,
    x_input: int,
    w_input: int,
    x_places: np.ndarray,
    w_places: np.ndarray,
    points: tuple[int, int],
    channel: int,
    bias_input: int | None = None,
    bias_place: tuple[int, ...] | None = None,
) -> Terms:
    x, w = inputs[x_input], inputs[w_input]
    assert x is not None
    assert w is not None
    x_places, w_places = x_places.reshape(-1, x.ndim), w_places.reshape(-1, w.ndim)
    inside = np.all((x_places >= 0) & (x_places < np.array(x.shape)), axis=1)
    quantized = np.full(len(x_places), points[0], np.int64 if x.dtype.kind in "iu" else x.dtype)
    quantized[inside] = x[tuple(x_places[inside].T)]
    bias = None if bias_input is None or bias_input >= len(inputs) else inputs[bias_input]
    place = (channel,) if bias_place is None else bias_place
    if bias is not None and bias_place is None:
        place = tuple(int(i) for i in np.unravel_index(channel, bias.shape)) if bias.ndim else ()
    return Terms(
        quantized,
        w[tuple(w_places.T)],
        *points,
        x_places,
        w_places,
        inside,
        x_input,
        w_input,
        channel,
        None if bias is None else bias[place].item(),
        -1 if bias is None or bias_input is None else bias_input,
        () if bias is None else place,
    )


def _grid(*axes: np.ndarray | range | int) -> np.ndarray:
    """All combinations, one per row, the last axis fastest."""
    parts = [np.atleast_1d(np.asarray(axis, np.int64)) for axis in axes]
    return np.stack(np.meshgrid(*parts, indexing="ij"), axis=-1).reshape(-1, len(parts))


def terms_of(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms | None:
    """The products of the sum behind one element; None for other steps, and where scales are operands of the run."""
    step, operator = settled(step, inputs), find(step.operator)
    x, w = (position_of(operator, *names) for names in (("input", "first input"), ("weights", "second input")))
    if operator is None or not operator.multiplies or x is None or w is None:
        return None
    if (
        step.parameters.get("late")
        or step.parameters.get("block_size")
        or any(array is not None and not array.size for array in inputs)
    ):
        return None
    layer = _Layer(operator, step, inputs, Seats(x, w, position_of(operator, "bias")))
    terms = _convolution(layer, element) if "S" in operator.weights else _product(layer, element)
    if "accumulate" not in step.rules:
        return terms
    terms = _integers(terms)
    # Some layers take differences modulo 2^16.
    centered = np.concatenate([terms.x - terms.x_zero_point, terms.w - terms.w_zero_point])
    return terms if np.abs(centered).max(initial=0) <= 2**15 else None


@dataclass(frozen=True)
class _Layer:
    operator: Operator
    step: Step
    inputs: Inputs
    seats: Seats

    def array(self, position: int) -> np.ndarray:
        array = self.inputs[position]
        assert array is not None
        return array

    def known(self, *names: str) -> Any:
        """The first of these parameters that the step has."""
        return next((self.step[name] for name in names if name in self.step.parameters), None)

    def weight_point(self, channel: int) -> int:
        """The zero point of the filters of one output channel, which may be an operand."""
        role = next((role for role in self.operator.roles if role.position == self.seats.weights), None)
        points = self.step.arrays.get("weight_zero_points", self.known("weight_zero_point"))
        if points is None and role is not None:
            points = at(self.inputs, role.zero_point)
        flat = np.asarray(0 if points is None else points).reshape(-1)
        return int(flat[channel % flat.size])

    def image_point(self) -> int:
        """The zero point of the image, which may be an operand."""
        role = next(role for role in self.operator.roles if role.position == self.seats.image)
        point = self.known("input_zero_point")
        if point is None and (given := at(self.inputs, role.zero_point)) is not None:
            point = given.reshape(-1)[0]
        return int(point or 0)


_SIDES = {"d": "front", "h": "top", "w": "left"}


def _axes(layer: _Layer, rank: int) -> list[tuple[int, int, int]]:
    """Stride, dilation and pad before every spatial axis."""
    if layer.known("stride", "strides") is not None:
        dilations = layer.known("dilation", "dilations")
        return list(
            zip(layer.known("stride", "strides"), dilations, layer.known("pad", "pads", "before"), strict=False)
        )
    found = []
    for axis in "dhw"[-rank:]:
        dilation = layer.known(f"dilation_{axis}")
        before = layer.step[f"pad_{_SIDES[axis]}"]
        found.append((layer.step[f"stride_{axis}"], 1 if dilation is None else dilation, before))
    return found


def _convolution(layer: _Layer, element: tuple[int, ...]) -> Terms:
    """Windows over one to three axes, in any layout; those of transposed convolutions lie in the result."""
    seats, order = layer.seats, weights_order(layer.operator, layer.step.parameters)
    x, weights = layer.array(seats.image), layer.array(seats.weights)
    rank = weights.ndim - 2
    last = bool(layer.known("channels_last"))
    n, o, *at = (element[0], element[-1], *element[1:-1]) if last else element
    letters = order.replace("S", "dhw"[-rank:])
    filters, channels = weights.shape[letters.index("O")], x.shape[-1 if last else 1]
    groups = layer.known("groups") or 1
    ranges: dict[str, range] = {axis: range(weights.shape[letters.index(axis)]) for axis in "dhw"[-rank:]}
    if "I" not in letters:
        first, ranges["1"] = o // (filters // channels), range(1)
    elif layer.operator.transposed:
        group = o // filters
        first, ranges["I"] = 0, range(group * (channels // groups), (group + 1) * (channels // groups))
    else:
        depth = weights.shape[letters.index("I")]
        first, ranges["I"] = o // (filters // groups) * depth, range(depth)
    own = o % filters if layer.operator.transposed else o
    ranges["O"] = range(own, own + 1)
    places = _grid(*(ranges[letter] for letter in letters))
    column = {letter: places[:, number] for number, letter in enumerate(letters)}
    inside = np.ones(len(places), bool)
    spatial = []
    for axis, (stride, dilation, before), to, size in zip(
        "dhw"[-rank:], _axes(layer, rank), at, x.shape[1:-1] if last else x.shape[2:], strict=True
    ):
        if layer.operator.transposed:
            source, rest = np.divmod(to + before - column[axis] * dilation, stride)
            inside &= (rest == 0) & (source >= 0) & (source < size)
        else:
            source = to * stride - before + column[axis] * dilation
        spatial.append(source)
    channel = first + column.get("I", np.zeros(len(places), np.int64))
    sources = [np.full(len(places), n), *spatial, channel] if last else [np.full(len(places), n), channel, *spatial]
    points = layer.image_point(), layer.weight_point(o)
    # Taps of transposed convolutions that meet nothing are no padding.
    x_places, w_places = np.stack(sources, axis=1)[inside], places[inside]
    return _made(layer.inputs, seats.image, seats.weights, x_places, w_places, points, o, seats.bias)


def _aligned(shape: tuple[int, ...], batch: tuple[int, ...]) -> list[int]:
    """The index of a matrix in an operand of `shape` that broadcasts to the result's batch axes."""
    own = shape[:-2]
    return [0 if size == 1 else int(at) for size, at in zip(own, batch[len(batch) - len(own) :], strict=True)]


def _product(layer: _Layer, element: tuple[int, ...]) -> Terms:
    """NumPy's matrix products, vectors included, with parameters per row and column; of filters [O, K], rows of x."""
    seats, step = layer.seats, layer.step
    a, b = layer.array(seats.image), layer.array(seats.weights)
    if layer.operator.weights == "OI":
        units, depth = b.shape
        flat = int(np.ravel_multi_index(element, step["output_shape"]))
        first, unit = flat // units * depth, flat % units
        places = np.stack(np.unravel_index(np.arange(first, first + depth), a.shape), axis=-1)
        points = layer.image_point(), layer.weight_point(unit)
        return _made(
            layer.inputs, seats.image, seats.weights, places, _grid(unit, range(depth)), points, unit, seats.bias
        )
    turned_a, turned_b = layer.known("transpose_a"), layer.known("transpose_b")
    rest = list(element)
    column = rest.pop() if b.ndim > 1 else 0
    row = rest.pop() if a.ndim > 1 else 0
    inner = np.arange(a.shape[-2 if turned_a and a.ndim > 1 else -1])
    left = (inner,) if a.ndim == 1 else (inner, row) if turned_a else (row, inner)
    right = (inner,) if b.ndim == 1 else (column, inner) if turned_b else (inner, column)
    at_a = _aligned(a.shape, tuple(rest)) if a.ndim > 1 else []
    at_b = _aligned(b.shape, tuple(rest)) if b.ndim > 1 else []
    points = (
        _point(step, "input_zero_point", (*at_a, row, 0)),
        _point(step, "weight_zero_point", (*at_b, 0, column)),
    )
    bias = None if seats.bias is None or seats.bias >= len(layer.inputs) else layer.inputs[seats.bias]
    bias_at: tuple[int, ...] | None = None
    if bias is not None:
        bias_at = tuple(0 if e == 1 else i for e, i in zip(bias.shape, (row, column)[2 - bias.ndim :], strict=True))
    return _made(
        layer.inputs,
        seats.image,
        seats.weights,
        _grid(*at_a, *left),
        _grid(*at_b, *right),
        points,
        column,
        seats.bias,
        bias_at,
    )


def _point(step: Step, name: str, index: tuple[int, ...]) -> int:
    """A zero point of one row or column; arrays broadcast against the operand."""
    if f"{name}s" not in step.arrays:
        return int(step.parameters.get(name, 0))  # type: ignore[arg-type]
    points = step.arrays[f"{name}s"]
    aligned = index[len(index) - points.ndim :]
    return int(points[tuple(0 if size == 1 else i for size, i in zip(points.shape, aligned, strict=True))])


def _integers(terms: Terms) -> Terms:
    """Integers that lie in tensors of real numbers, as integers."""
    if terms.x.dtype.kind in "iu" and terms.w.dtype.kind in "iu":
        return terms
    bias = 0.0 if terms.bias is None else float(terms.bias)
    numbers = np.concatenate([terms.x, terms.w, [bias]]).astype(np.float64)
    if not (np.isfinite(numbers) & (np.rint(numbers) == numbers)).all():
        return terms
    whole = None if terms.bias is None else int(bias)
    return replace(terms, x=terms.x.astype(np.int64), w=terms.w.astype(np.int64), bias=whole)
