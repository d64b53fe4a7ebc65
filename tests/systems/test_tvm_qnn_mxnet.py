"""MXNet symbols as calls of bittrue.qnn: fused layers against integers and binary32 numbers, one by one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bittrue import qnn
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.errors import InputError, UnsupportedError
from support.shared import SHARED, needs_shared

F32 = np.float32
DATA = (-1.5, 2.0)


def scale(ends: tuple[float, float], levels: float) -> np.float32:
    return F32(1) / (F32(levels) / max(abs(F32(end)) for end in ends))


class Symbol:
    """A symbol while nodes are added."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.parameters: dict[str, np.ndarray] = {}

    def add(self, op: str, name: str, inputs: list[tuple[int, int]], inner: Any = (), **attributes: Any) -> int:
        chain = [{"op": "null", "name": "in", "inputs": []}]
        for number, (operator, attrs) in enumerate(inner):
            one = {"op": operator, "name": f"i{number}", "attrs": attrs, "inputs": [[number, 0, 0]]}
            chain.append(one)
        node = {"op": op, "name": name, "inputs": [[*entry, 0] for entry in inputs]}
        node["attrs"] = {key: str(value) for key, value in attributes.items()}
        if inner:
            node["subgraphs"] = [{"nodes": chain, "arg_nodes": [0], "heads": [[len(chain) - 1, 0, 0]]}]
        self.nodes.append(node)
        return len(self.nodes) - 1

    def parameter(self, name: str, value: Any) -> tuple[int, int]:
        self.parameters[f"arg:{name}"] = np.asarray(value)
        return self.add("null", name, []), 0

    def quantized_data(self) -> int:
        data = self.add("null", "data", [])
        return self.add(
            "_contrib_quantize_v2", "q", [(data, 0)], out_type="int8", min_calib_range=DATA[0], max_calib_range=DATA[1]
        )

    def converted(self, shape: tuple[int, ...]) -> qnn.Conversion:
        heads = [[len(self.nodes) - 1, 0, 0]]
        arguments = [i for i, node in enumerate(self.nodes) if node["op"] == "null"]
        text = json.dumps({"nodes": self.nodes, "arg_nodes": arguments, "heads": heads}).encode()
        return qnn.from_mxnet(text, params_file(self.parameters), {"data": shape})


def results(converted: qnn.Conversion, x: np.ndarray) -> np.ndarray:
    """One operator per layer and node by node, on both executors: the same bytes."""
    found = [
        next(iter(converted.model(fuse).prepare(numerics="tvm-qnn", executor=executor).run(x).values()))
        for fuse in (True, False)
        for executor in ("reference", "native")
    ]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    return found[0]


def away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x.astype(np.float64)) + 0.5), x)


def requantized(acc: np.ndarray, given: np.ndarray, wanted: np.float32) -> np.ndarray:
    """floor(acc M 2^(e-31) + 1/2) with M of 31 bits, for vectors along axis 1, in Python integers."""
    out = np.empty(acc.shape, object)
    for at in np.ndindex(acc.shape):
        real = float(given[at[1]] if given.ndim else given) / float(wanted)
        fraction, exponent = np.frexp(real)
        multiplier, shift = int(np.floor(fraction * 2**31 + 0.5)), 31 - int(exponent)
        out[at] = (int(acc[at]) * multiplier + (1 << (shift - 1))) >> shift
    return out.astype(np.int64)


