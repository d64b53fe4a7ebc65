"""lstm of five inputs against the real runtime: every output, states as variable tensors or as inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, random_values
from support.strategies import f32, scales, seeds, zero_points


@dataclass
class Basic:
    real: bool = False
    batch: int = 1
    features: int = 4
    cells: int = 3
    seed: int = 0
    weight_zero_point: int = 128
    bias_scale: float = 1e-4
    cell_scale: float = 2.0**-11
    variable: bool = True
    changes: dict[int, T] = field(default_factory=dict)

    def build(self) -> bytes:
        rng = np.random.default_rng(self.seed)
        both, gates = self.features + self.cells, 4 * self.cells
        if self.real:
            constants = [T("f32", s, data=rng.standard_normal(s) * 0.7) for s in ((gates, both), (gates,))]
            types = [("f32", None, 0)] * 2
        else:
            weights = random_values(rng, np.dtype(np.uint8), (gates, both))
            bias = rng.integers(-(2**18), 2**18, gates)
            constants = [
                T("u8", (gates, both), 0.01, self.weight_zero_point, 0, weights),
                T("s32", (gates,), self.bias_scale, 0, 0, bias),
            ]
            types = [("u8", 1 / 128, 128), ("s16", self.cell_scale, 0)]
        (small, scale, zero_point), (wide, cell_scale, _) = types

        def near(size: int, variable: bool = False) -> T:
            return T(small, (self.batch, size), scale, zero_point, variable=variable)

        def cell(size: int, given: float | None, variable: bool = False) -> T:
            return T(wide, (self.batch, size), given, variable=variable)

        inputs = [near(self.features), near(self.cells, self.variable), *constants]
        inputs.append(cell(self.cells, cell_scale, self.variable))
        for position, tensor in self.changes.items():
            inputs[position] = tensor
        outputs = [near(self.cells), cell(self.cells, cell_scale), near(both)]
        outputs.append(cell(gates, None if self.real else 2.0**-12))
        options = {"fusedActivationFunction": 4, "kernelType": 1}
        return single("LSTM", ("LSTMOptions", options), inputs, outputs, version=2)


@st.composite
def layers(draw: st.DrawFn, real: bool) -> Basic:
    return Basic(
        real=real,
        batch=1 if real else draw(st.integers(1, 3)),
        features=draw(st.integers(1, 40)),
        cells=draw(st.integers(1, 20)),
        seed=draw(seeds),
        weight_zero_point=draw(zero_points("u8")),
        bias_scale=draw(scales(1e-6, 1e-3)),
        cell_scale=draw(st.sampled_from([2.0**-11] * 6 + [f32(1.0004 * 2**-11), 2.0**-12, 0.0003])),
        variable=draw(st.booleans()),
    )


@given(layer=layers(real=True), runs=st.integers(1, 4))
def test_real_numbers(layer: Basic, runs: int) -> None:
    content = layer.build()
    check(content, feeds_for(content, layer.seed, runs))


@given(layer=layers(real=False), runs=st.integers(1, 4))
def test_integers(layer: Basic, runs: int) -> None:
    content = layer.build()
    check(content, feeds_for(content, layer.seed, runs))


@pytest.mark.parametrize(
    ("layer", "code"),
    [
        (Basic(cell_scale=2.0**-12), "BT-LSTM-CELL-SCALE"),
        (Basic(changes={3: T("s32", (3,), 1e-4, data=np.zeros(3))}), "BT-LSTM-SHAPE"),
        (Basic(changes={4: T("s16", (1, 3), 2.0**-11, data=np.zeros((1, 3)))}), "BT-LSTM-STATE"),
        (Basic(real=True, batch=2), "BT-LSTM-BATCH"),
    ],
)
def test_contradictions_are_refused(layer: Basic, code: str) -> None:
    with pytest.raises(bittrue.BittrueError, match=code):
        bittrue.load(layer.build()).prepare()
