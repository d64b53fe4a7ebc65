"""Files as calls of bittrue.qnn: the rebuilt graph gives the file's bytes, tensor by tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue import qnn
from bittrue.errors import InputError, UnsupportedError
from support.build import T, single
from support.shared import SHARED, needs_shared
from systems.test_tvm_qnn_fusion import NUMERICS, random_layer, run_or_error, some_quantized

CONVERTED = (
    "inception_v3_299_int8",
    "coral_tf2_mobilenet_v2_1.0_224_ptq",
    "coral_mobilenet_v1_0.25_128_quant",
    "coral_split_concat",
    "tflm_hello_world_int8",
    "tflm_micro_speech_quantized",
    "tflm_person_detect",
    "tiny_ad_int8",
    "tiny_kws_int8",
    "tiny_resnet8_int8",
    "tiny_vww_int8",
)
WHY_NOT = {
    "coral_keras_lstm_mnist_ptq": "TVM's frontend refuses quantized UNIDIRECTIONAL_SEQUENCE_LSTM",
    "tflm_keyword_scrambled_8bit": "TVM's frontend has no SVDF",
}


def file(name: str) -> bittrue.Model:
    return bittrue.load(SHARED / "models" / f"{name}.tflite")


def random_inputs(model: bittrue.Model, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    kinds = [(np.iinfo(port.dtype), port) for port in model.prepare(numerics="litert").inputs]
    return [rng.integers(k.min, k.max + 1, port.shape).astype(port.dtype) for k, port in kinds]


def image(size: int) -> np.ndarray:
    """A portrait as s8 [1, dimension, dimension, 3], pixels picked without interpolation."""
    data = np.fromfile(SHARED / "images" / "grace_hopper.bmp", np.uint8)
    start, width, height = (int(data[at : at + 4].view("<i4")[0]) for at in (10, 18, 22))
    rows = data[start : start + (width * 3 + 3) // 4 * 4 * abs(height)].reshape(abs(height), -1)
    pixels = rows[:: -1 if height > 0 else 1, : 3 * width].reshape(abs(height), width, 3)[..., ::-1]
    rows_at, columns_at = (np.arange(size) * e // size for e in pixels.shape[:2])
    return (pixels[rows_at][:, columns_at].astype(np.int16) - 128).astype(np.int8)[None]


def same_bytes(one: Any, other: Any) -> None:
    first, second = list(one.values()), list(other.values())
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.in_turns(2)
@needs_shared
@pytest.mark.parametrize("name", CONVERTED)
def test_rebuilt_files_give_the_same_bytes(name: str) -> None:
    model = file(name)
    rebuilt = qnn.from_tflite(model).model()
    inputs = random_inputs(model, 1)
    for numerics in ("litert", "xnnpack"):
        for executor in ("reference", "native"):
            one, other = (m.prepare(numerics=numerics, executor=executor) for m in (model, rebuilt))
            same_bytes(one.run(*inputs), other.run(*inputs))


# Large ones, by the reference executor: one of them says of the conversion what the other one does.
@pytest.mark.in_turns(2)
@needs_shared
@pytest.mark.parametrize("name", ["inception_v3_299_int8", "coral_tf2_mobilenet_v2_1.0_224_ptq"])
def test_every_tensor_of_the_target_networks(name: str) -> None:
    """All tensors that nodes compute, whatever their names and order; an image and random quantized values."""
    model = file(name)
    rebuilt = qnn.from_tflite(model).model()
    assert sorted(n.operator for n in model.graph.nodes) == sorted(n.operator for n in rebuilt.graph.nodes)
    port = model.prepare(numerics="litert").inputs[0]
    shown = image(port.shape[1]) if port.dtype == np.int8 else (image(port.shape[1]).view(np.uint8) ^ 128)
    both = [
        [m.prepare(numerics="litert", executor=executor) for m in (model, rebuilt)]
        for executor in ("reference", "native")
    ]
    for given in (shown, *random_inputs(model, 2)):
        one, other = (sorted(v.tobytes() for v in session.trace(given).values()) for session in both[0])
        assert one == other
        for first, second in both:
            same_bytes(first.run(given), second.run(given))


@needs_shared
@pytest.mark.parametrize("name", ["tiny_resnet8_int8", "inception_v3_299_int8"])
def test_one_by_one_and_from_text(name: str) -> None:
    """The calls as text make the same graph; under the numerics of qnn, nodes one by one give the same bytes."""
    model = file(name)
    converted = qnn.from_tflite(model)
    scope: dict[str, Any] = {"qnn": qnn, "np": np, "constants": converted.constants}
    exec(converted.source, scope)
    inputs = random_inputs(model, 3)
    expected = model.prepare(numerics="tvm-qnn", executor="reference").run(*inputs)
    same_bytes(expected, qnn.model(scope["outputs"]).prepare(numerics="tvm-qnn").run(*inputs))
    apart = converted.model(fuse=False)
    sums = [n for n in apart.graph.nodes if n.operator == "conv"]
    assert sums
    assert not any("activation" in n.attributes for n in sums)
    same_bytes(expected, apart.prepare(numerics="tvm-qnn", executor="reference").run(*inputs))


@needs_shared
def test_images_that_are_resized_as_real_numbers() -> None:
    """TVM's frontend interpolates real numbers, and its classes are int32."""
    model = file("coral_deeplabv3_mnv2_dm05_pascal_quant")
    rebuilt = qnn.from_tflite(model).model()
    shown = image(513).view(np.uint8) ^ 128
    classes = [
        next(iter(rebuilt.prepare(numerics="tvm-qnn", executor=executor).run(shown).values()))
        for executor in ("reference", "native")
    ]
    assert (classes[0].dtype, classes[0].shape) == (np.int32, (1, 513, 513))
    np.testing.assert_array_equal(*classes)
    # A person before a background.
    assert np.unique(classes[0]).tolist() == [0, 15]


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("sizes", [((2, 3), (5, 4)), ((1, 1), (3, 4)), ((4, 7), (2, 3)), ((3, 3), (3, 3))])
def test_resize2d(mode: str, sizes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    before, after = sizes
    x = np.random.default_rng(3).normal(size=(2, *before, 3)).astype(np.float32)

    def places(size: int, out: int) -> list[tuple[int, int, np.float32]]:
        step = np.float32((size - 1) / (out - 1) if mode == "align_corners" else size / out)
        half = np.float32(0.5 if mode == "half_pixel" else 0)
        found = [(np.float32(i) + half) * step - half for i in range(out)]
        lows = [int(np.floor(at)) for at in found]
        return [
            (min(max(low, 0), size - 1), min(max(low + 1, 0), size - 1), at - np.float32(low))
            for at, low in zip(found, lows, strict=True)
        ]

    def between(a: np.ndarray, b: np.ndarray, t: np.float32) -> np.ndarray:
        return a * (np.float32(1) - t) + b * t

    found = qnn.nn.resize2d(x, after, "NHWC", mode)
    turned = qnn.nn.resize2d(x.transpose(0, 3, 1, 2), after, "NCHW", mode)
    np.testing.assert_array_equal(turned.transpose(0, 2, 3, 1), found)
    for i, (top, bottom, v) in enumerate(places(before[0], after[0])):
        for j, (left, right, u) in enumerate(places(before[1], after[1])):
            rows = [between(x[:, row, left], x[:, row, right], u) for row in (top, bottom)]
            np.testing.assert_array_equal(found[:, i, j], between(*rows, v))


@needs_shared
@pytest.mark.parametrize("name", sorted(WHY_NOT))
def test_what_has_no_form_is_named(name: str) -> None:
    with pytest.raises(UnsupportedError, match=WHY_NOT[name]) as caught:
        qnn.from_tflite(file(name))
    assert caught.value.code == "BT-QNN-CONVERT"
    # Not under `tvm-qnn`, which has no row for what TVM refuses.
    assert caught.value.advice == "run the file itself: `bittrue run MODEL`"


def test_files_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    found = qnn.from_tflite(path).source
    assert found == qnn.from_tflite(bittrue.demo_model()).source == qnn.from_tflite(bittrue.load(path)).source
    for convert in (qnn.from_tflite, qnn.from_onnx):
        with pytest.raises(InputError, match="missing"):
            convert(tmp_path / "missing.onnx")


@pytest.mark.parametrize("seed", range(60))
def test_random_layers_there_and_back(seed: int) -> None:
    """A graph of layers, converted to calls again, is the same graph."""
    rng = np.random.default_rng(seed)
    y, shape, dtype = random_layer(rng)
    model = qnn.model(y)
    found = [node.operator for node in model.graph.nodes]
    sums = any(n.operator == "conv" and "activation" not in n.attributes for n in model.graph.nodes)
    if sums or {"clip", "matmul", "add"} & set(found):
        with pytest.raises(UnsupportedError, match="no form in"):
            qnn.from_tflite(model)
        return
    again = qnn.from_tflite(model).model()
    assert [n.operator.removesuffix("_v2") for n in again.graph.nodes] == found
    x, name = some_quantized(rng, dtype, shape), NUMERICS[seed % len(NUMERICS)]
    results = [run_or_error(m, name, x, "native") for m in (model, again)]
    if isinstance(results[0], str):
        assert results[0] == results[1]
    else:
        np.testing.assert_array_equal(results[0][0], results[1][0])


def function_file(operator: str, dtype: str, scales: tuple[float, float], points: tuple[int, int]) -> bittrue.Model:
    """All 256 quantized values through one operator of a .tflite file."""
    x, y = (T(dtype, (1, 256), scale, point) for scale, point in zip(scales, points, strict=True))
    options = ("LeakyReluOptions", {"alpha": 0.3}) if operator == "LEAKY_RELU" else None
    return bittrue.load(single(operator, options, [x], [y]))


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("operator", ["LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6"])
def test_functions_as_calls(operator: str, dtype: str) -> None:
    """As one operator, and as nodes one by one: what `tvm-qnn` says of the file."""
    for scales, point in (((0.05, 0.04), 3), ((0.031, 1 / 256), -128 if dtype == "s8" else 0), ((1.7, 0.5), 100)):
        model = function_file(operator, dtype, scales, (point, point))
        converted = qnn.from_tflite(model)
        x = np.arange(256).astype(np.uint8).view(np.int8 if dtype == "s8" else np.uint8)[None]
        expected = model.prepare(numerics="tvm-qnn").run(x)
        for fuse in (True, False):
            rebuilt = converted.model(fuse)
            for executor in ("reference", "native"):
                same_bytes(expected, rebuilt.prepare(numerics="tvm-qnn", executor=executor).run(x))


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("dtype", ["s8", "u8"])
def test_transposed_convolutions_as_calls(dtype: str, padding: int) -> None:
    rng = np.random.default_rng(padding)
    filters, taps, stride, size = 3, (3, 2), 2, (4, 5)
    wanted = [s * stride if padding == 0 else (s - 1) * stride + t for s, t in zip(size, taps, strict=True)]
    shape = T("s32", (4,), data=np.array([1, *wanted, filters]))
    scale = [0.02, 0.01, 0.03] if dtype == "s8" else 0.02
    low, high = (-127, 127) if dtype == "s8" else (0, 255)
    weights = rng.integers(low, high, (filters, *taps, 2), endpoint=True)
    w = T(dtype, weights.shape, scale, 0 if dtype == "s8" else 120, data=weights)
    x, y = T(dtype, (1, *size, 2), 0.1, 7), T(dtype, (1, *wanted, filters), 0.4, 9)
    bias = T(
        "s32",
        (filters,),
        (np.float32(0.1) * np.float32(np.atleast_1d(scale))).tolist(),
        0,
        data=rng.integers(-99, 99, filters),
    )
    fields = {"padding": padding, "strideW": stride, "strideH": stride, "fusedActivationFunction": 1}
    model = bittrue.load(
        single("TRANSPOSE_CONV", ("TransposeConvOptions", fields), [shape, w, x, bias], [y], version=3)
    )
    rebuilt = qnn.from_tflite(model).model()
    given = some_quantized(rng, {"s8": "int8", "u8": "uint8"}[dtype], (1, *size, 2))
    for executor in ("reference", "native"):
        one, other = (m.prepare(numerics="tvm-qnn", executor=executor) for m in (model, rebuilt))
        same_bytes(one.run(given), other.run(given))