def sums(x: np.ndarray, w: np.ndarray, pad: int, groups: int) -> np.ndarray:
    padded = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = (size - taps + 1 for size, taps in zip(padded.shape[2:], w.shape[2:], strict=True))
    out = np.zeros((len(x), len(w), height, width), np.int64)
    per, depth = len(w) // groups, w.shape[1]
    for o, i, j in np.ndindex(len(w), height, width):
        part = padded[:, o // per * depth : (o // per + 1) * depth, i : i + w.shape[2], j : j + w.shape[3]]
        out[:, o, i, j] = (part * w[o].astype(np.int64)).sum(axis=(1, 2, 3))
    return out


@pytest.mark.parametrize("seed", range(6))
def test_fused_convolutions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    biased, normal, added, groups = bool(seed % 2), seed % 3 > 0, seed > 3, 1 + seed % 2
    symbol, shape = Symbol(), (2, 4, 5, 4)
    q = symbol.quantized_data()
    w = rng.standard_normal((4, 4 // groups, 3, 3)).astype(F32)
    if biased:
        # Its scale is that of its bias; without one, multipliers are below what TVM can shift by.
        w[1] = 0
    b = rng.standard_normal(4).astype(F32)
    operands = [(q, 0), symbol.parameter("w", w)] + ([symbol.parameter("b", b)] if biased else [])
    kernel, bias = w, b if biased else None
    inner: list[Any] = [
        (
            "Convolution",
            {
                "kernel": "(3, 3)",
                "num_filter": "4",
                "pad": "(1, 1)",
                "num_group": str(groups),
                "no_bias": str(not biased),
            },
        )
    ]
    if normal:
        gamma, beta, mean, variance = (rng.uniform(0.5, 2, 4).astype(F32) for _ in range(4))
        names = zip(("gamma", "beta", "mean", "variance"), (gamma, beta, mean, variance), strict=True)
        operands += [symbol.parameter(name, value) for name, value in names]
        inner.append(("BatchNorm", {"eps": "0.001", "fix_gamma": "False"}))
        factor = gamma * (F32(1) / np.sqrt(variance + F32(0.001)))
        shift = beta - mean * factor
        kernel, bias = factor.reshape(-1, 1, 1, 1) * w, shift if bias is None else factor * bias + shift
    operands += ([(q, 0)] if added else []) + [(q, 1), (q, 2)] * (1 + added)
    ends = (0.0, 9.0) if seed % 2 else (-7.0, 9.0)
    symbol.add(
        "_sg_mkldnn_conv", "conv", operands, inner, quantized="true", with_bn=str(normal), with_sum=str(added),
        min_calib_range=ends[0], max_calib_range=ends[1],
    )  # fmt: skip
    x = rng.uniform(-2, 2.5, shape).astype(F32)
    data_scale = scale(DATA, 127.5)
    x_q = np.clip(away(x * (F32(1) / data_scale)), -128, 127).astype(np.int64)
    scales = np.abs(kernel).reshape(4, -1).max(axis=1) / F32(127.5)
    scales = np.where(scales == 0, F32(1 / (2**31 - 1)), scales).astype(F32)
    if bias is not None:
        common = F32(2) * bias * (F32(1) / data_scale)
        scales = np.maximum(scales, np.where(bias > 0, common / F32(2**31 - 1), common / F32(-(2**31))))
    w_q = np.clip(away(kernel / scales.reshape(-1, 1, 1, 1)), -128, 127).astype(np.int64)
    acc = sums(x_q, w_q, 1, groups)
    both = data_scale * scales
    if bias is not None:
        acc += np.clip(away(bias / both), -(2**31), 2**31 - 1).astype(np.int64).reshape(-1, 1, 1)
    kind = np.iinfo(np.uint8 if ends[0] >= 0 else np.int8)
    wanted = scale(ends, 255.5 if ends[0] >= 0 else 127.5)
    expected = requantized(acc, both, wanted)
    if added:
        expected = expected + requantized(x_q, np.asarray(data_scale), wanted)
    np.testing.assert_array_equal(results(symbol.converted(shape), x), expected.clip(kind.min, kind.max))


def test_pool_product_and_real_results() -> None:
    rng = np.random.default_rng(1)
    symbol, shape = Symbol(), (2, 3, 4, 4)
    q = symbol.quantized_data()
    pool = symbol.add(
        "_contrib_quantized_pooling",
        "pool",
        [(q, 0), (q, 1), (q, 2)],
        kernel="(2, 2)",
        stride="(2, 2)",
        pool_type="avg",
    )
    flat = symbol.add("_contrib_quantized_flatten", "flat", [(pool, i) for i in range(3)])
    w, b = rng.integers(-127, 128, (5, 12)).astype(np.int8), rng.integers(-127, 128, 5).astype(np.int8)
    weights, bias = symbol.parameter("w", w), symbol.parameter("b", b)
    ranges = [symbol.parameter(name, F32([end])) for name, end in zip("klmn", (-0.5, 0.4, -0.25, 0.25), strict=True)]
    symbol.add(
        "_sg_mkldnn_fully_connected", "fc", [(flat, 0), weights, bias, (flat, 1), (flat, 2), *ranges],
        [("FullyConnected", {"num_hidden": "5"})], quantized="true", enable_float_output="true",
    )  # fmt: skip
    x = rng.uniform(-2, 2.5, shape).astype(F32)
    data_scale, weight_scale, bias_scale = scale(DATA, 127.5), scale((-0.5, 0.4), 127.5), scale((-0.25, 0.25), 127.5)
    codes = np.clip(away(x * (F32(1) / data_scale)), -128, 127)
    four = codes.reshape(2, 3, 2, 2, 2, 2).sum(axis=(3, 5))
    rows = np.trunc(four / 4).reshape(2, 12).astype(np.int64)
    addend = away(b.astype(F32) * (bias_scale / (data_scale * weight_scale))).astype(np.int64)
    expected = (rows @ w.T.astype(np.int64) + addend).astype(F32) * (data_scale * weight_scale)
    np.testing.assert_array_equal(results(symbol.converted(shape), x), expected)


def test_relu_concatenation_and_dequantization() -> None:
    symbol, shape = Symbol(), (1, 2, 3, 3)
    q = symbol.quantized_data()
    relu = symbol.add("_contrib_quantized_act", "relu", [(q, i) for i in range(3)], act_type="relu")
    ends = [(node, i) for node in (relu, q) for i in (1, 2)]
    joined = symbol.add("_contrib_quantized_concat", "joined", [(relu, 0), (q, 0), *ends], num_args=2, dim=1)
    symbol.add("_contrib_dequantize", "real", [(joined, i) for i in range(3)])
    x = np.random.default_rng(2).uniform(-2, 2.5, shape).astype(F32)
    codes = np.clip(away(x * (F32(1) / scale(DATA, 127.5))), -128, 127)
    expected = np.concatenate([codes.clip(0), codes], 1).astype(F32) * F32(
        max(abs(F32(end)) for end in DATA) / F32(127.5)
    )
    np.testing.assert_array_equal(results(symbol.converted(shape), x), expected)


@needs_shared
def test_a_whole_network() -> None:
    path = SHARED / "golden" / "mxnet" / "models" / "resnet_fused_int8in-symbol.json"
    converted = qnn.from_mxnet(path, shapes={"data": (1, 3, 8, 8)})
    found = results(converted, np.random.default_rng(0).uniform(-2, 2, (1, 3, 8, 8)).astype(F32))
    assert found.shape == (1, 10)
    assert len(np.unique(found)) > 5


@needs_shared
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plain_unfused", "has no _contrib_quantized_conv"),
        ("concat_fused_channelwise", "with_eltwise"),
        ("sep_fused", "with_eltwise"),
    ],
)
def test_what_the_frontend_refuses(name: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why) as caught:
        qnn.from_mxnet(SHARED / "golden" / "mxnet" / "models" / f"{name}-symbol.json", shapes={"data": (1, 3, 16, 16)})
    assert caught.value.code == "BT-QNN-CONVERT"


def test_inputs_need_shapes() -> None:
    symbol = Symbol()
    symbol.quantized_data()
    with pytest.raises(InputError, match="no shape"):
        symbol.converted(())
