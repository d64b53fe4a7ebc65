"""A device with known faults: each is named right; noise stays unexplained.

The device (support/faulty_device.py) shares no code with bittrue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support import faulty_device as device
from support.build import T, single
from support.layer_faults import LAYERS, layer_of, seven_bits, wrong
from support.verdicts import Values, random_inputs, segment_of, verdict


def layer_and_model(kind: str, seed: int = 0, **fields: Any) -> tuple[device.Layer, bytes]:
    """A layer for the device and as a model."""
    layer, source = layer_of(kind, seed, **fields)
    axis = {"conv": 0, "depthwise": 3, "dense": 0}[kind]
    outs, stride, dilation = layer.bias.size, layer.stride, layer.dilation
    x = T("s8", source, layer.in_scale, layer.in_zero, name="x")
    scales = layer.weight_scales
    w = T("s8", layer.weights.shape, scales.tolist(), [0] * outs, axis=axis, data=layer.weights)
    b = T("s32", (outs,), (scales * np.float32(layer.in_scale)).tolist(), [0] * outs, data=layer.bias)
    shape = (7, outs) if kind == "dense" else (2, *layer.out_size, outs)
    y = T("s8", shape, layer.out_scale, layer.out_zero, name="y")
    activation = {"none": 0, "relu": 1, "relu6": 3}[layer.activation]
    common = {"fusedActivationFunction": activation}
    window = {
        "padding": 0,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        **common,
    }
    operator, options = {
        "conv": ("CONV_2D", ("Conv2DOptions", window)),
        "depthwise": ("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", {**window, "depthMultiplier": 1})),
        "dense": ("FULLY_CONNECTED", ("FullyConnectedOptions", common)),
    }[kind]
    return layer, single(operator, options, [x, w, b], [y], version={"dense": 4}.get(kind, 3))


@pytest.mark.in_turns(8)
@pytest.mark.parametrize(
    ("name", "kind", "fields", "faulty"),
    LAYERS,
    ids=[f"{kind}-{name}-{i}" for i, (name, kind, *_) in enumerate(LAYERS)],
)
def test_layers(name: str, kind: str, fields: dict[str, Any], faulty: Any) -> None:
    layer, content = layer_and_model(kind, **dict(fields))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    good = device.run(layer, values[0]["x"])
    np.testing.assert_array_equal(good, part.run(values[0]), err_msg="the device without a fault is right")
    found = verdict(part, values, [faulty(layer, values[0]["x"])])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == [name], found.text
    assert not found.unexplained
    if not found.causes[0].benign:
        assert found.text.endswith("a fault") or "fault" in found.text


def test_roundings_that_this_input_does_not_tell_apart_are_all_named() -> None:
    """Floor of the exact product and of the product with an encoded multiplier agree here."""
    layer, content = layer_and_model("conv")
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    found = verdict(part, values, [device.run(layer, values[0]["x"], rounding=device.floored)])
    assert found.causes[0].name == "exact product, floor"
    assert "product with a 31-bit multiplier, floor" in (*found.also, *found.alike)


@pytest.mark.parametrize("other", ["", "litert-optimized", "xnnpack", "single-rounding"])
@pytest.mark.parametrize("rounding", ["one_step", "real_even"])
def test_other_rounding_schemes_are_rules(rounding: str, other: str) -> None:
    """Whoever is said to be B: the device's rule is the cause, or fits as well where few elements differ."""
    layer, content = layer_and_model("conv", seed=3, size=(33, 40))
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    found = verdict(part, values, [device.run(layer, values[0]["x"], rounding=getattr(device, rounding))], other)
    rule = {"one_step": "rescale=q31_one_step_up", "real_even": "rescale=binary32_multiply_even"}[rounding]
    assert found.exact
    assert found.benign
    assert found.differing
    assert rule in (found.causes[0].name, *found.also, *found.alike), found.text
    assert "another rounding scheme, benign" in found.text


SCALES, ZEROS = (0.05, 0.031, 0.08), (-11, 23, 5)


def pair_model(operator: str, shape: tuple[int, ...] = (2, 5, 6, 7)) -> bytes:
    a, b, y = (T("s8", shape, s, z, name=n) for s, z, n in zip(SCALES, ZEROS, "aby", strict=True))
    if operator == "MUL":
        y = T("s8", shape, SCALES[0] * SCALES[1] * 40, ZEROS[2], name="y")
    table = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}[operator]
    return single(operator, (table, {"fusedActivationFunction": 0}), [a, b], [y], version=2)


