"""lstm, for a step and along time, on real numbers against the real runtime: outputs and states, several runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.build import T, single
from support.differential import check, feeds_for
from support.strategies import scales, seeds

ACTIVATIONS = {"relu": 1, "relu_n1_to_1": 2, "relu6": 3, "tanh": 4, "sign_bit": 5}


@dataclass
class Real:
    """One layer on real numbers. `weights`: f32, or s8 or u8 for weights that are integers."""

    operator: str = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    weights: str = "f32"
    batch: int = 1
    time: int = 2
    features: int = 4
    cells: int = 3
    outputs: int = 3
    seed: int = 0
    cifg: bool = False
    peephole: bool = False
    projection: bool = False
    norm: bool = False
    diagonal: tuple[int, ...] = ()  # gates whose recurrent weights are a diagonal
    time_major: bool = False
    asymmetric: bool = False
    activation: str = "tanh"
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    weight_scale: float = 0.01
    changes: dict[int, T | None] = field(default_factory=dict)

    def build(self) -> bytes:
        rng = np.random.default_rng(self.seed)

        def real(shape: tuple[int, ...]) -> T:
            return T("f32", shape, data=rng.standard_normal(shape) * 0.7)

        def weights(shape: tuple[int, ...]) -> T:
            if self.weights == "f32":
                return real(shape)
            values = rng.integers(-128 if rng.random() < 0.3 else -127, 128, shape)
            scale = self.weight_scale * float(rng.choice([1, 0.5, 3]))
            stored = values.astype(np.int8).view(np.uint8) if self.weights == "u8" else values
            return T(self.weights, shape, scale, 0, 0, stored)

        sequence = self.operator == "UNIDIRECTIONAL_SEQUENCE_LSTM"
        first = (self.time, self.batch) if self.time_major else (self.batch, self.time)
        first = first if sequence else (self.batch,)
        inputs: list[T | None] = [None] * 24
        inputs[0] = T("f32", (*first, self.features))
        for gate in range(self.cifg, 4):
            inputs[1 + gate] = weights((self.cells, self.features))
            recurrent = (self.cells, self.outputs)
            inputs[5 + gate] = real((self.cells,)) if gate in self.diagonal else weights(recurrent)
            inputs[12 + gate] = real((self.cells,))
            if self.norm:
                inputs[20 + gate] = real((self.cells,))
        if self.peephole:
            for position in (10, 11) if self.cifg else (9, 10, 11):
                inputs[position] = weights((self.cells,))
        if self.projection:
            inputs[16] = weights((self.outputs, self.cells))
            inputs[17] = real((self.outputs,)) if self.seed % 2 else None
        inputs[18] = T("f32", (self.batch, self.outputs), variable=True)
        inputs[19] = T("f32", (self.batch, self.cells), variable=True)
        for position, tensor in self.changes.items():
            inputs[position] = tensor
        options: dict[str, Any] = {
            "fusedActivationFunction": ACTIVATIONS.get(self.activation, 0),
            "cellClip": self.cell_clip,
            "projClip": self.proj_clip,
            "asymmetricQuantizeInputs": self.asymmetric,
        }
        if sequence:
            options["timeMajor"] = self.time_major
            options["diagonalRecurrentTensors"] = bool(self.diagonal)
        table = "UnidirectionalSequenceLSTMOptions" if sequence else "LSTMOptions"
        output = T("f32", (*first, self.outputs))
        version = 3 if sequence else 4
        if not self.norm and self.seed % 3 == 0:
            inputs = inputs[:20]
        return single(self.operator, (table, options), inputs, [output], version=version)


@st.composite
def reals(draw: st.DrawFn, weights: str, operator: str = "UNIDIRECTIONAL_SEQUENCE_LSTM") -> Real:
    projection = draw(st.booleans())
    cells = draw(st.one_of(st.integers(1, 9), st.sampled_from([12, 17, 33])))
    outputs = draw(st.integers(1, 12)) if projection else cells
    sequence = operator == "UNIDIRECTIONAL_SEQUENCE_LSTM"
    # Several batches at once add in an order of their own.
    together = not sequence or draw(st.booleans())
    return Real(
        operator=operator,
        weights=weights,
        batch=1 if together and weights == "f32" else draw(st.integers(1, 4)),
        time=draw(st.integers(1, 4)),
        features=draw(st.one_of(st.integers(1, 20), st.sampled_from([33, 64, 100]))),
        cells=cells,
        outputs=outputs,
        seed=draw(seeds),
        cifg=draw(st.booleans()),
        peephole=draw(st.booleans()),
        projection=projection,
        norm=draw(st.booleans()),
        diagonal=draw(st.sampled_from([(), (), (0, 1, 2, 3), (1,), (3,)])) if sequence and outputs == cells else (),
        time_major=together,
        asymmetric=weights != "f32" and draw(st.booleans()),
        activation=draw(st.sampled_from(["tanh"] * 4 + ["relu", "relu6", "relu_n1_to_1", "sign_bit"])),
        cell_clip=draw(st.sampled_from([0.0, 0.0, 0.5, 10.0])),
        proj_clip=draw(st.sampled_from([0.0, 0.0, 0.3, 50.0])),
        weight_scale=draw(scales(1e-3, 0.1)),
    )


def _check(layer: Real, runs: int, zero: int = 0) -> None:
    content = layer.build()
    feeds = feeds_for(content, layer.seed, runs)
    if zero == 1:
        feeds[0][0][:] = 0
    elif zero == 2:
        feeds[-1][0].reshape(-1)[: feeds[-1][0].size // 2] = 0
    # A state of denormal numbers alone cannot be scaled to 8 bits.
    check(content, feeds, may_refuse={"BT-RUN-RANGE"} if layer.weights != "f32" else ())


@given(layer=reals("f32"), runs=st.integers(1, 3), zero=st.integers(0, 2))
def test_real_weights(layer: Real, runs: int, zero: int) -> None:
    _check(layer, runs, zero)


@given(layer=st.one_of(reals("s8"), reals("u8")), runs=st.integers(1, 3), zero=st.integers(0, 2))
def test_integer_weights(layer: Real, runs: int, zero: int) -> None:
    _check(layer, runs, zero)


@given(layer=reals("f32", "LSTM"), runs=st.integers(1, 4), zero=st.integers(0, 2))
def test_one_step_with_real_weights(layer: Real, runs: int, zero: int) -> None:
    _check(layer, runs, zero)


@given(layer=st.one_of(reals("s8", "LSTM"), reals("u8", "LSTM")), runs=st.integers(1, 4), zero=st.integers(0, 2))
def test_one_step_with_integer_weights(layer: Real, runs: int, zero: int) -> None:
    _check(layer, runs, zero)
