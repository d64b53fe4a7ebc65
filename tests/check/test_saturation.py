"""find_saturation: what it says against loops over all pairs, and against what saturating kernels make of quantized
values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.check.saturation import MixedLayer, find_saturation
from support import emulated
from support.onnx_models import KIND, MICROSOFT, build, single

U8, S8, F32 = np.uint8, np.int8, np.float32
ONE = F32(1)


def layers(content: bytes) -> tuple[MixedLayer, ...]:
    return find_saturation(bittrue.load(content).prepare("onnxruntime", executor="reference").plan)


def products(inputs: dict[str, Any], op_type: str, attributes: dict[str, Any]) -> tuple[bytes, list[np.ndarray]]:
    """A model whose first operand is an input and whose other ones are constants."""
    domain, kind = (MICROSOFT, U8) if op_type == "QGemm" else ("", np.int32 if op_type[0] != "Q" else U8)
    constants = list(inputs)[1:]
    return single(op_type, inputs, [KIND[np.dtype(kind)]], attributes, domain=domain, constants=constants)


def one_window(rng: np.random.Generator, op_type: str) -> tuple[dict[str, Any], dict[str, Any], np.ndarray, np.ndarray]:
    """Operands and attributes of one position of the output, filters [N, K] in the order of the kernels, and where the
    K quantized values of the first operand stand in memory.
    """
    k, n = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    quantized = rng.choice([-128, -65, -64, -1, 0, 63, 64, 65, 127], (n, k)).astype(S8)
    if op_type == "MatMulInteger":
        return {"a": np.zeros((1, k), U8), "b": np.ascontiguousarray(quantized.T)}, {}, quantized, np.arange(k)
    scales: dict[str, Any] = {"y_scale": F32(1000), "y_zero": U8(128)}
    if op_type in ("QLinearMatMul", "QGemm"):
        turned = op_type == "QGemm" and rng.random() < 0.5
        inputs: dict[str, Any] = {"a": np.zeros((1, k), U8), "a_scale": ONE, "a_zero": U8(0)}
        inputs |= {
            "b": quantized.copy() if turned else np.ascontiguousarray(quantized.T),
            "b_scale": ONE,
            "b_zero": S8(0),
        }
        inputs |= {"c": None} if op_type == "QGemm" else {}
        return {**inputs, **scales}, {"transB": 1} if turned else {}, quantized, np.arange(k)
    depth, taps = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    k = depth * taps
    weights = rng.choice([-128, -64, 0, 63, 64, 127], (n, depth, taps)).astype(S8)
    places = np.arange(k).reshape(depth, taps)
    if op_type == "ConvInteger":
        unsigned = rng.choice([0, 1, 127, 128, 129, 255], (n, depth, taps)).astype(U8)
        return {"x": np.zeros((1, depth, taps), S8), "w": unsigned}, {}, unsigned.reshape(n, k), places.reshape(-1)
    inputs = {"x": np.zeros((1, depth, taps), U8), "x_scale": ONE, "x_zero": U8(0)}
    inputs |= {"w": weights, "w_scale": ONE, "w_zero": S8(0), **scales}
    return inputs, {}, weights.swapaxes(1, 2).reshape(n, k), places.T.reshape(-1)


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("op_type", ["QLinearConv", "ConvInteger", "QLinearMatMul", "MatMulInteger", "QGemm"])
def test_every_pair(op_type: str) -> None:
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(60):
        inputs, attributes, filters, places = one_window(rng, op_type)
        content, feeds = products(inputs, op_type, attributes)
        (layer,) = layers(content)
        low, high = (-128, 127) if op_type == "ConvInteger" else (0, 255)
        sums: dict[tuple[int, int], list[int]] = {}
        for channel, row in enumerate(filters.astype(int).tolist()):
            row += [0] * (len(row) % 2)
            for p in range(0, len(row), 2):
                a, b = row[p : p + 2]
                sums[channel, p] = [x * a + y * b for x in (low, high) for y in (low, high)]
        beyond = {place for place, each in sums.items() if max(each) > 2**15 - 1 or min(each) < -(2**15)}
        assert (layer.saturable_pairs, layer.pairs) == (len(beyond), len(sums))
        assert layer.saturable_channels == len({channel for channel, _ in beyond})
        assert layer.can_saturate == bool(beyond)
        assert layer.worst is not None
        place = (layer.worst.channel, layer.worst.places[0])
        assert layer.worst.reachable == (place in beyond)
        assert layer.worst.total in sums[place]
        chosen = beyond or set(sums)
        assert abs(layer.worst.total) == max(abs(total) for place in chosen for total in sums[place])
        # The loss is reached by the extremes of the quantized values that push every pair of a channel to one side.
        loss = 0
        for channel in range(len(filters)):
            for side in (1, -1):
                want = np.where(side * filters[channel].astype(int) > 0, high, low)
                x = np.zeros(want.size, feeds[0].dtype)
                x[places] = want
                results = [
                    bittrue.load(content).prepare(n, executor="reference").run(x.reshape(feeds[0].shape))["y0"]
                    for n in ("onnxruntime", "onnxruntime-avx2")
                ]
                pairs = np.array([v for (c, _), v in sums.items() if c == channel])
                most = pairs.max(axis=1) if side > 0 else pairs.min(axis=1)
                excess = int(np.abs(most - np.clip(most, -(2**15), 2**15 - 1)).sum())
                loss = max(loss, excess)
                if results[0].dtype == np.int32:
                    lost = results[0].astype(np.int64) - results[1]
                    assert abs(int(lost.reshape(-1)[channel])) == excess
        assert layer.loss == loss
        seen.add(bool(beyond))
    assert seen == {False, True}


def test_the_known_example() -> None:
    op_type, domain, inputs, attributes, out = emulated.known_example()
    content, _ = single(op_type, inputs, [KIND[np.dtype(out)]], attributes, domain=domain, constants=list(inputs)[1:])
    (layer,) = layers(content)
    assert (layer.smallest, layer.largest, layer.low, layer.high) == (127, 127, 0, 255)
    assert layer.worst is not None
    assert (layer.worst.quantized, layer.worst.total, layer.worst.reachable) == ((127, 127), 64770, True)
    assert layer.loss == 8 * (64770 - 32767)


def test_weights_in_half_the_range_are_safe() -> None:
    weights = np.array([[-64, 63], [-64, 63]], S8)
    content, _ = products({"a": np.zeros((1, 2), U8), "b": weights}, "MatMulInteger", {})
    (layer,) = layers(content)
    assert not layer.can_saturate
    assert layer.worst is not None
    assert abs(layer.worst.total) == 255 * 128


def test_unknown_weights_and_exact_layers() -> None:
    content, _ = single(
        "MatMulInteger", {"a": np.zeros((1, 2), U8), "b": np.zeros((2, 3), S8)}, [KIND[np.dtype(np.int32)]]
    )
    (layer,) = layers(content)
    assert (layer.known, layer.can_saturate, layer.worst) == (False, True, None)
    for first, second in ((U8, U8), (S8, S8), (S8, U8)):
        weights = np.full((2, 3), np.iinfo(second).max, second)
        content, _ = products({"a": np.zeros((1, 2), first), "b": weights}, "MatMulInteger", {})
        assert layers(content) == ()
    depthwise = {"x": np.zeros((1, 2, 4), U8), "x_scale": ONE, "x_zero": U8(0), "w": np.full((2, 1, 3), 127, S8)}
    depthwise |= {"w_scale": ONE, "w_zero": S8(0), "y_scale": ONE, "y_zero": U8(0)}
    content, _ = products(depthwise, "QLinearConv", {"group": 2})
    assert layers(content) == ()
    content, _ = products(depthwise | {"w": np.full((4, 1, 3), 127, S8)}, "QLinearConv", {"group": 2})
    assert len(layers(content)) == 1


def test_layers_behind_each_other() -> None:
    from onnx import helper

    constants = {"w": np.full((2, 2), 127, S8), "s": ONE, "z8": S8(0), "z": U8(0)}
    nodes = [
        helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "s", "z8", "s", "z"], ["h"]),
        helper.make_node("QLinearMatMul", ["h", "s", "z", "w", "s", "z8", "s", "z"], ["y"]),
    ]
    content, _ = build(nodes, {"x": np.zeros((1, 2), U8)}, {"y": KIND[np.dtype(U8)]}, constants)
    assert [(layer.node, layer.output) for layer in layers(content)] == [(0, "h"), (1, "y")]


def test_layers_between_quantizations() -> None:
    from onnx import helper

    constants = {
        "s": F32(0.02),
        "w": np.full((4, 3, 3, 3), -128, S8),
        "ws": F32(0.01),
        "z8": S8(0),
        "z": U8(10),
        "ys": F32(2),
        "yz": U8(128),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "z8"], ["wd"]),
        helper.make_node("Conv", ["xd", "wd"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "ys", "yz"], ["y"]),
    ]
    content, feeds = build(nodes, {"x": np.ones((1, 3, 5, 5), F32)}, {"y": KIND[np.dtype(F32)]}, constants)
    (layer,) = layers(content)
    assert (layer.channels, layer.saturable_channels, layer.pairs, layer.saturable_pairs) == (4, 4, 56, 52)
    # Code 60 stays within 16 bits, 255 does not.
    for real, same in ((F32(1), True), (F32(5), False)):
        exact, saturated = (
            bittrue.load(content).prepare(n).run(real * feeds[0])["y"] for n in ("onnxruntime", "onnxruntime-avx2")
        )
        assert (exact.tobytes() == saturated.tobytes()) == same
