"""gru: gated recurrent units over whole sequences of real numbers.

Weights, biases and gates come in the order z, r, n (update, reset, candidate).
z = F(x Wz^T + h Rz^T + bz), r = F(x Wr^T + h Rr^T + br), n = G(x Wn^T + (r * h) Rn^T + bn), or, with
`linear_before_reset`, n = G(x Wn^T + r * (h Rn^T + rbn) + wbn); h = (1 - z) * n + z * h. F and G are `functions`; what
enters them is limited to -clip..clip. Operands: x, w[D, 3H, I], r[D, 3H, H], bias[D, 6H], lengths, h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...rules import real_product, recurrence
from ...rules.real_product import Layout
from ..core.base import Call, Lowered, Operator, Shape, Step
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
    sizes = layer_sizes(call, 3)
    check_common(call, sizes, 3, _STATES)
    return sizes


def infer(call: Call) -> list[Shape]:
    """y and the last hidden states."""
    call.expect((3, 6), None)
    return result_shapes(call, _sizes(call), 1)


def lower(call: Call) -> Lowered:
    """Functions, and which weights are constants: those are packed before they are used."""
    sizes = _sizes(call)
    check_functions(call, 2 * sizes.directions, tuple(recurrence.RULES[call.rules["recurrence"]].functions))
    rows, columns = sizes.steps * sizes.batch * sizes.directions, 3 * sizes.hidden
    packed = {name: call.is_stored(i) for name, i in (("packed_w", 1), ("packed_r", 2))}
    return Lowered(
        {**layer_parameters(call), "linear_before_reset": bool(call.attribute("linear_before_reset")), **packed},
        work=rows * columns * (sizes.inputs + sizes.hidden),
        scratch=8 * rows * (columns + sizes.inputs + 2 * sizes.hidden)
        + 24 * columns * (sizes.inputs + 2 * sizes.hidden),
    )


def _in_order(step: Step, x: np.ndarray, w: np.ndarray, r: np.ndarray, b: Any, direction: int) -> Advance:
    """Products with all inputs come first; the hidden state's are added to them, then biases."""
    rule, product = recurrence.RULES[step.rules["recurrence"]], real_product.RULES[step.rules["real_product"]]
    steps, batch, hidden = *x.shape[:2], r.shape[1]
    of_w, of_r = (Layout(packed=step[name], turned_b=True) for name in ("packed_w", "packed_r"))
    first = np.zeros((steps, batch, 3 * hidden), np.float32)
    if steps:
        rows = x.reshape(steps * batch, x.shape[2])
        first = product.apply(rows, w.T, None, 1.0, 1.0, of_w).reshape(first.shape)
    gates, last = r[: 2 * hidden].T, r[2 * hidden :].T
    update, reset, new = (slice(k * hidden, (k + 1) * hidden) for k in range(3))
    own, other = (None, None) if b is None else (b[: 3 * hidden], b[3 * hidden :])
    both = None if own is None else own + other
    before = step["linear_before_reset"]

    def at(biases: Any, gate: slice) -> Any:
        return None if biases is None else biases[gate]

    def enter(value: np.ndarray, bias: Any) -> np.ndarray:
        return rule.limit(value if bias is None else value + bias, step["clip"], bias is not None)

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        h = states[0]
        total = product.apply(h, gates, first[t][:, : 2 * hidden], 1.0, 1.0, of_r)
        opened = _function(
            step, rule.reset, direction, 0, enter(total[:, reset], None if both is None else both[reset])
        )
        if before:
            start = None if other is None else np.broadcast_to(at(other, new), h.shape)
            value = first[t][:, new] + product.apply(h, last, start, 1.0, 1.0, of_r) * opened
            bias = at(own, new)
        else:
            value = product.apply(h * opened, last, first[t][:, new], 1.0, 1.0, of_r)
            bias = at(both, new)
        z = _function(
            step, rule.functions, direction, 0, enter(total[:, update], None if both is None else both[update])
        )
        n = _function(step, rule.candidate, direction, 1, enter(value, bias))
        return [rule.blend(z, n, h)]

    return advance


def _joined(step: Step, x: np.ndarray, w: np.ndarray, r: np.ndarray, b: Any, direction: int) -> Advance:
    """Gates are sums of all their terms; r * h and r * (h Rn^T + rbn) are rounded before they enter a sum."""
    rule, product = recurrence.RULES[step.rules["recurrence"]], real_product.RULES[step.rules["real_product"]]
    hidden = r.shape[1]
    biases = np.zeros((2, 3 * hidden), np.float32) if b is None else b.reshape(2, -1)
    one = np.ones((x.shape[1], 1), np.float32)

    def total(k: int, *terms: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        left, right = zip(*terms, strict=True)
        return product.apply(np.concatenate(left, 1), np.concatenate(right), None, 1.0, 1.0, Layout())

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        h = states[0]

        def gate(k: int, *more: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
            own = slice(k * hidden, (k + 1) * hidden)
            value = total(k, (x[t], w[own].T), (one, biases[:1, own]), *more)
            which = 1 if k == 2 else 0
            return _function(step, rule.functions, direction, which, rule.limit(value, step["clip"], True))

        def of_hidden(k: int, states: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
            own = slice(k * hidden, (k + 1) * hidden)
            return (states, r[own].T), (one, biases[1:, own])

        z, opened = gate(0, *of_hidden(0, h)), gate(1, *of_hidden(1, h))
        if step["linear_before_reset"]:
            n = gate(2, (opened * total(2, *of_hidden(2, h)), np.eye(hidden, dtype=np.float32)))
        else:
            n = gate(2, *of_hidden(2, opened * h))
        return [rule.blend(z, n, h)]

    return advance


def _function(step: Step, known: Any, direction: int, which: int, x: np.ndarray) -> np.ndarray:
    name, alpha, beta = read_functions(step["functions"])[2 * direction + which]
    return np.asarray(known[name](x, alpha, beta))


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Direction by direction."""
    arrays: list[Any] = [*batch_leads(step, inputs, _STATES), *[None] * (6 - len(inputs))]
    x, w, r, bias, lengths, initial = arrays
    spans = sequence_lengths(step, lengths, *x.shape[:2])
    joined = recurrence.RULES[step.rules["recurrence"]].joined
    zero = np.zeros((x.shape[1], r.shape[2]), np.float32)
    ys, lasts = [], []
    for direction, backwards in enumerate(directions(step["direction"])):
        own = (turn(x, spans) if backwards else x)[: int(spans.max(initial=0))]
        b = None if bias is None else bias[direction]
        with np.errstate(all="ignore"):
            advance = (_joined if joined else _in_order)(step, own, w[direction], r[direction], b, direction)
            y, last = walk(advance, spans, [zero if initial is None else initial[direction]], x.shape[0], False)
        ys.append(turn(y, spans) if backwards else y)
        lasts.append(last)
    return results(step, ys, lasts)


OPERATOR = Operator(
    "gru", ("real_product", "recurrence"), infer, lower, reference, "GRU over whole sequences", multiplies=True
)
