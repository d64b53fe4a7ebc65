"""Long short-term memory on real numbers, with real weights or with 8-bit weights; step by step along time.

For each gate: g = bias + W x + R h + P * c; with layer normalization g = normal(W x + R h + P * c) * weights + bias.
Then i, f, o = logistic(g), j = activation(g), and

    c' = clip(f * c + j * i)      h' = o * activation(c'), with a projection clip(bias + projection h')

Without the input gate's weights, i = 1 - f. The output gate's peephole sees c'. Every operation is one binary32
operation, in the order written, but for products that the rule of `multiply_add` joins with what they are added to
(diagonals, peepholes, j * i); the slot `dot` orders the sums of products with real weights, `gate_normalization` those
of a normalized gate. With 8-bit weights (slot `row_product`), x, h and what is projected are quantized row by row at
every step. Products with vectors of zeros are skipped. A recurrent weight vector is a diagonal matrix.

Where a gate stands in memory decides which of its elements the logistic function computes in vectors, so the steps of a
layer that is not time major, one batch after the other, differ from those of one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ...graph import Attribute
from ...rules import activation, dot, gate_normalization, multiply_add, row_product
from ..core.base import Call, Lowered, Step
from ..core.stopping import check_stop
from .lstm_layout import (
    AUXILIARY,
    BIASES,
    CELL_STATE,
    GATES,
    INPUT_WEIGHTS,
    NORMS,
    OUTPUT_STATE,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT_WEIGHTS,
    Sizes,
    by_time,
    like_input,
)
from .recurrent import activate, as_s8, check_activation, is_zero, quantize_rows, within

_f32 = np.float32
_ROOM = 16


def lower(call: Call, sizes: Sizes, room: int = _ROOM) -> Lowered:
    """Clips and activation; of 8-bit weights their scales, and real peephole weights.

    Kernels keep a projection's bias where there is room for a gate and `room` more numbers.
    """
    parameters: dict[str, Attribute] = {
        "time_major": sizes.time_major,
        "activation": check_activation(call, none=False),
        "cell_clip": float(_f32(call.attribute("cell_clip"))),
        "projection_clip": float(_f32(call.attribute("proj_clip"))),
    }
    arrays: dict[str, np.ndarray] = {}
    scratch = 64 * sizes.batch * (sizes.features + sizes.cells + sizes.outputs)
    hybrid = call.input(INPUT_WEIGHTS + 3).dtype != "f32"
    if hybrid:
        parameters["asymmetric"] = bool(call.attribute("asymmetric_quantize_inputs"))
        positions = (*range(1, 9), PROJECTION, *range(AUXILIARY, AUXILIARY + 4))
        matrices = [p for p in positions if call.has(p) and call.input(p).dtype != "f32"]
        for position in matrices:
            scratch += 8 * call.constant(position, "weights").size
            arrays[f"scale_{position}"] = np.asarray([call.input(position).scale])
        for position in (p for p in PEEPHOLES.values() if call.has(p)):
            weights = as_s8(call.constant(position, "peephole weights"))
            arrays[f"peephole_{position}"] = weights.astype(np.float32) * call.input(position).scale
    elif sizes.batch > 1 and sizes.time_major:
        raise call.unsupported(
            "BT-LSTM-BATCH",
            f"{sizes.batch} batches at once with real weights: the order of additions is not reproduced",
            "run the batches one by one, or with an input that is not time major",
        )
    if not hybrid and sizes.outputs > sizes.cells + room:
        raise call.unsupported(
            "BT-LSTM-SHAPE", f"a projection from {sizes.cells} cells to {sizes.outputs} outputs overruns kernel memory"
        )
    return Lowered(parameters=parameters, arrays=arrays, work=sizes.work, scratch=scratch)


def _clip(x: np.ndarray, limit: float) -> np.ndarray:
    """[-limit, limit] unless limit is 0; NaN becomes limit."""
    if not limit > 0:
        return x
    below = np.where(x < _f32(limit), x, _f32(limit))
    return np.where(below < _f32(-limit), _f32(-limit), below)


class Cell:
    """One layer's arithmetic for one time step of some batches, bound to its weights."""

    def __init__(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self.step = step
        self.inputs = inputs
        self.dot = dot.RULES[step.rules["dot"]]
        self.activation = activation.RULES[step.rules["activation"]]
        self.add = multiply_add.RULES[step.rules["multiply_add"]].apply
        self.normalized = gate_normalization.RULES[step.rules["gate_normalization"]]
        self.with_input = inputs[INPUT_WEIGHTS] is not None
        recurrent = [inputs[RECURRENT_WEIGHTS + gate] for gate in range(4)]
        self.with_matrix = any(matrix is not None and matrix.ndim == 2 for matrix in recurrent)
        self.weights: dict[int, row_product.Weights] = {}
        self.hybrid = f"scale_{INPUT_WEIGHTS + 3}" in step.arrays
        if self.hybrid:
            self.rule = row_product.RULES[step.rules["row_product"]]
        self.zero = partial(is_zero, by_fours=not self.hybrid or self.rule.nan_is_zero)

    def quantize(self, x: np.ndarray, what: str) -> np.ndarray | row_product.QuantizedRows | None:
        """What `product` takes of x: rows, quantized where weights are; None for a vector of zeros."""
        if not self.hybrid:
            return x
        if self.zero(x):
            return None
        return quantize_rows(self.step, self.rule, x, self.step["asymmetric"], what)

    @property
    def place(self) -> str:
        return self.step.place

    def product(self, position: int, x: np.ndarray | row_product.QuantizedRows, start: np.ndarray) -> np.ndarray:
        """start + the product with the matrix at `position`."""
        matrix = self.inputs[position]
        if isinstance(x, np.ndarray):
            return within(self.dot(matrix, x, start))  # type: ignore[arg-type]
        if position not in self.weights:
            scale = float(self.step.arrays[f"scale_{position}"][0])
            self.weights[position] = row_product.Weights(self.rule, as_s8(matrix), scale)  # type: ignore[arg-type]
        return self.weights[position].add(start, x)

    def open(
        self, name: str, sources: list[tuple[int, object]], h: np.ndarray, rows: object, c: np.ndarray
    ) -> np.ndarray:
        """A gate before its activation function; rows is None where h is all zeros."""
        offset = GATES.index(name)
        bias, norm = self.inputs[BIASES + offset], _at(self.inputs, NORMS + offset)
        shape = (len(h), len(bias))  # type: ignore[arg-type]
        value = np.zeros(shape, _f32) if norm is not None else np.broadcast_to(bias, shape)  # type: ignore[arg-type]
        for first, x in sources:
            value = self.product(first + offset, x, value)  # type: ignore[arg-type]
        recurrent = self.inputs[RECURRENT_WEIGHTS + offset]
        if rows is not None and recurrent is not None:
            if recurrent.ndim == 1:
                value = self.add(recurrent, h, value)
            else:
                value = self.product(RECURRENT_WEIGHTS + offset, rows, value)  # type: ignore[arg-type]
        peephole = self.inputs[PEEPHOLES[name]] if name in PEEPHOLES else None
        if peephole is not None:
            value = self.add(self.step.arrays.get(f"peephole_{PEEPHOLES[name]}", peephole), c, value)
        if norm is not None:
            value = self.normalized(value) * norm + bias
        return value

    def gate(self, name: str, value: np.ndarray, start: int) -> np.ndarray:
        """The logistic function of a gate whose buffer begins `start` elements behind a boundary."""
        return self.activation.logistic(value.reshape(-1), start).reshape(value.shape)

    def run(
        self, x: np.ndarray, extra: np.ndarray | None, h: np.ndarray, c: np.ndarray, start: dict[str, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """New output and cell state of some batches; `start` says where their gates stand."""
        step = self.step
        # What has weights of its own, as far as it is not all zeros.
        sources: list[tuple[int, object]] = [
            (first, self.quantize(source, what))
            for first, source, what in ((INPUT_WEIGHTS, x, "the input"), (AUXILIARY, extra, "the auxiliary input"))
            if source is not None and not self.zero(source)
        ]
        if self.hybrid and not self.with_matrix:
            # Diagonals take real numbers, but are skipped for zeros like matrices.
            rows: object = None if self.zero(h) else h
        else:
            rows = self.quantize(h, "the output state")
        take = self.gate("input", self.open("input", sources, h, rows, c), start["input"]) if self.with_input else None
        forget = self.gate("forget", self.open("forget", sources, h, rows, c), start["forget"])
        update = activate(step, self.open("cell", sources, h, rows, c))
        c = self.add(update, _f32(1) - forget if take is None else take, forget * c)
        c = _clip(c, step["cell_clip"])
        output = self.gate("output", self.open("output", sources, h, rows, c), start["output"])
        h = output * activate(step, c)
        if self.inputs[PROJECTION] is not None:
            outputs, bias = len(self.inputs[PROJECTION]), self.inputs[PROJECTION_BIAS]  # type: ignore[arg-type]
            first = np.zeros((len(h), outputs), _f32) + (_f32(0) if bias is None else bias)
            projected = self.quantize(h, "the hidden state")
            h = first if projected is None else self.product(PROJECTION, projected, first)
            h = _clip(h, step["projection_clip"])
        return h, c


def _at(inputs: Sequence[np.ndarray | None], position: int) -> np.ndarray | None:
    return inputs[position] if position < len(inputs) else None


def _starts(with_input: bool, cells: int, room: int, first: int) -> dict[str, int]:
    """Where each gate's buffer begins: the gates stand one after the other, `room` elements apart."""
    order = ("input", "cell", "forget", "output") if with_input else ("cell", "forget", "output")
    return {name: place * room + first * cells for place, name in enumerate(order)}


def layer(
    step: Step, inputs: Sequence[np.ndarray | None], extra: np.ndarray | None = None, backward: bool = False
) -> list[np.ndarray]:
    """Outputs as [time, batch, outputs], then the output state and the cell state as [batch, ...].

    `extra` is the auxiliary input as [time, batch, features].
    """
    cell = Cell(step, inputs)
    x = by_time(inputs[0], step["time_major"])  # type: ignore[arg-type]
    time, batch, _ = x.shape
    cells = len(inputs[INPUT_WEIGHTS + 3])  # type: ignore[arg-type]
    h = inputs[OUTPUT_STATE].reshape(batch, -1).copy()  # type: ignore[union-attr]
    c = inputs[CELL_STATE].reshape(batch, -1).copy()  # type: ignore[union-attr]
    out = np.empty((time, *h.shape), _f32)
    groups = [slice(0, batch)] if step["time_major"] else [slice(b, b + 1) for b in range(batch)]
    with np.errstate(all="ignore"):
        for group in groups:
            start = _starts(cell.with_input, cells, batch * cells, group.start)
            for t in reversed(range(time)) if backward else range(time):
                check_stop()
                h[group], c[group] = cell.run(
                    x[t, group], None if extra is None else extra[t, group], h[group], c[group], start
                )
                out[t, group] = h[group]
    return [out, h, c]


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Output, then the new output state and cell state."""
    out, h, c = layer(step, inputs)
    return [
        like_input(out, inputs[0], step["time_major"]),
        h.reshape(inputs[OUTPUT_STATE].shape),
        c.reshape(inputs[CELL_STATE].shape),
    ]
