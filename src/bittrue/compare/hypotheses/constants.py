"""Faults of weights and biases: left out, twice, shifted, in another order, with another sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import find
from ...operators.core.roles import seats_of, weights_order
from ..result import Cause
from .case import Case, Hypothesis, change_tensors
from .layers import Layer
from .operands import main_node, with_data

Array = np.ndarray
Change = Callable[[Array], Array]


def constants(case: Case) -> Iterator[Hypothesis]:
    """Changes of the weights and of the bias of the segment's layer."""
    node = main_node(case)
    operator = find(node.operator)
    seats = seats_of(operator)
    if operator is None or seats is None:
        return
    graph = case.segment.graph
    bias, weights = _constant_at(graph, node, seats.bias), weights_read(case)
    # Layers over ranges have a bias of real numbers, in units of their sums.
    if bias is not None and (weights is not None or graph.tensors[bias].type.is_integer):
        yield from _bias(bias)
    if weights is not None:
        index = node.inputs[seats.weights]
        assert index is not None, "they are there"
        yield from _weights(weights, index, weights_order(operator, node.attributes))


def weights_read(case: Case) -> Tensor | None:
    """The constant weights of the segment's layer; None without such."""
    node = main_node(case)
    seats = seats_of(find(node.operator))
    index = None if seats is None else _constant_at(case.segment.graph, node, seats.weights)
    found = None if index is None else case.segment.graph.tensors[index]
    return found if found is not None and found.type.is_integer else None


def _constant_at(graph: Graph, node: Node, position: int | None) -> int | None:
    """The constant at a position; None where there is none."""
    index = None if position is None or position >= len(node.inputs) else node.inputs[position]
    return index if index is not None and graph.tensors[index].is_constant else None


def _bias(index: int) -> Iterator[Hypothesis]:
    ways: tuple[tuple[str, str, Change], ...] = (
        ("bias dropped", "the bias is left out", lambda b: b * 0),
        ("bias added twice", "the bias is added twice", lambda b: b * 2),
        ("bias negated", "the bias is subtracted", lambda b: -b),
        ("bias shifted by one channel", "channel c gets the bias of channel c - 1", lambda b: np.roll(b, 1)),
        ("bias shifted by one channel", "channel c gets the bias of channel c + 1", lambda b: np.roll(b, -1)),
        ("bias of channel 0 for all channels", "all channels get channel 0's bias", lambda b: b * 0 + b[:1]),
        ("bias in reversed order", "the channels' biases are in reversed order", lambda b: b[::-1]),
        ("bias halved", "half of the bias is added", lambda b: b >> 1 if b.dtype.kind == "i" else b / 2),
        ("bias wrapped to 16 bits", "the bias is cut to 16 bits", lambda b: _wrapped(b, np.int16)),
        ("bias saturated to 16 bits", "the bias saturates to 16 bits", lambda b: np.clip(b, -32768, 32767)),
        ("bias wrapped to 8 bits", "the bias is cut to 8 bits", lambda b: _wrapped(b, np.int8)),
    )
    for name, text, change in ways:
        yield _constant(index, name, text, "bias", change, "parameters")
    yield Hypothesis(
        _cause("bias added after rescaling", "the bias is rescaled on its own and added to the rescaled sum"),
        "bias",
        layer={"bias": _no_bias, "end": _bias_behind},
    )
    yield Hypothesis(
        _cause("bias added without rescaling", "the bias is added to the rescaled sum as it is stored"),
        "bias",
        layer={"bias": _no_bias, "end": _raw_bias_behind},
    )


def _wrapped(bias: Array, kind: type[np.signedinteger]) -> Array:
    return bias.astype(np.int64).astype(kind).astype(bias.dtype)


def _no_bias(layer: Layer) -> Array:
    if layer.bias is None:
        raise ValueError("no bias")
    return layer.bias * 0


def _bias_behind(layer: Layer, acc: Array) -> Array:
    bias = np.broadcast_to(_some(layer), acc.shape)
    return layer.stored(layer.rescaled(acc) + layer.rescaled(bias))


def _raw_bias_behind(layer: Layer, acc: Array) -> Array:
    return layer.stored(layer.rescaled(acc) + _some(layer))