PRODUCT_SCALES = (SCALES[0], SCALES[1], SCALES[0] * SCALES[1] * 40)
PAIRS: list[tuple[str, str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("first input zero point ignored", "ADD", lambda a, b: device.add(a, b, SCALES, (0, 23, 5))),
    ("second input zero point ignored", "ADD", lambda a, b: device.add(a, b, SCALES, (-11, 0, 5))),
    ("second input zero point negated", "ADD", lambda a, b: device.add(a, b, SCALES, (-11, -23, 5))),
    ("zero points of all inputs ignored", "ADD", lambda a, b: device.add(a, b, SCALES, (0, 0, 5))),
    ("output zero point ignored", "ADD", lambda a, b: device.add(a, b, SCALES, (-11, 23, 0))),
    ("first input and second input scales swapped", "ADD", lambda a, b: device.add(a, b, (0.031, 0.05, 0.08), ZEROS)),
    ("inputs not rescaled", "ADD", lambda a, b: device.add(a, b, (0.08, 0.08, 0.08), ZEROS)),
    ("difference instead of sum", "ADD", lambda a, b: device.add(a, b, SCALES, ZEROS, sign=-1)),
    ("operands swapped", "SUB", lambda a, b: device.add(b, a, (0.031, 0.05, 0.08), (23, -11, 5), sign=-1)),
    ("sum instead of difference", "SUB", lambda a, b: device.add(a, b, SCALES, ZEROS)),
    ("first input zero point ignored", "MUL", lambda a, b: device.mul(a, b, PRODUCT_SCALES, (0, 23, 5))),
    ("second input zero point one too large", "MUL", lambda a, b: device.mul(a, b, PRODUCT_SCALES, (-11, 24, 5))),
    ("exact result, floor", "MUL", lambda a, b: device.mul(a, b, PRODUCT_SCALES, ZEROS, rounding=device.floored)),
]


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("name", "operator", "faulty"), PAIRS, ids=[f"{p[1]}-{p[0]}" for p in PAIRS])
def test_sums_and_products(name: str, operator: str, faulty: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    part, ports = segment_of(pair_model(operator))
    values = random_inputs(ports, 2)
    a, b = values[0]["a"], values[0]["b"]
    right = {
        "ADD": lambda: device.add(a, b, SCALES, ZEROS),
        "SUB": lambda: device.add(a, b, SCALES, ZEROS, sign=-1),
        "MUL": lambda: device.mul(a, b, PRODUCT_SCALES, ZEROS),
    }[operator]()
    np.testing.assert_array_equal(right, part.run(values[0]), err_msg="the device without a fault is right")
    found = verdict(part, values, [faulty(a, b)])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == [name], found.text


@pytest.mark.parametrize(("ties", "nearest"), [("ties even", np.rint), ("ties away", None)])
def test_integers_computed_on_real_numbers(ties: str, nearest: Any) -> None:
    """A device that dequantizes, multiplies in binary32 and quantizes again does nothing wrong."""
    part, ports = segment_of(pair_model("MUL", (2, 20, 20, 7)))
    values = random_inputs(ports, 2)
    one, two, out = (np.float32(s) for s in PRODUCT_SCALES)
    real = (values[0]["a"].astype(np.int64) - ZEROS[0]).astype(np.float32) * one
    real = real * ((values[0]["b"].astype(np.int64) - ZEROS[1]).astype(np.float32) * two) / out
    rounded = np.rint(real) if nearest else np.trunc(real + np.copysign(np.float32(0.5), real))
    found = verdict(part, values, [np.clip(rounded + ZEROS[2], -128, 127).astype(np.int8)])
    assert found.exact, found.text
    assert found.benign
    name = f"computed in binary32, {ties}"
    # The product rounded once may well give the same integers.
    assert name in (found.causes[0].name, *found.also, *found.alike) or found.causes[0].kind == "rounding", found.text


def pool_model(operator: str) -> bytes:
    options = {
        "padding": 0,
        "strideH": 2,
        "strideW": 2,
        "filterHeight": 3,
        "filterWidth": 3,
        "fusedActivationFunction": 0,
    }
    x, y = T("s8", (2, 9, 8, 5), 0.05, -11, name="x"), T("s8", (2, 5, 4, 5), 0.05, -11, name="y")
    return single(operator, ("Pool2DOptions", options), [x], [y], version=2)


POOLS: list[tuple[str, str, dict[str, Any]]] = [
    ("average counts padding", "AVERAGE_POOL_2D", {"all_taps": True}),
    ("average=integer_trunc", "AVERAGE_POOL_2D", {"mode": "trunc"}),
    ("exact result, floor", "AVERAGE_POOL_2D", {"mode": "floor"}),
    ("max_pool instead of average_pool", "AVERAGE_POOL_2D", {"mode": "max"}),
    ("padding swapped: left and right", "AVERAGE_POOL_2D", {"pads": (1, 1, 1, 0)}),
    ("padding swapped: left and right", "MAX_POOL_2D", {"pads": (1, 1, 1, 0)}),
    ("average_pool instead of max_pool", "MAX_POOL_2D", {"mode": "average"}),
]


@pytest.mark.parametrize(("name", "operator", "wrongly"), POOLS, ids=[f"{p[1]}-{p[0]}" for p in POOLS])
def test_pools(name: str, operator: str, wrongly: dict[str, Any]) -> None:
    part, ports = segment_of(pool_model(operator))
    values = random_inputs(ports, 3)
    right: dict[str, Any] = {
        "size": 3,
        "stride": 2,
        "pads": (1, 1, 0, 1),
        "out": (5, 4),
        "mode": "max" if operator.startswith("MAX") else "average",
    }
    x = values[0]["x"]
    np.testing.assert_array_equal(device.pool(x, **right), part.run(values[0]), err_msg="right without a fault")
    found = verdict(part, values, [device.pool(x, **{**right, **wrongly})])
    assert found.exact, found.text
    assert name in (found.causes[0].name, *found.also, *found.alike), found.text
    assert len(found.causes) == 1


def softmax_model(beta: float = 1.0) -> bytes:
    x, y = T("s8", (6, 6), 0.1, 3, name="x"), T("s8", (6, 6), 1 / 256, -128, name="y")
    return single("SOFTMAX", ("SoftmaxOptions", {"beta": beta}), [x], [y], version=2)


def concat_model(axis: int = 1) -> bytes:
    a, b = (T("s8", (3, 4, 5), 0.05, -11, name=n) for n in "ab")
    shape = [3, 4, 5]
    shape[axis] *= 2
    y = T("s8", shape, 0.05, -11, name="y")
    return single("CONCATENATION", ("ConcatenationOptions", {"axis": axis}), [a, b], [y], version=2)


def resize_model(half: bool) -> bytes:
    x, y = T("s8", (1, 5, 6, 3), 0.05, -11, name="x"), T("s8", (1, 11, 9, 3), 0.05, -11, name="y")
    size = T("s32", (2,), data=np.int32([11, 9]))
    return single(
        "RESIZE_NEAREST_NEIGHBOR",
        ("ResizeNearestNeighborOptions", {"alignCorners": False, "halfPixelCenters": half}),
        [x, size],
        [y],
        version=3,
    )


def _nearest(x: np.ndarray) -> np.ndarray:
    rows = [min(int(np.float32(i) * np.float32(5 / 11)), 4) for i in range(11)]
    columns = [min(int(np.float32(i) * np.float32(6 / 9)), 5) for i in range(9)]
    return x[:, rows][:, :, columns]


WHOLE: list[tuple[str, Callable[[], bytes], Callable[[Values, np.ndarray], np.ndarray]]] = [
    ("operands swapped", concat_model, lambda v, y: np.concatenate([v["b"], v["a"]], 1)),
    ("result is all zeros", softmax_model, lambda v, y: np.zeros_like(y)),
    ("result is the zero point everywhere", lambda: pair_model("ADD"), lambda v, y: np.full_like(y, 5)),
    ("sign bit flipped", softmax_model, lambda v, y: (y.astype(np.int64) + 256).astype(np.uint8).view(np.int8) ^ -128),
    ("every value one too large", softmax_model, lambda v, y: np.clip(y.astype(int) + 1, -128, 127).astype(np.int8)),
    ("result in NCHW order", lambda: pair_model("ADD"), lambda v, y: y.transpose(0, 3, 1, 2).reshape(y.shape)),
    ("result flipped left to right", lambda: pair_model("MUL"), lambda v, y: y[:, :, ::-1]),
    ("input passed through", lambda: pair_model("ADD"), lambda v, y: v["b"]),
    ("asymmetric in place of half_pixel", lambda: resize_model(half=True), lambda v, y: _nearest(v["x"])),
    ("result transposed", softmax_model, lambda v, y: y.T.copy()),
]


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("name", "model", "faulty"), WHOLE, ids=[f"{w[0]}-{i}" for i, w in enumerate(WHOLE)])
def test_whole_tensors(
    name: str, model: Callable[[], bytes], faulty: Callable[[Values, np.ndarray], np.ndarray]
) -> None:
    part, ports = segment_of(model())
    values = random_inputs(ports, 4)
    found = verdict(part, values, [faulty(values[0], part.run(values[0]))])
    assert found.exact, found.text
    assert [cause.name for cause in found.causes] == [name], found.text
    assert not found.benign


