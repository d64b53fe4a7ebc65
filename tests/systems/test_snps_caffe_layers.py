"""SNPS Caffe's layers on numbers and images: random networks of one layer against plain Python, on both executors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bittrue.errors import BittrueError, UnsupportedError
from bittrue.graph import ModelFile
from support import caffe_layers as caffe
from support.caffe_layers import away, even, f32, level, limited, network, numbers, real, run, two_step
from support.replays import replays
from support.shared import REPOSITORY

METHODS = ("tflite", "ONNX", "Caffe2")

scales = st.one_of(st.floats(1e-3, 4.0), st.sampled_from([1.0, 0.5, 0.25, 2.0**-7, 1 / 3, 0.1]))
points = st.sampled_from([0, 0, 1, -1, 3, 127, 128, 255, -128])
saturates = st.sampled_from(sorted(caffe.LIMITS))
methods = st.sampled_from(METHODS)
kinds = st.sampled_from(["f32", "s8", "u8"])
seeds = st.integers(0, 2**32 - 1)


def expect(found: np.ndarray, wanted: Sequence[float], dtype: str | None = None) -> None:
    """Equal numbers; the sign of zero does not count."""
    if dtype is not None:
        assert found.dtype.name == dtype
    assert found.reshape(-1).astype(np.float64).tolist() == [one + 0.0 for one in wanted]


def refuses(model: ModelFile, feeds: Sequence[np.ndarray], code: str = "BT-MULTIPLIER") -> None:
    """What the system's process ends at."""
    with pytest.raises(BittrueError, match=code):
        run(model, feeds)


def eight(saturate: str, whole: bool) -> str:
    return {"Signed_8bit": "int8", "Unsigned_8bit": "uint8"}.get(saturate, "float32") if whole else "float32"


def test_cases_of_the_original_sources_are_equal() -> None:
    """What the shared vectors have none of: products, quotients, pads on one side, exponents, other axes, NaN.

    Recorded from the layers' sources, unmodified, on stand-ins for blobs, protocol buffers and BLAS.
    """
    folder = REPOSITORY / "tests" / "data" / "recorded" / "snps_caffe_layers"
    for executor, done in replays(folder, ["reference", "auto"]).items():
        assert not [outcome for outcome in done.outcomes if not outcome.equal][:5], executor
        assert len(done.outcomes) == 290


@given(seeds, kinds, scales, points, scales, points, scales, points, saturates, methods)
def test_bias(
    seed: int, kind: str, si: float, zi: int, sb: float, zb: int, so: float, zo: int, saturate: str, method: str
) -> None:
    shape, x = (2, 3, 4), numbers(seed, kind, (2, 3, 4))
    b = numbers(seed + 1, "s8", (3,))
    fields = {
        "input_scale": si, "bias_scale": sb, "output_scale": so, "input_zero_point": zi, "bias_zero_point": zb,
        "output_zero_point": zo, "saturate": saturate, "quantize_method": method,
    }  # fmt: skip
    model = network("Bias", "bias_param", [shape, (3,)], fields, [kind, "s8"])
    quantized = so != 1 or zo != 0
    for numerics in ("snps_caffe", "snps_caffe-document"):
        nearest = even if (numerics, method) == ("snps_caffe-document", "ONNX") else away
        wanted = []
        for place, q in np.ndenumerate(x):
            y = level(f32(real(float(q), si, zi) + real(float(b[place[1]]), sb, zb)), so, zo, nearest)
            wanted.append(limited(y, saturate) if quantized else y)
        expect(run(model, [x, b], numerics), wanted, eight(saturate, so != 1))


