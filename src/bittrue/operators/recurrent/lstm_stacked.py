"""Long short-term memory over whole sequences of real numbers, with the weights of all gates and directions stacked.

i, o, f, c = the gates of x W^T + h R^T + bias_w + bias_r in this order; with peepholes p, i and f see p * (cell
before), o sees p * (cell after).
i = F(i), f = F(f) (1 - i with `input_forget`), cell = f * cell + i * G(c), h = F(o) * H(cell), where F, G, H are
`functions`; what enters F and G is limited to -clip..clip.

Weights of integers w[D, I, 4H], r[D, H, 4H] have scales and zero points, and what they are multiplied with is
quantized: all x of a direction at once, and all h of one step.
Operands: x, w, r, bias[D, 8H], lengths, h, cell, p[D, 3H] (i, o, f), then scale and zero point of w, of r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...arithmetic.matmul import exact_matmul, product_type
from ...errors import RunError
from ...rules import accumulate, dynamic_range, quotient, real_product, recurrence, scale_back, to_integer
from ...rules.real_product import Layout
from ..core.base import Call, Lowered, Shape, Step
from .sequences import (
    Sizes,
    batch_leads,
    check_common,
    check_functions,
    check_shape,
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

_STATES = (5, 6)
# (rows[M, K], which of w and r, what is added to or None) to [M, 4H]
Project = Callable[[np.ndarray, int, "np.ndarray | None"], np.ndarray]


def _check(call: Call, turned: bool) -> Sizes:
    sizes = layer_sizes(call, 4, turned)
    check_common(call, sizes, 4, _STATES)
    check_shape(call, 7, "the peepholes", (sizes.directions, 3 * sizes.hidden))
    return sizes


def infer(call: Call) -> list[Shape]:
    """y, the last hidden states and the last cells."""
    if len(call.inputs) > 8:
        return _infer_quantized(call)
    call.expect((3, 8), None)
    return result_shapes(call, _check(call, False), 2)


def _infer_quantized(call: Call) -> list[Shape]:
    """The same; scales and zero points are one per direction or one per column of it."""
    call.expect(12, None)
    sizes = _check(call, True)
    wanted = (sizes.directions,), (sizes.directions, 4 * sizes.hidden)
    for position, role in enumerate(("w_scale", "w_zero_point", "r_scale", "r_zero_point"), 8):
        call.input(position, role)
        check_shape(call, position, role, *wanted)
    for scale, point in ((8, 9), (10, 11)):
        if sizes.directions > 1 and call.input(scale).shape != call.input(point).shape:
            raise call.invalid("BT-QUANT-AXIS", "scales and zero points of two directions have different shapes")
    return result_shapes(call, sizes, 2)


def _lowered(call: Call, sizes: Sizes, **more: bool) -> Lowered:
    if not (sizes.steps or recurrence.RULES[call.rules["recurrence"]].joined) and len(call.outputs) > 2:
        raise call.invalid("BT-SEQUENCE-LENGTH", "the runtime does not write the last cells of no steps")
    check_functions(call, 3 * sizes.directions, tuple(recurrence.RULES[call.rules["recurrence"]].functions))
    columns = 4 * sizes.hidden
    rows = sizes.steps * sizes.batch * sizes.directions
    return Lowered(
        {**layer_parameters(call), "input_forget": bool(call.attribute("input_forget")), **more},
        work=rows * columns * (sizes.inputs + sizes.hidden),
        scratch=8 * rows * (columns + sizes.inputs + 2 * sizes.hidden)
        + 24 * columns * (sizes.inputs + 2 * sizes.hidden)
        + 8 * sizes.batch * columns,
    )


def lower(call: Call) -> Lowered:
    """Functions, and which weights are constants: those are packed before they are used.

    With weights of integers: whether y is asked for; without it, hidden states behind a sequence's end are kept.
    """
    if "dynamic_range" in call.rules:
        return _lowered(call, layer_sizes(call, 4, True), keep=not call.attribute("has_sequence"))
    packed = {name: call.is_stored(i) for name, i in (("packed_w", 1), ("packed_r", 2))}
    return _lowered(call, layer_sizes(call, 4), **packed)


def gates(step: Step, direction: int) -> Callable[[int, np.ndarray], np.ndarray]:
    """The direction's three functions by number."""
    rule = recurrence.RULES[step.rules["recurrence"]]
    functions = read_functions(step["functions"])[3 * direction :]

    def apply(which: int, x: np.ndarray) -> np.ndarray:
        name, alpha, beta = functions[which]
        return (rule.cell if which == 2 else rule.functions)[name](x, alpha, beta)

    return apply


