"""sequence_rnn: h = F(x W^T + h R^T + wb + rb) over whole sequences of real numbers.

F is the direction's function; what enters it is limited to -clip..clip. Operands: x, w[D, H, I], r[D, H, H],
bias[D, 2H], lengths, h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rules import real_product, recurrence
from ..rules.real_product import Layout
from .base import Call, Lowered, Operator, Shape, Step
from .sequences import (
    Advance,
    Sizes,
    batch_leads,
    check_common,
    check_functions,
    directions,
    layer_parameters,
    layer_sizes,
    result_shapes,
    results,
    sequence_lengths,
    turn,
    walk,
)

_STATES = (5,)


def _sizes(call: Call) -> Sizes:
    sizes = layer_sizes(call, 1)
    check_common(call, sizes, 1, _STATES)
    return sizes


def infer(call: Call) -> list[Shape]:
    """y and the last hidden states."""
    call.expect((3, 6), None)
    return result_shapes(call, _sizes(call), 1)


def lower(call: Call) -> Lowered:
    """The functions."""
    sizes = _sizes(call)
    check_functions(call, sizes.directions, tuple(recurrence.RULES[call.rules["recurrence"]].whole_layer))
    rows = sizes.steps * sizes.batch * sizes.directions
    return Lowered(
        layer_parameters(call),
        work=rows * sizes.hidden * (sizes.inputs + sizes.hidden),
        scratch=8 * rows * (sizes.inputs + 3 * sizes.hidden) + 24 * sizes.hidden * (sizes.inputs + sizes.hidden),
    )


def _advance(step: Step, x: np.ndarray, w: np.ndarray, r: np.ndarray, b: Any, direction: int, known: bool) -> Advance:
    """`known`: there is an initial state."""
    rule, product = recurrence.RULES[step.rules["recurrence"]], real_product.RULES[step.rules["real_product"]]
    (steps, batch), hidden = x.shape[:2], r.shape[1]
    turned = Layout(turned_b=True)
    biases = np.zeros((2, hidden), np.float32) if b is None else b.reshape(2, -1)
    ones = np.ones((batch, 2), np.float32)
    function, alpha, beta = (step[name][direction] for name in ("functions", "alphas", "betas"))
    first = np.zeros((steps, batch, hidden), np.float32)
    if steps and not rule.joined:
        start = np.broadcast_to(biases[0] + biases[1], (steps * batch, hidden))
        first = product.apply(x.reshape(steps * batch, x.shape[2]), w.T, start, 1.0, 1.0, turned).reshape(first.shape)

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        h = states[0]
        if rule.joined:
            left, right = np.concatenate([x[t], h, ones], 1), np.concatenate([w.T, r.T, biases])
            value = product.apply(left, right, None, 1.0, 1.0, Layout())
        elif t or known:
            value = product.apply(h, r.T, None, 1.0, 1.0, turned) + first[t]
        else:
            value = np.float32(0) + first[t]
        return [rule.whole_layer[function](rule.limit(value, step["clip"], False), alpha, beta)]

    return advance


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Direction by direction."""
    x, w, r, bias, lengths, initial = [*batch_leads(step, inputs, _STATES), *[None] * (6 - len(inputs))]
    assert x is not None and w is not None and r is not None
    spans = sequence_lengths(step, lengths, *x.shape[:2])
    zero = np.zeros((x.shape[1], r.shape[2]), np.float32)
    ys, lasts = [], []
    for direction, backwards in enumerate(directions(step["direction"])):
        own = turn(x, spans) if backwards else x
        b = None if bias is None else bias[direction]
        with np.errstate(all="ignore"):
            advance = _advance(step, own, w[direction], r[direction], b, direction, initial is not None)
            y, last = walk(advance, spans, [zero if initial is None else initial[direction]], x.shape[0], False)
        ys.append(turn(y, spans) if backwards else y)
        lasts.append(last)
    return results(step, ys, lasts)


OPERATOR = Operator("sequence_rnn", ("real_product", "recurrence"), infer, lower, reference, "RNN over whole sequences")