@given(seeds, kinds, kinds, st.tuples(scales, scales), st.tuples(points, points), scales, points, saturates, methods)
def test_quantized_sum(
    seed: int, one: str, two: str, s: tuple, z: tuple, so: float, zo: int, saturate: str, method: str
) -> None:
    """The third bottom and coefficients play no part."""
    assume(any(scale != 1 for scale in (*s, so)) or any((*z, zo)))
    shape = (1, 2, 9)
    a, b = numbers(seed, one, shape), numbers(seed + 1, two, shape)
    three = seed % 3 == 0
    fields = {
        "input_scale": [*s, *[7.0] * three], "input_zero_point": [*z, *[5] * three], "output_scale": so,
        "output_zero_point": zo, "saturate": saturate, "quantize_method": method, "coeff": [0.3, 2.0, *[1.0] * three],
    }  # fmt: skip
    formula = caffe.sum_by_shifts if method == "tflite" else caffe.sum_of_21_bits
    shapes, feeds, types = [shape] * (2 + three), [a, b, *[a] * three], [one, two, *["f32"] * three]
    model = network("Eltwise", "eltwise_param", shapes, fields, types)
    if method != "tflite" and max(s) / so < 2**-9:
        return
    if method == "tflite" and caffe.stops_at(*caffe.multipliers_of_shifts(s, so)):
        return refuses(model, feeds)
    wanted = [
        limited(f32(formula(int(p), int(q), s, z, (so, zo))), saturate) for p, q in zip(a.flat, b.flat, strict=True)
    ]
    expect(run(model, feeds), wanted, eight(saturate, True))


@given(seeds, st.lists(kinds, min_size=1, max_size=3), st.sampled_from(["PROD", "SUM", "MAX", "MIN", "DIV"]), saturates)
def test_plain_combinations(seed: int, types: list[str], operation: str, saturate: str) -> None:
    """From left to right in binary32; a comparison that fails takes the second number."""
    if operation in ("DIV", "MAX", "MIN"):
        types = (types * 2)[: max(2, len(types) * (operation != "DIV"))]
    shape = (2, 3, 4)
    broadcasts = len(types) > 1 and seed % 2 == 0
    shapes = [shape, *([(3,)] if broadcasts else [shape]), shape][: len(types)]
    feeds = [numbers(seed + i, kind, one) for i, (kind, one) in enumerate(zip(types, shapes, strict=True))]
    if operation == "DIV" and broadcasts:
        saturate = "None"
    fields: dict[str, Any] = {"operation": operation, "saturate": saturate, "axis": 1 if broadcasts else 0}
    coefficients = [1.0] * len(types)
    if operation == "SUM" and seed % 3 == 0:
        coefficients = [[-1.0, 2.0, 0.5][(seed + i) % 3] for i in range(len(types))]
        fields["coeff"] = coefficients
    wanted = []
    for place in np.ndindex(*shape):
        parts = [float(x[place[1]] if x.shape != shape else x[place]) for x in feeds]
        y = parts[0] if operation != "SUM" else f32(parts[0] * coefficients[0])
        for position, part in enumerate(parts[1:], 1):
            if operation == "PROD":
                y = f32(y * part)
            elif operation == "SUM":
                y = f32(y + f32(part * coefficients[position]))
            elif operation == "DIV":
                quotient = f32(1 / part) if part else math.inf
                y = f32(y * quotient) if broadcasts else f32(y / part) if part else math.nan
            else:
                y = max(y, part) if operation == "MAX" else min(y, part)
        wanted.append(limited(y, saturate))
    assume(operation != "DIV" or (feeds[1] != 0).all())
    expect(run(network("Eltwise", "eltwise_param", shapes, fields, types), feeds), wanted)


@given(seeds, st.lists(kinds, min_size=2, max_size=3), scales, points, saturates, methods, st.booleans())
def test_concat(seed: int, types: list[str], so: float, zo: int, saturate: str, method: str, plain: bool) -> None:
    rng = np.random.default_rng(seed)
    shapes = [(2, int(rng.integers(1, 4)), 3) for _ in types]
    feeds = [numbers(seed + i, kind, one) for i, (kind, one) in enumerate(zip(types, shapes, strict=True))]
    fields: dict[str, Any] = {"axis": -2, "saturate": saturate, "quantize_method": method}
    s, z = [float(v) for v in rng.uniform(0.01, 2, len(types))], [int(v) for v in rng.integers(-128, 256, len(types))]
    if plain:
        wanted = np.concatenate(feeds, 1).reshape(-1).tolist()
    else:
        fields |= {"input_scale": s, "input_zero_point": z, "output_scale": so, "output_zero_point": zo}
        parts = [
            np.array([limited(level(real(float(q), s[i], z[i]), so, zo), saturate) for q in x.flat]).reshape(x.shape)
            for i, x in enumerate(feeds)
        ]
        wanted = np.concatenate(parts, 1).reshape(-1).tolist()
    expect(run(network("Concat", "concat_param", shapes, fields, types), feeds), wanted)