def finish(
    step: Step, gate: Callable[[int, np.ndarray], np.ndarray], enter: Callable[..., np.ndarray], cell: np.ndarray
) -> list[np.ndarray]:
    """New states; `enter(k, cell or None)` gives what enters gate k before it is limited."""
    rule = recurrence.RULES[step.rules["recurrence"]]
    i = gate(0, enter(0, cell))
    f = np.float32(1) - i if step["input_forget"] else gate(0, enter(2, cell))
    new = rule.products(f, cell, i, gate(1, enter(3, None)))
    return [gate(2, new) * gate(0, enter(1, new)), new]


def _one(array: Any, direction: int) -> Any:
    return None if array is None else array[direction]


def _run(step: Step, inputs: Sequence[Any], projects: Callable[[int], Project] | None, keep: bool) -> list[np.ndarray]:
    """All directions; without `projects`, gates are sums of all their terms."""
    arrays = [*inputs, *[None] * (12 - len(inputs))]
    x, bias, initial, cells, peepholes = (arrays[i] for i in (0, 3, 5, 6, 7))
    steps, batch, _ = x.shape
    hidden = arrays[2].shape[2] if projects is None or "packed_r" in step.parameters else arrays[2].shape[1]
    lengths = sequence_lengths(step, arrays[4], steps, batch)
    rule = recurrence.RULES[step.rules["recurrence"]]
    zero = np.zeros((batch, hidden), np.float32)
    ys, lasts = [], []
    for direction, backwards in enumerate(directions(step["direction"])):
        own = turn(x, lengths) if backwards else x
        longest = int(lengths.max(initial=0))
        begin = [zero if s is None else s[direction] for s in (initial, cells)]
        gate, b, p = gates(step, direction), _one(bias, direction), _one(peepholes, direction)
        parts = None if p is None else dict(zip((0, 1, 2), p.reshape(3, hidden), strict=True))
        if projects is None:
            advance = _joined(step, own, arrays, direction, gate, b, parts)
        else:
            project = projects(direction)
            rows = own[:longest].reshape(longest * batch, own.shape[2])
            first = project(rows, 1, None).reshape(longest, batch, -1) if rows.shape[0] else None
            both = None if b is None else b[: 4 * hidden] + b[4 * hidden :]

            def advance(
                t: int,
                states: list[np.ndarray],
                first: Any = first,
                project: Project = project,
                gate: Any = gate,
                both: Any = both,
                parts: Any = parts,
            ) -> list[np.ndarray]:
                total = project(states[0], 2, first[t])

                def enter(k: int, cell: np.ndarray | None) -> np.ndarray:
                    value = total[:, k * hidden : (k + 1) * hidden]
                    if cell is not None and parts is not None:
                        value = rule.add_product(value, cell, parts[k])
                    if both is not None:
                        value = value + both[k * hidden : (k + 1) * hidden]
                    return rule.limit(value, step["clip"], both is not None)

                return finish(step, gate, enter, states[1])

        with np.errstate(all="ignore"):
            y, last = walk(advance, lengths, begin, steps, keep)
        ys.append(turn(y, lengths) if backwards else y)
        lasts.append(last)
    return results(step, ys, lasts)


