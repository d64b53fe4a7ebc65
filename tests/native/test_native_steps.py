"""Steps that their operators' own tests could also pass on the reference executor: they have native kernels, which give
its bytes with any number of threads and sizes that no vector holds.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto

import bittrue
from operators import (
    test_audio_spectrogram,
    test_bidirectional_sequence_lstm,
    test_hadamard_rotation,
    test_hybrid_layers,
    test_lp_normalization,
    test_lstm_real,
    test_mfcc,
    test_real_layers,
    test_reduce_window,
    test_rfft2d,
    test_svdf,
)
from support import attention_models, build, contributed_models, wide_models
from support.differential import feeds_for
from support.native import check_native, needs_native
from support.onnx_models import MICROSOFT, single
from support.strategies import seeds

pytestmark = needs_native


def natively(content: bytes, feed: list[np.ndarray], numerics: str = "litert") -> None:
    """All steps run natively, and every tensor has the reference's bytes."""
    model = bittrue.load(content)
    lines = str(model.prepare(numerics, executor="native").plan.execution)
    assert "native" in lines, lines
    assert "reference" not in lines, lines
    session = model.prepare(numerics, executor="reference")
    check_native(session, [feed], session.trace(*feed), threads=(1, 3))


BOTH = pytest.mark.parametrize("numerics", ["litert", "litert@aarch64"])


@given(st.integers(1, 5), st.integers(0, 7), st.integers(0, 7), st.integers(-3, 3), st.integers(-3, 3), seeds)
@BOTH
def test_transforms(numerics: str, count: int, down: int, along: int, more: int, wider: int, seed: int) -> None:
    height, width = 2**down, 2**along
    shape = (count, max(1, height + more), max(1, width + wider))
    x: np.ndarray = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    natively(test_rfft2d.model(shape, height, width), [x], numerics)


@given(st.integers(2, 70), st.integers(1, 50), st.integers(0, 400), st.integers(1, 5), st.booleans(), seeds)
@BOTH
def test_spectrograms(
    numerics: str, window: int, stride: int, more: int, channels: int, squared: bool, seed: int
) -> None:
    x = np.random.default_rng(seed).standard_normal((window + more, channels)).astype(np.float32)
    natively(test_audio_spectrogram.model(x.shape, window, stride, squared), [x], numerics)


@given(st.integers(1, 300), st.integers(2, 300), st.integers(1, 70), st.integers(1, 70), seeds)
@BOTH
def test_cepstra(numerics: str, times: int, bins: int, channels: int, coefficients: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, times, bins)).astype(np.float32) ** 2
    low, high = sorted(float(v) for v in rng.integers(0, 9000, 2))
    rate = int(rng.choice([8000, 16000, 44100]))
    content = test_mfcc.model(x.shape, low, high + 1, channels, min(channels, coefficients))
    natively(content, [x, np.array([rate], np.int32)], numerics)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_no_spectrum_is_finite_with(value: float) -> None:
    """The reference tells what becomes of it."""
    x = np.random.default_rng(0).standard_normal((3, 4, 8)).astype(np.float32)
    x[1, 2, 3] = value
    natively(test_rfft2d.model(x.shape, 4, 8), [x])
    natively(test_audio_spectrogram.model((96, 1), 8, 4, False), [x.reshape(96, 1)])
    natively(test_mfcc.model(x.shape, 1, 900, 5, 3), [x, np.array([4000], np.int32)])


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 9),
    st.integers(0, 70),
    st.integers(0, 39),
    seeds,
)
def test_rotations(shape: list[int], power: int, more: int, large: int, seed: int) -> None:
    """Of whole chunks and of more; large numbers overflow."""
    size = 1 << power
    x = np.random.default_rng(seed).standard_normal((*shape, size + more)).astype(np.float32)
    with np.errstate(over="ignore"):
        natively(test_hadamard_rotation.model(x.shape, size), [x * np.float32(10.0**large)], "litert-optimized")