def test_concat_of_one_bottom_does_nothing() -> None:
    fields = {"input_scale": 0.5, "output_scale": 0.1, "saturate": "Signed_8bit"}
    text = (
        caffe.layer("Concat", "concat_param", ["a"], fields, "b")
        + "\n"
        + caffe.layer("Power", "power_param", ["b"], {})
    )
    head = 'input: "a"\ninput_shape { dim: 1 dim: 3 }\n'
    model = caffe.read_model((head + text).encode())
    assert run(model, [np.float32([[1.5, 300, -2]])]).tolist() == [[1.5, 300, -2]]


@given(seeds, kinds, st.floats(-8, 8, width=32), st.floats(-200, 200, width=32), st.booleans(), saturates, methods)
def test_power(seed: int, kind: str, scale: float, shift: float, whole: bool, saturate: str, method: str) -> None:
    """Products near ties; rounded only where the result is limited."""
    shift = float(round(shift)) if whole else shift
    x = numbers(seed, kind, (2, 5))
    if kind == "f32" and scale:
        halves = np.float32((x[0] + 0.5) / max(scale, 1e-30) if scale > 0 else (x[0] + 0.5) / min(scale, -1e-30))
        x = np.stack([x[0], halves, np.nextafter(halves, np.float32(0))])
    fields = {"scale": scale, "shift": shift, "saturate": saturate, "quantize_method": method}
    wanted = []
    for q in x.flat:
        y = f32(float(q) * scale)
        if saturate != "None":
            y = away(y) if method == "tflite" else even(y)
        wanted.append(limited(f32(y + shift), saturate) if scale else shift)
    model = network("Power", "power_param", [x.shape], fields, [kind])
    expect(run(model, [x]), wanted, eight(saturate, shift.is_integer() and scale != 0))


def test_power_with_an_exponent() -> None:
    x = np.float32([[0.5, 3, 7, 0]])
    fields = {"scale": 0.5, "shift": 1.0, "power": 2.0, "saturate": "Unsigned_8bit", "quantize_method": "ONNX"}
    assert run(network("Power", "power_param", [x.shape], fields), [x]).tolist() == [[1, 9, 25, 1]]
    fields = {"scale": 5.0, "shift": 2.0, "power": 0.0}
    assert run(network("Power", "power_param", [x.shape], fields), [x]).tolist() == [[1, 1, 1, 1]]
    # Nothing is added to a negative zero, so its reciprocal is below every limit.
    fields = {"scale": -0.5, "power": -1.0, "saturate": "Unsigned"}
    assert run(network("Power", "power_param", [x.shape], fields), [x]).tolist() == [[0, 0, 0, 0]]
    with pytest.raises(UnsupportedError, match="a scale of 0 and a power"):
        network("Power", "power_param", [x.shape], {"scale": 0.0, "shift": 2.0, "power": 3.0})


def rectified(x: float, fields: dict[str, Any]) -> float:
    slope = fields.get("negative_slope", 0.0)
    y = f32(max(x, 0.0) + f32(slope * min(x, 0.0))) if not math.isnan(x) else 0.0
    if fields.get("relu6"):
        y = min(y, 6.0)
    if fields.get("maximum", 0.0) > 0:
        y = min(y, f32(fields["maximum"]))
    if fields.get("minimum", 0.0) != 0:
        y = max(y, f32(fields["minimum"]))
    return y


@given(
    seeds, kinds, scales, points, scales, points, saturates, st.booleans(),
    st.sampled_from([0.0, 0.0, 1.0, 6.0, 37.5, -1.0]), st.sampled_from([0.0, 0.0, -1.0, 0.25, 2.0]),
)  # fmt: skip
def test_relu(
    seed: int, kind: str, si: float, zi: int, so: float, zo: int, saturate: str, six: bool, most: float, least: float
) -> None:
    x = numbers(seed, kind, (2, 30))
    fields = {
        "input_scale": si, "input_zero_point": zi, "output_scale": so, "output_zero_point": zo, "saturate": saturate,
        "relu6": six, "maximum": most, "minimum": least,
    }  # fmt: skip
    quantized = so != 1 or zo != 0
    wanted = []
    for q in x.flat:
        y = level(rectified(real(float(q), si, zi), fields), so, zo)
        wanted.append(limited(y, saturate) if quantized else y)
    expect(run(network("ReLU", "relu_param", [x.shape], fields, [kind]), [x]), wanted)


