"""Convolution, Deconvolution and InnerProduct against formulas in integers and fractions; what the system stops at.

The operators conv, conv_transpose and fully_connected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.arithmetic import exact
from bittrue.importers import read_model
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module
from support.caffe_models import Files
from support.onnx_models import cases

LIMITS = {
    "None": None,
    "Signed": (-2048, 2047),
    "Unsigned": (0, 4095),
    "Signed_8bit": (-128, 127),
    "Unsigned_8bit": (0, 255),
}


def f32(value: Any) -> float:
    return float(np.float32(value))


def rounded(value: Fraction) -> Fraction:
    return Fraction(exact.nearest_binary(value)) if value else value


# -- rescaling, from the fact sheet's formulas -----------------------------------------------------------------------
def two(acc: int, real: float) -> int:
    fraction, e = math.frexp(real)
    q = exact.nearest(Fraction(fraction) * 2**31, "away")
    high = exact.nearest(Fraction((acc << max(e, 0)) * q, 2**31), "up")
    return exact.nearest(Fraction(high, 2 ** max(-e, 0)), "away")


def one(acc: int, real: float) -> int:
    fraction, e = math.frexp(real)
    q = exact.nearest(Fraction(fraction) * 2**31, "away")
    return exact.nearest(Fraction(acc * q) * Fraction(2) ** (e - 31), "up")


def plus_one(acc: int, real: float) -> int:
    fraction, e = math.frexp(real)
    q = exact.nearest(Fraction(fraction) * 2**31, "away")
    return math.floor(Fraction(acc * q) * Fraction(2) ** (e - 30)) + 1


def to_even_32(acc: int, real: float) -> int:
    return exact.nearest(rounded(Fraction(acc) * Fraction(f32(real))), "even")


def to_even_64(acc: int, real: float) -> int:
    return exact.nearest(Fraction(acc * real), "even")


def simulated_64(acc: int, real: float) -> int:
    fraction, e = math.frexp(real)
    return exact.nearest(Fraction(exact.nearest(Fraction(acc * fraction), "away")) * Fraction(2) ** e, "away")


def simulated_32(acc: int, real: float) -> int:
    fraction, e = math.frexp(f32(real))
    high = exact.nearest(rounded(Fraction(acc) * Fraction(fraction)), "away")
    return exact.nearest(Fraction(high) * Fraction(2) ** e, "away")


def symmetric(acc: int, real: float) -> int:
    shift = 0
    while Fraction(real) * 2 ** (shift + 1) < Fraction(65536 - Fraction("0.51")) / 2:
        shift += 1
    return exact.nearest(Fraction(acc * exact.nearest(Fraction(real) * 2**shift, "away"), 2**shift), "even")


def stepwise(si: float, sw: float, so: float) -> float:
    return f32(f32(f32(si) * sw) / so)


Rescale = Callable[[int, float], int]


def decision(layer: dict[str, Any], numerics: str) -> tuple[Rescale, Callable[[float, float, float], float]]:
    """Rescaling and multiplier of a convolution."""
    method, several = layer["quantize_method"], layer.get("per_channel_scale_weight", False)
    document, ev = numerics == "snps_caffe-document", numerics == "snps_caffe-ev"
    outputs, group, channels = layer["num_output"], layer["group"], layer["channels"]
    depthwise = group == outputs == channels if document else group == outputs
    point = layer["kernel_h"] * layer["kernel_w"] == 1

    def wide(si: float, sw: float, so: float) -> float:
        return si * sw / so

    def single(si: float, sw: float, so: float) -> float:
        return f32(f32(f32(si) * f32(sw)) / f32(so))

    def mixed(si: float, sw: float, so: float) -> float:
        return f32(f32(si) * f32(sw)) / f32(so)

    if method == "ONNX":
        return to_even_32, wide if several and not document else single
    if method == "Caffe2":
        return (symmetric if ev else two), single if document else stepwise
    if several:
        return (symmetric if ev else two if depthwise else plus_one if document else one), wide
    if ev:
        return symmetric, wide
    return two, (single if document else mixed) if depthwise or point else wide


def convolution(x: np.ndarray, layer: dict[str, Any], blobs: list[np.ndarray], numerics: str) -> np.ndarray:
    """The layer on integers, element by element."""
    weights = blobs[0].astype(np.int64)
    outputs, group = layer["num_output"], layer["group"]
    (kh, kw), (sh, sw), dilation = weights.shape[2:], (layer["stride_h"], layer["stride_w"]), layer["dilation"]
    top, left, bottom, right = layer["pads"]
    several = layer.get("per_channel_scale_weight", False)
    zw = layer["weight_zero_point"]
    points = np.full(outputs, zw) if zw or not several else blobs[3].astype(np.int64)
    centered = np.pad(x.astype(np.int64) - layer["input_zero_point"], ((0, 0), (0, 0), (top, bottom), (left, right)))
    height = (centered.shape[2] - (kh - 1) * dilation - 1) // sh + 1
    width = (centered.shape[3] - (kw - 1) * dilation - 1) // sw + 1
    depth = weights.shape[1]
    out = np.empty((x.shape[0], outputs, height, width), np.float32)
    bias = blobs[1].astype(np.int64) if layer["bias_term"] else np.zeros(outputs, np.int64)
    for n, o, y, z in np.ndindex(out.shape):
        first = o // (outputs // group) * depth
        window = centered[
            n, first : first + depth, y * sh : y * sh + (kh - 1) * dilation + 1 : dilation,
            z * sw : z * sw + (kw - 1) * dilation + 1 : dilation,
        ]  # fmt: skip
        out[n, o, y, z] = int((window * (weights[o] - points[o])).sum()) + int(bias[o])
    rescale, form = decision(layer, numerics)
    flat, each = out.reshape(-1), out.size // outputs
    by_slices = several and numerics != "snps_caffe-document"
    for place in range(flat.size):
        channel = place // each if by_slices else place // (height * width) % outputs
        sw_used, so_used, zo = layer["weight_scale"], layer["output_scale"], layer["output_zero_point"]
        if several and layer["quantize_method"] != "Caffe2":
            sw_used = float(blobs[2][channel])
        if layer.get("per_channel_scale_output"):
            if layer["quantize_method"] != "Caffe2":
                so_used = float(blobs[4][channel])
            zo = zo or int(blobs[5][channel])
        value = f32(f32(rescale(int(flat[place]), form(layer["input_scale"], sw_used, so_used))) + zo)
        limits = LIMITS[layer["saturate"]]
        flat[place] = value if limits is None else min(max(value, limits[0]), limits[1])
    return out


def random_convolution(rng: np.random.Generator) -> tuple[dict[str, Any], list[np.ndarray], np.ndarray]:
    group = int(rng.choice([1, 1, 2, 3]))
    channels, outputs = group * int(rng.integers(1, 3)), group * int(rng.integers(1, 3))
    kh, kw = (int(v) for v in rng.integers(1, 4, 2))
    several = bool(rng.integers(2))
    types = [(-128, 127), (0, 255)]
    low, high = types[rng.integers(2)]
    layer: dict[str, Any] = {
        "num_output": outputs,
        "group": group,
        "channels": channels,
        "kernel_h": kh,
        "kernel_w": kw,
        "stride_h": int(rng.integers(1, 3)),
        "stride_w": int(rng.integers(1, 3)),
        "dilation": int(rng.integers(1, 3)),
        "bias_term": several or bool(rng.integers(4)),
        "input_scale": float(rng.choice([0.5, float(rng.uniform(0.001, 0.2))])),
        "weight_scale": float(rng.choice([0.25, float(rng.uniform(0.001, 0.5))])),
        "output_scale": float(rng.choice([0.5, float(rng.uniform(0.5, 3))])),
        "input_zero_point": int(rng.integers(low, high + 1)),
        "weight_zero_point": int(rng.choice([0, int(rng.integers(-20, 20))])),
        "output_zero_point": int(rng.choice([0, int(rng.integers(-128, 256))])),
        "saturate": str(rng.choice(list(LIMITS))),
        "quantize_method": str(rng.choice(["tflite", "ONNX", "Caffe2"])),
        "pads": tuple(int(v) for v in rng.integers(0, 3, 4)),
    }
    weights = rng.integers(*types[rng.integers(2)], (outputs, channels // group, kh, kw), endpoint=True)
    blobs = [weights]
    if layer["bias_term"]:
        blobs.append(rng.integers(-9000, 9000, outputs))
    if several:
        layer["per_channel_scale_weight"] = True
        blobs += [rng.uniform(0.001, 0.5, outputs).astype(np.float32), rng.integers(-9, 10, outputs)]
        if rng.integers(3) == 0:
            layer["per_channel_scale_output"] = True
            blobs += [rng.uniform(0.5, 3, outputs).astype(np.float32), rng.integers(-99, 99, outputs)]
    size = [int(rng.integers(5, 8)) for _ in range(2)]
    return layer, blobs, rng.integers(low, high + 1, (int(rng.integers(1, 3)), channels, *size))


def fields(layer: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in layer.items() if key not in ("pads", "channels")}
    return given | dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), layer.get("pads", ()), strict=False))


def run(files: Files, feeds: list[np.ndarray], numerics: str, dtype: str | None = None) -> list[np.ndarray]:
    """Results of both executors, which must be equal; with the inputs taken as `dtype`."""
    graph = read_model(files.network, files.learned).graphs[0]
    if dtype is not None:
        tensors = list(graph.tensors)
        for index in graph.inputs:
            tensors[index] = replace(tensors[index], dtype=dtype)
        graph = replace(graph, tensors=tuple(tensors))
    plan = make_plan(graph, find(numerics))
    given = {
        index: value.astype(graph.tensors[index].type.numpy) for index, value in zip(graph.inputs, feeds, strict=True)
    }
    found = ReferenceExecutor(plan).run(given)
    if native_module() is not None:
        for ours, theirs in zip(found, NativeExecutor(plan).run(given), strict=True):
            assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
    return list(found)


NUMERICS = ("snps_caffe", "snps_caffe-ev", "snps_caffe-document")


def test_random_convolutions(request: pytest.FixtureRequest) -> None:
    """As binary32 blobs and, where the input has 8 bits, as a layer of integers: both give the formula's numbers."""
    for rng in cases(request, usual=40):
        layer, blobs, x = random_convolution(rng)
        numerics = NUMERICS[rng.integers(3)]
        if numerics == "snps_caffe-ev" and layer["quantize_method"] != "ONNX":
            # Multipliers of 1/2 and more are undefined there.
            layer["output_scale"] = 3.0
            blobs = [b if i != 4 else np.full_like(b, 3.0) for i, b in enumerate(blobs)]
        files = Files({"x": x.shape})
        files.add("Convolution", "c", ["x"], ["y"], blobs, **fields(layer))
        expected = convolution(x, layer, blobs, numerics)
        np.testing.assert_array_equal(run(files, [x], numerics)[0].astype(np.float32), expected)
        dtype = "s8" if x.min() < 0 else "u8"
        if x.min() >= -128 and (x.max() <= 127 or dtype == "u8"):
            np.testing.assert_array_equal(run(files, [x], numerics, dtype)[0].astype(np.float32), expected)