def _joined(
    step: Step, x: np.ndarray, arrays: Sequence[Any], direction: int, gate: Any, b: Any, parts: Any
) -> Callable[[int, list[np.ndarray]], list[np.ndarray]]:
    """One step whose gates are sums of all their terms: one matrix product with biases and peepholes as rows."""
    rule, product = recurrence.RULES[step.rules["recurrence"]], real_product.RULES[step.rules["real_product"]]
    w, r = arrays[1][direction], arrays[2][direction]
    hidden = r.shape[1]

    def advance(t: int, states: list[np.ndarray]) -> list[np.ndarray]:
        def enter(k: int, cell: np.ndarray | None) -> np.ndarray:
            own = slice(k * hidden, (k + 1) * hidden)
            left, right = [x[t], states[0]], [w[own].T, r[own].T]
            if b is not None:
                left.append(np.ones((len(x[t]), 2), np.float32))
                right.append(b.reshape(2, -1)[:, own])
            if cell is not None and parts is not None:
                left.append(cell)
                right.append(np.diag(parts[k]))
            total = product.apply(np.concatenate(left, 1), np.concatenate(right), None, 1.0, 1.0, Layout())
            return rule.limit(total, step["clip"], b is not None)

        return finish(step, gate, enter, states[1])

    return advance


def reference(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Rows of all steps meet w at once where the rule says that products are added one after the other."""
    if "dynamic_range" in step.rules:
        return _reference_quantized(step, inputs)
    arrays = batch_leads(step, inputs, _STATES)
    if recurrence.RULES[step.rules["recurrence"]].joined:
        return _run(step, arrays, None, False)
    product = real_product.RULES[step.rules["real_product"]]

    def projects(direction: int) -> Project:
        def project(rows: np.ndarray, which: int, start: np.ndarray | None) -> np.ndarray:
            packed = step["packed_w" if which == 1 else "packed_r"]
            weights = np.asarray(arrays[which])[direction].T
            return product.apply(rows, weights, start, 1.0, 1.0, Layout(packed=packed, turned_b=True))

        return project

    return _run(step, arrays, projects, False)


def _reference_quantized(step: Step, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Zero points of unsigned weights must agree in a direction, those of several signed ones be 0."""
    for weights, points in ((inputs[1], inputs[9]), (inputs[2], inputs[11])):
        several = points.ndim == 2
        if several and (points.any() if weights.dtype == np.int8 else (points != points.reshape(-1)[0]).any()):
            raise RunError(
                "BT-QUANT-OPERAND",
                f"zero points {np.unique(points).tolist()} of weights, of which there may be one",
                place=step.place,
                advice="per-channel weights are symmetric: give them one zero point",
            )
    lengths = inputs[4]
    if step["keep"] and lengths is not None and (lengths == 0).any() and (lengths != 0).any():
        raise RunError(
            "BT-SEQUENCE-LENGTH",
            "a sequence without steps has no hidden state that others could be quantized with",
            place=step.place,
            advice="ask for the first output, too",
        )
    arrays = batch_leads(step, inputs, _STATES)
    choose, divide = dynamic_range.RULES[step.rules["dynamic_range"]], quotient.RULES[step.rules["quotient"]].divide
    store, back = to_integer.RULES[step.rules["to_integer"]], scale_back.RULES[step.rules["scale_back"]]
    register = accumulate.RULES[step.rules["accumulate"]]

    def projects(direction: int) -> Project:
        elements: dict[int, np.ndarray] = {}
        scales: dict[int, np.ndarray] = {}
        weights: dict[int, np.ndarray] = {}
        bounds: dict[int, int] = {}
        for p in (1, 2):
            elements[p], scales[p] = inputs[p][direction], inputs[6 + 2 * p][direction]
            differences = elements[p].astype(np.int32) - int(inputs[7 + 2 * p][direction].reshape(-1)[0])
            bounds[p] = 255 * int(np.abs(differences).sum(axis=0, dtype=np.int64).max(initial=0))
            weights[p] = differences.astype(product_type(bounds[p]))

        def project(rows: np.ndarray, which: int, start: np.ndarray | None) -> np.ndarray:
            scale, zero_point = choose(rows.reshape(-1))
            quantized = store(divide(rows, np.asarray(scale)), np.asarray(zero_point, np.int64), 0, 255)
            total = exact_matmul(quantized - zero_point, weights[which], bounds[which]).astype(np.int64)
            if register.lost is not None:
                total = total - register.lost(quantized, elements[which])
            total = register.finish(total)
            if start is not None and step.rules["scale_back"] in scale_back.WITH_START:
                return np.asarray(back(total, scale, scales[which], start), np.float32)
            real = back(total, scale, scales[which])
            return np.asarray(real if start is None else start + real, np.float32)

        return project

    return _run(step, arrays, projects, step["keep"])
