"""h = F(x W^T + h R^T + wb + rb) over whole sequences of real numbers, with the weights of all directions stacked.

F is the direction's function; what enters it is limited to -clip..clip. Operands: x, w[D, H, I], r[D, H, H],
bias[D, 2H], lengths, h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...rules import real_product, recurrence
from ...rules.real_product import Layout
from ..core.base import Call, Lowered, Shape, Step
from .sequences import (
    Advance,
    Sizes,
    batch_leads,
    check_common,
    check_functions,
    directions,
    layer_parameters,
    layer_sizes,
    read_functions,
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


def _advance(step: Step, x: np.ndarray, w: np.ndarray, r: np.ndarray, b: Any, direction: int, known: Any) -> Advance:
    """`known`: which sequences have a state at first that is multiplied with `r`."""
    rule, product = recurrence.RULES[step.rules["recurrence"]], real_product.RULES[step.rules["real_product"]]
    (steps, batch), hidden = x.shape[:2], r.shape[1]
    turned = Layout(turned_b=True)
    biases = np.zeros((2, hidden), np.float32) if b is None else b.reshape(2, -1)
    ones = np.ones((batch, 2), np.float32)
    function, alpha, beta = read_functions(step["functions"])[direction]
    first = np.zeros((steps, batch, hidden), np.float32)
    if steps and not rule.joined:
        start = np.broadcast_to(biases[0] + biases[1], (steps * batch, hidden))
        first = product.apply(x.reshape(steps * batch, x.shape[2]), w.T, start, 1.0, 1.0, turned).reshape(first.shape)

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        h = states[0]
        if rule.joined:
            left, right = np.concatenate([x[t], h, ones], 1), np.concatenate([w.T, r.T, biases])
            value = product.apply(left, right, None, 1.0, 1.0, Layout())
        else:
            recurrent = product.apply(h, r.T, None, 1.0, 1.0, turned)
            value = (recurrent if t else np.where(known, recurrent, np.float32(0))) + first[t]
        # Without a threshold, infinities stay.
        limited = rule.limit(value, step["clip"], False) if step["clip"] else value
        return [rule.whole_layer[function](limited, alpha, beta)]

    return advance


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Direction by direction."""
    arrays: list[Any] = [*batch_leads(step, inputs, _STATES), *[None] * (6 - len(inputs))]
    x, w, r, bias, lengths, initial = arrays
    spans = sequence_lengths(step, lengths, *x.shape[:2])
    joined = recurrence.RULES[step.rules["recurrence"]].joined
    # Walking backwards, steps behind the end set the state to 0.
    behind = step["direction"] == "reverse" and len(x)
    if not (joined or behind) and (spans == 0).any() and len(step.outputs) > 1:
        raise RunError(
            "BT-SEQUENCE-LENGTH",
            "a sequence without steps has no last state",
            place=step.place,
            advice="leave it out of the batch",
        )
    zero = np.zeros((x.shape[1], r.shape[2]), np.float32)
    ys, lasts = [], []
    for direction, backwards in enumerate(directions(step["direction"])):
        own = turn(x, spans) if backwards else x
        b = None if bias is None else bias[direction]
        with np.errstate(all="ignore"):
            known = np.reshape((spans < len(x)) & backwards | (initial is not None), (-1, 1))
            advance = _advance(step, own, w[direction], r[direction], b, direction, known)
            y, last = walk(advance, spans, [zero if initial is None else initial[direction]], x.shape[0], False)
        ys.append(turn(y, spans) if backwards else y)
        lasts.append(last)
    return results(step, ys, lasts)