def _some(layer: Layer) -> Array:
    if layer.bias is None:
        raise ValueError("no bias")
    return layer.bias


def _weights(tensor: Tensor, index: int, order: str) -> Iterator[Hypothesis]:
    axes = _axes(order, len(tensor.shape))
    for name, text, change in (*_orders(tensor.shape, axes), *_values(axes), *_tails(tensor.shape, axes)):
        yield _constant(index, name, text, "weights", change, "data")
    signed = (
        (
            "weights read as unsigned",
            "negative weights are read as unsigned values",
            lambda w: np.where(w < 0, w + 256, w),
        ),
        ("weights' signs ignored", "weights are taken without their signs", np.abs),
        ("weights negated", "the weights have the wrong sign", np.negative),
    )
    for name, text, change in signed:
        yield Hypothesis(_cause(name, text, "data"), "weights", layer={"weights": change})


def _axes(order: str, rank: int) -> str:
    """One letter per axis: O, I, and D, H, W for the spatial axes; empty where the axes are not those of `order`."""
    found = order.replace("S", "DHW"[5 - rank :] if rank < 5 else "DHW")
    return found if len(found) == rank else ""


def _values(axes: str) -> Iterator[tuple[str, str, Change]]:
    yield "weights -128 read as -127", "weights of -128 count as -127", lambda w: np.maximum(w.astype(int), -127)
    text = "the weights have the wrong sign, and -128 becomes 127"
    yield "weights negated", text, lambda w: np.clip(-w.astype(np.int64), -128, 127)
    yield "weights shifted right by one bit", "the weights lose their lowest bit", lambda w: (w >> 1) << 1
    yield "weights cut to their upper 4 bits", "the weights lose their lowest 4 bits", lambda w: (w >> 4) << 4
    out = axes.find("O")
    if out < 0:
        return
    yield "weights shifted by one output channel", "output channel c uses c - 1's", lambda w: np.roll(w, 1, out)
    yield "weights shifted by one output channel", "output channel c uses c + 1's", lambda w: np.roll(w, -1, out)
    yield "output channels of weights reversed", "the output channels' weights are reversed", lambda w: np.flip(w, out)


def _orders(shape: tuple[int, ...], axes: str) -> Iterator[tuple[str, str, Change]]:
    """Other orders of the taps and channels, and other readings of the same bytes."""
    if len(shape) == 2 and axes:
        out, inner = axes.index("O"), axes.index("I")
        rows, columns = shape
        yield "weights transposed", "the matrix is read column by column", lambda w: _read(w, (columns, rows), (1, 0))
        text = "the inputs' weights are reversed"
        yield "input channels of weights reversed", text, lambda w: np.flip(w, inner)
        text = "the matrix is stored column by column"
        yield "weights stored transposed", text, lambda w: np.ascontiguousarray(w.T).reshape(w.shape)
        yield from _interleaved(inner)
        yield from _flattened(shape[inner], out)
        return
    if not {"H", "W"} <= set(axes):
        return
    height, width = axes.index("H"), axes.index("W")
    if shape[height] == shape[width]:
        text = "height and width of the filters are swapped"
        yield "weights transposed in height and width", text, lambda w: w.swapaxes(height, width)
    yield "weights rotated by 180 degrees", "the filters are rotated", lambda w: np.flip(w, (height, width))
    yield "weights flipped top to bottom", "the filters are upside down", lambda w: np.flip(w, height)
    yield "weights flipped left to right", "the filters are mirrored", lambda w: np.flip(w, width)
    if len(shape) != 4:
        return
    if axes == "IHWO" and shape[0] == 1:
        _, h, w_, i = shape
        text = "the filters are read in another layout"
        yield "weights HWC read as CHW", text, _reading((i, h, w_), (1, 2, 0), first=True)
        yield "weights HWC read as WHC", text, _reading((w_, h, i), (1, 0, 2), first=True)
        return
    out, inner = axes.index("O"), axes.index("I")
    if shape[inner] > 1:
        text = "the input channels' weights are reversed"
        yield "input channels of weights reversed", text, lambda w: np.flip(w, inner)
    if shape[out] == shape[inner]:
        text = "input and output channels of the filters are swapped"
        yield "weights transposed in input and output channels", text, lambda w: w.swapaxes(out, inner)
    for other in ("OHWI", "HWIO", "OIHW", "IHWO", "HWOI", "OWHI"):
        if other == axes:
            continue
        sizes = tuple(shape[axes.index(letter)] for letter in other)
        back = tuple(other.index(letter) for letter in axes)
        text = "the filters are read in another layout"
        yield f"weights {axes} read as {other}", text, _reading(sizes, back)
        text = "the filters are stored in another layout"
        yield f"weights stored as {other}, read as {axes}", text, _stored(back)