def test_relu_of_what_is_no_number() -> None:
    x = np.float32([[np.nan, np.inf, -np.inf, -2, 3]])
    for fields, wanted in (
        ({}, [0, math.inf, 0, 0, 3]),
        ({"negative_slope": 0.5}, [0, math.inf, -math.inf, -1, 3]),
        ({"relu6": True}, [0, 6, 0, 0, 3]),
        ({"output_scale": 0.5, "output_zero_point": -3, "saturate": "Signed_8bit"}, [-3, 127, -3, -3, 3]),
    ):
        expect(run(network("ReLU", "relu_param", [x.shape], fields), [x]), wanted)


slopes = st.one_of(st.floats(2.0**-10, 2, width=32), st.sampled_from([-0.25, 0.1, 1.5]))


# Significands that are rounded up to 2^31, and down to -2^31.
@example(0, "s8", 0.5, 2.0 - 2.0**-52, 0, 1.0, 1, "None")
@example(0, "s8", -(2.0 - 2.0**-23), 1 + 2.0**-24, 0, 0.5, 0, "None")
@given(seeds, kinds, slopes, scales, points, scales, points, saturates)
def test_leaky_relu(seed: int, kind: str, slope: float, si: float, zi: int, so: float, zo: int, saturate: str) -> None:
    """In integers where both ends are quantized, else in binary32."""
    x = numbers(seed, kind, (2, 40))
    slope = f32(slope)
    fields = {
        "negative_slope": slope, "input_scale": si, "input_zero_point": zi, "output_scale": so,
        "output_zero_point": zo, "saturate": saturate, "relu6": bool(seed % 2),
    }  # fmt: skip
    quantized = so != 1 or zo != 0
    whole = quantized and (si != 1 or zi != 0)
    model = network("ReLU", "relu_param", [x.shape], fields, [kind])
    if whole and caffe.stops_at(si / so, si * slope / so):
        return refuses(model, [x])
    wanted = []
    for q in x.flat:
        if whole:
            value = int(q) - zi
            y: float = two_step(value, si / so if value >= 0 else si * slope / so) + zo
            wanted.append(limited(f32(y), saturate))
        else:
            y = level(rectified(real(float(q), si, zi), fields), so, zo)
            wanted.append(limited(y, saturate) if quantized else y)
    expect(run(model, [x]), wanted)


@given(seeds, kinds, scales, points, scales, points, saturates)
def test_sigmoid(seed: int, kind: str, si: float, zi: int, so: float, zo: int, saturate: str) -> None:
    """By the C library's tanh, whose last bit of 53 does not reach the 24 that are kept."""
    x = numbers(seed, kind, (2, 40))
    fields = {
        "input_scale": si, "input_zero_point": zi, "output_scale": so, "output_zero_point": zo, "saturate": saturate
    }  # fmt: skip
    quantized = so != 1 or zo != 0
    wanted = []
    for q in x.flat:
        y = level(f32(0.5 * math.tanh(0.5 * real(float(q), si, zi)) + 0.5), so, zo)
        wanted.append(limited(y, saturate) if quantized else y)
    expect(run(network("Sigmoid", "sigmoid_param", [x.shape], fields, [kind]), [x]), wanted, eight(saturate, so != 1))


@given(seeds, kinds, st.floats(0.01, 0.3), points, st.sampled_from([1 / 256, 0.01, 0.1]), points, saturates)
def test_softmax(seed: int, kind: str, si: float, zi: int, so: float, zo: int, saturate: str) -> None:
    """Shares of exponentials in binary64, which are levels wherever they are not near a tie."""
    axis = [1, -1, 2][seed % 3]
    x = numbers(seed, kind, (2, 5, 3))
    fields = {
        "input_scale": si, "input_zero_point": zi, "output_scale": so, "output_zero_point": zo, "saturate": saturate,
        "axis": axis,
    }  # fmt: skip
    found = run(network("Softmax", "softmax_param", [x.shape], fields, [kind]), [x])
    reals = np.array([real(float(q), si, zi) for q in x.flat]).reshape(x.shape)
    powers = np.exp(reals - reals.max(axis=axis, keepdims=True))
    steps = powers / powers.sum(axis=axis, keepdims=True) / so
    wanted = np.array([limited(away(float(step)) + zo, saturate) for step in steps.flat]).reshape(x.shape)
    clear = np.abs(np.abs(steps - np.rint(steps)) - 0.5) > 1e-4
    assert (found[clear] == wanted[clear]).all()
    assert (np.abs(found - wanted) <= 1).all()


