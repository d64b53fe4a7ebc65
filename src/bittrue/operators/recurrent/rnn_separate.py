"""A layer that feeds its output back to itself, with weights of each direction: for a step, along time, or both ways.

    h' = activation(bias + x W^T + a A^T + h R^T)          x [batch, features], W and R [units, ...]; a A^T is optional

along time, in binary32, in this order. With 8-bit weights (slot `row_product`), x, a and h are quantized row by row at
every step, and products with vectors of zeros are skipped. The output is h' of every step.

A `bidirectional` layer has a second cell, backward in time; `merge_outputs` puts its outputs behind the others.
Its auxiliary input a is a second input with weights of its own or, without weights, the input of the second cell. Three
habits of the kernels are part of the result: in time-major layers with 8-bit weights the sequence is run as often as it
is long, with the states going on; in time-major layers, and in those with 8-bit weights, rows of a are taken as far
apart as rows of x; and in layers that are not time major the second cell reads x, never a.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph import Attribute
from ...rules import dot, row_product
from ..core.base import Call, Lowered, Shape, Step
from ..core.stopping import check_stop
from .recurrent import activate, as_s8, check_activation, check_states, is_zero, need_shape, quantize_rows

# Positions of input weights, recurrent weights, bias and state of each cell, and of its auxiliary weights.
FORWARD, BACKWARD = (1, 2, 3, 4, 10), (5, 6, 7, 8, 11)
AUXILIARY = 9


def _cells(call: Call) -> list[tuple[int, int, int, int, int]]:
    return [FORWARD, BACKWARD] if len(call.inputs) == 12 else [FORWARD]


def _sizes(call: Call) -> tuple[int, int, int, bool]:
    """Batches, time steps, features, and whether time comes first."""
    source = call.input(0)
    sequence = bool(call.attribute("sequence"))
    call.rank(source, 3 if sequence else 2)
    if not sequence:
        return source.shape[0], 1, source.shape[1], True
    time_major = bool(call.attribute("time_major"))
    first, second, features = source.shape
    return (second, first, features, True) if time_major else (first, second, features, False)


def _check_cell(call: Call, positions: tuple[int, int, int, int, int], batch: int, features: int) -> int:
    weights = call.input(positions[0], "weights")
    call.rank(weights, 2)
    units = weights.shape[0]
    wanted = zip(positions, ((units, features), (units, units), (units,), (batch, units)), strict=False)
    for (position, shape), role in zip(wanted, ("weights", "recurrent weights", "bias", "state"), strict=True):
        need_shape(call, call.input(position, role), shape, role, "BT-RNN-SHAPE")
    return units


def infer(call: Call) -> list[Shape]:
    """[..., features] -> [..., units]; of two cells [..., units] each, or merged."""
    both = bool(call.attribute("bidirectional"))
    merged = both and bool(call.attribute("merge_outputs"))
    call.expect(12 if both else 5, 2 if both and not merged else 1)
    batch, time, features, time_major = _sizes(call)
    cells = _cells(call)
    units = [_check_cell(call, positions, batch, features) for positions in cells]
    check_states(call, [positions[3] for positions in cells], "BT-RNN-STATE")
    if both:
        _check_auxiliary(call, units, time, time_major)
    shape = call.input(0).shape[:-1]
    return [(*shape, sum(units))] if merged else [(*shape, count) for count in units]


def _check_auxiliary(call: Call, units: list[int], time: int, time_major: bool) -> None:
    weighted = [call.has(positions[4]) for positions in (FORWARD, BACKWARD)]
    if weighted[0] != weighted[1]:
        raise call.invalid("BT-RNN-AUXILIARY", "auxiliary weights are given for one cell only")
    if not call.has(AUXILIARY):
        if weighted[0]:
            raise call.invalid("BT-RNN-AUXILIARY", "auxiliary weights without an auxiliary input")
        return
    source, extra = call.input(0), call.input(AUXILIARY)
    if not weighted[0]:
        need_shape(call, extra, source.shape, "auxiliary input", "BT-RNN-SHAPE")
        return
    call.rank(extra, 3)
    need_shape(call, extra, (*source.shape[:2], extra.shape[2]), "auxiliary input", "BT-RNN-SHAPE")
    for positions, count in zip((FORWARD, BACKWARD), units, strict=True):
        need_shape(call, call.input(positions[4]), (count, extra.shape[2]), "auxiliary weights", "BT-RNN-SHAPE")
    apart = time > 1 if time_major else source.size > source.shape[2] and call.input(1).dtype != "f32"
    if apart and extra.shape[2] < source.shape[2]:
        raise call.unsupported(
            "BT-RNN-AUXILIARY",
            f"{extra.shape[2]} auxiliary features next to {source.shape[2]} features: the kernel reads past their end",
        )


def lower(call: Call) -> Lowered:
    """The activation; of 8-bit weights their scales."""
    batch, time, features, time_major = _sizes(call)
    parameters: dict[str, Attribute] = {"time_major": time_major, "activation": check_activation(call, none=True)}
    arrays: dict[str, np.ndarray] = {}
    scratch = work = 0
    for positions in _cells(call):
        units = call.input(positions[0]).shape[0]
        work += batch * time * units * (features + units)
        scratch += 64 * batch * (features + 4 * units)
        for position in (positions[0], positions[1], positions[4]):
            if call.has(position) and call.input(position).dtype != "f32":
                scratch += 8 * call.constant(position, "weights").size
                arrays[f"scale_{position}"] = np.asarray([call.input(position).scale])
    if arrays:
        parameters["asymmetric"] = bool(call.attribute("asymmetric_quantize_inputs"))
    if len(call.inputs) == 12:
        parameters["merge_outputs"] = bool(call.attribute("merge_outputs"))
        if arrays and parameters["merge_outputs"] and time_major and batch > 1 and not parameters["asymmetric"]:
            raise call.unsupported(
                "BT-RNN-MERGE",
                f"merged outputs of {batch} batches, symmetric inputs: the kernel reads zero points that do not exist",
                "set asymmetric_quantize_inputs when converting, or run the batches one by one",
            )
    return Lowered(parameters=parameters, arrays=arrays, work=work, scratch=scratch)


class _Cell:
    """One cell, bound to its weights."""

    def __init__(self, step: Step, inputs: Sequence[np.ndarray | None], positions: tuple[int, ...]) -> None:
        self.step = step
        self.inputs = inputs
        self.positions = positions
        self.weights: dict[int, row_product.Weights] = {}

    def add(self, total: np.ndarray, position: int, x: np.ndarray, what: str) -> np.ndarray:
        """total + x times the weights at `position`."""
        matrix = self.inputs[position]
        scale = self.step.arrays.get(f"scale_{position}")
        if scale is None:
            return dot.RULES[self.step.rules["dot"]](matrix, x, total)  # type: ignore[arg-type]
        rule = row_product.RULES[self.step.rules["row_product"]]
        if is_zero(x, rule.nan_is_zero):
            return total
        if position not in self.weights:
            self.weights[position] = row_product.Weights(rule, as_s8(matrix), float(scale[0]))  # type: ignore[arg-type]
        return self.weights[position].add(total, quantize_rows(self.step, rule, x, self.step["asymmetric"], what))

    def run(self, x: np.ndarray, extra: np.ndarray | None, h: np.ndarray) -> np.ndarray:
        weights, recurrent, bias, _, auxiliary = self.positions
        total = np.broadcast_to(self.inputs[bias], h.shape)  # type: ignore[arg-type]
        total = self.add(total, weights, x, "the input")
        if extra is not None:
            total = self.add(total, auxiliary, extra, "the auxiliary input")
        return activate(self.step, self.add(total, recurrent, h, "the state"))


def _by_time(x: np.ndarray, time_major: bool) -> np.ndarray:
    return x[None] if x.ndim == 2 else x if time_major else x.swapaxes(0, 1)


def _extra_rows(extra: np.ndarray, features: int, time_major: bool, apart: bool) -> np.ndarray:
    """[time, batch, auxiliary features]; `apart`: rows stand as far apart in memory as those of x."""
    if not apart:
        return _by_time(extra, time_major)
    first, second, count = extra.shape
    flat = extra.reshape(-1)
    if time_major:
        return np.stack([flat[t * features * second :][: second * count].reshape(second, count) for t in range(first)])
    rows = [flat[i * features :][:count] for i in range(first * second)]
    return np.stack(rows).reshape(first, second, count).swapaxes(0, 1)


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs, then the new states."""
    time_major, both = step["time_major"], len(inputs) == 12
    x = _by_time(inputs[0], time_major)
    time, batch, features = x.shape
    extra, second = inputs[AUXILIARY] if both else None, x
    if extra is not None and inputs[FORWARD[4]] is None:
        second, extra = _by_time(extra, True) if time_major else x, None
    hybrid = bool(step.arrays)
    rows = None if extra is None else _extra_rows(extra, features, time_major, time_major or hybrid)
    groups = [slice(0, batch)] if time_major else [slice(b, b + 1) for b in range(batch)]
    repeats = time if both and time_major and hybrid else 1
    outputs, states = [], []
    with np.errstate(all="ignore"):
        for positions, source, order in ((FORWARD, x, 1), (BACKWARD, second, -1))[: 1 + both]:
            cell, h = _Cell(step, inputs, positions), inputs[positions[3]].copy()
            out = np.empty((time, *h.shape), np.float32)
            for group in groups:
                for t in list(range(time))[::order] * repeats:
                    check_stop()
                    h[group] = cell.run(source[t, group], None if rows is None else rows[t, group], h[group])
                    out[t, group] = h[group]
            states.append(h)
            outputs.append(out[0] if inputs[0].ndim == 2 else out if time_major else out.swapaxes(0, 1))
    if both and step["merge_outputs"]:
        outputs = [np.concatenate(outputs, axis=-1)]
    return [np.ascontiguousarray(out) for out in outputs] + states