def wide_layer(rng: np.random.Generator) -> tuple[str, dict[str, Any], list[np.ndarray], np.ndarray]:
    """A layer whose filters and channels fill vectors; its type, fields, blobs and input."""
    kind = str(rng.choice(["Convolution", "Convolution", "ConvolutionDepthwise", "Deconvolution", "InnerProduct"]))
    group, each, depth = (int(rng.choice(sizes)) for sizes in ([1, 1, 2, 3], [1, 3, 8, 16, 17, 33], [1, 2, 5, 16, 24]))
    if kind == "ConvolutionDepthwise":
        group, each, depth = int(rng.choice([1, 3, 8, 16, 21])), 1, 1
    (kh, kw), outputs = (int(v) for v in rng.integers(1, 5, 2)), group * each
    low, high = [(-128, 127), (0, 255)][rng.integers(2)]
    fields: dict[str, Any] = {"num_output": outputs}
    for name, least, most in (("input", 0.001, 0.2), ("weight", 0.001, 0.3), ("output", 1, 9)):
        fields[f"{name}_scale"] = float(rng.choice([0.5 if name != "output" else 1.0, rng.uniform(least, most)]))
        fields[f"{name}_zero_point"] = int(rng.choice([0, rng.integers(-20, 20)]))
    fields |= {
        "saturate": str(rng.choice(list(LIMITS))),
        "quantize_method": str(rng.choice(["tflite", "ONNX", "Caffe2"])),
    }
    if kind == "InnerProduct":
        shape = [int(v) for v in rng.integers(1, 7, 3)]
        axis = int(rng.integers(0, 3))
        weights = rng.integers(low, high + 1, (outputs, math.prod(shape[axis:])))
        fields["axis"] = axis
    else:
        strides, size = rng.integers(1, 4, 2).tolist(), rng.integers(7, 14, 2).tolist()
        fields |= {"kernel_h": kh, "kernel_w": kw, "stride_h": strides[0], "stride_w": strides[1], "group": group}
        padding = str(rng.choice(["none", "sides", "type"]))
        if padding == "sides":
            pads = rng.integers(0, min(kh, kw), 4).tolist()
            fields |= dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), pads, strict=True))
        elif padding == "type" and kind != "Deconvolution":
            fields["pad_type"] = 1
        if kind != "Deconvolution":
            fields["dilation"] = int(rng.choice([1, 1, 2]))
        shape = [int(rng.integers(1, 3)), group * depth, *size]
        filters = (shape[1], each, kh, kw) if kind == "Deconvolution" else (outputs, depth, kh, kw)
        weights = rng.integers(low, high + 1, filters)
    blobs = [weights, rng.integers(-9000, 9000, outputs)]
    if kind.startswith("Convolution") and rng.random() < 0.4:
        fields["per_channel_scale_weight"] = True
        blobs += [rng.uniform(0.001, 0.3, outputs).astype(np.float32), rng.integers(-9, 10, outputs)]
        if rng.random() < 0.5:
            fields["per_channel_scale_output"] = True
            blobs += [rng.uniform(0.5, 9, outputs).astype(np.float32), rng.integers(-99, 99, outputs)]
    return kind, fields, blobs, rng.integers(low, high + 1, shape)


