"""lstm, gru and rnn with stacked weights under numerics `onnx`: the specification's equations, number by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.onnx_models import cases, single

F32 = np.float32
State = list[list[np.float32]]


def nearest(value: Fraction | Decimal) -> np.float32:
    """The binary32 number nearest to a value, found among neighbours; ties to the even one."""
    exact = Fraction(value)
    guess = F32(float(exact))
    candidates = [guess, np.nextafter(guess, F32(np.inf)), np.nextafter(guess, F32(-np.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def dot(*pairs: tuple[Sequence[Any], Sequence[Any]]) -> Fraction:
    return sum(
        (Fraction(float(a)) * Fraction(float(b)) for x, y in pairs for a, b in zip(x, y, strict=True)), Fraction()
    )


def limited(exact: Fraction, clip: float) -> np.float32:
    value = nearest(exact)
    return min(max(value, F32(-clip)), F32(clip)) if clip else value


def function(name: str, x: np.float32) -> np.float32:
    with localcontext() as context:
        context.prec = 60
        d = Decimal(float(x))
        if name == "Sigmoid":
            return nearest(1 / (1 + (-d).exp()))
        if name == "Tanh":
            return nearest(1 - 2 / ((2 * d).exp() + 1))
        return nearest(max(d, Decimal(0)) if name == "Relu" else d / (1 + abs(d)))


# (x, states, k-th weights of a direction, functions, clip, attributes) to new states
Cell = Callable[[Any, list[Any], dict[str, Any], Sequence[str], float, dict[str, Any]], list[Any]]


def lstm(x: Any, states: list[Any], w: dict[str, Any], names: Sequence[str], clip: float, more: dict[str, Any]) -> Any:
    h, c = states
    size = len(h)

    def entering(k: int, j: int, cell: Any) -> np.float32:
        row = k * size + j
        terms = [(x, w["w"][row]), (h, w["r"][row]), ([1, 1], [w["b"][row], w["b"][4 * size + row]])]
        if cell is not None:
            terms.append(([cell], [w["p"][{0: 0, 1: 1, 2: 2}[k] * size + j]]))
        return limited(dot(*terms), clip)

    new_h, new_c = [], []
    for j in range(size):
        i = function(names[0], entering(0, j, c[j]))
        f = nearest(1 - Fraction(float(i))) if more.get("input_forget") else function(names[0], entering(2, j, c[j]))
        g = function(names[1], entering(3, j, None))
        cell = nearest(dot(([f, i], [c[j], g])))
        o = function(names[0], entering(1, j, cell))
        new_c.append(cell)
        new_h.append(nearest(dot(([o], [function(names[2], cell)]))))
    return [new_h, new_c]


def gru(x: Any, states: list[Any], w: dict[str, Any], names: Sequence[str], clip: float, more: dict[str, Any]) -> Any:
    (h,) = states
    size = len(h)

    def terms(row: int) -> list[Any]:
        return [(x, w["w"][row]), ([1], [w["b"][row]])]

    def of_hidden(row: int, h: Any) -> list[Any]:
        return [(h, w["r"][row]), ([1], [w["b"][3 * size + row]])]

    def gate(k: int, j: int) -> np.float32:
        return function(names[0], limited(dot(*terms(k * size + j), *of_hidden(k * size + j, h)), clip))

    z, r = ([gate(k, j) for j in range(size)] for k in (0, 1))
    new = []
    for j in range(size):
        row = 2 * size + j
        if more.get("linear_before_reset"):
            inner = nearest(dot(([r[j]], [nearest(dot(*of_hidden(row, h)))])))
            total = dot(*terms(row)) + Fraction(float(inner))
        else:
            opened = [nearest(dot(([a], [b]))) for a, b in zip(r, h, strict=True)]
            total = dot(*terms(row), *of_hidden(row, opened))
        n, old = function(names[1], limited(total, clip)), Fraction(float(z[j]))
        new.append(nearest((1 - old) * Fraction(float(n)) + old * Fraction(float(h[j]))))
    return [new]


def rnn(x: Any, states: list[Any], w: dict[str, Any], names: Sequence[str], clip: float, more: dict[str, Any]) -> Any:
    (h,) = states
    size = len(h)
    return [
        [
            function(
                names[0],
                limited(dot((x, w["w"][j]), (h, w["r"][j]), ([1, 1], [w["b"][j], w["b"][size + j]])), clip),
            )
            for j in range(size)
        ]
    ]


LAYERS: dict[str, tuple[Cell, int, int, int]] = {"LSTM": (lstm, 4, 3, 2), "GRU": (gru, 3, 2, 1), "RNN": (rnn, 1, 1, 1)}


@pytest.mark.parametrize("op_type", LAYERS)
def test_equations(request: pytest.FixtureRequest, op_type: str) -> None:
    cell, gates, functions, count_of_states = LAYERS[op_type]
    for rng in cases(request, usual=30):
        steps, batch, inputs, hidden = (int(v) for v in rng.integers(1, 4, 4))
        direction = str(rng.choice(["forward", "reverse", "bidirectional"]))
        count = 2 if direction == "bidirectional" else 1

        def reals(*shape: int, rng: np.random.Generator = rng) -> np.ndarray:
            return (rng.standard_normal(shape) * np.exp2(rng.integers(-2, 3))).astype(F32)

        layout = int(rng.random() < 0.3)
        names = {1: ["Tanh"], 2: ["Sigmoid", "Tanh"], 3: ["Sigmoid", "Tanh", "Tanh"]}[functions] * count
        attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction, "layout": layout}
        if rng.random() < 0.4:
            names = [str(n) for n in rng.choice(["Sigmoid", "Tanh", "Relu", "Softsign"], functions * count)]
            attributes["activations"] = names
        clip = float(F32(rng.uniform(0.3, 2))) if rng.random() < 0.3 else 0.0
        if clip:
            attributes["clip"] = clip
        if op_type != "RNN" and rng.random() < 0.5:
            attributes["input_forget" if op_type == "LSTM" else "linear_before_reset"] = 1
        x = reals(steps, batch, inputs)
        lengths = rng.integers(0, steps + 1, batch).astype(np.int32) if rng.random() < 0.5 else None
        states = [reals(count, batch, hidden) if rng.random() < 0.6 else None for _ in range(count_of_states)]
        parts = {
            "w": reals(count, gates * hidden, inputs),
            "r": reals(count, gates * hidden, hidden),
            "b": reals(count, 2 * gates * hidden) if rng.random() < 0.7 else None,
            "p": reals(count, 3 * hidden) if op_type == "LSTM" and rng.random() < 0.5 else None,
        }
        zeros = {"b": np.zeros((count, 2 * gates * hidden), F32), "p": np.zeros((count, 3 * hidden), F32)}
        y = np.zeros((steps, count, batch, hidden), F32)
        lasts = [np.zeros((count, batch, hidden), F32) for _ in states]
        for d in range(count):
            w = {name: (zeros[name] if part is None else part)[d] for name, part in parts.items()}
            own = names[functions * d : functions * (d + 1)]
            for n in range(batch):
                length = steps if lengths is None else int(lengths[n])
                now = [np.zeros(hidden, F32) if s is None else s[d, n] for s in states]
                for t in range(length):
                    place = length - 1 - t if direction == "reverse" or d == 1 else t
                    now = cell(x[place, n], now, w, own, clip, attributes)
                    y[place, d, n] = now[0]
                for last, state in zip(lasts, now, strict=True):
                    last[d, n] = state if length else 0
        if layout:
            x, y, lasts = x.swapaxes(0, 1), y.transpose(2, 0, 1, 3), [s.swapaxes(0, 1) for s in lasts]
            states = [None if s is None else np.ascontiguousarray(s.swapaxes(0, 1)) for s in states]
        operands = {"x": np.ascontiguousarray(x), "w": parts["w"], "r": parts["r"], "b": parts["b"], "lengths": lengths}
        operands.update({f"state{k}": s for k, s in enumerate(states)})
        if op_type == "LSTM":
            operands["p"] = parts["p"]
        content, feeds = single(op_type, operands, [TensorProto.FLOAT] * (1 + len(lasts)), attributes, constants=["w"])
        results = bittrue.load(content).prepare("onnx").run(*feeds)
        for found, wanted in zip(results.values(), [y, *lasts], strict=True):
            # Zeros of either sign are the same real number.
            assert (found + F32(0)).tobytes() == np.ascontiguousarray(wanted + F32(0)).tobytes()
