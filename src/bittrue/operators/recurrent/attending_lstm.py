"""attending_lstm: long short-term memory that sees, beside its input, what it attended to in a memory one step before.

Gates are those of `lstm_stacked` of the input and the attention, [x, a] w^T. Behind every step, with the hidden states
h: scores = sum over j of v[j] tanh((memory m)[j] + (h q)[j]), and over the first `memory lengths` rows of the memory
a' = softmax(scores) memory; a = a', or with a layer l of [H + D, A], a = h l[:H] + a' l[H:].
Operands: x, w[D, 4H, I + A], r, bias, lengths, h, cell, p as there, then q[D, H, N], m[D, M, N], v[D, N],
memory[B, T, M], its lengths[B], l[D, M + H, A].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...rules import real_function, real_product, recurrence
from ...rules.real_product import Layout
from ..core.base import Call, Lowered, Operator, Shape, Step
from .lstm_stacked import finish, gates
from .sequences import (
    Advance,
    Sizes,
    check_common,
    check_functions,
    check_shape,
    directions,
    layer_parameters,
    layer_sizes,
    result_shapes,
    results,
    sequence_lengths,
    turn,
    walk,
)

_STATES = (5, 6)
_QUERY, _KEYS, _VALUES, _MEMORY, _ROWS, _LAYER = range(8, 14)


def _sizes(call: Call) -> Sizes:
    query, memory = call.input(_QUERY, "q"), call.input(_MEMORY, "memory")
    call.rank(query, 3)
    call.rank(memory, 3)
    depth, wide = memory.shape[2], query.shape[2]
    attended = depth
    if call.has(_LAYER):
        call.rank(call.input(_LAYER), 3)
        attended = call.input(_LAYER).shape[2]
    sizes = layer_sizes(call, 4, beside=attended)
    check_common(call, sizes, 4, _STATES)
    check_shape(call, 7, "the peepholes", (sizes.directions, 3 * sizes.hidden))
    check_shape(call, _QUERY, "q", (sizes.directions, sizes.hidden, wide))
    check_shape(call, _KEYS, "m", (sizes.directions, depth, wide))
    check_shape(call, _VALUES, "v", (sizes.directions, wide))
    check_shape(call, _MEMORY, "memory", (sizes.batch, memory.shape[1], depth))
    check_shape(call, _ROWS, "memory lengths", (sizes.batch,))
    check_shape(call, _LAYER, "l", (sizes.directions, depth + sizes.hidden, attended))
    if 0 in memory.shape or 0 in query.shape or not sizes.steps or not attended:
        raise call.invalid("BT-SHAPE-RECURRENT", "steps, memory and weights must not be empty")
    return sizes


def infer(call: Call) -> list[Shape]:
    """y, the last hidden states and the last cells."""
    call.expect((12, 14), None)
    return result_shapes(call, _sizes(call), 2)


def lower(call: Call) -> Lowered:
    """The functions."""
    sizes, memory = _sizes(call), call.input(_MEMORY)
    check_functions(call, 3 * sizes.directions, tuple(recurrence.RULES[call.rules["recurrence"]].functions))
    rows = sizes.steps * sizes.batch * sizes.directions
    return Lowered(
        {**layer_parameters(call), "input_forget": bool(call.attribute("input_forget"))},
        work=rows * (4 * sizes.hidden * call.input(1).shape[2] + memory.shape[1] * call.input(_QUERY).shape[2]),
        scratch=64 * (rows * 4 * sizes.hidden + memory.size + memory.shape[0] * memory.shape[1] * 4),
    )


def _counted(step: Step, lengths: np.ndarray, most: int, what: str) -> np.ndarray:
    if ((lengths < 1) | (lengths > most)).any():
        raise RunError("BT-SEQUENCE-LENGTH", f"{what} {lengths.tolist()} are not within 1..{most}", place=step.place)
    return lengths


def _attend(step: Step, query: np.ndarray, keys: np.ndarray, v: np.ndarray, memory: Any, rows: Any) -> np.ndarray:
    """Of every sequence what it attends to: scores are summed in order, their exponentials in binary64."""
    rule = recurrence.RULES[step.rules["recurrence"]]
    functions = real_function.RULES[step.rules["real_function"]].functions
    product = real_product.RULES[step.rules["real_product"]]
    out = np.empty((len(query), memory.shape[2]), np.float32)
    for b, count in enumerate(rows):
        scores = np.zeros(count, np.float32)
        for column, factor in zip(functions["tanh"](keys[b, :count] + query[b]).T, v.reshape(-1), strict=True):
            scores = rule.add_product(scores, column, factor)
        powers, total = functions["exp"](scores), 0.0
        for power in powers:
            total += float(power)
        weights = np.zeros((1, memory.shape[1]), np.float32)
        weights[0, :count] = powers / np.float64(total) if total else 1.0 / count
        out[b] = product.apply(weights, memory[b], None, 1.0, 1.0, Layout())[0]
    return out


def _advance(step: Step, own: np.ndarray, arrays: Sequence[Any], direction: int, rows: np.ndarray) -> Advance:
    product, rule = real_product.RULES[step.rules["real_product"]], recurrence.RULES[step.rules["recurrence"]]
    w, r, query, keys, v = (arrays[i][direction] for i in (1, 2, _QUERY, _KEYS, _VALUES))
    bias, peepholes, layer = (None if arrays[i] is None else arrays[i][direction] for i in (3, 7, _LAYER))
    memory, (steps, batch, inputs), hidden = arrays[_MEMORY], own.shape, r.shape[1]
    turned, plain = Layout(turned_b=True), Layout()
    both = None if bias is None else bias[: 4 * hidden] + bias[4 * hidden :]
    parts = None if peepholes is None else peepholes.reshape(3, hidden)
    flat = memory.reshape(-1, memory.shape[2])
    known = product.apply(flat, keys, None, 1.0, 1.0, plain).reshape(*memory.shape[:2], -1)
    first = product.apply(own.reshape(steps * batch, inputs), w[:, :inputs].T, None, 1.0, 1.0, turned)
    first = first.reshape(steps, batch, -1)
    gate = gates(step, direction)
    attended = np.zeros((batch, w.shape[1] - inputs), np.float32)

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        nonlocal attended
        if t:
            # What the step before left: 0 of sequences that have ended.
            asked = product.apply(states[0], query, None, 1.0, 1.0, plain)
            found = _attend(step, asked, known, v, memory, rows)
            if layer is None:
                attended = found
            else:
                begin = product.apply(states[0], layer[:hidden], None, 1.0, 1.0, plain)
                attended = product.apply(found, layer[hidden:], begin, 1.0, 1.0, plain)
        total = product.apply(attended, w[:, inputs:].T, first[t], 1.0, 1.0, turned)
        total = product.apply(states[0], r.T, total, 1.0, 1.0, turned)

        def enter(k: int, cell: np.ndarray | None) -> np.ndarray:
            own_gate = slice(k * hidden, (k + 1) * hidden)
            value = total[:, own_gate]
            if cell is not None and parts is not None:
                value = rule.add_product(value, cell, parts[k])
            if both is not None:
                value = value + both[own_gate]
            return rule.limit(value, step["clip"], both is not None)

        return finish(step, gate, enter, states[1])

    return advance


def reference(step: Step, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Direction by direction."""
    arrays = [*inputs, *[None] * (14 - len(inputs))]
    x, memory, initial = arrays[0], arrays[_MEMORY], [arrays[i] for i in _STATES]
    steps, batch, _ = x.shape
    lengths = _counted(step, sequence_lengths(step, arrays[4], steps, batch), steps, "sequence lengths")
    given = np.full(batch, memory.shape[1]) if arrays[_ROWS] is None else arrays[_ROWS]
    rows = _counted(step, given, memory.shape[1], "memory lengths")
    zero = np.zeros((batch, arrays[2].shape[2]), np.float32)
    ys, lasts = [], []
    for direction, backwards in enumerate(directions(step["direction"])):
        own = (turn(x, lengths) if backwards else x)[: int(lengths.max())]
        with np.errstate(all="ignore"):
            advance = _advance(step, own, arrays, direction, rows)
            begin = [zero if state is None else state[direction] for state in initial]
            y, last = walk(advance, lengths, begin, steps, False)
        ys.append(turn(y, lengths) if backwards else y)
        lasts.append(last)
    return results(step, ys, lasts)


OPERATOR = Operator(
    "attending_lstm",
    ("real_product", "recurrence", "real_function"),
    infer,
    lower,
    reference,
    "LSTM over whole sequences that attends to a memory",
    multiplies=True,
)