def test_wide_layers(request: pytest.FixtureRequest) -> None:
    """Both executors give the same bytes, of binary32 blobs and of integers; small layers follow the formulas, too."""
    for rng in cases(request, usual=20):
        kind, fields, blobs, x = wide_layer(rng)
        numerics = str(rng.choice([*NUMERICS, "snps_caffe-sr"]))
        files = Files({"x": x.shape})
        files.add(kind, "y", ["x"], ["y"], blobs, **fields)
        for dtype in (None, "s8" if x.min() < 0 else "u8"):
            run(files, [x], numerics, dtype)


@pytest.mark.parametrize("seed", range(10))
def test_random_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = {
        ("snps_caffe", "tflite"): simulated_64,
        ("snps_caffe", "ONNX"): to_even_64,
        ("snps_caffe", "Caffe2"): to_even_64,
        ("snps_caffe-ev", "tflite"): symmetric,
        ("snps_caffe-sr", "tflite"): lambda acc, real: exact.nearest(rounded(Fraction(acc * real)), "away"),
        ("snps_caffe-document", "tflite"): two,
        ("snps_caffe-document", "ONNX"): two,
        ("snps_caffe-document", "Caffe2"): to_even_64,
    }
    for (numerics, method), rescale in rules.items():
        outputs, shape = int(rng.integers(1, 9)), [int(v) for v in rng.integers(1, 5, 3)]
        x = rng.integers(-128, 128, shape)
        axis = int(rng.integers(0, 3))
        depth = math.prod(shape[axis:])
        w = rng.integers(-128, 128, (outputs, depth))
        bias = rng.integers(-3000, 3000, outputs)
        transpose, saturate = bool(rng.integers(2)), str(rng.choice(list(LIMITS)))
        scales = [float(v) for v in (rng.uniform(0.01, 0.3), rng.uniform(0.001, 0.1), rng.uniform(0.1, 2))]
        points = [int(v) for v in rng.integers(-99, 99, 3)]
        files = Files({"x": shape})
        files.add(
            "InnerProduct", "f", ["x"], ["y"], [w.T if transpose else w, bias], num_output=outputs, axis=axis,
            transpose=transpose, input_scale=scales[0], weight_scale=scales[1], output_scale=scales[2],
            input_zero_point=points[0], weight_zero_point=points[1], output_zero_point=points[2], saturate=saturate,
            quantize_method=method,
        )  # fmt: skip
        acc = (x.reshape(-1, depth) - points[0]) @ (w - points[1]).T + bias
        real = scales[0] * scales[1] / scales[2]
        expected = np.vectorize(lambda a, rule=rescale, s=real: rule(int(a), s), otypes=[np.int64])(acc) + points[2]
        if LIMITS[saturate] is not None:
            expected = expected.clip(*LIMITS[saturate])
        for dtype in (None, "s8"):
            found = run(files, [x], numerics, dtype)[0]
            np.testing.assert_array_equal(found, expected.reshape(*shape[:axis], outputs))