def _read(weights: Array, order: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The same bytes taken as an array of shape `order`, brought back to the filters' axes."""
    return np.ascontiguousarray(weights).reshape(order).transpose(axes)


def _reading(order: tuple[int, ...], axes: tuple[int, ...], first: bool = False) -> Change:
    """`_read` as a change; with `first` of the only element of the leading axis."""
    return (lambda w: _read(w[0], order, axes)[None]) if first else (lambda w: _read(w, order, axes))


def _stored(axes: tuple[int, ...]) -> Change:
    """The inverse of `_reading`: filters laid down with these axes moved back, and read as they should be."""
    return lambda w: np.ascontiguousarray(w.transpose(np.argsort(axes))).reshape(w.shape)


def _flattened(inputs: int, out: int) -> Iterator[tuple[str, str, Change]]:
    """Inputs that were flattened with channels first where they should be last, or the other way round."""
    for channels in range(2, inputs // 2 + 1):
        if inputs % channels == 0:
            text = f"the inputs are flattened in another order: {inputs // channels} by {channels} are swapped"
            yield "input flattened in another layout", text, _swapping(channels, out)


def _swapping(channels: int, out: int) -> Change:
    def swapped(w: Array) -> Array:
        rows = np.moveaxis(w, out, 0)
        return np.moveaxis(rows.reshape(rows.shape[0], -1, channels).swapaxes(1, 2).reshape(rows.shape), 0, out)

    return swapped


def _interleaved(axis: int) -> Iterator[tuple[str, str, Change]]:
    def swapped(w: Array) -> Array:
        if w.shape[axis] % 2:
            raise ValueError("an odd number of inputs")
        pairs = w.reshape(*w.shape[:axis], -1, 2, *w.shape[axis + 1 :])
        return np.flip(pairs, axis + 1).reshape(w.shape)

    yield "neighbouring weights swapped", "two and two neighbouring inputs' weights are swapped", swapped


def _tails(shape: tuple[int, ...], axes: str) -> Iterator[tuple[str, str, Change]]:
    """Products left out at the end: what vector loops forget."""
    inner = axes.find("I")
    if inner < 0 or shape[inner] < 2:
        return
    depth = shape[inner]
    yield "last input channel left out", "the last input channel is left out", _without(inner, depth - 1)
    yield "first input channel left out", "the first input channel is left out", _without(inner, 0, 1)
    for block in (4, 8, 16, 32, 64):
        if depth % block and depth > block and depth % block != 1:
            name = f"input channels beyond whole blocks of {block} left out"
            text = f"the last {depth % block} input channels, beyond whole blocks of {block}, are left out"
            yield name, text, _without(inner, depth - depth % block)


def _without(axis: int, first: int, last: int | None = None) -> Change:
    def changed(weights: Array) -> Array:
        kept = weights.copy()
        np.moveaxis(kept, axis, 0)[first:last] = 0
        return kept

    return changed


def _constant(index: int, name: str, text: str, seat: str, change: Change, kind: str) -> Hypothesis:
    def changed(tensor: Tensor) -> Tensor:
        old = tensor.values()
        new = change(old)
        if new.shape != old.shape:
            raise ValueError("another shape")
        return with_data(tensor, new)

    def graph(old: Graph) -> Graph:
        return change_tensors(old, {index: changed})

    return Hypothesis(_cause(name, text, kind), seat, graph=graph)


def _cause(name: str, text: str, kind: str = "parameters") -> Cause:
    return Cause(name, f"{text}: a fault", kind, False)
