"""Networks of MXNet: weights are prepared when a plan is made, pictures keep their channels last."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import bittrue
from bittrue.conformance.mxnet_case import params_file

RANGE = {"min_calib_range": "-2.000000", "max_calib_range": "2.000000"}


def fused(index: int, filters: int) -> list[dict[str, Any]]:
    """A variable and a fused convolution that reads it and the quantized picture (entry 1)."""
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
    assert operators(session) == ["range_quantize", "qlinear_conv"]


def test_weights_that_are_prepared_stay_within_a_multiple_of_the_file() -> None:
    """5.8 MB of weights become 12 times 1.4 MB, not 16 times: the rest is done while running, with the same results."""
    channels = 400
    session = model(16, channels).prepare(shapes={"data": (1, channels, 2, 2)}, executor="reference")
    assert operators(session).count("range_weights") == 4
    x = np.random.default_rng(1).standard_normal((1, channels, 2, 2)).astype(np.float32)
    results = [value.tobytes() for value in session.run(x).values()]
    assert len(set(results)) == 1