def test_softmax_without_levels_says_that_it_may_differ() -> None:
    model = network("Softmax", "softmax_param", [(1, 4)], {"input_scale": 0.1})
    plan = caffe.make_plan(model.graphs[0], caffe.find("snps_caffe"), graphs=model.graphs)
    assert plan.steps[-1].inexact
    assert run(model, [np.float32([[0, 0, 0, 0]])]).tolist() == [[0.25] * 4]


def pooled(size: int, taps: int, stride: int, before: int, after: int, ceil: bool, clips: bool) -> int:
    steps = (size + before + after - taps) / stride
    out = (math.ceil(steps) if ceil else math.floor(steps)) + 1
    return out - (clips and (out - 1) * stride >= size + before)


@given(
    seeds, kinds, st.sampled_from(["MAX", "AVE", "AVE_EXC_PAD"]), scales, points, scales, points, saturates, methods,
    st.booleans(), st.sampled_from(["none", "pad", "sides", "same", "global"]),
)  # fmt: skip
def test_pooling(
    seed: int, kind: str, pool: str, si: float, zi: int, so: float, zo: int, saturate: str, method: str, ceil: bool,
    padding: str,
) -> None:  # fmt: skip
    """Windows by loops; the document rounds the averages of one method otherwise."""
    rng = np.random.default_rng(seed)
    size, taps, strides = ([int(v) for v in rng.integers(low, high, 2)] for low, high in ((3, 9), (1, 4), (1, 4)))
    if seed % 4 == 0:
        so = si
    fields: dict[str, Any] = {"pool": pool, "saturate": saturate, "quantize_method": method, "ceil_mode": ceil}
    pads = [0, 0, 0, 0]
    if padding == "global":
        taps, strides = size, [1, 1]
        fields["global_pooling"] = True
    else:
        fields |= {"kernel_h": taps[0], "kernel_w": taps[1], "stride_h": strides[0], "stride_w": strides[1]}
    if padding == "pad":
        h, w = (int(rng.integers(0, tap)) for tap in taps)
        fields |= {"pad_h": h, "pad_w": w}
        pads = [h, w, h, w]
    elif padding == "sides":
        pads = [int(v) for v in rng.integers(0, 3, 4)]
        fields |= dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), pads, strict=True))
    elif padding == "same":
        fields["pad_type"] = 1
        for axis in (0, 1):
            rest = size[axis] % strides[axis]
            total = max(taps[axis] - (rest or strides[axis]), 0)
            pads[axis], pads[axis + 2] = total // 2, total - total // 2
    fields |= {"input_scale": si, "input_zero_point": zi, "output_scale": so, "output_zero_point": zo}
    clips = any(pads) and padding != "same"
    out = [
        -(-size[axis] // strides[axis])
        if padding == "same"
        else pooled(size[axis], taps[axis], strides[axis], pads[axis], pads[axis + 2], ceil, clips)
        for axis in (0, 1)
    ]
    assume(min(out) > 0)
    x = numbers(seed, kind, (2, 2, *size))
    model = network("Pooling", "pooling_param", [x.shape], fields, [kind])
    ends = [
        [(i * strides[a] - pads[a], min(i * strides[a] - pads[a] + taps[a], size[a] + pads[a + 2])) for i in range(n)]
        for a, n in enumerate(out)
    ]
    if any(max(0, low) >= min(high, size[a]) for a in (0, 1) for low, high in ends[a]):
        return
    if pool != "MAX" and (so != 1 or zo != 0) and method == "tflite" and si != so and caffe.stops_at(si / so):
        return refuses(model, [x], "BT-LEVEL")
    for numerics in ("snps_caffe", "snps_caffe-document"):
        wanted = []
        for n, c, i, j in np.ndindex(2, 2, *out):
            (top, bottom), (left, right) = ends[0][i], ends[1][j]
            count = (bottom - top) * (right - left)
            inside = x[n, c, max(0, top) : min(bottom, size[0]), max(0, left) : min(right, size[1])]
            if pool == "AVE_EXC_PAD":
                count = inside.size
            total = int(inside.sum())
            if pool == "MAX":
                y: float = float(inside.max())
            elif so == 1 and zo == 0:
                y = f32(total / count)
            elif method == "tflite":
                y = averaged(total, count, si, zi, so, zo)
            else:
                factor = f32(f32(si) / f32(f32(so) * count))
                from_document = numerics == "snps_caffe-document"
                nearest = away if method == "Caffe2" and pool == "AVE_EXC_PAD" and not from_document else even
                y = f32(nearest(f32((total - zi * count) * factor)) + zo)
            wanted.append(limited(y, saturate))
        expect(run(model, [x], numerics), wanted)


def averaged(total: int, count: int, si: float, zi: int, so: float, zo: int) -> int:
    value = total if si == so else two_step(total - zi * count, si / so)
    rounded = (value + count // 2) // count if value > 0 else -((-value + count // 2) // count)
    return rounded if si == so else rounded + zo


def test_an_average_of_nothing_is_refused() -> None:
    """The last window begins behind the image; the largest number of such a window is the lowest one."""
    fields = {"kernel_size": 1, "stride": 3, "output_scale": 0.5}
    with pytest.raises(UnsupportedError, match="lies beside the image"):
        run(network("Pooling", "pooling_param", [(1, 1, 5, 5)], {**fields, "pool": "AVE"}), [np.ones((1, 1, 5, 5))])
    found = run(network("Pooling", "pooling_param", [(1, 1, 5, 5)], fields), [np.ones((1, 1, 5, 5))])
    lowest = float(np.finfo(np.float32).min)
    assert found[0, 0].tolist() == [[1, 1, lowest], [1, 1, lowest], [lowest] * 3]


@given(
    seeds, kinds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 12), st.integers(1, 12), scales, points, scales,
    points, saturates, methods, st.sampled_from(["", "align_corners", "half_pixel_centers", "pytorch_half_pixel"]),
    st.sampled_from(["NHWC", "NCHW"]),
)  # fmt: skip
def test_resize_bilinear(
    seed: int, kind: str, h: int, w: int, oh: int, ow: int, si: float, zi: int, so: float, zo: int, saturate: str,
    method: str, mode: str, layout: str,
) -> None:  # fmt: skip
    """Quantized values are interpolated; by the document, what they stand for."""
    shape = (2, h, w, 2) if layout == "NHWC" else (2, 2, h, w)
    x = numbers(seed, kind, shape)
    fields: dict[str, Any] = {
        "output_height": oh, "output_width": ow, "data_format": layout, "input_scale": si, "input_zero_point": zi,
        "output_scale": so, "output_zero_point": zo, "saturate": saturate, "quantize_method": method,
    }  # fmt: skip
    if mode:
        fields[mode] = True
    model = network("ResizeBilinear", "resize_bilinear_param", [shape], fields, [kind])
    images = np.moveaxis(x, -1, 1) if layout == "NHWC" else x
    quantized = so != 1 or zo != 0

    def place(i: int, before: int, after: int) -> tuple[int, int, float]:
        aligned = mode == "align_corners" and after > 1
        step = f32((before - aligned) / (after - aligned))
        at = f32(f32((i + 0.5) * step) - 0.5) if "half" in mode else f32(i * step)
        if mode == "pytorch_half_pixel" and after == 1:
            at = -0.5
        return max(math.floor(at), 0), min(math.ceil(at), before - 1), f32(at - math.floor(at))

    for numerics in ("snps_caffe", "snps_caffe-document"):
        by_document = numerics == "snps_caffe-document" and quantized and method == "tflite"
        result = np.empty((2, 2, oh, ow))
        for n, c, i, j in np.ndindex(*result.shape):
            (top, bottom, fy), (left, right, fx) = place(i, h, oh), place(j, w, ow)
            if max(top, left) >= 0 and (top >= h or left >= w):
                return
            q = [float(images[n, c, row, column]) for row in (top, bottom) for column in (left, right)]
            if by_document:
                q = [real(one, si, zi) for one in q]
            upper = f32(q[0] + f32(f32(q[1] - q[0]) * fx))
            lower = f32(q[2] + f32(f32(q[3] - q[2]) * fx))
            y = f32(upper + f32(f32(lower - upper) * fy))
            if by_document:
                y = level(y, so, zo)
            elif quantized:
                y = away(y)
            result[n, c, i, j] = limited(y, saturate)
        wanted = np.moveaxis(result, 1, -1) if layout == "NHWC" else result
        expect(run(model, [x], numerics), wanted.reshape(-1).tolist(), eight(saturate, so != 1))


def test_resize_by_a_factor() -> None:
    x = np.arange(12).reshape(1, 1, 3, 4)
    fields = {"scale_height": 2.0, "scale_width": 0.6, "data_format": "NCHW"}
    assert run(network("ResizeBilinear", "resize_bilinear_param", [x.shape], fields), [x]).shape == (1, 1, 6, 2)


@given(seeds, kinds, saturates)
def test_pooling_of_grids(seed: int, kind: str, saturate: str) -> None:
    """Loops of the source, taps by their place in memory."""
    rng = np.random.default_rng(seed)
    taps, strides, batch = ([int(v) for v in rng.integers(low, high, 2)] for low, high in ((1, 4), (1, 3), (2, 6)))
    pads, skip = [int(v) for v in rng.integers(0, 2, 4)], [int(v) for v in rng.integers(0, 2, 2)]
    grid = [int(v) for v in rng.integers(2, 4, 2)]
    size = [b * g + int(rng.integers(0, 3)) * (g - 1) for b, g in zip(batch, grid, strict=True)]
    assume(any(pads))
    fields = {
        "kernel_h": taps[0], "kernel_w": taps[1], "stride_h": strides[0], "stride_w": strides[1], "ceil_mode": False,
        "pad_t": pads[0], "pad_l": pads[1], "pad_b": pads[2], "pad_r": pads[3], "spatial_batching_h": grid[0],
        "spatial_batching_w": grid[1], "batch_h": batch[0], "batch_w": batch[1], "skip_h": skip[0], "skip_w": skip[1],
        "saturate": saturate, "input_scale": 0.5, "output_scale": 0.5,
    }  # fmt: skip
    x = numbers(seed, kind, (1, 2, *size))
    gap, share, out = [0, 0], [0, 0], [0, 0]
    for a in (0, 1):
        out[a] = (size[a] + pads[a] + pads[a + 2] - taps[a] - (grid[a] - 1) * skip[a]) // strides[a] + 1
        gap[a] = (size[a] - batch[a] * grid[a]) // (grid[a] - 1)
        each = (batch[a] + pads[a] + pads[a + 2] - taps[a]) // strides[a] + 1
        share[a] = each + (out[a] - each * grid[a]) // (grid[a] - 1)
        out[a] -= (out[a] - 1) * strides[a] >= size[a] + pads[a]
    model = network("SpatialBatchingPooling", "spatial_batching_pooling_param", [x.shape], fields, [kind])
    wanted = np.full((1, 2, *out), float(np.finfo(np.float32).min))
    outside = False
    for c, bh, bw in np.ndindex(2, *grid):
        begin = [b * (batch[a] + gap[a]) for a, b in enumerate((bh, bw))]
        for i in range(bh * share[0], min(out[0], (bh + 1) * share[0])):
            for j in range(bw * share[1], min(out[1], (bw + 1) * share[1])):
                first = [p * strides[a] - pads[a] + skip[a] * b for a, (p, b) in enumerate(((i, bh), (j, bw)))]
                for h in range(max(first[0], begin[0]), first[0] + taps[0]):
                    for v in range(max(first[1], begin[1]), first[1] + taps[1]):
                        zero = any(
                            at >= e and (at < e + pads[a + 2] or skip[a])
                            for a, (at, e) in enumerate(((h, begin[0] + batch[0]), (v, begin[1] + batch[1])))
                        )
                        at = h * size[1] + v
                        outside |= not zero and at >= size[0] * size[1]
                        value = 0.0 if zero or outside else float(x[0, c].reshape(-1)[at])
                        wanted[0, c, i, j] = max(wanted[0, c, i, j], value)
    if outside or min(out) < 1:
        with pytest.raises(BittrueError):
            run(model, [x])
        return
    expect(run(model, [x]), [limited(one, saturate) for one in wanted.flat])
