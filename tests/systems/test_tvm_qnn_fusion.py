"""Graphs of bittrue.qnn whose nodes become one operator give the bytes of the nodes one by one, in every numerics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bittrue import Model, qnn
from bittrue.compat.tvm_qnn.building import build
from bittrue.errors import BittrueError, UnsupportedError

NUMERICS = [
    f"tvm-qnn{kind}" for kind in ("", "-tonearest", "-float32", "-float32-tonearest", "-float64", "-float64-tonearest")
]
TYPES = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16}


def some_quantized(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    kind = np.iinfo(TYPES[dtype])
    return rng.integers(kind.min, kind.max + 1, shape).astype(TYPES[dtype])


def a_zero_point(rng: np.random.Generator, dtype: str) -> int:
    kind = np.iinfo(TYPES[dtype])
    return 0 if dtype == "int16" else int(rng.choice([kind.min, kind.max, rng.integers(kind.min, kind.max + 1)]))


def layer_parameters(rng: np.random.Generator, out: int, kernel_dtype: str, size: int) -> dict[str, Any]:
    several = kernel_dtype == "int8" and rng.random() < 0.5
    scale = np.float32(np.exp(rng.uniform(-8, 0)))
    kernel = np.exp(rng.uniform(-8, 0, out if several else ())).astype(np.float32)
    if rng.random() < 0.2:  # powers of two
        scale, kernel = np.float32(0.25), np.full_like(kernel, 0.5)
    product = scale * kernel
    typical = float(np.mean(product)) * np.sqrt(size) * 70
    return {
        "input_scale": scale,
        "kernel_scale": kernel,
        "product": product,
        "output_scale": np.float32(typical / 60 * np.exp(rng.uniform(-2, 2)) if rng.random() < 0.8 else 0.5),
    }


def clamp(rng: np.random.Generator, y: Any, scale: np.float32, zero_point: int, dtype: str) -> Any:
    kind = np.iinfo(TYPES[dtype])
    real = float(scale)
    choices = [
        None,
        (zero_point, kind.max),
        (zero_point, zero_point + round(6 / real)),
        (zero_point + round(-1 / real), zero_point + round(1 / real)),
        (kind.min, kind.max),
        (3, 9),
    ]
    chosen = choices[rng.integers(len(choices))]
    if chosen is None:
        return y
    low, high = (int(np.clip(end, kind.min, kind.max)) for end in chosen)
    return build("clip", (y,), y.shape, y.dtype, {}, {"a_min": low, "a_max": high})


def random_layer(rng: np.random.Generator) -> tuple[Any, tuple[int, ...], str]:
    dtype = str(rng.choice(["int8", "uint8", "int16"], p=[0.5, 0.4, 0.1]))
    kernel_dtype = "int8" if dtype != "uint8" or rng.random() < 0.3 else "uint8"
    wide = dtype == "int16"
    zero = a_zero_point(rng, dtype)
    kernel_zero = a_zero_point(rng, kernel_dtype) if not wide and rng.random() < 0.4 else 0
    rounding = str(rng.choice(["None", "UPWARD", "TONEAREST"]))
    compute = str(rng.choice(["None", "int64", "float32", "float64"]))
    if rng.random() < 0.3:
        rows, depth, units = (int(v) for v in rng.integers(1, 9, 3))
        p = layer_parameters(rng, units, kernel_dtype, depth)
        kernel_zero = 0 if p["kernel_scale"].ndim else kernel_zero
        shape: tuple[int, ...] = (rows, depth)
        x = qnn.var("x", shape, dtype)
        weights = some_quantized(rng, kernel_dtype, (units, depth))
        y = qnn.dense(
            x, weights, zero, kernel_zero, p["input_scale"], p["kernel_scale"], units, "int64" if wide else "int32"
        )
        axis, out = 1, units
    else:
        groups, depth, per_group = (int(v) for v in rng.integers(1, 4, 3))
        if rng.random() < 0.4:
            depth, groups = 1, int(rng.integers(2, 6))
        channels, out = groups * depth, groups * per_group
        kernel_size = tuple(int(v) for v in rng.integers(1, 4, 2))
        dilation = tuple(int(v) for v in rng.integers(1, 3, 2))
        strides = tuple(int(v) for v in rng.integers(1, 3, 2))
        height, width = (int(v) for v in rng.integers(7, 11, 2))
        layout = str(rng.choice(["NCHW", "NHWC"]))
        pads: tuple[int, ...] = (0, 0)
        if rng.random() < 0.4:
            pads = tuple(int(v) for v in rng.integers(0, 3, 4))
        elif rng.random() < 0.6:  # as TensorFlow pads
            total = [
                max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
                for size, s, k, d in zip((height, width), strides, kernel_size, dilation, strict=True)
            ]
            pads = (total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2)
        p = layer_parameters(rng, out, kernel_dtype, depth * kernel_size[0] * kernel_size[1])
        kernel_zero = 0 if p["kernel_scale"].ndim else kernel_zero
        shape = (2, height, width, channels) if layout == "NHWC" else (2, channels, height, width)
        x = qnn.var("x", shape, dtype)
        depthwise = groups > 1 and depth == 1
        weights = some_quantized(
            rng, kernel_dtype, (channels, per_group, *kernel_size) if depthwise else (out, depth, *kernel_size)
        )
        last = layout == "NHWC"
        y = qnn.conv2d(
            x,
            weights.transpose((2, 3, 0, 1) if depthwise else (2, 3, 1, 0)) if last else weights,
            zero,
            kernel_zero,
            p["input_scale"],
            p["kernel_scale"],
            kernel_size,
            out,
            strides,
            pads,
            dilation,
            groups,
            layout,
            "OIHW" if not last else "HWOI" if depthwise else "HWIO",
            out_dtype="int64" if wide else "int32",
        )
        axis = 3 if last else 1
    if rng.random() < 0.7:
        bias = rng.integers(-(2**12), 2**12, out).astype(np.int64 if wide else np.int32)
        y = qnn.bias_add(y, bias, axis)
    out_zero = a_zero_point(rng, dtype)
    y = qnn.requantize(
        y, p["product"], 0, p["output_scale"], out_zero, axis, rounding=rounding, compute_dtype=compute, out_dtype=dtype
    )
    return clamp(rng, y, p["output_scale"], out_zero, dtype), shape, dtype


def operators_of(model: Any) -> list[str]:
    return [node.operator for node in model.graph.nodes]


def whole_layers(model: Any) -> list[str]:
    """Layers that are rescaled and clamped at once."""
    nodes = model.graph.nodes
    return [n.operator for n in nodes if n.operator in ("conv", "fully_connected") and "activation" in n.attributes]


def run_or_error(model: Any, numerics: str, x: np.ndarray, executor: str) -> Any:
    try:
        return list(model.prepare(numerics=numerics, executor=executor).run(x=x).values())
    except BittrueError as error:
        return error.code


@pytest.mark.parametrize("seed", range(60))
def test_one_operator_gives_the_bytes_of_its_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fused_some = 0
    for _ in range(5):
        y, shape, dtype = random_layer(rng)
        fused = qnn.model(y)
        apart = qnn.model(y, fuse=False)
        assert not whole_layers(apart)
        fused_some += bool(whole_layers(fused))
        x = some_quantized(rng, dtype, shape)
        name = NUMERICS[int(rng.integers(len(NUMERICS)))]
        expected = run_or_error(apart, name, x, "reference")
        for executor in ("reference", "native"):
            found = run_or_error(fused, name, x, executor)
            assert type(found) is type(expected), (found, expected)
            if isinstance(expected, list):
                np.testing.assert_array_equal(found[0], expected[0], err_msg=f"{name} {executor} {operators_of(fused)}")
    assert fused_some >= 2


def same_either_way(y: Any, numerics: str, operators: list[str], **inputs: np.ndarray) -> None:
    fused, apart = qnn.model(y), qnn.model(y, fuse=False)
    assert operators_of(fused) == operators
    assert len(operators_of(apart)) >= len(operators)
    expected = next(iter(apart.prepare(numerics=numerics, executor="reference").run(**inputs).values()))
    for executor in ("reference", "native"):
        found = next(iter(fused.prepare(numerics=numerics, executor=executor).run(**inputs).values()))
        np.testing.assert_array_equal(found, expected, err_msg=f"{numerics} {executor}")


@pytest.mark.parametrize("numerics", NUMERICS)
def test_other_operators_with_what_is_around_them(numerics: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (qnn.var(name, (2, 6, 6, 4), "int8") for name in "ab")
    given = {name: some_quantized(rng, "int8", (2, 6, 6, 4)) for name in "ab"}
    parameters = (0.1, 3, 0.07, -5, np.float32(0.12), -10)
    for function, stem in ((qnn.add, "add"), (qnn.subtract, "sub"), (qnn.mul, "mul")):
        made = function(a, b, *parameters)
        # 6 / 0.12 is 50.
        same_either_way(qnn.clip(made, -10, 40), numerics, [stem], **given)
        same_either_way(qnn.clip(made, -10, 41), numerics, [stem, "clip"], **given)
        # One tensor with two scales: the second time under another name.
        twice = qnn.clip(function(a, a, *parameters), -10, 127)
        same_either_way(twice, numerics, ["reshape", stem], a=given["a"])
    assert qnn.model(qnn.clip(qnn.add(a, b, *parameters), -10, 40)).graph.nodes[0].attributes["activation"] == "relu6"
    real = qnn.nn.softmax(qnn.dequantize(a, 0.1, 3))
    same_either_way(qnn.quantize(real, 1 / 256, -128, out_dtype="int8"), numerics, ["softmax"], a=given["a"])
    mean = qnn.nn.mean(qnn.nn.cast(a, "int32"), (1, 2), keepdims=True)
    same_either_way(qnn.requantize(mean, 0.1, 3, 0.04, 1), numerics, ["mean"], a=given["a"])
    # What is read twice stays.
    halves = (qnn.requantize(mean, 0.1, 3, scale, 1) for scale in (0.04, 0.05))
    both = qnn.add(*halves, 0.04, 1, 0.05, 1, 0.12, -10)
    same_either_way(both, numerics, ["cast", "mean", "quantize", "quantize", "add"], a=given["a"])


def test_stored_values_of_any_scale() -> None:
    """Scales that neighbours give an operand play no part in what is compared as it is stored."""
    x, y = qnn.var("x", (2, 3), "float32"), qnn.var("y", (3,), "int8")
    q = qnn.quantize(x, 0.25, 3)
    most = qnn.nn.minimum(qnn.nn.maximum(q, y), qnn.nn.reshape(q, (2, 3)))
    given = {"x": np.float32([[1, -2, 7], [0, 30, -40]]), "y": np.int8([5, -6, 127])}
    codes = np.int8([[7, -5, 31], [3, 123, -128]])
    for executor in ("reference", "native"):
        found = qnn.model([q, most]).prepare(numerics="tvm-qnn", executor=executor).run(**given)
        expected = [codes, np.minimum(np.maximum(codes, given["y"]), codes)]
        for one, other in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("numerics", NUMERICS)
def test_layers_of_the_rfc(numerics: str) -> None:
    rng = np.random.default_rng(4)
    x = qnn.var("x", (1, 8, 8, 3), "uint8")
    kernel, scales = some_quantized(rng, "int8", (3, 3, 3, 6)), np.float32(rng.uniform(0.001, 0.01, 6))
    y = qnn.quantized_conv2d(
        x, kernel, 0.02, 128, scales, 0, 0.1, 100, "uint8", data_layout="NHWC", kernel_layout="HWIO",
        kernel_size=(3, 3), channels=6,
    )  # fmt: skip
    image = some_quantized(rng, "uint8", (1, 8, 8, 3))
    same_either_way(y, numerics, ["conv"], x=image)


def test_what_does_not_fit_stays_apart() -> None:
    """Each of these differs in one thing from a layer that becomes one operator."""
    rng = np.random.default_rng(5)
    x = qnn.var("x", (3, 4), "int8")
    weights = some_quantized(rng, "int8", (5, 4))
    scale, kernel, out = np.float32(0.3), np.float32(0.7), np.float32(0.9)
    several = np.full(5, kernel)

    def layer(zero_point: Any = 0, kernel_scale: Any = kernel, given: Any = scale * kernel, start: int = 0) -> Any:
        acc = qnn.dense(x, weights, 3, zero_point, scale, kernel_scale, 5)
        return acc, qnn.requantize(acc, given, start, out, 1, axis=1)

    assert operators_of(qnn.model(layer()[1])) == ["fully_connected"]
    assert operators_of(qnn.model(layer(5)[1])) == ["fully_connected"]
    assert operators_of(qnn.model(layer(0, several, scale * several)[1])) == ["fully_connected"]
    apart = ["matmul", "quantize"]
    for _, y in (
        layer(given=np.nextafter(scale * kernel, np.float32(1))),
        layer(start=1),
        layer(0, several),
        layer(5, several, scale * several),
        layer(np.arange(5), kernel),
    ):
        assert operators_of(qnn.model(y)) == apart
    acc, y = layer()
    assert operators_of(qnn.model([y, acc])) == apart
    # The type does not hold this zero point.
    beyond = qnn.requantize(qnn.dense(x, weights, 128, 0, scale, kernel, 5), scale * kernel, 0, out, 1, axis=1)
    same_either_way(beyond, "tvm-qnn", apart, x=some_quantized(rng, "int8", (3, 4)))


def test_scales_of_python_are_told_apart_from_those_of_binary32() -> None:
    def built(product: object) -> Model:
        layer = qnn.dense(qnn.var("x", (1, 4), "uint8"), np.ones((2, 4), np.uint8), 0, 0, 0.1, 0.05, 2)
        return qnn.model(qnn.requantize(layer, product, 0, 0.2, 3, out_dtype="uint8"))

    assert not built(np.float32(0.1) * np.float32(0.05)).notes
    assert not built(0.25).notes
    with pytest.raises(UnsupportedError, match=r"is 0\.005 .* is 0\.0050000004: write np\.float32\(a\)"):
        built(0.1 * 0.05).prepare("litert")
