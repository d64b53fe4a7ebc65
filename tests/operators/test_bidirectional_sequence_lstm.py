"""lstm in two directions against the real runtime: outputs and states, over several runs."""

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


@dataclass
class Both:
    weights: str = "f32"
    batch: int = 1
    time: int = 2
    features: int = 4
    cells: int = 3
    outputs: int = 3
    seed: int = 0
    cifg: tuple[bool, bool] = (False, False)
    peephole: bool = False
    projection: bool = False
    time_major: bool = True
    merge: bool = False
    auxiliary: int = 0
    weighted: bool = True
    asymmetric: bool = False
    activation: int = 4
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    changes: dict[int, T | None] = field(default_factory=dict)

    def build(self) -> bytes:
        rng = np.random.default_rng(self.seed)

        def real(shape: tuple[int, ...]) -> T:
            return T("f32", shape, data=rng.standard_normal(shape) * 0.7)

        def weights(shape: tuple[int, ...]) -> T:
            if self.weights == "f32":
                return real(shape)
            values = rng.integers(-128 if rng.random() < 0.3 else -127, 128, shape).astype(np.int8)
            stored = values.view(np.uint8) if self.weights == "u8" else values
            return T(self.weights, shape, float(rng.choice([0.01, 0.003])), 0, 0, stored)

        first = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        inputs: list[T | None] = [None] * 48
        inputs[0] = T("f32", (*first, self.features))
        for cell, base in enumerate((0, 17)):
            for gate in range(self.cifg[cell], 4):
                inputs[base + 1 + gate] = weights((self.cells, self.features))
                inputs[base + 5 + gate] = weights((self.cells, self.outputs))
                inputs[base + 12 + gate] = real((self.cells,))
                if self.auxiliary and self.weighted:
                    inputs[40 + 4 * cell + gate] = weights((self.cells, self.auxiliary))
            if self.peephole:
                for position in (10, 11) if self.cifg[cell] else (9, 10, 11):
                    inputs[base + position] = weights((self.cells,))
            if self.projection:
                inputs[base + 16] = weights((self.outputs, self.cells))
                inputs[base + 17] = real((self.outputs,)) if self.seed % 2 else None
            inputs[35 + 2 * cell] = T("f32", (self.batch, self.outputs), variable=True)
            inputs[36 + 2 * cell] = T("f32", (self.batch, self.cells), variable=True)
        if self.auxiliary:
            inputs[39] = T("f32", (*first, self.auxiliary))
        for position, tensor in self.changes.items():
            inputs[position] = tensor
        options: dict[str, Any] = {
            "fusedActivationFunction": self.activation,
            "cellClip": self.cell_clip,
            "projClip": self.proj_clip,
            "mergeOutputs": self.merge,
            "timeMajor": self.time_major,
            "asymmetricQuantizeInputs": self.asymmetric,
        }
        sizes = [2 * self.outputs] if self.merge else [self.outputs] * 2
        outputs = [T("f32", (*first, size)) for size in sizes]
        table = ("BidirectionalSequenceLSTMOptions", options)
        return single("BIDIRECTIONAL_SEQUENCE_LSTM", table, inputs, outputs, version=3)


@st.composite
def layers(draw: st.DrawFn, weights: str) -> Both:
    projection = draw(st.booleans())
    cells = draw(st.integers(1, 10))
    features = draw(st.one_of(st.integers(1, 20), st.sampled_from([33, 64])))
    time_major, merge = draw(st.booleans()), draw(st.booleans())
    # Real weights of several batches at once, and merged outputs of several batches one by one, are refused.
    alone = weights == "f32" if time_major else merge
    extra = draw(st.sampled_from(["none", "weighted", "plain"]))
    return Both(
        weights=weights,
        batch=1 if alone else draw(st.integers(1, 3)),
        time=draw(st.integers(1, 3)),
        features=features,
        cells=cells,
        outputs=draw(st.integers(1, cells if weights == "f32" else 12)) if projection else cells,
        seed=draw(seeds),
        cifg=(draw(st.booleans()), draw(st.booleans())),
        peephole=draw(st.booleans()),
        projection=projection,
        time_major=time_major,
        merge=merge,
        auxiliary={"none": 0, "plain": features, "weighted": draw(st.integers(1, 20))}[extra],
        weighted=extra == "weighted",
        asymmetric=weights != "f32" and draw(st.booleans()),
        activation=draw(st.sampled_from([4, 4, 4, 1, 2, 3, 5])),
        cell_clip=draw(st.sampled_from([0.0, 0.0, 0.5])),
        proj_clip=draw(st.sampled_from([0.0, 0.0, 0.3])),
    )


def _check(layer: Both, runs: int, zero: bool) -> None:
    content = layer.build()
    feeds = feeds_for(content, layer.seed, runs)
    if zero:
        feeds[0][-1].reshape(-1)[: feeds[0][-1].size // 2 + 1] = 0
    # A state of denormal numbers alone cannot be scaled to 8 bits.
    check(content, feeds, may_refuse={"BT-RUN-RANGE"} if layer.weights != "f32" else ())


@given(layer=layers("f32"), runs=st.integers(1, 3), zero=st.booleans())
def test_real_weights(layer: Both, runs: int, zero: bool) -> None:
    _check(layer, runs, zero)


@given(layer=st.one_of(layers("s8"), layers("u8")), runs=st.integers(1, 3), zero=st.booleans())
def test_integer_weights(layer: Both, runs: int, zero: bool) -> None:
    _check(layer, runs, zero)


@pytest.mark.parametrize(
    ("layer", "code"),
    [
        (Both(changes={37: T("f32", (1, 3))}), "BT-LSTM-STATE"),
        (Both(changes={22: None}), "BT-NODE-INPUT"),
        (Both(changes={22: T("f32", (3,), data=np.ones(3))}), "BT-LSTM-SHAPE"),
        (Both(auxiliary=2, changes={46: None}), "BT-LSTM-AUXILIARY"),
        (Both(auxiliary=2, weighted=False), "BT-LSTM-SHAPE"),
        (Both(merge=True, time_major=False, batch=2), "BT-LSTM-MERGE"),
        (Both(batch=2), "BT-LSTM-BATCH"),
        (Both(projection=True, cells=2), "BT-LSTM-SHAPE"),
    ],
)
def test_contradictions_are_refused(layer: Both, code: str) -> None:
    with pytest.raises(bittrue.BittrueError, match=code):
        bittrue.load(layer.build()).prepare()