@pytest.mark.parametrize("seed", range(10))
def test_random_deconvolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for numerics, rescale in (("snps_caffe", simulated_32), ("snps_caffe-document", two)):
        group = int(rng.integers(1, 3))
        channels, each = group * int(rng.integers(1, 3)), int(rng.integers(1, 3))
        kh, kw, sh, sw = (int(v) for v in (*rng.integers(2, 4, 2), *rng.integers(1, 4, 2)))
        pads = [int(v) for v in rng.integers(0, 2, 4)]
        x = rng.integers(0, 256, (2, channels, 3, 4))
        w = rng.integers(-128, 128, (channels, each, kh, kw))
        scales = [0.031, float(rng.uniform(0.001, 0.05)), float(rng.uniform(0.1, 2))]
        z, zw, zo = (int(v) for v in rng.integers(0, 200, 3))
        files = Files({"x": x.shape})
        files.add(
            "Deconvolution", "d", ["x"], ["y"], [w, np.zeros(each * group)], num_output=each * group, kernel_h=kh,
            kernel_w=kw, stride_h=sh, stride_w=sw, group=group, input_scale=scales[0], weight_scale=scales[1],
            output_scale=scales[2], input_zero_point=z, weight_zero_point=zw, output_zero_point=zo,
            **dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), pads, strict=True)),
        )  # fmt: skip
        full = np.zeros((2, each * group, 2 * sh + kh, 3 * sw + kw), np.int64)
        per = channels // group
        for n, c, i, j in np.ndindex(x.shape):
            first = c // per * each
            part = (x[n, c, i, j] - z) * (w[c] - zw)
            full[n, first : first + each, i * sh : i * sh + kh, j * sw : j * sw + kw] += part
        acc = full[:, :, pads[0] : full.shape[2] - pads[2], pads[1] : full.shape[3] - pads[3]]
        real = scales[0] * scales[1] / scales[2]
        if numerics == "snps_caffe-document":
            real = f32(f32(f32(scales[0]) * f32(scales[1])) / f32(scales[2]))
        expected = np.vectorize(lambda a, rule=rescale, s=real: rule(int(a), s), otypes=[np.int64])(acc) + zo
        np.testing.assert_array_equal(run(files, [x], numerics)[0], expected)


