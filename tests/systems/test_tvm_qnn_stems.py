"""Operators of files under `tvm-qnn` and its variants against plain integers, fractions and binary32 numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from bittrue.api import Model
from bittrue.arithmetic import elementary, exact
from bittrue.errors import BittrueError
from bittrue.graph import Graph, ModelFile, Node, Quantization, Tensor
from support.rounding import f32

F32 = np.float32
VARIANTS = {
    f"tvm-qnn{compute and '-'}{compute}{'-tonearest' if away else ''}": (compute, away)
    for compute, away in product(("", "float32", "float64"), (False, True))
}
LIMITS = {"s8": (-128, 127), "u8": (0, 255), "s16": (-32768, 32767)}
NUMPY = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32}
Pair = tuple[float, int]


def multiplied(t: int, real: float, away: bool) -> int:
    """Fixed point, one scale: the 31-bit multiplier, or a shift in 32 bits for powers of two."""
    m, e = exact.encode_q31(real)
    if m == 1 << 30 and not away:
        k = e - 1
        if k >= 0:
            return exact.wrap_s32(t << k)
        return exact.wrap_s32(t + (1 << (-k - 1))) >> -k
    return exact.wrap_s32(exact.nearest(Fraction(t * m) * Fraction(2) ** (e - 31), "away" if away else "up"))


def requantized(q: int, given: Pair, wanted: Pair, variant: tuple[str, bool], low: int, high: int) -> int:
    """Without clipping when `low` and `high` are those of 32 bits."""
    compute, away = variant
    real = float(F32(given[0])) / float(F32(wanted[0]))
    if not compute:
        moved = exact.wrap_s32(multiplied(q - given[1], real, away) + wanted[1])
        return min(max(moved, low), high)
    kind: Any = F32 if compute == "float32" else np.float64
    value, point = kind(kind(q) - kind(given[1])) * kind(real), kind(wanted[1])
    if away:
        rounded = exact.nearest(Fraction(float(value + point)), "away")
    elif compute == "float32":
        # The numerics of processors with SSE 4.2.
        rounded = math.floor(float(value + (point + kind(0.5))))
    else:
        rounded = math.floor(float(value + point + kind(0.5)))
    return min(max(rounded, low), high)


def model_of(
    operator: str,
    inputs: list[tuple[str, tuple[int, ...], Pair]],
    output: tuple[str, tuple[int, ...], Pair],
    attributes: dict[str, Any] | None = None,
    constants: tuple[np.ndarray, ...] = (),
) -> Model:
    def tensor(name: str, dtype: str, shape: tuple[int, ...], given: Pair) -> Tensor:
        quantization = Quantization(np.array([given[0]], F32), np.array([given[1]], np.int64))
        return Tensor(name, dtype, shape, quantization=quantization)

    tensors = [tensor(f"x{i}", *given) for i, given in enumerate(inputs)]
    tensors += [Tensor(f"c{i}", "s32", c.shape, data=c.reshape(-1)) for i, c in enumerate(constants)]
    tensors.append(tensor("y", *output))
    read = tuple(range(len(tensors) - 1))
    node = Node(0, operator, operator.upper(), 1, attributes or {}, read, (len(read),))
    graph = Graph("main", tuple(tensors), (node,), tuple(range(len(inputs))), (len(read),))
    return Model(ModelFile("tflite", "", (graph,), {}, (), 0))


def check(model: Model, arrays: list[np.ndarray], expected: np.ndarray, numerics: str) -> None:
    for executor in ("reference", "native"):
        session = model.prepare(numerics=numerics, executor=executor)
        found = next(iter(session.run(*arrays).values()))
        np.testing.assert_array_equal(found, expected, err_msg=f"{numerics} {executor}")


def some_pair(rng: np.random.Generator, dtype: str) -> Pair:
    low, high = LIMITS[dtype]
    scale = float(F32(rng.choice([0.25, 0.5, 1.0, np.exp(rng.uniform(-6, 1))])))
    return scale, 0 if dtype == "s16" else int(rng.choice([low, high, rng.integers(low, high + 1)]))


def some(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = LIMITS[dtype]
    return rng.integers(low, high + 1, shape).astype(NUMPY[dtype])


def clamp_of(activation: str, pair: Pair, dtype: str) -> tuple[int, int]:
    low, high = LIMITS[dtype]
    lower, upper = {"none": (None, None), "relu": (0, None), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}[activation]
    # Python rounds to even.
    ends = [None if end is None else round(end / pair[0]) + pair[1] for end in (lower, upper)]
    return (low if ends[0] is None else max(low, ends[0])), (high if ends[1] is None else min(high, ends[1]))


S32 = (-(2**31), 2**31 - 1)
ACTIVATIONS = ("none", "relu", "relu6", "relu_n1_to_1")


def combined(
    operator: str, pairs: tuple[Pair, Pair, Pair], dtype: str, variant: tuple[str, bool], p: int, q: int
) -> int:
    """Two quantized values, as a code of the output."""
    one, two, out = pairs
    low, high = LIMITS[dtype]
    if operator == "mul":
        scale = float(F32(one[0]) * F32(two[0]))
        return requantized(exact.wrap_s32((p - one[1]) * (q - two[1])), (scale, 0), out, variant, low, high)
    first, second = (requantized(v, given, out, variant, *S32) for v, given in ((p, one), (q, two)))
    total = first + second - out[1] if operator == "add" else first - second + out[1]
    return min(max(exact.wrap_s32(total), low), high)


@pytest.mark.parametrize("numerics", VARIANTS)
@pytest.mark.parametrize("operator", ["add", "sub", "mul"])
def test_sums_and_products(operator: str, numerics: str) -> None:
    rng = np.random.default_rng(1)
    for trial in range(12):
        dtype, activation = ("s8", "u8", "s16")[trial % 3], ACTIVATIONS[int(rng.integers(4))]
        one, two, out = (some_pair(rng, dtype) for _ in range(3))
        a, b = some(rng, dtype, (3, 16)), some(rng, dtype, (1, 16) if trial % 2 else (3, 16))
        low, high = clamp_of(activation, out, dtype)

        result = partial(combined, operator, (one, two, out), dtype, VARIANTS[numerics])
        wide = np.broadcast_arrays(a, b)
        pairs = zip(*(v.ravel().tolist() for v in wide), strict=True)
        expected = np.array([min(max(result(p, q), low), high) for p, q in pairs])
        attributes = {"activation": activation, "pot_scale_int16": False}
        model = model_of(operator, [(dtype, a.shape, one), (dtype, b.shape, two)], (dtype, (3, 16), out), attributes)
        check(model, [a, b], expected.reshape(3, 16).astype(a.dtype), numerics)


@pytest.mark.parametrize("numerics", VARIANTS)
def test_concatenation_and_change_of_scale(numerics: str) -> None:
    rng = np.random.default_rng(2)
    for trial in range(12):
        dtype = ("s8", "u8")[trial % 2]
        one, two, out = (some_pair(rng, dtype) for _ in range(3))
        quantized = np.arange(LIMITS[dtype][0], LIMITS[dtype][1] + 1).astype(NUMPY[dtype])
        moved = [
            [requantized(int(q), given, out, VARIANTS[numerics], *LIMITS[dtype]) for q in quantized]
            for given in (one, two)
        ]
        shape = quantized.shape
        joined = model_of(
            "concatenation",
            [(dtype, shape, one), (dtype, shape, two)],
            (dtype, (512,), out),
            {"axis": 0, "activation": "none"},
        )
        check(joined, [quantized, quantized], np.array(moved[0] + moved[1]).astype(quantized.dtype), numerics)
        changed = model_of("quantize", [(dtype, shape, one)], (dtype, shape, out))
        check(changed, [quantized], np.array(moved[0]).astype(quantized.dtype), numerics)


@pytest.mark.parametrize("numerics", VARIANTS)
@pytest.mark.parametrize("activation", ["relu", "relu6", "relu_n1_to_1"])
def test_clamps_of_their_own(activation: str, numerics: str) -> None:
    """Clamped on the input's scale, then requantized."""
    rng = np.random.default_rng(3)
    for trial in range(12):
        dtype = ("s8", "u8")[trial % 2]
        given, out = some_pair(rng, dtype), some_pair(rng, dtype)
        low, high = clamp_of(activation, given, dtype)
        quantized = np.arange(LIMITS[dtype][0], LIMITS[dtype][1] + 1).astype(NUMPY[dtype])
        expected = [
            requantized(min(max(int(q), low), high), given, out, VARIANTS[numerics], *LIMITS[dtype]) for q in quantized
        ]
        model = model_of(
            "relu", [(dtype, quantized.shape, given)], (dtype, quantized.shape, out), {"activation": activation}
        )
        check(model, [quantized], np.array(expected).astype(quantized.dtype), numerics)


