"""Networks of MXNet: weights are prepared when a plan is made, images keep their channels last."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.conformance.recorded.mxnet_case import params_file
from bittrue.graph import Attribute, Graph, Node, Tensor
from bittrue.numerics import find
from bittrue.plan import make_plan
from bittrue.runtime import NativeExecutor, ReferenceExecutor, native_module
from support.shared import REPOSITORY

RANGE = {"min_calib_range": "-2.000000", "max_calib_range": "2.000000"}


def fused(index: int, filters: int) -> list[dict[str, Any]]:
    """A variable and a fused convolution that reads it and the quantized image (entry 1)."""
    attributes = {"kernel": "(3, 3)", "num_filter": str(filters), "no_bias": "True", "pad": "(1, 1)"}
    chain = [
        {"op": "null", "name": "data0", "inputs": []},
        {"op": "Convolution", "name": "inner", "attrs": attributes, "inputs": [[0, 0, 0]]},
    ]
    return [
        {
            "op": "_sg_mkldnn_conv",
            "name": f"conv{index}",
            "attrs": {"quantized": "true", **RANGE},
            "inputs": [[1, 0, 0], [2, 0, 0], [1, 1, 0], [1, 2, 0]],
            "subgraphs": [{"nodes": chain, "arg_nodes": [0], "heads": [[1, 0, 0]]}],
        }
    ]


def model(layers: int, channels: int) -> bittrue.Model:
    """Convolutions side by side that share one tensor of weights."""
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "_contrib_quantize_v2", "name": "q", "inputs": [[0, 0, 0]], "attrs": {"out_type": "int8", **RANGE}},
        {"op": "null", "name": "weight", "inputs": []},
        *(node for index in range(layers) for node in fused(index, channels)),
    ]
    heads = [[3 + index, 0, 0] for index in range(layers)]
    symbol = json.dumps({"nodes": nodes, "arg_nodes": [0, 2], "heads": heads}).encode()
    weights = np.random.default_rng(0).standard_normal((channels, channels, 3, 3)).astype(np.float32)
    return bittrue.load(symbol, params_file({"arg:weight": weights}))


def operators(session: bittrue.Session) -> list[str]:
    return [step.operator for step in session.plan.steps]


def test_large_weights_are_prepared_once() -> None:
    session = model(1, 192).prepare(shapes={"data": (1, 192, 4, 4)})
    assert operators(session) == ["quantize", "conv"]


def test_weights_that_are_prepared_stay_within_a_multiple_of_the_file() -> None:
    """5.8 MB of weights become 11 times 1.4 MB, not 16 times: the rest is done while running, with the same results."""
    channels = 400
    session = model(16, channels).prepare(shapes={"data": (1, channels, 2, 2)}, executor="reference")
    assert operators(session).count("range_weights") == 5
    x = np.random.default_rng(1).standard_normal((1, channels, 2, 2)).astype(np.float32)
    results = [value.tobytes() for value in session.run(x).values()]
    assert len(set(results)) == 1


def test_a_sum_in_the_middle_between_two_numbers_is_rounded_once() -> None:
    """3 * f = 2.5 + 2^-23 lies between two binary32 numbers; 2^-60 more, which binary64 loses, makes it 3."""
    factor, level = np.float32(6990507 * 2.0**-23), np.float32(127.5)
    ulps = np.arange(-8, 9).astype(np.float32) * np.float32(2.0**-24)
    # Ranges of the result and of the other tensor: the quotient of their scales is the factor.
    ranges = [
        (result, other)
        for result in np.float32(1) + 2 * ulps
        for other in factor * result + ulps
        if (level / result) / (level / other) == factor
    ]
    result, other = (np.array([end], np.float32) for end in ranges[0])
    values = {
        "sums": np.full((1, 64), 1, np.int32),
        "data": np.float32([127.5]),
        "scales": np.full(64, 127.5 * 2.0**60, np.float32),
        "bias": np.zeros(64, np.float32),
        "result": result,
        "other": np.full((1, 64), 3, np.int8),
        "other_range": other,
    }
    order = ("sums", "bias", "other", "data", "data", "scales", "result", "result", "other_range", "other_range")
    names = list(values)
    types = {"int32": "s32", "int8": "s8", "float32": "f32"}
    given = ("sums", "other")
    tensors = [
        Tensor(name, types[value.dtype.name], value.shape, data=None if name in given else value)
        for name, value in values.items()
    ]
    tensors.append(Tensor("y", "s8", (1, 64)))
    flags: dict[str, Attribute] = {"relu_first": False, "relu_last": False, "data_type": "s8"}
    node = Node(0, "finish_sums", "sum", 1, flags, tuple(map(names.index, order)), (len(names),))
    graph = Graph("g", tuple(tensors), (node,), tuple(map(names.index, given)), (len(names),))
    plan = make_plan(graph, find("mxnet"))
    (step,) = plan.steps
    plan = replace(plan, steps=(replace(step, parameters={**step.parameters, "channels_last": True}),))
    inputs = {names.index(name): values[name] for name in given}
    (reference,) = ReferenceExecutor(plan).run(inputs)
    assert reference.tolist() == [[3] * 64]
    if native_module() is not None:
        (native,) = NativeExecutor(plan).run(inputs)
        assert native.tobytes() == reference.tobytes()


def test_ranges_that_change_are_prepared_natively() -> None:
    """An uncalibrated network: real weights are quantized, and bias and scales made, by native steps in every run."""
    path = REPOSITORY / "tests" / "data" / "recorded" / "mxnet_models" / "net6-symbol.json"
    model, shape = bittrue.load(path), (2, 3, 16, 16)
    plan = make_plan(model.graph, find("mxnet"), shapes={"data": shape})
    native, reference = NativeExecutor(plan), ReferenceExecutor(plan)
    left = {plan.steps[position].operator for position in native.missing}
    assert "range_weights" in {step.operator for step in plan.steps}
    assert left <= {"average_pool", "conv", "concatenation"}
    rng = np.random.default_rng(4)
    for size in (1.0, 300.0):
        x = {plan.inputs[0]: rng.uniform(-size, size, shape).astype(np.float32)}
        for ours, theirs in zip(native.run(x), reference.run(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("relu", [False, True], ids=["sum", "sum and activation"])
def test_sums_of_fused_layers_are_added_to_inside_of_the_convolution(relu: bool, kernel: int) -> None:
    """More columns than threads and pixels, the last panel narrow: with passes, and without them by the reference."""
    channels, operations = 200, ["Convolution", "elemwise_add", *["Activation"] * relu]
    attributes = [
        {"kernel": f"({kernel}, {kernel})", "num_filter": str(channels), "no_bias": "True"}
        | ({"pad": "(1, 1)"} if kernel > 1 else {}),
        {},
        *[{"act_type": "relu"}] * relu,
    ]
    chain: list[dict[str, Any]] = [{"op": "null", "name": f"data{i}", "inputs": []} for i in range(2)]
    for number, (operator, given) in enumerate(zip(operations, attributes, strict=True)):
        inputs = [[number + 1 if number else 0, 0, 0], *[[1, 0, 0]] * (number == 1)]
        chain.append({"op": operator, "name": f"inner{number}", "attrs": given, "inputs": inputs})
    subgraph = {"nodes": chain, "arg_nodes": [0, 1], "heads": [[len(chain) - 1, 0, 0]]}
    flags = {"quantized": "true", "with_sum": "true", **({"with_postsum_act": "true"} if relu else {})}
    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "_contrib_quantize_v2", "name": "q", "inputs": [[0, 0, 0]], "attrs": {"out_type": "int8", **RANGE}},
        {"op": "null", "name": "weight", "inputs": []},
        {
            "op": "_sg_mkldnn_conv",
            "name": "conv",
            "attrs": {**flags, "min_calib_range": "-9.0", "max_calib_range": "9.0"},
            "inputs": [[1, 0, 0], [2, 0, 0], *[[1, i, 0] for i in (0, 1, 2, 1, 2)]],
            "subgraphs": [subgraph],
        },
    ]
    symbol = json.dumps({"nodes": nodes, "arg_nodes": [0, 2], "heads": [[3, 0, 0]]}).encode()
    rng = np.random.default_rng(kernel)
    weights = rng.normal(0, 0.1, (channels, channels, kernel, kernel)).astype(np.float32)
    network = bittrue.load(symbol, params_file({"arg:weight": weights}))
    shape = (2, channels, 7, 7)
    reference = network.prepare(shapes={"data": shape}, executor="reference")
    x = rng.standard_normal(shape).astype(np.float32)
    (expected,) = reference.run(x).values()
    assert expected.dtype == (np.uint8 if relu else np.int8)
    assert len(np.unique(expected)) > 60
    for isa in bittrue.isas():
        for threads in (1, 2):
            session = network.prepare(shapes={"data": shape}, isa=isa, threads=threads)
            assert any("additions fused" in line for line in session.plan.execution)
            assert not session.missing
            (found,) = session.run(x).values()
            assert found.tobytes() == expected.tobytes(), (isa, threads)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_weights_of_every_run(whole: bool, biased: bool) -> None:
    """range_weights alone, with zeros, large biases and ranges that lower the scales: native = reference."""
    rng = np.random.default_rng(9)
    for data_type, per_channel, fused in (("s8", False, True), ("u8", True, not biased), ("s8", True, True)):
        kind = "s8" if whole else "f32"
        shapes = [(4, 5), (4,), *[()] * (6 if whole else 2)]
        names = ["w", "b", "low", "high", "wl", "wh", "bl", "bh"][: len(shapes)]
        tensors = [Tensor(n, kind if i < 2 else "f32", s) for i, (n, s) in enumerate(zip(names, shapes, strict=True))]
        given = [i if biased or i not in (1, 6, 7) else None for i in range(len(shapes))]
        scales = () if whole or not per_channel else (4,)
        tensors += [Tensor("q", "s8", (4, 5)), Tensor("wide", "f32", (4,)), Tensor("s", "f32", scales or (1,))]
        outputs = tuple(range(len(shapes), len(shapes) + 3))
        attributes: dict[str, Attribute] = {"data_type": data_type, "per_channel": per_channel, "fused": fused}
        node = Node(0, "range_weights", "_sg_mkldnn_conv", 1, attributes, tuple(given), outputs)
        inputs = tuple(i for i in given if i is not None)
        plan = make_plan(Graph("g", tuple(tensors), (node,), inputs, outputs), find("mxnet"))
        native = NativeExecutor(plan)
        assert not native.missing
        for size in (1e-3, 1.0, 1e9):
            values: dict[int, Any] = {0: rng.integers(-127, 128, (4, 5)), 1: rng.integers(-127, 128, 4)}
            if not whole:
                values = {0: rng.normal(size=(4, 5)), 1: rng.normal(size=4) * size}
                values[0][1] = 0
                values[1][2] = 0
            ends = {2: -size, 3: 2 * size, 4: -0.5, 5: 0.25, 6: -size, 7: size}
            feeds = {
                i: np.asarray(values.get(i, ends.get(i)), np.int8 if whole and i < 2 else np.float32) for i in inputs
            }
            for ours, theirs in zip(native.run(feeds), ReferenceExecutor(plan).run(feeds), strict=True):
                np.testing.assert_array_equal(ours, theirs)
