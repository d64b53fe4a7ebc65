"""Operators of Caffe2's engine DNNLOWP: recorded ones, and random ones against plain Python on fractions.

The recorded vectors are random operators run by PyTorch 1.8.1 on an AMD EPYC.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittrue.arithmetic import exact
from bittrue.conformance.recorded.replay import replay
from bittrue.errors import InvalidModelError, UnsupportedError
from bittrue.importers import read_model
from bittrue.importers.caffe2_schema import messages
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module
from support.replays import replays
from support.rounding import f32

RECORDED = Path(__file__).resolve().parents[1] / "data" / "recorded" / "caffe2-dnnlowp"
EXECUTORS = ["reference", *(["native"] if native_module() is not None else [])]
# Array, scale, zero point.
Quantized = tuple[np.ndarray, float, int]

quantized = st.integers(0, 255)
scales = st.one_of(st.floats(2.0**-8, 2.0**2, width=32), st.sampled_from([0.5, 0.25, 1.0]))


def stored(rounded: int, zero_point: int = 0, low: int = 0) -> int:
    return min(max(rounded + zero_point, low), 255)


def even(value: Fraction) -> int:
    return exact.nearest(value, "even")


def fill(net: Any, name: str, given: Quantized, constant: bool) -> None:
    array, scale, zero_point = given
    kind = "Int8GivenTensorFill" if array.dtype == np.uint8 else "Int8GivenIntTensorFill"
    operator = net.op.add(type=kind, output=[name])
    operator.arg.add(name="shape").ints.extend(array.shape)
    operator.arg.add(name="Y_scale").f = scale
    operator.arg.add(name="Y_zero_point").i = zero_point
    if constant and array.dtype == np.uint8:
        operator.arg.add(name="values").s = array.tobytes()
    elif constant:
        operator.arg.add(name="values").ints.extend(array.reshape(-1).tolist())


def run(
    operator: str,
    inputs: Sequence[Quantized],
    constants: Sequence[Quantized] = (),
    engine: str = "DNNLOWP",
    numerics: str = "caffe2",
    reals: Sequence[np.ndarray] = (),
    **arguments: Any,
) -> tuple[np.ndarray, float, int]:
    """What every executor makes of one operator, with scale and zero point of its result."""
    init, predict = messages()["NetDef"](), messages()["NetDef"]()
    names = [f"x{i}" for i in range(len(inputs) + len(constants) + len(reals))]
    for i, (name, operand) in enumerate(zip(names, (*inputs, *constants), strict=False)):
        fill(init, name, operand, i >= len(inputs))
    node = predict.op.add(type=operator, engine=engine, input=names, output=["y"])
    ordered = {"order": b"NHWC"} if any(word in operator for word in ("Conv", "Pool", "BN")) else {}
    for name, value in {**arguments, **ordered}.items():
        argument = node.arg.add(name=name)
        if isinstance(value, list):
            argument.ints.extend(value)
        else:
            setattr(argument, {bytes: "s", float: "f", int: "i"}[type(value)], value)
    for name, values in zip(names[len(names) - len(reals) :], reals, strict=True):
        operator_of = init.op.add(type="GivenTensorFill", output=[name])
        operator_of.arg.add(name="shape").ints.extend(values.shape)
        operator_of.arg.add(name="values").floats.extend(values.tolist())
    predict.external_input.extend(names)
    predict.external_output.append("y")
    graph = read_model(predict.SerializeToString(), init.SerializeToString()).graphs[0]
    feeds = {index: operand[0] for index, operand in zip(graph.inputs, inputs, strict=True)}
    shapes = {graph.tensors[i].name: value.shape for i, value in feeds.items()}
    plan = make_plan(graph, find(numerics), shapes=shapes)
    results = [
        (NativeExecutor(plan) if name == "native" else ReferenceExecutor(plan)).run(feeds)[0] for name in EXECUTORS
    ]
    for result in results[1:]:
        assert results[0].tobytes() == result.tobytes(), "executors differ"
    quantization = graph.tensors[graph.outputs[0]].quantization
    if quantization is None:
        assert results[0].dtype == np.float32
        return results[0], 0.0, 0
    return results[0], float(quantization.scales[0]), int(quantization.zero_points[0])


def array_of(draw: Any, shape: tuple[int, ...]) -> np.ndarray:
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 256, shape).astype(np.uint8)
    return np.where(rng.random(shape) < draw(st.sampled_from([0.0, 0.7])), rng.choice([0, 255]), array).astype(np.uint8)


def factor(x: float, w: float, y: float) -> Fraction:
    return f32(f32(Fraction(x) * Fraction(w)) / Fraction(y))


def spread(scale: float, zero_point: int) -> float:
    """The output scale of operators with a fused Relu; their zero point is 0."""
    top = f32(Fraction(scale) * (255 - zero_point))
    return float(f32(float(top) / 255)) or float(np.float32(0.1))


def test_recorded_operators(record_property: Any) -> None:
    for executor, outcome in replays(RECORDED, EXECUTORS).items():
        assert outcome.passed, outcome.to_dict()["unequal"][:3]
        record_property("compared", f"caffe2-dnnlowp: {outcome.equal} recorded operators equal ({executor})")


@pytest.mark.parametrize("executor", EXECUTORS)
def test_recorded_operators_of_a_processor_without_vnni(executor: str) -> None:
    """Layers alone differ: neighbouring products of a filter saturate in pairs, in every group."""
    folder = RECORDED.with_name("caffe2-avx2")
    for numerics in (None, "caffe2-avx2"):
        result = replay(folder, numerics, executor=executor)
        assert [str(o.first or o.refusal) for o in result.outcomes if not o.equal] == []
        assert len(result.outcomes) == 68
    assert replay(folder, "caffe2-dnnlowp", executor=executor).equal < 34


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    depthwise = draw(st.booleans())
    groups = draw(st.sampled_from([8, 16, 3]) if depthwise else st.sampled_from([1, 2]))
    depth = 1 if depthwise else draw(st.integers(1, 5))
    filters = groups * (1 if depthwise else draw(st.integers(1, 3)))
    usual = draw(st.booleans())
    taps = (3, 3) if usual else draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    stride = draw(st.integers(1, 2))
    pads = (1,) * 4 if usual else draw(st.tuples(*[st.integers(0, 2)] * 4))
    sizes = [draw(st.integers(max(1, t - pads[i] - pads[i + 2]), 5)) for i, t in enumerate(taps)]
    return {
        "x": (array_of(draw, (1, *sizes, groups * depth)), draw(scales), draw(quantized)),
        "w": (array_of(draw, (filters, *taps, depth)), draw(scales), draw(quantized)),
        "bias": draw(st.lists(st.integers(-5000, 5000), min_size=filters, max_size=filters)),
        "groups": groups,
        "stride": stride,
        "pads": pads,
        "relu": draw(st.booleans()),
        "y": (draw(st.floats(2.0**-3, 2.0**14, width=32)), draw(quantized)),
    }


def saturated(products: Sequence[int]) -> int:
    """Products added up in pairs of 16 bits."""
    pairs = [sum(products[k : k + 2]) for k in range(0, len(products), 2)]
    return sum(min(max(pair, -(2**15)), 2**15 - 1) for pair in pairs)


@settings(deadline=None, max_examples=25)
@given(convolutions())
def test_convolutions(case: dict[str, Any]) -> None:
    x, xs, xz = case["x"]
    w, ws, wz = case["w"]
    groups, stride, pads = case["groups"], case["stride"], case["pads"]
    filters, high, wide, depth = w.shape
    in_pairs = depth == 1 and groups % 8 == 0 and (high, wide) == (3, 3) and pads == (1,) * 4
    bias = (np.array(case["bias"], np.int32), float(f32(Fraction(xs) * Fraction(ws))), 0)
    asked, zero_point = case["y"]
    arguments = dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), pads, strict=True))
    found, scale, moved = run(
        "Int8ConvRelu" if case["relu"] else "Int8Conv",
        [case["x"]],
        [case["w"], bias],
        group=groups,
        kernel_h=high,
        kernel_w=wide,
        stride=stride,
        Y_scale=asked,
        Y_zero_point=zero_point,
        **arguments,
    )
    wanted = (spread(asked, zero_point), 0) if case["relu"] else (asked, zero_point)
    assert (scale, moved) == wanted
    padded = np.full((x.shape[1] + pads[0] + pads[2], x.shape[2] + pads[1] + pads[3], x.shape[3]), xz, np.int64)
    padded[pads[0] : pads[0] + x.shape[1], pads[1] : pads[1] + x.shape[2]] = x[0]
    m = factor(xs, ws, scale)
    for y, column, o in product(*(range(size) for size in found.shape[1:])):
        first = o // (filters // groups) * depth
        window = padded[y * stride : y * stride + high, column * stride : column * stride + wide]
        left = window[:, :, first : first + depth].reshape(-1).tolist()
        right = w[o].reshape(-1).tolist()
        acc = sum((a - xz) * (b - wz) for a, b in zip(left, right, strict=True)) + case["bias"][o]
        if in_pairs:
            products = [a * (b - 128) for a, b in zip(left, right, strict=True)]
            acc += saturated(products) - sum(products)
        assert found[0, y, column, o] == stored(even(f32(f32(acc) * m)), moved), (y, column, o)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_volumes(data: Any) -> None:
    """Filters over three axes in groups, against sums of integers."""
    few = st.lists(st.integers(1, 3), min_size=3, max_size=3)
    taps, strides, (groups, depth, filters) = data.draw(few), data.draw(few), data.draw(few)
    sizes = [count + data.draw(st.integers(0, 3)) for count in taps]
    pads = [data.draw(st.integers(0, count - 1)) for count in taps * 2]
    x, xs, xz = array_of(data.draw, (2, *sizes, groups * depth)), data.draw(scales), data.draw(quantized)
    w, ws, wz = array_of(data.draw, (groups * filters, *taps, depth)), data.draw(scales), data.draw(quantized)
    bias = (np.arange(groups * filters, dtype=np.int32), float(f32(Fraction(xs) * Fraction(ws))), 0)
    asked, zero_point = data.draw(scales), data.draw(quantized)
    found, scale, moved = run(
        "Int8Conv",
        [(x, xs, xz)],
        [(w, ws, wz), bias],
        group=groups,
        kernels=taps,
        strides=strides,
        pads=pads,
        Y_scale=asked,
        Y_zero_point=zero_point,
    )
    padded = np.pad(x, [(0, 0), *zip(pads[:3], pads[3:], strict=True), (0, 0)], constant_values=xz).astype(int)
    m = factor(xs, ws, scale)
    for n, *place, o in product(*map(range, found.shape)):
        first = o // filters * depth
        at: Any = tuple(slice(p * s, p * s + t) for p, s, t in zip(place, strides, taps, strict=True))
        acc = int(((padded[(n, *at, slice(first, first + depth))] - xz) * (w[o].astype(int) - wz)).sum() + o)
        assert found[(n, *place, o)] == stored(even(f32(f32(acc) * m)), moved), (n, place, o)


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_fully_connected(data: Any) -> None:
    rows, depth, columns = (data.draw(st.integers(1, 6)) for _ in range(3))
    x, xs, xz = array_of(data.draw, (rows, depth)), data.draw(scales), data.draw(quantized)
    w, ws, wz = array_of(data.draw, (columns, depth)), data.draw(scales), data.draw(quantized)
    biases = data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=columns, max_size=columns))
    asked, zero_point = data.draw(st.floats(2.0**-30, 2.0**20, width=32)), data.draw(quantized)
    relu = data.draw(st.booleans())
    bias = (np.array(biases, np.int32), float(f32(Fraction(xs) * Fraction(ws))), 0)
    found, scale, moved = run(
        "Int8FCRelu" if relu else "Int8FC",
        [(x, xs, xz)],
        [(w, ws, wz), bias],
        Y_scale=asked,
        Y_zero_point=zero_point,
    )
    assert (scale, moved) == ((spread(asked, zero_point), 0) if relu else (asked, zero_point))
    m = factor(xs, ws, scale)
    for i, o in product(range(rows), range(columns)):
        acc = sum((int(a) - xz) * (int(b) - wz) for a, b in zip(x[i], w[o], strict=True)) + biases[o]
        rounded = even(f32(f32(exact.wrap_s32(acc)) * m))
        # What does not fit 32 bits becomes the lowest number.
        assert found[i, o] == stored(rounded if -(2**31) <= rounded < 2**31 else -(2**31), moved)


def test_a_sum_that_leaves_32_bits_when_it_is_rescaled() -> None:
    """255 * 255 * 2^20 becomes the lowest number, not the greatest."""
    one = np.full((1, 1), 255, np.uint8), 1.0, 0
    found, _, _ = run("Int8FC", [one], [one, (np.zeros(1, np.int32), 1.0, 0)], Y_scale=2.0**-20, Y_zero_point=0)
    assert found.tolist() == [[0]]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_sums_of_two(data: Any) -> None:
    """The last n mod 32 elements go by another formula."""
    count = data.draw(st.sampled_from([1, 31, 32, 40, 65]))
    a, s, z = array_of(data.draw, (count,)), data.draw(scales), data.draw(quantized)
    b, t, w = array_of(data.draw, (count,)), data.draw(scales), data.draw(quantized)
    asked, zero_point = data.draw(scales), data.draw(quantized)
    operator = data.draw(st.sampled_from(["Int8Add", "Int8Sum", "Int8SumRelu"]))
    found, scale, v = run(operator, [(a, s, z), (b, t, w)], Y_scale=asked, Y_zero_point=zero_point)
    relu = operator == "Int8SumRelu"
    assert (scale, v) == ((spread(asked, zero_point), 0) if relu else (asked, zero_point))
    first, second, output = Fraction(s), Fraction(t), Fraction(scale)
    constant = f32(-z * first - f32(w * second))
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if i < count - count % 32:
            real = f32(f32(q * second + f32(p * first + constant)) * f32(1 / output) + v)
        else:
            real = f32(v + f32(f32((q - w) * second + f32((p - z) * first)) / output))
        assert found[i] == stored(even(real)), i


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_sums_of_others(data: Any) -> None:
    """One input, or three and more, by way of 16 bits: add_n."""
    count = data.draw(st.sampled_from([1, 3, 4, 7, 40]))
    inputs = [(array_of(data.draw, (2, 3)), data.draw(scales), data.draw(quantized)) for _ in range(count)]
    asked, zero_point = data.draw(scales), data.draw(quantized)
    relu = data.draw(st.booleans())
    found, scale, v = run("Int8SumRelu" if relu else "Int8Sum", inputs, Y_scale=asked, Y_zero_point=zero_point)
    ends = [f32(Fraction(s) * (end - z)) for _, s, z in inputs for end in (0, 255)]
    low, high = min(0, *ends), max(0, *ends)
    unit = f32((float(high) - float(low)) / 65535)
    steps = float(low) / float(unit), float(high) / float(unit)
    middle = even(Fraction(-steps[0] if abs(steps[0]) < 65535 + abs(steps[1]) else 65535 - steps[1]))
    middle = min(max(middle, 0), 65535)
    for i in product(range(2), range(3)):
        moved = [even(f32((int(x[i]) - z) * f32(Fraction(s) / unit))) + middle for x, s, z in inputs]
        raw = sum(min(max(q, 0), 65535) for q in moved) - count * middle
        if relu:
            raw = max(raw, 0)
        assert found[i] == stored(even(f32(f32(raw) * f32(unit / Fraction(scale)))), v), i


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_products(data: Any) -> None:
    shape = data.draw(st.sampled_from([(1,), (33,), (2, 3, 5)]))
    a, s, z = array_of(data.draw, shape), data.draw(scales), data.draw(quantized)
    b, t, w = array_of(data.draw, shape), data.draw(scales), data.draw(quantized)
    asked, v = data.draw(scales), data.draw(quantized)
    found, *_ = run("Int8Mul", [(a, s, z), (b, t, w)], Y_scale=asked, Y_zero_point=v)
    m = factor(s, t, asked)
    for p, q, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), found.reshape(-1).tolist(), strict=True):
        assert y == stored(even(f32((p - z) * (q - w) * m)), v)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_products_of_matrices(data: Any) -> None:
    batch, turned = data.draw(st.sampled_from([(), (2,), (1, 3)])), data.draw(st.tuples(st.booleans(), st.booleans()))
    m, k, n = (data.draw(st.integers(1, 5)) for _ in "mkn")
    a, s, z = array_of(data.draw, (*batch, m, k)), data.draw(scales), data.draw(quantized)
    b, t, w = array_of(data.draw, (*batch, k, n)), data.draw(scales), data.draw(quantized)
    asked, v = max(data.draw(scales), s * t), data.draw(quantized)
    stored_a, stored_b = (
        np.ascontiguousarray(x.swapaxes(-1, -2) if flag else x) for x, flag in zip((a, b), turned, strict=True)
    )
    found, *_ = run(
        "Int8BatchMatMul",
        [(stored_a, s, z), (stored_b, t, w)],
        Y_scale=asked,
        Y_zero_point=v,
        trans_a=int(turned[0]),
        trans_b=int(turned[1]),
    )
    sums = (a.astype(int) - z) @ (b.astype(int) - w)
    factor_ = factor(s, t, asked)
    for total, y in zip(sums.reshape(-1).tolist(), found.reshape(-1).tolist(), strict=True):
        assert y == stored(even(f32(f32(total) * factor_)), v)


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_sums_become_real_numbers(data: Any) -> None:
    """`dequantize_output`: a real bias is added before the one rounding, one of integers is left out."""
    draw = data.draw
    rows, depth, units = (draw(st.integers(1, 9)) for _ in range(3))
    x, w = array_of(draw, (rows, depth)), array_of(draw, (units, depth))
    (s, z), (sw, zw) = ((draw(scales), draw(quantized)) for _ in "xw")
    product = f32(Fraction(s) * Fraction(sw))
    acc = (x.astype(int) - z) @ (w.astype(int) - zw).T
    bias = draw(st.none() | st.just(np.float32(np.random.default_rng(units).normal(0, 3, units))))
    relu = draw(st.booleans())
    found, *_ = run(
        "Int8FCRelu" if relu else "Int8FC",
        [(x, s, z)],
        [(w, sw, zw), *([(np.full(units, 99, np.int32), float(product), 0)] if bias is None else [])],
        reals=[] if bias is None else [bias],
        dequantize_output=1,
    )
    for i, j in np.ndindex(rows, units):
        wanted = f32(product * int(acc[i, j]) + (0 if bias is None else Fraction(float(bias[j]))))
        assert Fraction(float(found[i, j])) == (max(wanted, Fraction(0)) if relu else wanted), (i, j)
    batches, *_ = run("Int8BatchMatMul", [(x, s, z), (w, sw, zw)], trans_b=1, constant_B=1, dequantize_output=1)
    for i, j in np.ndindex(rows, units):
        assert Fraction(float(batches[i, j])) == f32(product * int(acc[i, j]))


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_concatenation(data: Any) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    inputs = [(array_of(data.draw, (2, size)), data.draw(scales), data.draw(quantized)) for size in sizes]
    asked, v = data.draw(scales), data.draw(quantized)
    found, *_ = run("Int8Concat", inputs, axis=1, Y_scale=asked, Y_zero_point=v)
    column = 0
    for x, s, z in inputs:
        m = f32(Fraction(s) / Fraction(asked))
        for i, j in product(range(2), range(x.shape[1])):
            assert found[i, column + j] == stored(even(f32((int(x[i, j]) - z) * m)), v)
        column += x.shape[1]


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_pools(data: Any) -> None:
    taps = data.draw(st.integers(1, 4))
    stride, pad = data.draw(st.integers(1, 3)), data.draw(st.integers(0, taps - 1))
    shape = (1, *(data.draw(st.integers(max(1, taps - 2 * pad), 6)) for _ in range(2)), data.draw(st.integers(1, 9)))
    x, s, z = array_of(data.draw, shape), data.draw(scales), data.draw(quantized)
    asked, v = data.draw(scales), data.draw(quantized)
    average = data.draw(st.booleans())
    found, scale, moved = run(
        "Int8AveragePool" if average else "Int8MaxPool",
        [(x, s, z)],
        kernel=taps,
        stride=stride,
        pad=pad,
        Y_scale=asked,
        Y_zero_point=v,
    )
    assert (scale, moved) == ((asked, v) if average else (s, z))
    for i, j, c in product(*(range(size) for size in found.shape[1:])):
        rows = range(max(i * stride - pad, 0), min(i * stride - pad + taps, shape[1]))
        columns = range(max(j * stride - pad, 0), min(j * stride - pad + taps, shape[2]))
        window = [int(x[0, y, column, c]) for y, column in product(rows, columns)]
        if average:
            m = f32(f32(Fraction(s) / Fraction(asked)) / len(window))
            expected = stored(even(f32(f32(sum(window) - len(window) * z) * m + v)))
        else:
            expected = max(window)
        assert found[0, i, j, c] == expected


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_normalization(data: Any) -> None:
    """batch_normalization; variances whose roots and reciprocals are exact, fewer channels than a vector has."""
    channels = data.draw(st.integers(1, 3))
    x, s, z = array_of(data.draw, (1, 2, channels)), data.draw(scales), data.draw(quantized)
    asked, zero_point = data.draw(scales), data.draw(quantized)
    numbers = st.lists(st.floats(-4, 4, width=32), min_size=channels, max_size=channels)
    gamma, beta, mean = (np.float32(data.draw(numbers)) for _ in range(3))
    roots = np.float32(data.draw(st.lists(st.sampled_from([0.5, 1, 2, 4]), min_size=channels, max_size=channels)))
    relu = data.draw(st.booleans())
    found, scale, v = run(
        "Int8SpatialBNRelu" if relu else "Int8SpatialBN",
        [(x, s, z)],
        reals=[gamma, beta, mean, roots * roots - np.float32(2.0**-10)],
        is_test=1,
        epsilon=2.0**-10,
        Y_scale=asked,
        Y_zero_point=zero_point,
    )
    assert (scale, v) == ((spread(asked, zero_point), 0) if relu else (asked, zero_point))
    for i, c in product(range(2), range(channels)):
        factor = f32(Fraction(float(gamma[c])) / Fraction(float(roots[c])))
        addend = f32(f32(Fraction(float(beta[c])) - f32(factor * Fraction(float(mean[c])))) / Fraction(scale))
        moved = f32(f32(factor * f32(Fraction(s) / Fraction(scale))) * (int(x[0, i, c]) - z) + addend)
        assert found[0, i, c] == stored(even(moved), v), (i, c)


def test_relu_keeps_parameters() -> None:
    x = np.arange(256, dtype=np.uint8)
    found, scale, zero_point = run("Int8Relu", [(x, 0.5, 77)], Y_scale=3.0, Y_zero_point=9)
    assert (scale, zero_point) == (0.5, 77)
    assert found.tolist() == [max(q, 77) for q in range(256)]


def test_tables_look_at_no_scales() -> None:
    x = np.arange(256, dtype=np.uint8)
    tanh = [run("Int8Tanh", [(x, scale, 128)])[0].tolist() for scale in (0.5, 0.001)]
    logistic = run("Int8Sigmoid", [(x, 0.5, 128)])[0].tolist()
    assert tanh[0] == tanh[1] == [q + 1 for q in logistic]
    assert tanh[0][120:137] == [104, 107, 110, 113, 116, 119, 122, 125, 128, 131, 134, 137, 140, 143, 146, 149, 152]


def test_engines_differ_and_the_file_chooses() -> None:
    """2.5 steps: away from zero in fixed point, to the even number in binary32."""
    x, y = (np.full(40, q, np.uint8) for q in (5, 0))
    inputs = [(x, 0.5, 0), (y, 0.5, 0)]
    results = [
        run("Int8Add", inputs, engine=engine, numerics=numerics, Y_scale=1.0, Y_zero_point=0)[0][0]
        for engine in ("", "DNNLOWP")
        for numerics in ("caffe2", "caffe2-dnnlowp")
    ]
    assert results == [3, 2, 2, 2]


def test_refusals() -> None:
    """What the engine refuses, and what it computes from memory that belongs to nothing."""
    image = (np.zeros((1, 4, 4, 8), np.uint8), 0.5, 0)
    bias = (np.zeros(16, np.int32), 0.25, 0)
    window: dict[str, Any] = {"kernel": 3, "pad": 1, "group": 8, "Y_scale": 1.0, "Y_zero_point": 0}
    with pytest.raises(UnsupportedError, match="numbers that belong to nothing"):
        run("Int8Conv", [image], [(np.zeros((16, 3, 3, 1), np.uint8), 0.5, 0), bias], **window)
    volume = (np.zeros((1, 3, 3, 3, 8), np.uint8), 0.5, 0)
    taps: dict[str, Any] = {"kernels": [3, 3, 3], "pads": [1] * 6, "group": 8, "Y_scale": 1.0, "Y_zero_point": 0}
    short = (bias[0][:8], 0.25, 0)
    run("Int8Conv", [volume], [(np.full((8, 3, 3, 3, 1), 192, np.uint8), 0.5, 0), short], **taps)
    with pytest.raises(UnsupportedError, match="in pairs of 16 bits"):
        run("Int8Conv", [volume], [(np.full((8, 3, 3, 3, 1), 193, np.uint8), 0.5, 0), short], **taps)
    with pytest.raises(InvalidModelError, match="engine DNNLOWP alone"):
        run("Int8Conv", [volume], [(np.full((8, 3, 3, 3, 1), 128, np.uint8), 0.5, 0), short], engine="", **taps)
    with pytest.raises(InvalidModelError, match="do not fit"):
        run("Int8Conv", [volume], [(np.full((8, 3, 3, 1, 1), 128, np.uint8), 0.5, 0), short], **taps)
    row = (np.zeros((1, 2), np.uint8), 0.5, 0)
    with pytest.raises(UnsupportedError, match="takes a path of real numbers"):
        run("Int8BatchMatMul", [row, (np.zeros((2, 2), np.uint8), 0.5, 0)], dequantize_output=1)
    weights = (np.zeros((16, 2), np.uint8), 0.5, 0)
    scaled: dict[str, Any] = {"Y_scale": 1.0, "Y_zero_point": 0}
    run("Int8FC", [row], [weights, (bias[0], 0.25009, 0)], **scaled)
    with pytest.raises(InvalidModelError, match="input scale times weight scale"):
        run("Int8FC", [row], [weights, (bias[0], 0.2502, 0)], **scaled)
    with pytest.raises(InvalidModelError, match="zero point 0, found 3"):
        run("Int8FC", [row], [weights, (bias[0], 0.25, 3)], **scaled)
    with pytest.raises(InvalidModelError, match="leave 64 bits"):
        run("Int8Mul", [row, row], Y_scale=1e-15, Y_zero_point=0)