def test_stale_results() -> None:
    part, ports = segment_of(pair_model("ADD"))
    values = random_inputs(ports, 5, sets=3)
    right = [part.run(v) for v in values]
    found = verdict(part, values, [right[0], right[0], right[1]])
    assert [cause.name for cause in found.causes] == ["result of the previous input set"], found.text


TWO: list[tuple[set[str], str, dict[str, Any], Any]] = [
    ({"bias dropped", "input zero point ignored"}, "conv", {}, wrong(bias=lambda b: b * 0, in_zero=0)),
    (
        {"bias added twice", "padding swapped: left and right"},
        "depthwise",
        {},
        wrong(bias=lambda b: 2 * b, pads=lambda p: (p[0], p[1], p[3], p[2])),
    ),
    (
        {"fused activation ignored", "bias shifted by one channel"},
        "conv",
        {"activation": "relu"},
        wrong(activation="none", bias=lambda b: np.roll(b, 1)),
    ),
    (
        {"output zero point ignored", "multiplier of channel 0 for all channels"},
        "conv",
        {},
        wrong(out_zero=0, weight_scales=lambda s: s * 0 + s[0]),
    ),
    (
        {"weights transposed", "saturates to 7 bits"},
        "dense",
        {"out_scale": 0.06},
        lambda layer, x: device.run(
            replace(layer, weights=layer.weights.reshape(layer.weights.shape[::-1]).T), x, finish=seven_bits
        ),
    ),
]


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("names", "kind", "fields", "faulty"), TWO, ids=[" and ".join(sorted(t[0])) for t in TWO])
def test_two_faults_at_once(names: set[str], kind: str, fields: dict[str, Any], faulty: Any) -> None:
    layer, content = layer_and_model(kind, **dict(fields))
    part, ports = segment_of(content)
    values = random_inputs(ports, 6)
    found = verdict(part, values, [faulty(layer, values[0]["x"])])
    assert found.exact, found.text
    assert {cause.name for cause in found.causes} == names, found.text