def test_a_network_of_8_bit_layers_goes_to_kernels_of_integers() -> None:
    """Three convolutions and a product, of which all but the first read 8 bits."""
    rng = np.random.default_rng(5)
    files, layers = Files({"x": (1, 4, 9, 9)}), []
    source = "x"
    for number, (method, several) in enumerate(
        (("tflite", False), ("ONNX", False), ("tflite", True), ("Caffe2", False))
    ):
        layer: dict[str, Any] = {
            "num_output": 4, "group": 1, "channels": 4, "kernel_h": 3, "kernel_w": 3, "stride_h": 1, "stride_w": 1,
            "dilation": 1, "bias_term": True, "input_scale": 0.07, "weight_scale": 0.013, "output_scale": 0.4,
            "input_zero_point": 3, "weight_zero_point": 0, "output_zero_point": 3, "saturate": "Unsigned_8bit",
            "quantize_method": method, "pads": (1, 1, 1, 1), "per_channel_scale_weight": several,
        }  # fmt: skip
        blobs = [rng.integers(-128, 128, (4, 4, 3, 3)), rng.integers(-500, 500, 4)]
        if several:
            blobs += [rng.uniform(0.01, 0.02, 4).astype(np.float32), np.zeros(4)]
        files.add("Convolution", f"c{number}", [source], [f"b{number}"], blobs, **fields(layer))
        layers.append((layer, blobs))
        source = f"b{number}"
    files.add(
        "InnerProduct", "f", [source], ["y"], [rng.integers(-128, 128, (5, 4 * 81)), rng.integers(-9, 9, 5)],
        num_output=5, input_scale=0.07, weight_scale=0.0013, output_scale=0.4, input_zero_point=3,
        saturate="Signed_8bit",
    )  # fmt: skip
    x = rng.integers(0, 256, (1, 4, 9, 9))
    plan = make_plan(read_model(files.network, files.learned).graphs[0], find("snps_caffe"))
    stems = [*["conv"] * 4, "fully_connected"]
    assert [step.operator for step in plan.steps] == stems
    expected = x
    for layer, blobs in layers:
        expected = convolution(expected, layer, blobs, "snps_caffe").astype(np.int64)
    assert run(files, [x], "snps_caffe")[0].shape == (1, 5)
    files.text = files.text[: files.text.index('layer { name: "f"')]
    np.testing.assert_array_equal(run(files, [x], "snps_caffe")[0], expected)


