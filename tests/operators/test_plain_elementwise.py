"""bitwise_xor, shift, add_n, atan2, sign, fake_quant, bitcast, complex and stored values against the runtime."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st

import bittrue
from support import build
from support.build import NUMPY, T, single
from support.differential import check, random_values
from support.elementwise import broadcast_shapes, nans, plain_values
from support.strategies import f32, seeds, shapes
from support.unary import reals, unary

for _name, _number, _numpy in (
    ("u64", schema.TensorType.UINT64, np.uint64),
    ("c64", schema.TensorType.COMPLEX64, np.complex64),
):
    build.TYPES.setdefault(_name, _number)
    build.NUMPY.setdefault(_name, _numpy)

INTEGERS = ["s8", "u8", "s16", "u16", "s32", "u32"]


def values_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return random_values(rng, np.dtype(NUMPY[dtype]), shape)


@given(shapes_=broadcast_shapes(), dtype=st.sampled_from(INTEGERS), seed=seeds, small=st.booleans())
@pytest.mark.parametrize("operator", ["BITWISE_XOR", "RIGHT_SHIFT"])
def test_bitwise(operator: str, shapes_: tuple[tuple[int, ...], ...], dtype: str, seed: int, small: bool) -> None:
    """Shifts below 0 and beyond the width are limited."""
    rng = np.random.default_rng(seed)
    first = values_of(rng, dtype, shapes_[0])
    second = values_of(rng, dtype, shapes_[1])
    if small:
        second = rng.integers(0 if dtype[0] == "u" else -2, 40, shapes_[1]).astype(NUMPY[dtype])
    content = single(operator, None, [T(dtype, s) for s in shapes_], [T(dtype, ())])
    check(content, [[first, second]])


@given(shape=shapes(0), count=st.integers(1, 7), seed=seeds, nan=nans)
@pytest.mark.parametrize("dtype", ["s32", "f32"])
def test_add_n(dtype: str, shape: tuple[int, ...], count: int, seed: int, nan: tuple[int | None, int | None]) -> None:
    rng = np.random.default_rng(seed)
    values = [plain_values(rng, dtype, shape, nan[0] if i == 0 else None) for i in range(count)]
    content = single("ADD_N", None, [T(dtype, shape) for _ in range(count)], [T(dtype, ())])
    check(content, [values])


def test_add_n_of_different_shapes_is_refused() -> None:
    content = single("ADD_N", None, [T("f32", (2,)), T("f32", (1,))], [T("f32", ())])
    assert check(content, [[np.zeros(2, np.float32), np.zeros(1, np.float32)]]) == "refused"


@given(shape=shapes(0), seed=seeds, step=st.sampled_from([0.01, 1.0]))
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_atan2(dtype: str, shape: tuple[int, ...], seed: int, step: float) -> None:
    y, x = reals(seed, shape, step, NUMPY[dtype]), reals(seed + 1, shape, step, NUMPY[dtype])
    x = np.where(np.isnan(x), NUMPY[dtype](1), x).astype(NUMPY[dtype])
    check(single("ATAN2", None, [T(dtype, shape), T(dtype, shape)], [T(dtype, ())]), [[y, x]])


def test_atan2_of_different_shapes_is_refused() -> None:
    """Of the shapes the kernel compares the rank alone, and reads past the end of the smaller tensor."""
    content = single("ATAN2", None, [T("f32", (1,)), T("f32", (2,))], [T("f32", ())])
    feed = [np.ones(1, np.float32), np.ones(2, np.float32)]
    assert check(content, [feed], may_refuse={"BT-SHAPE-SAME"}) == "refused"


@given(shape=shapes(0), seed=seeds)
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32"])
def test_sign(dtype: str, shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = values_of(rng, dtype, shape) if dtype == "s32" else reals(seed, shape, 0.5, NUMPY[dtype])
    check(unary("SIGN", T(dtype, shape), T(dtype, ())), [[x]])


@given(
    shape=shapes(0),
    bits=st.integers(1, 16) | st.just(8),
    ends=st.tuples(st.floats(-10, 0, width=32), st.floats(0.0009765625, 10, width=32)),
    move=st.sampled_from([0.0, 0.0, 3.0, -3.0]),
    seed=seeds,
)
def test_fake_quant(shape: tuple[int, ...], bits: int, ends: tuple[float, float], move: float, seed: int) -> None:
    options = {"min": f32(ends[0] + move), "max": f32(ends[1] + move), "numBits": bits}
    x = reals(seed, shape, 0.01)
    check(unary("FAKE_QUANT", T("f32", shape), T("f32", ()), ("FakeQuantOptions", options)), [[x]])


def test_fake_quant_by_hand() -> None:
    """Two bits from -1 to 2: the grid is -1, 0, 1, 2, and halves go away from the lower end."""
    options = {"min": -1.0, "max": 2.0, "numBits": 2}
    model = bittrue.load(unary("FAKE_QUANT", T("f32", (4,)), T("f32", ()), ("FakeQuantOptions", options)))
    assert model.prepare().run(np.float32([-0.5, 0.4, 1.5, 9]))["t1"].tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("options", [{"narrowRange": True, "numBits": 8, "max": 1.0}, {"numBits": 8}, {"numBits": 0}])
def test_fake_quant_without_a_grid_is_refused(options: dict[str, object]) -> None:
    content = unary("FAKE_QUANT", T("f32", (1,)), T("f32", ()), ("FakeQuantOptions", options))
    with pytest.raises(bittrue.InvalidModelError, match="BT-FAKE-QUANT"):
        bittrue.load(content).prepare()


CAST_TYPES = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "f32", "f64"]


@given(st.data())
def test_bitcast(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(CAST_TYPES)), data.draw(st.sampled_from(CAST_TYPES))
    shape = data.draw(shapes(1))
    ratio = np.dtype(NUMPY[target]).itemsize // np.dtype(NUMPY[source]).itemsize
    if ratio > 1 and data.draw(st.integers(0, 9)):
        shape = (*shape, ratio)
    rng = np.random.default_rng(data.draw(seeds))
    raw = rng.integers(0, 256, (*shape, np.dtype(NUMPY[source]).itemsize), np.uint8)
    x = raw.view(NUMPY[source]).reshape(shape)
    check(unary("BITCAST", T(source, shape), T(target, ())), [[x]])


@given(shape=shapes(0), seed=seeds)
@pytest.mark.parametrize("operator", ["REAL", "IMAG", "COMPLEX_ABS"])
def test_complex_parts(operator: str, shape: tuple[int, ...], seed: int) -> None:
    x = np.empty(shape, np.complex64)
    x.real, x.imag = reals(seed, shape), reals(seed + 1, shape)
    if operator == "COMPLEX_ABS":
        # Two NaNs meet: which payload stays is the compiler's choice.
        x.imag = np.where(np.isnan(x.imag), np.float32(1), x.imag)
    check(unary(operator, T("c64", shape), T("f32", ())), [[x]])


@given(shape=shapes(0), dtype=st.sampled_from([*CAST_TYPES, "bool"]), seed=seeds, nan=nans)
@pytest.mark.parametrize("operator", ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"])
def test_plain(
    operator: str, shape: tuple[int, ...], dtype: str, seed: int, nan: tuple[int | None, int | None]
) -> None:
    rng = np.random.default_rng(seed)
    first, second = (plain_values(rng, dtype, shape, n) for n in nan)
    scale = 0.5 if dtype in ("s8", "u8", "s16") else None
    check(
        single(operator, None, [T(dtype, shape, scale), T(dtype, shape, scale)], [T(dtype, (), scale)]),
        [[first, second]],
    )


def test_plain_operators_by_hand() -> None:
    """Quantized values, whatever their scales; sums and products wrap."""
    a, b = np.int8([100, -3]), np.int8([100, 7])
    for operator, stem, expected in (
        ("STABLEHLO_ADD", "add", [-56, 4]),
        ("STABLEHLO_MULTIPLY", "mul", [16, -21]),
        ("STABLEHLO_MAXIMUM", "maximum", [100, 7]),
        ("STABLEHLO_MINIMUM", "minimum", [100, -3]),
    ):
        content = single(operator, None, [T("s8", (2,), 0.5), T("s8", (2,), 2.0)], [T("s8", (), 1.0)])
        assert bittrue.load(content).graph.nodes[0].operator == stem
        assert bittrue.load(content).prepare().run(a, b)["t2"].tolist() == expected


def test_plain_does_not_broadcast() -> None:
    content = single("STABLEHLO_ADD", None, [T("f32", (2,)), T("f32", (1,))], [T("f32", ())])
    assert check(content, [[np.zeros(2, np.float32), np.zeros(1, np.float32)]]) == "refused"