def test_a_fault_beside_another_rounding_of_the_same_layer() -> None:
    """Few elements tell the second cause: a rule is named before a second fault."""
    layer, content = layer_and_model("dense")
    part, ports = segment_of(content)
    values = random_inputs(ports, 1)
    halved = replace(layer, weight_scales=layer.weight_scales / 2)
    found = verdict(part, values, [device.run(halved, values[0]["x"], rounding=device.two_step)])
    assert found.exact
    names = {cause.name for cause in found.causes}
    assert "exponent one too small" in names
    assert all(cause.kind == "rounding" for cause in found.causes if cause.name != "exponent one too small"), found.text


@pytest.mark.parametrize("fault", ["bias dropped", "padding swapped: left and right"])
def test_a_fault_on_another_arithmetic(fault: str) -> None:
    """The device rounds otherwise, and has a fault: both are named."""
    layer, content = layer_and_model("conv", size=(21, 18))
    part, ports = segment_of(content)
    values = random_inputs(ports, 7)
    changed = replace(layer, bias=layer.bias * 0) if fault == "bias dropped" else replace(layer, pads=(1, 1, 1, 0))
    for other in ("xnnpack", ""):
        found = verdict(part, values, [device.run(changed, values[0]["x"], rounding=device.real_even)], other)
        assert found.exact, found.text
        assert fault in {cause.name for cause in found.causes}, found.text
        assert len(found.causes) == 2


def _flip_bits(y: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    out = y.copy().reshape(-1)
    chosen = rng.choice(out.size, count, replace=False)
    out[chosen] ^= (1 << rng.integers(0, 7, count)).astype(np.int8)
    return out.reshape(y.shape)


NOISE: list[tuple[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]]] = [
    ("one bit", lambda y, rng: _flip_bits(y, rng, 1)),
    ("three bits", lambda y, rng: _flip_bits(y, rng, 3)),
    ("many bits", lambda y, rng: _flip_bits(y, rng, y.size // 4)),
    ("noise of one step", lambda y, rng: np.clip(y + rng.integers(-1, 2, y.shape), -128, 127).astype(np.int8)),
    ("random quantized values", lambda y, rng: rng.integers(-128, 128, y.shape).astype(np.int8)),
    ("shuffled", lambda y, rng: rng.permutation(y.reshape(-1)).reshape(y.shape)),
]


@pytest.mark.in_turns(6)
@pytest.mark.parametrize(("name", "noise"), NOISE, ids=[n[0] for n in NOISE])
@pytest.mark.parametrize("kind", ["conv", "depthwise", "dense", "ADD", "SOFTMAX"])
def test_noise_is_unexplained(kind: str, name: str, noise: Any) -> None:
    content = {"ADD": lambda: pair_model("ADD"), "SOFTMAX": softmax_model}.get(kind, lambda: layer_and_model(kind)[1])()
    part, ports = segment_of(content)
    values = random_inputs(ports, 8)
    right = part.run(values[0])
    found = verdict(part, values, [noise(right, np.random.default_rng(9))])
    assert not found.exact, found.text
    assert found.unexplained == found.differing
    assert not found.causes
    assert "unexplained" in found.text
