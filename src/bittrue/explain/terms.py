"""Which products make one sum of a layer: the codes, where they lie, their zero points, and the bias.

One function per geometry, from the definition of the layer (index arithmetic alone), so that it is independent of how
the reference unfolds windows; `accumulators` of `accumulators.py` come from the reference, and both are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..operators import Step

Inputs = Sequence["np.ndarray | None"]


@dataclass(frozen=True, eq=False)
class Terms:
    """The products (x - x_zero_point) * (w - w_zero_point) of one sum, in the order of the filter's memory.

    Attributes:
        x, w: codes, one per product; a padded position holds the zero point.
        x_zero_point, w_zero_point: subtracted from every code.
        x_places, w_places: indices of the codes in their tensors, one row per product.
        inside: whether a product's input lies in the picture; False for padding.
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
        """s64 (binary64 for real codes), one per product."""
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
    codes = np.full(len(x_places), points[0], np.int64 if x.dtype.kind in "iu" else x.dtype)
    codes[inside] = x[tuple(x_places[inside].T)]
    bias = None if bias_input is None or bias_input >= len(inputs) else inputs[bias_input]
    place = (channel,) if bias_place is None else bias_place
    if bias is not None and bias_place is None:
        place = tuple(int(i) for i in np.unravel_index(channel, bias.shape)) if bias.ndim else ()
    return Terms(
        codes,
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


def _points(step: Step) -> tuple[int, int]:
    return int(step.parameters.get("input_zero_point", 0)), int(step.parameters.get("weight_zero_point", 0))  # type: ignore[arg-type]


def _window(step: Step, axis: str, side: str, at: int) -> np.ndarray:
    taps = np.arange(step[f"filter_{axis}"], dtype=np.int64)
    return at * step[f"stride_{axis}"] - step[side] + taps * step[f"dilation_{axis}"]


def _conv2d(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    weights = _present(inputs, 1)
    n, y, x, o = element
    depth = weights.shape[3]
    first = o // (weights.shape[0] // step["groups"]) * depth
    rows, columns = _window(step, "h", "pad_top", y), _window(step, "w", "pad_left", x)
    places = _grid(n, rows, columns, range(first, first + depth))
    return _made(inputs, 0, 1, places, _grid(o, *(range(e) for e in weights.shape[1:])), _points(step), o, 2)


def _depthwise(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    weights = _present(inputs, 1)
    n, y, x, o = element
    per_channel = weights.shape[3] // _present(inputs, 0).shape[3]
    rows, columns = _window(step, "h", "pad_top", y), _window(step, "w", "pad_left", x)
    filters = _grid(0, range(weights.shape[1]), range(weights.shape[2]), o)
    return _made(inputs, 0, 1, _grid(n, rows, columns, o // per_channel), filters, _points(step), o, 2)


def _fully_connected(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    x, weights = _present(inputs, 0), _present(inputs, 1)
    units, depth = weights.shape
    flat = int(np.ravel_multi_index(element, step["output_shape"]))
    first = flat // units * depth
    places = np.stack(np.unravel_index(np.arange(first, first + depth), x.shape), axis=-1)
    return _made(inputs, 0, 1, places, _grid(flat % units, range(depth)), _points(step), flat % units, 2)


def _transpose_conv(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    x = _present(inputs, 2)
    n, y, column, o = element
    pairs = []
    for at, axis, side, extent in ((y, "h", "pad_top", x.shape[1]), (column, "w", "pad_left", x.shape[2])):
        taps = [
            (tap, (at + step[side] - tap) // step[f"stride_{axis}"])
            for tap in range(step[f"filter_{axis}"])
            if not (at + step[side] - tap) % step[f"stride_{axis}"]
        ]
        pairs.append([(tap, source) for tap, source in taps if 0 <= source < extent])
    met = [(u, i, v, j) for u, i in pairs[0] for v, j in pairs[1]]
    channels = range(x.shape[3])
    places = np.array([(n, i, j, c) for u, i, v, j in met for c in channels], np.int64).reshape(-1, 4)
    filters = np.array([(o, u, v, c) for u, i, v, j in met for c in channels], np.int64).reshape(-1, 4)
    return _made(inputs, 2, 1, places, filters, _points(step), o, 3)


def _aligned(shape: tuple[int, ...], batch: tuple[int, ...]) -> list[int]:
    """The index of a matrix in an operand of `shape` that broadcasts to the result's batch axes."""
    own = shape[:-2]
    return [0 if extent == 1 else int(at) for extent, at in zip(own, batch[len(batch) - len(own) :], strict=True)]


def _batch_matmul(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    x, y = _present(inputs, 0), _present(inputs, 1)
    *batch, row, column = element
    inner = np.arange(x.shape[-2 if step["adj_x"] else -1])
    left = (inner, row) if step["adj_x"] else (row, inner)
    right = (column, inner) if step["adj_y"] else (inner, column)
    return _made(
        inputs,
        0,
        1,
        _grid(*_aligned(x.shape, tuple(batch)), *left),
        _grid(*_aligned(y.shape, tuple(batch)), *right),
        _points(step),
        column,
    )


_SPATIAL = (("d", "pad_front"), ("h", "pad_top"), ("w", "pad_left"))


def _spatial(x_input: int, w_input: int, bias_input: int | None) -> Callable[[Step, Inputs, tuple[int, ...]], Terms]:
    """Convolutions over one to three axes, channels first or last, weights [O, C / groups, ...]."""

    def terms(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
        weights = _present(inputs, w_input)
        last = bool(step.parameters.get("channels_last", False))
        n, o, *at = (element[0], element[-1], *element[1:-1]) if last else element
        filters, depth = weights.shape[:2]
        first = o // (filters // step["groups"]) * depth
        windows = [
            _window(step, axis, side, position) for (axis, side), position in zip(_SPATIAL[-len(at) :], at, strict=True)
        ]
        channels = range(first, first + depth)
        places = _grid(n, channels, *windows)
        if last:
            places = np.concatenate([places[:, :1], places[:, 2:], places[:, 1:2]], axis=1)
        points = _points(step)[0], _weight_point(step, o)
        weights_at = _grid(o, *(range(extent) for extent in weights.shape[1:]))
        return _made(inputs, x_input, w_input, places, weights_at, points, o, bias_input)

    return terms


def _weight_point(step: Step, channel: int) -> int:
    if "weight_zero_points" in step.arrays:
        points = step.arrays["weight_zero_points"].reshape(-1)
        return int(points[channel if points.size > 1 else 0])
    return _points(step)[1]


def _matmul(x_input: int, w_input: int, bias_input: int | None = None) -> Callable[..., Terms]:
    """NumPy's matrix products, vectors included, with parameters per row and column."""

    def terms(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
        a, b = _present(inputs, x_input), _present(inputs, w_input)
        turned_a, turned_b = (bool(step.parameters.get(name, False)) for name in ("trans_a", "trans_b"))
        rest = list(element)
        column = rest.pop() if b.ndim > 1 else 0
        row = rest.pop() if a.ndim > 1 else 0
        inner = np.arange(a.shape[0] if turned_a or a.ndim == 1 else a.shape[-1])
        left = (inner,) if a.ndim == 1 else (inner, row) if turned_a else (row, inner)
        right = (inner,) if b.ndim == 1 else (column, inner) if turned_b else (inner, column)
        at_a = _aligned(a.shape, tuple(rest)) if a.ndim > 1 else []
        at_b = _aligned(b.shape, tuple(rest)) if b.ndim > 1 else []
        shape_a, shape_b = a.shape[:-2] + (1,) * 2, b.shape[:-2] + (1,) * 2
        points = (
            _point(step, "input_zero_point", (*at_a, row, 0), (*shape_a[:-2], row + 1, 1)),
            _point(step, "weight_zero_point", (*at_b, 0, column), (*shape_b[:-2], 1, column + 1)),
        )
        bias = None if bias_input is None or bias_input >= len(inputs) else inputs[bias_input]
        bias_at: tuple[int, ...] | None = None
        if bias is not None:
            bias_at = tuple(0 if e == 1 else i for e, i in zip(bias.shape, (row, column)[2 - bias.ndim :], strict=True))
        return _made(
            inputs, x_input, w_input, _grid(*at_a, *left), _grid(*at_b, *right), points, column, bias_input, bias_at
        )

    return terms


def _point(step: Step, name: str, index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """A zero point of one row or column; arrays broadcast against the operand."""
    if f"{name}s" not in step.arrays:
        return int(step.parameters.get(name, 0))  # type: ignore[arg-type]
    points = step.arrays[f"{name}s"]
    aligned = index[len(index) - points.ndim :]
    return int(points[tuple(0 if extent == 1 else i for extent, i in zip(points.shape, aligned, strict=True))])


def _whole_fully_connected(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms:
    x, weights = _present(inputs, 0), _present(inputs, 3)
    units, depth = weights.shape
    flat = int(np.ravel_multi_index(element, step["output_shape"]))
    first = flat // units * depth
    places = np.stack(np.unravel_index(np.arange(first, first + depth), x.shape), axis=-1)
    points = int(step["input_zero_point"]), _weight_point(step, flat % units)
    return _made(inputs, 0, 3, places, _grid(flat % units, range(depth)), points, flat % units, 8)


def _sizes(inputs: Inputs) -> list[int]:
    return [array.size for array in inputs if array is not None]


def _present(inputs: Inputs, position: int) -> np.ndarray:
    array = inputs[position]
    assert array is not None
    return array


FAMILIES: dict[str, Callable[[Step, Inputs, tuple[int, ...]], Terms]] = {
    "batch_matmul": _batch_matmul,
    "conv": _spatial(0, 1, 2),
    "conv2d": _conv2d,
    "conv_integer": _spatial(0, 1, None),
    "depthwise_conv2d": _depthwise,
    "fully_connected": _fully_connected,
    "matmul": _matmul(0, 1),
    "matmul_integer": _matmul(0, 1),
    "qgemm": _matmul(0, 3, 6),
    "qlinear_conv": _spatial(0, 3, 8),
    "qlinear_matmul": _matmul(0, 3),
    "transpose_conv": _transpose_conv,
    "whole_conv": _spatial(0, 3, 8),
    "whole_fully_connected": _whole_fully_connected,
}


def terms_of(step: Step, inputs: Inputs, element: tuple[int, ...]) -> Terms | None:
    """The products of the sum behind one element; None for other steps, and where scales are operands of the run."""
    family = FAMILIES.get(step.operator)
    if family is None or step.parameters.get("late") or 0 in _sizes(inputs):
        return None
    return family(step, inputs, element)