def single(**changes: Any) -> Files:
    files = Files({"x": changes.pop("shape", (1, 2, 5, 5))})
    blobs = changes.pop("blobs", [np.ones((3, 2, 2, 2)), np.zeros(3)])
    given = {"num_output": 3, "kernel_size": 2, "input_scale": 0.5, "weight_scale": 0.25, "output_scale": 0.75}
    files.add("Convolution", "c", ["x"], ["y"], blobs, **(given | changes))
    return files


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"input_scale": 0.0}, "BT-QUANT-SCALE"),
        ({"weight_scale": -0.5}, "BT-QUANT-SCALE"),
        # f32(0.5 * 0.25) / f32(so) is one bit below 1: its 31 bits round to 2^31, where the system stops.
        ({"input_scale": 1.0 - 2.0**-53, "weight_scale": 1.0, "output_scale": 2.0}, "BT-MULTIPLIER"),
        ({"per_channel_scale_output": True, "blobs": [np.ones((3, 2, 2, 2)), *[np.ones(3)] * 3]}, "BT-QUANT-AXIS"),
        (
            {"per_channel_scale_weight": True, "bias_term": False, "blobs": [np.ones((3, 2, 2, 2)), *[np.ones(3)] * 2]},
            "BT-CAFFE-WEIGHTS",
        ),
        ({"pad_l": 1, "pad_h": 1}, "BT-WINDOW"),
        ({"pad_type": 1, "pad": 1}, "BT-WINDOW"),
        ({"kernel_h": 2}, "BT-WINDOW"),
        ({"num_output": 4}, "BT-CAFFE-WEIGHTS"),
        ({"blobs": [np.ones((3, 2, 2, 2))]}, "BT-CAFFE-WEIGHTS"),
        ({"blobs": []}, "BT-CAFFE-WEIGHTS"),
        ({"group": 3}, "BT-CONV-CHANNELS"),
        ({"submanifold_sparse": True}, "BT-CAFFE-SPARSE"),
        ({"shape": (1, 2, 1, 1), "stride": 1}, "BT-WINDOW"),
    ],
)
def test_what_the_system_stops_at_is_refused(changes: dict[str, Any], code: str) -> None:
    files = single(**changes)
    with pytest.raises(bittrue.BittrueError) as caught:
        make_plan(read_model(files.network, files.learned).graphs[0], find("snps_caffe"))
    assert caught.value.code == code
    assert "layer 'c'" in str(caught.value) or "Convolution" in str(caught.value)


@pytest.mark.parametrize("kind", ["Deconvolution", "InnerProduct"])
def test_multipliers_of_one_and_more_are_undefined(kind: str) -> None:
    files = Files({"x": (1, 2, 5, 5)})
    weights = np.ones((2, 3, 2, 2)) if kind == "Deconvolution" else np.ones((3, 50))
    given = {"kernel_size": 2} if kind == "Deconvolution" else {}
    scales = {"input_scale": 2.0, "weight_scale": 0.5, "output_scale": 1.0}
    files.add(kind, "l", ["x"], ["y"], [weights, np.zeros(3)], num_output=3, **given, **scales)
    graph = read_model(files.network, files.learned).graphs[0]
    with pytest.raises(bittrue.InvalidModelError, match="less than 1"):
        make_plan(graph, find("snps_caffe"))


