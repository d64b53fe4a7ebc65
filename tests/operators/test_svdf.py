"""svdf against the real runtime: outputs and states over several runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bittrue
from support.build import T, single
from support.differential import check, feeds_for, random_values
from support.strategies import scales, seeds, zero_points


@dataclass
class Svdf:
    """`kind`: 8-bit "integer", "real" numbers, or real numbers with 8-bit weights of type "s8" or "u8"."""

    kind: str = "integer"
    batch: int = 1
    features: int = 4
    units: int = 2
    rank: int = 1
    memory: int = 3
    bias: bool = True
    activation: int = 1
    asymmetric: bool = False
    seed: int = 0
    scales: tuple[float, float, float, float, float] = (0.02, 0.01, 0.001, 0.0005, 0.05)
    zero_points: tuple[int, int] = (3, -128)
    changes: dict[int, T | None] = field(default_factory=dict)

    def build(self) -> bytes:
        rng = np.random.default_rng(self.seed)
        integer = self.kind == "integer"
        x_scale, w_scale, t_scale, state_scale, y_scale = self.scales
        filters = self.units * self.rank
        weight = {"integer": "s8", "real": "f32"}.get(self.kind, self.kind)
        time = "s16" if integer else weight
        real = "s8" if integer else "f32"

        def constant(dtype: str, shape: tuple[int, ...], scale: float) -> T:
            kind = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "f32": np.float32, "s32": np.int32}[dtype]
            values = random_values(rng, np.dtype(kind), shape)
            if dtype == "s32":
                values = values // 2 ** rng.integers(0, 20)
            return T(dtype, shape, None if dtype in ("f32", "s32") else scale, 0, 0, values)

        inputs: list[T | None] = [
            T(real, (self.batch, self.features), x_scale if integer else None, self.zero_points[0]),
            constant(weight, (filters, self.features), w_scale),
            constant(time, (filters, self.memory), t_scale),
            constant("s32" if integer else "f32", (self.units,), 1) if self.bias else None,
            T(
                "s16" if integer else "f32",
                (self.batch, self.memory * filters),
                state_scale if integer else None,
                variable=True,
            ),
        ]
        for position, tensor in self.changes.items():
            inputs[position] = tensor
        options = {
            "rank": self.rank,
            "fusedActivationFunction": self.activation,
            "asymmetricQuantizeInputs": self.asymmetric,
        }
        output = T(real, (self.batch, self.units), y_scale if integer else None, self.zero_points[1])
        return single("SVDF", ("SVDFOptions", options), inputs, [output], version=4 if self.asymmetric else 3)


@st.composite
def layers(draw: st.DrawFn, kind: str) -> Svdf:
    return Svdf(
        kind=kind,
        batch=draw(st.integers(1, 3)),
        features=draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 200]))),
        units=draw(st.integers(1, 5)),
        rank=draw(st.sampled_from([1, 2, 3, 4, 5, 9])),
        memory=draw(st.integers(1, 12)),
        bias=draw(st.booleans()),
        activation=1 if kind == "integer" else draw(st.sampled_from([0, 1, 2, 3, 4, 5])),
        asymmetric=kind in ("s8", "u8") and draw(st.booleans()),
        seed=draw(seeds),
        scales=(
            draw(scales(1e-3, 0.1)),
            draw(scales(1e-4, 0.1)),
            draw(scales(1e-5, 1e-2)),
            draw(scales(1e-5, 1e-2)),
            draw(scales(1e-3, 1.0)),
        ),
        zero_points=(draw(zero_points("s8")), draw(zero_points("s8"))),
    )


@given(layer=layers("integer"), runs=st.integers(1, 5))
def test_integers(layer: Svdf, runs: int) -> None:
    content = layer.build()
    check(content, feeds_for(content, layer.seed, runs))


@given(layer=layers("real"), runs=st.integers(1, 5))
def test_real_numbers(layer: Svdf, runs: int) -> None:
    content = layer.build()
    check(content, feeds_for(content, layer.seed, runs))


@given(layer=st.one_of(layers("s8"), layers("u8")), runs=st.integers(1, 4), zero=st.booleans())
@example(layer=Svdf(kind="s8", batch=2, features=20, seed=5, asymmetric=True), runs=2, zero=True)
def test_real_numbers_and_integer_weights(layer: Svdf, runs: int, zero: bool) -> None:
    content = layer.build()
    feeds = feeds_for(content, layer.seed, runs)
    if zero:
        feeds[-1][0][0] = 0
    check(content, feeds)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_row_sums_and_signs_that_leave_their_lanes(asymmetric: bool) -> None:
    """From 2048 columns on row sums wrap to 16 bits, and -128 meets negative inputs as +128."""
    weights = np.full((2, 4200), 127, np.int8)
    weights[1, ::7] = -128
    layer = Svdf(
        kind="s8", features=4200, asymmetric=asymmetric, changes={1: T("s8", (2, 4200), 0.01, data=weights)}, bias=False
    )
    rng = np.random.default_rng(0)
    feeds = [[rng.uniform(-1, 3, (1, 4200)).astype(np.float32)], [rng.uniform(-3, 0, (1, 4200)).astype(np.float32)]]
    assert check(layer.build(), feeds) == "equal"


@pytest.mark.parametrize("kind", ["real", "s8"])
def test_infinities(kind: str) -> None:
    """Real weights take them as they come; 8-bit weights cannot: the conversion of the input is undefined."""
    content = Svdf(kind=kind, features=9, memory=2).build()
    x = np.ones((1, 9), np.float32)
    x[0, 3] = np.inf
    if kind == "real":
        assert check(content, [[x], [x]]) == "equal"
        return
    with pytest.raises(bittrue.RunError, match="BT-RUN-RANGE"):
        bittrue.load(content).prepare().run(x)


def test_values_by_hand() -> None:
    """One filter that remembers two values; scales make every multiplier 1."""
    one = {p: T(dtype, (1, n), 1.0, data=np.ones((1, n))) for p, dtype, n in ((1, "s8", 1), (2, "s16", 2))}
    content = Svdf(
        features=1, units=1, memory=2, bias=False, scales=(1.0,) * 5, zero_points=(0, 0), changes=dict(one)
    ).build()
    session = bittrue.load(content).prepare()
    outputs = [int(next(iter(session.run(np.full((1, 1), x, np.int8)).values())).item()) for x in (3, 5, -100, -90)]
    # The clamp to 8 bits is the only activation: relu would give 0.
    assert outputs == [3, 8, -95, -128]


@pytest.mark.parametrize(
    ("layer", "code"),
    [
        (Svdf(activation=0), "BT-ACTIVATION"),
        (Svdf(rank=0, changes={1: T("s8", (2, 4), 0.1, data=np.ones((2, 4)))}), "BT-SVDF"),
        (Svdf(changes={2: T("s16", (2, 4), 0.1, data=np.ones((2, 4)))}), "BT-SVDF-SHAPE"),
        (Svdf(changes={1: T("s8", (2, 3), 0.1, data=np.ones((2, 3)))}), "BT-SVDF-SHAPE"),
        (Svdf(changes={3: T("s32", (3,), 0.1, data=np.ones(3))}), "BT-SVDF-SHAPE"),
        (Svdf(changes={4: T("s16", (1, 6), 0.1)}), "BT-SVDF-STATE"),
        (Svdf(changes={4: T("s16", (1, 5), 0.1, variable=True)}), "BT-SVDF-SHAPE"),
        (Svdf(changes={4: T("s16", (1, 6), variable=True)}), "BT-QUANT-MISSING"),
        *((Svdf(kind=kind, batch=0), "BT-SVDF-SHAPE") for kind in ("integer", "real", "s8")),
    ],
)
def test_contradictions_are_refused(layer: Svdf, code: str) -> None:
    content = layer.build()
    with pytest.raises(bittrue.InvalidModelError, match=code):
        bittrue.load(content).prepare()
    check(content, feeds_for(content, 0))