def test_clamps_that_may_wrap_are_refused() -> None:
    model = model_of("relu", [("s8", (4,), (1e9, 0))], ("s8", (4,), (1e-3, 0)), {"activation": "relu"})
    with pytest.raises(BittrueError) as caught:
        model.prepare(numerics="tvm-qnn-float64")
    assert caught.value.code == "BT-MULTIPLIER"


@pytest.mark.parametrize("numerics", VARIANTS)
def test_means(numerics: str) -> None:
    """The average of quantized values drops its fraction; the quotient is a code."""
    rng = np.random.default_rng(4)
    for trial in range(18):
        dtype = ("s8", "u8", "s16")[trial % 3]
        given, out = some_pair(rng, dtype), some_pair(rng, dtype)
        x = some(rng, dtype, (2, 3, int(rng.integers(1, 6)), 5))
        x[0] = np.clip(x[0].astype(int) // 64, *LIMITS[dtype])  # small sums: ties and signs of fractions
        totals, count = x.astype(int).sum(axis=(1, 2)), x.shape[1] * x.shape[2]
        expected = [
            requantized(int(Fraction(int(t), count)), given, out, VARIANTS[numerics], *LIMITS[dtype])
            for t in totals.ravel()
        ]
        axes = np.array([1, 2], np.int32)
        model = model_of("mean", [(dtype, x.shape, given)], (dtype, (2, 5), out), {"keep_dims": False}, (axes,))
        check(model, [x], np.array(expected).reshape(2, 5).astype(x.dtype), numerics)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_pools(padding: str) -> None:
    rng = np.random.default_rng(5)
    for trial in range(12):
        dtype = ("s8", "u8", "s16")[trial % 3]
        pair = some_pair(rng, dtype)
        x = some(rng, dtype, (1, 7, 6, 19))
        x[..., ::2] = np.clip(x[..., ::2].astype(int) // 60, *LIMITS[dtype])
        taps, strides = rng.integers(1, 5, 2), rng.integers(1, 3, 2)
        rows: list[list[list[range]]] = [[], []]
        for axis in (0, 1):
            size, tap, stride = x.shape[1 + axis], int(taps[axis]), int(strides[axis])
            out = -(-size // stride) if padding == "same" else (size - tap) // stride + 1
            before = max(0, (out - 1) * stride + tap - size) // 2 if padding == "same" else 0
            starts = [k * stride - before for k in range(out)]
            rows[axis] = [range(max(s, 0), min(s + tap, size)) for s in starts]  # type: ignore[assignment]
        shape = (1, len(rows[0]), len(rows[1]), 19)
        activation = ACTIVATIONS[trial % 4]
        low, high = clamp_of(activation, pair, dtype)
        averages, maxima = np.zeros(shape, int), np.zeros(shape, int)
        for i, j in product(range(shape[1]), range(shape[2])):
            window = x[0, rows[0][i]][:, rows[1][j]].astype(int).reshape(-1, 19)
            averages[0, i, j] = [int(Fraction(int(t), len(window))) for t in window.sum(axis=0)]
            maxima[0, i, j] = window.max(axis=0)
        attributes = {
            "kernel": tuple(int(v) for v in taps),
            "strides": tuple(int(v) for v in strides),
            "dilations": (),
            "pads": (),
            "padding": "same_upper" if padding == "same" else "explicit",
            "size": "floor",
            "channels_last": True,
            "activation": activation,
        }
        for operator, expected in (("average_pool", averages), ("max_pool", maxima)):
            model = model_of(operator, [(dtype, x.shape, pair)], (dtype, shape, pair), attributes)
            wanted = np.minimum(np.maximum(expected, low), high).astype(x.dtype)
            check(model, [x], wanted, list(VARIANTS)[trial % 6])


def power(x: Fraction) -> Fraction:
    return Fraction(float(elementary.exp(F32(float(x)))))


def _tanh(x: Fraction) -> Fraction:
    e = power(-2 * abs(x))
    magnitude = f32(f32(1 - e) / f32(1 + e))
    return magnitude if x >= 0 else -magnitude


def inverse(scale: float) -> Fraction:
    """What compiled code multiplies by instead of dividing by a constant."""
    return f32(1 / Fraction(float(F32(scale))))


FUNCTIONS: dict[str, Callable[[Fraction], Fraction]] = {
    "logistic": lambda x: f32(1 / f32(1 + power(-x))),
    "tanh": _tanh,
    "exp": power,
    "hard_swish": lambda x: f32(f32(x * min(max(f32(x + 3), Fraction(0)), Fraction(6))) * f32(Fraction(1, 6))),
    "leaky_relu": lambda x: x if x > 0 else f32(x * Fraction(float(F32(0.1)))),
}


@pytest.mark.parametrize("operator", sorted(FUNCTIONS))
def test_functions_of_codes(operator: str) -> None:
    rng = np.random.default_rng(6)
    for trial in range(10):
        dtype = ("s8", "u8")[trial % 2]
        low, high = LIMITS[dtype]
        given, out = some_pair(rng, dtype), some_pair(rng, dtype)
        given = (min(given[0], 0.05), given[1])
        quantized = np.arange(low, high + 1).astype(NUMPY[dtype])
        expected = []
        for q in quantized:
            value = FUNCTIONS[operator](f32((int(q) - given[1]) * Fraction(float(F32(given[0])))))
            steps = exact.nearest(f32(value * inverse(out[0])), "away")
            expected.append(min(max(steps + out[1], low), high))
        attributes = {"alpha": 0.1} if operator == "leaky_relu" else {}
        model = model_of(operator, [(dtype, quantized.shape, given)], (dtype, quantized.shape, out), attributes)
        check(model, [quantized], np.array(expected).astype(quantized.dtype), list(VARIANTS)[trial % 6])


@pytest.mark.parametrize("length", [1, 5, 300])
def test_softmax(length: int) -> None:
    rng = np.random.default_rng(7)
    for trial in range(8):
        dtype = ("s8", "u8")[trial % 2]
        low, high = LIMITS[dtype]
        given, out = some_pair(rng, dtype), some_pair(rng, dtype)
        out = (out[0] / 64, out[1])
        x = some(rng, dtype, (3, length))
        expected = np.zeros(x.shape, int)
        for row, results in zip(x, expected, strict=True):
            reals = [f32((int(q) - given[1]) * Fraction(float(F32(given[0])))) for q in row]
            powers = [power(f32(v - max(reals))) for v in reals]
            total = Fraction(0)
            for e in powers:
                total = f32(total + e)
            steps = [exact.nearest(f32(f32(e / total) * inverse(out[0])), "away") for e in powers]
            results[:] = [min(max(step + out[1], low), high) for step in steps]
        model = model_of("softmax", [(dtype, x.shape, given)], (dtype, x.shape, out), {"beta": 1.0})
        check(model, [x], expected.astype(x.dtype), list(VARIANTS)[trial % 6])