def test_sums_beyond_24_bits_are_refused_while_running() -> None:
    files = single(blobs=[np.full((3, 2, 2, 2), 4095), np.zeros(3)])
    with pytest.raises(bittrue.RunError, match="2\\^24"):
        run(files, [np.full((1, 2, 5, 5), 4095)], "snps_caffe")
    # The same magnitudes in which no partial sum can get there.
    assert run(files, [np.eye(5)[None, None].repeat(2, 1) * 255], "snps_caffe")[0].shape == (1, 3, 4, 4)


def test_fractions_have_no_rescaling() -> None:
    graph = read_model(single().network, single().learned).graphs[0]
    executor = ReferenceExecutor(make_plan(graph, find("snps_caffe")))
    with pytest.raises(bittrue.RunError, match="not whole"):
        executor.run({graph.inputs[0]: np.full((1, 2, 5, 5), 0.5, np.float32)})


def test_real_convolutions_without_scales_say_that_they_are_inexact() -> None:
    files = single(input_scale=1.0, weight_scale=1.0, output_scale=1.0, blobs=[np.full((3, 2, 2, 2), 0.5), np.ones(3)])
    graph = read_model(files.network, files.learned).graphs[0]
    plan = make_plan(graph, find("snps_caffe"))
    assert plan.steps[0].inexact
    found = ReferenceExecutor(plan).run({graph.inputs[0]: np.full((1, 2, 5, 5), 0.25, np.float32)})[0]
    assert set(found.reshape(-1).tolist()) == {2.0}


def test_a_window_that_just_does_not_fit_gives_one_output() -> None:
    """(1 + 0 - 2) / 2 truncates to 0 in the system's integers, so one window is read, zeros behind the image."""
    files = single(shape=(1, 2, 1, 1), stride=2, input_scale=1.0, weight_scale=1.0, output_scale=1.0)
    assert run(files, [np.full((1, 2, 1, 1), 7)], "snps_caffe")[0].reshape(-1).tolist() == [14.0] * 3


def test_pads_like_tensorflow() -> None:
    """pad_type 1 on 5 columns with stride 2 and 2 taps: 3 outputs, nothing ahead and one zero behind."""
    files = single(pad_type=1, stride=2, input_scale=1.0, weight_scale=1.0, output_scale=1.0)
    x = np.arange(50).reshape(1, 2, 5, 5)
    found = run(files, [x], "snps_caffe")[0]
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))
    expected = padded.sum(1)[:, None].repeat(3, 1)
    expected = (
        expected[:, :, ::2, ::2] + expected[:, :, 1::2, ::2] + expected[:, :, ::2, 1::2] + expected[:, :, 1::2, 1::2]
    )
    np.testing.assert_array_equal(found, expected)


def axis_sums(x: np.ndarray, w: np.ndarray, axis: int, out: int, stride: int, dilation: int, before: int) -> np.ndarray:
    """Sums along one axis of an image: output o meets position o stride + tap dilation - before, zeros outside."""
    total = np.zeros((*x.shape[:axis], out, *x.shape[axis + 1 :]), np.int64)
    for o, tap in np.ndindex(out, len(w)):
        at = o * stride + tap * dilation - before
        if 0 <= at < x.shape[axis]:
            np.moveaxis(total, axis, 0)[o] += w[tap] * np.moveaxis(x, axis, 0)[at]
    return total


