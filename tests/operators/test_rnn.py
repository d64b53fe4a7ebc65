"""rnn, for a step, along time and in two directions, against the real runtime, over several runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for
from support.strategies import seeds

OPTIONS = {
    "RNN": "RNNOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNNOptions",
}


@dataclass
class Rnn:
    operator: str = "RNN"
    weights: str = "f32"
    batch: int = 1
    time: int = 2
    features: int = 4
    units: int = 3
    more_units: int = 2
    seed: int = 0
    time_major: bool = False
    merge: bool = False
    auxiliary: int = 0  # features of an auxiliary input
    weighted: bool = True  # with weights of its own
    activation: int = 4
    asymmetric: bool = False
    changes: dict[int, T | None] = field(default_factory=dict)

    def build(self) -> bytes:
        rng = np.random.default_rng(self.seed)

        def real(shape: tuple[int, ...]) -> T:
            return T("f32", shape, data=rng.standard_normal(shape) * 0.7)

        def weights(shape: tuple[int, ...]) -> T:
            if self.weights == "f32":
                return real(shape)
            values = rng.integers(-128 if rng.random() < 0.3 else -127, 128, shape).astype(np.int8)
            return T(self.weights, shape, float(rng.choice([0.01, 0.003])), 0, 0, values.view(np.uint8)
                     if self.weights == "u8" else values)  # fmt: skip

        def cell(units: int) -> list[T | None]:
            state = T("f32", (self.batch, units), variable=True)
            return [weights((units, self.features)), weights((units, units)), real((units,)), state]

        both = self.operator.startswith("BI")
        first = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        first = (self.batch,) if self.operator == "RNN" else first
        inputs: list[T | None] = [T("f32", (*first, self.features)), *cell(self.units)]
        outputs = [T("f32", (*first, self.units))]
        options: dict[str, Any] = {
            "fusedActivationFunction": self.activation,
            "asymmetricQuantizeInputs": self.asymmetric,
        }
        if self.operator != "RNN":
            options["timeMajor"] = self.time_major
        if both:
            options["mergeOutputs"] = self.merge
            inputs += cell(self.more_units)
            inputs += [T("f32", (*first, self.auxiliary)) if self.auxiliary else None]
            for units in (self.units, self.more_units):
                inputs.append(weights((units, self.auxiliary)) if self.auxiliary and self.weighted else None)
            if self.merge:
                outputs = [T("f32", (*first, self.units + self.more_units))]
            else:
                outputs.append(T("f32", (*first, self.more_units)))
        for position, tensor in self.changes.items():
            inputs[position] = tensor
        return single(self.operator, (OPTIONS[self.operator], options), inputs, outputs, version=3)


@st.composite
def layers(draw: st.DrawFn, operator: str, weights: st.SearchStrategy[str]) -> Rnn:
    features = draw(st.one_of(st.integers(1, 20), st.sampled_from([33, 64])))
    both, kind, time_major = operator.startswith("BI"), draw(weights), draw(st.booleans())
    extra = draw(st.sampled_from(["none", "weighted", "plain"])) if both else "none"
    # Such layers read rows of the auxiliary input as far apart as those of the input.
    apart = time_major or kind != "f32"
    wider = draw(st.integers(features, features + 5)) if apart else draw(st.integers(1, 20))
    return Rnn(
        operator=operator,
        weights=kind,
        batch=draw(st.integers(1, 3)),
        time=draw(st.integers(1, 4)),
        features=features,
        units=draw(st.integers(1, 18)),
        more_units=draw(st.integers(1, 9)),
        seed=draw(seeds),
        time_major=time_major,
        merge=draw(st.booleans()),
        auxiliary={"none": 0, "plain": features, "weighted": wider}[extra],
        weighted=extra == "weighted",
        activation=draw(st.sampled_from([0, 1, 2, 3, 4, 5])),
        asymmetric=kind != "f32" and draw(st.booleans()),
    )


def _check(layer: Rnn, runs: int, zero: bool) -> None:
    content = layer.build()
    feeds = feeds_for(content, layer.seed, runs)
    if zero:
        feeds[0][0].reshape(-1)[: feeds[0][0].size // 2 + 1] = 0
    # A state of denormal numbers alone cannot be scaled to 8 bits. Where outputs are merged, the kernel may crash.
    check(content, feeds, may_refuse={"BT-RUN-RANGE", "BT-RNN-MERGE"} if layer.weights != "f32" else ())


@given(layer=layers("RNN", st.sampled_from(["f32", "s8", "u8"])), runs=st.integers(1, 4), zero=st.booleans())
def test_one_step(layer: Rnn, runs: int, zero: bool) -> None:
    _check(layer, runs, zero)


@given(
    layer=layers("UNIDIRECTIONAL_SEQUENCE_RNN", st.sampled_from(["f32", "s8", "u8"])),
    runs=st.integers(1, 3),
    zero=st.booleans(),
)
def test_one_direction(layer: Rnn, runs: int, zero: bool) -> None:
    _check(layer, runs, zero)


@given(
    layer=layers("BIDIRECTIONAL_SEQUENCE_RNN", st.sampled_from(["f32", "s8", "u8"])),
    runs=st.integers(1, 3),
    zero=st.booleans(),
)
def test_two_directions(layer: Rnn, runs: int, zero: bool) -> None:
    _check(layer, runs, zero)


def test_values_by_hand() -> None:
    """relu(2 x + h / 2), from a state of 0."""
    weights = {1: T("f32", (1, 1), data=np.array([[2.0]])), 2: T("f32", (1, 1), data=np.array([[0.5]]))}
    layer = Rnn(features=1, units=1, activation=1, changes={**weights, 3: T("f32", (1,), data=np.zeros(1))})
    session = bittrue.load(layer.build()).prepare()
    outputs = [float(next(iter(session.run(np.float32([[x]])).values())).item()) for x in (1, 2, -10, 1)]
    assert outputs == [2.0, 5.0, 0.0, 2.0]
    session.reset()
    assert float(next(iter(session.run(np.float32([[1]])).values())).item()) == 2.0


BOTH = "BIDIRECTIONAL_SEQUENCE_RNN"


@pytest.mark.parametrize(
    ("layer", "code"),
    [
        (Rnn(changes={2: T("f32", (3, 2), data=np.zeros((3, 2)))}), "BT-RNN-SHAPE"),
        (Rnn(changes={3: T("f32", (2,), data=np.zeros(2))}), "BT-RNN-SHAPE"),
        (Rnn(changes={4: T("f32", (1, 3))}), "BT-RNN-STATE"),
        (Rnn(changes={4: T("f32", (2, 3), variable=True)}), "BT-RNN-SHAPE"),
        (Rnn(operator=BOTH, auxiliary=4, changes={10: None}), "BT-RNN-AUXILIARY"),
        (Rnn(operator=BOTH, auxiliary=4, changes={9: T("f32", (1, 3, 4))}), "BT-RNN-SHAPE"),
        (Rnn(operator=BOTH, auxiliary=3, time_major=True), "BT-RNN-AUXILIARY"),
        (Rnn(weights="s8", changes={1: T("s8", (3, 4), None, data=np.zeros((3, 4)))}), "BT-QUANT-MISSING"),
    ],
)
def test_contradictions_are_refused(layer: Rnn, code: str) -> None:
    with pytest.raises(bittrue.BittrueError, match=code):
        bittrue.load(layer.build()).prepare()