def _kind(dtype: type) -> int:
    return int(TensorProto.DOUBLE if dtype is np.float64 else TensorProto.FLOAT)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 2), seeds, st.data())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths(dtype: type, shape: list[int], p: int, seed: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    x[np.abs(x) < 0.3] = 0
    content, feed, *_ = single("LpNormalization", {"x": x}, [_kind(dtype)], {"axis": axis, "p": p})
    for numerics in ("onnxruntime", "onnxruntime@aarch64"):
        natively(content, list(feed), numerics)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.booleans(), seeds)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics(dtype: type, shape: list[int], training: bool, seed: int) -> None:
    """Given ones, and the batch's own."""
    rng = np.random.default_rng(seed)
    parts = {name: rng.standard_normal(shape[1]).astype(dtype) for name in ("scale", "bias", "mean", "variance")}
    parts["variance"] = np.square(parts["variance"])
    inputs = {"x": rng.standard_normal(shape).astype(dtype), **parts}
    attributes = {"training_mode": 1, "momentum": 0.7} if training else {}
    outputs = [_kind(dtype)] * (3 if training else 1)
    content, feed, *_ = single("BatchNormalization", inputs, outputs, attributes, opset=15)
    natively(content, list(feed), "onnxruntime")


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.booleans(), st.booleans(), seeds)
def test_averages_of_bytes(sizes: list[int], last: bool, padded: bool, seed: int) -> None:
    """Over one to three axes, channels first and last."""
    rng = np.random.default_rng(seed)
    channels, kernel = int(rng.integers(1, 40)), [int(rng.integers(1, size + 1)) for size in sizes]
    shape = (2, *sizes, channels) if last else (2, channels, *sizes)
    scales = {"xs": np.float32(0.1), "xz": np.uint8(3), "ys": np.float32(0.08), "yz": np.uint8(7)}
    inputs = {"x": rng.integers(0, 256, shape).astype(np.uint8), **scales}
    attributes = {"kernel_shape": kernel, "channels_last": int(last), "count_include_pad": int(rng.integers(2))}
    if padded:
        attributes["pads"] = [*([1 if one > 1 else 0 for one in kernel]), *([0] * len(kernel))]
    content, feed, *_ = single(
        "QLinearAveragePool", inputs, [TensorProto.UINT8], attributes, domain=MICROSOFT, constants=list(scales)
    )
    natively(content, list(feed), "onnxruntime")


@pytest.mark.parametrize("padding", [[3, 0, 1, 2], [-1, -2, 2, 1], [0, 2, -3, 4]])
@pytest.mark.parametrize("kind", ["f32", "f64", "s32", "s64"])
def test_windows_of_what_is_spread(kind: str, padding: list[int]) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (5, 6)).astype(test_reduce_window.NUMPY[kind])
    geometry = {"windowDimensions": [2, 3], "windowStrides": [2, 1], "baseDilations": [2, 3], "windowDilations": [1, 2]}
    content, (feed,) = test_reduce_window.of_body(x, x[0, 0], kind, ["STABLEHLO_ADD"], {**geometry, "padding": padding})
    natively(content, feed)


@pytest.mark.parametrize("weights", ["f32", "s8", "u8"])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("major", [False, True])
def test_cells_in_both_directions(weights: str, merge: bool, major: bool) -> None:
    batch = 3 if (not major and not merge) or (major and weights != "f32") else 1
    layer = test_bidirectional_sequence_lstm.Both(
        weights, batch, 5, 7, 6, 4, cifg=(True, False), peephole=True, projection=True, time_major=major, merge=merge
    )
    shape = (5, batch, 7) if major else (batch, 5, 7)
    feed = [np.random.default_rng(batch).standard_normal(shape).astype(np.float32)]
    for numerics in ("litert", "litert@aarch64") if weights == "f32" else ("litert",):
        natively(layer.build(), feed, numerics)


@given(test_lstm_real.reals("f32"))
@BOTH
def test_cells(numerics: str, layer: test_lstm_real.Real) -> None:
    content = layer.build()
    natively(content, feeds_for(content, layer.seed)[0], numerics)


@given(test_svdf.layers("real"))
@BOTH
def test_memories(numerics: str, layer: test_svdf.Svdf) -> None:
    content = layer.build()
    natively(content, feeds_for(content, layer.seed)[0], numerics)


QUANTIZING = ["litert", "litert@aarch64", "xnnpack", "xnnpack-avx2", "xnnpack@aarch64"]


@given(
    st.one_of(test_hybrid_layers.convolution(False), test_hybrid_layers.convolution(True)),
    st.sampled_from(QUANTIZING),
)
def test_images_that_are_quantized(case: tuple[bytes, list[np.ndarray]], numerics: str) -> None:
    _quantized(*case, numerics)


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 70), st.integers(1, 20)),
    st.sampled_from(["s8", "s4"]),
    st.booleans(),
    st.integers(0, 3),
    test_hybrid_layers.ACTIVITY,
    st.sampled_from(QUANTIZING),
    seeds,
)
def test_rows_that_are_quantized(
    sizes: tuple[int, int, int], dtype: str, asymmetric: bool, activation: int, kind: str, numerics: str, seed: int
) -> None:
    rng, (rows, depth, units) = np.random.default_rng(seed), sizes
    x, weights = test_hybrid_layers.activity(rng, (rows, depth), kind), (units, depth)
    scale = [float(one) for one in 0.1 * rng.random(units if rng.integers(2) else 1) + 1e-3]
    w = build.T(dtype, weights, scale, 0, 0, test_hybrid_layers.integers(rng, dtype, weights, bool(rng.integers(2))))
    options = {"asymmetricQuantizeInputs": asymmetric, "fusedActivationFunction": activation}
    bias = rng.standard_normal(units).astype(np.float32)
    _quantized(test_hybrid_layers.layer(x, w, bias, **options), [x], numerics)