@pytest.mark.parametrize("kind", ["Convolution", "ConvolutionDepthwise"])
def test_padding_by_type_and_by_side(kind: str, request: pytest.FixtureRequest) -> None:
    """pad_type 1 finds the padding ahead from undilated taps; force_nd_im2col pads behind the image only."""
    for rng in cases(request, usual=7):
        x = rng.integers(-9, 9, (1, 1, *rng.integers(1, 9, 2)))
        taps, strides, dilations = (rng.integers(low, high, 2) for low, high in ((1, 5), (1, 4), (1, 4)))
        columns = [rng.integers(-5, 6, n) for n in taps]
        nd, by_type, pads = bool(rng.integers(2)), bool(rng.integers(2)), rng.integers(0, 3, 4)
        if not by_type and not pads.any():
            continue
        window = {"kernel_size": taps, "stride": strides, "dilation": dilations}
        fields = {name: [int(v) for v in given] for name, given in window.items()} | {"force_nd_im2col": nd}
        if by_type:
            fields |= {"pad_type": 1}
        else:
            fields |= dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), map(int, pads), strict=True))
        expected = x.astype(np.int64)
        for axis, (t, s, d) in enumerate(zip(taps, strides, dilations, strict=True)):
            size, reach, both = x.shape[2 + axis], (t - 1) * d + 1, pads[axis] + pads[axis + 2]
            if by_type:
                out = -(-size // s)
                before = 0 if nd else max(0, t - s if size % s == 0 else t - size % s) // 2
            else:
                out = int((size + both - reach) / s) + 1
                before = 0 if nd else pads[axis]
            expected = axis_sums(expected, columns[axis], 2 + axis, max(0, out), s, d, before)
        files = Files({"x": x.shape})
        files.add(kind, "c", ["x"], ["y"], [np.outer(*columns)[None, None]], num_output=1, bias_term=False, **fields)
        if expected.size:
            np.testing.assert_array_equal(run(files, [x], "snps_caffe")[0], expected)


def test_deconvolutions_padded_by_type() -> None:
    """Without effect where windows lie apart, or with force_nd_im2col; else the system reads past its memory."""

    def made(**fields: Any) -> Files:
        files = Files({"x": (1, 1, 2, 2)})
        weights = np.arange(4).reshape(1, 1, 2, 2)
        files.add("Deconvolution", "d", ["x"], ["y"], [weights], num_output=1, kernel_size=2, bias_term=False, **fields)
        return files

    x = np.arange(4).reshape(1, 1, 2, 2)
    for fields in ({"stride": 2}, {"stride": 1, "force_nd_im2col": True}):
        plain = run(made(**fields), [x], "snps_caffe")[0]
        np.testing.assert_array_equal(run(made(pad_type=1, **fields), [x], "snps_caffe")[0], plain)
    with pytest.raises(bittrue.UnsupportedError, match="past its memory"):
        read_model(made(pad_type=1).network, made(pad_type=1).learned)


@pytest.mark.parametrize(("output_scale", "arithmetic"), [(0.5, "integers"), (400.0, "whole")])
def test_sums_that_could_leave_24_bits(output_scale: float, arithmetic: str) -> None:
    """Integers do it where such sums are limited anyway; else binary32 does, and checks them while running."""
    rng = np.random.default_rng(8)
    files = Files({"x": (1, 1200, 1, 2)})
    weights = rng.choice([-127, 127], (3, 1200, 1, 1))
    scales = {"input_scale": 0.05, "weight_scale": 0.02, "output_scale": output_scale}
    files.add("Power", "q", ["x"], ["q"], saturate="Unsigned_8bit")
    files.add(
        "Convolution", "c", ["q"], ["y"], [weights, np.zeros(3)], num_output=3, kernel_size=1, saturate="Unsigned_8bit",
        quantize_method="Caffe2", **scales,
    )  # fmt: skip
    graph = read_model(files.network, files.learned).graphs[0]
    assert make_plan(graph, find("snps_caffe")).steps[-1]["arithmetic"] == arithmetic
    x = rng.integers(0, 100, (1, 1200, 1, 2))
    acc = np.einsum("oc,cw->ow", weights[:, :, 0, 0], x[0, :, 0])
    real = stepwise(*scales.values())
    expected = np.array([[min(max(two(int(a), real), 0), 255) for a in row] for row in acc])
    np.testing.assert_array_equal(run(files, [x], "snps_caffe")[0][0, :, 0], expected)
    if arithmetic == "whole":
        with pytest.raises(bittrue.RunError, match="2\\^24"):
            run(files, [np.full(x.shape, 255)], "snps_caffe")