def _quantized(content: bytes, feed: list[np.ndarray], numerics: str) -> None:
    """Or refused; products that bytes do not hold are the reference's."""
    model = bittrue.load(content)
    try:
        session = model.prepare(numerics, executor="reference")
        expected = session.trace(*feed)
    except bittrue.BittrueError:
        return
    missing = set(model.prepare(numerics, executor="native").missing.values())
    assert missing <= {"a weight of -128, whose products the rule makes differently", "its results hold no elements"}
    check_native(session, [feed], expected, threads=(1, 3))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(0, 3), seeds)
@pytest.mark.parametrize("numerics", ["litert", "xnnpack", "xnnpack@aarch64"])
@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_pairs_of_halves(name: str, numerics: str, shape: list[int], activation: int, seed: int) -> None:
    """Infinities and results that no number is large enough for among them."""
    rng = np.random.default_rng(seed)
    feed = [rng.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16) for _ in range(2)]
    options = (f"{name.title()}Options", {"fusedActivationFunction": activation})
    halves = [build.T("f16", tuple(shape)) for _ in feed]
    content = build.single(name, options, halves, [build.T("f16", tuple(shape))])
    natively(content, feed, numerics)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), seeds)
@BOTH
def test_rows_of_one_length(numerics: str, shape: list[int], seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    natively(test_lp_normalization.model(build.T("f32", x.shape)), [x], numerics)


@given(st.booleans().flatmap(test_real_layers.convolution), st.sampled_from([1, 1e-6]))
def test_joined_sums_of_images(case: tuple[bytes, list[np.ndarray]], by: float) -> None:
    """What lies outside of an image is left out, even where sums of what is too small for numbers are -0."""
    try:
        (result,) = bittrue.load(case[0]).prepare("litert@aarch64", executor="reference").run(*case[1]).values()
    except bittrue.InvalidModelError:
        return
    assume(result.size)
    with np.errstate(under="ignore"):
        natively(case[0], [np.float32(by) * case[1][0], *case[1][1:]], "litert@aarch64")


@given(st.integers(2, 7), st.lists(st.integers(1, 50), max_size=3), st.sampled_from(test_real_layers.KINDS), seeds)
@pytest.mark.parametrize("kind", ["f32", "s32"])
def test_sums_of_many(kind: str, count: int, shape: list[int], values: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    feed = [test_real_layers.values(rng, tuple(shape), values) for _ in range(count)]
    if kind == "s32":
        feed = [rng.integers(-(2**31), 2**31, shape).astype(np.int32) for _ in range(count)]
    content = build.single(
        "ADD_N", ("AddNOptions", {}), [build.T(kind, tuple(shape)) for _ in feed], [build.T(kind, ())]
    )
    natively(content, feed)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 40), st.sampled_from(test_real_layers.KINDS), seeds)
def test_joined_sums_of_rows(rows: int, depth: int, units: int, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w, bias = (test_real_layers.values(rng, shape, kind) for shape in ((rows, depth), (units, depth), (units,)))
    natively(*test_real_layers.layer(x, w, bias), "litert@aarch64")


GENERATORS = {**attention_models.GENERATORS, **contributed_models.GENERATORS, **wide_models.GENERATORS}
# Random models of these are worked on natively, whatever they ask for, and what stays with the reference of some.
GENERATED: dict[str, set[str]] = {
    "BranchwiseRMSNorm": set(),
    "EngramGate": set(),
    "GroupQueryAttention": set(),
    "HyperConnectionPostMix, HyperConnectionPreMix": set(),
    "LinearAttention": set(),
    "LinearAttentionGate": set(),
    "MatMul": set(),
    "MatMulInteger16": set(),
    "MRotaryEmbedding": set(),
    "MaxpoolWithMask": set(),
    "NGramHashMapping, VarlenNGramHashMapping": {"there are no tokens"},
    "NGramRepeatBlock": set(),
    "Normalizations": set(),
    "ScaledSiLU": set(),
    "WordConvEmbedding": set(),
}


@pytest.mark.parametrize("name", GENERATED)
def test_generated(name: str, request: pytest.FixtureRequest) -> None:
    ran = 0
    for number in range(12):
        content, feeds, *_ = GENERATORS[name](np.random.default_rng([request.config.option.seed, number]))
        try:
            session = bittrue.load(content).prepare("onnxruntime", executor="reference")
            expected = session.trace(*feeds)
        except bittrue.BittrueError:
            continue
        missing = set(bittrue.load(content).prepare("onnxruntime", executor="native").missing.values())
        assert missing <= {*GENERATED[name], "its results hold no elements"}
        check_native(session, [feeds], expected, threads=(1, 3))
        ran += not missing
    assert ran
