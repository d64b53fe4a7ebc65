"""Small MXNet networks: symbol JSON and parameters, as quantization makes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bittrue.conformance.recorded.mxnet_case import params_file


class Network:
    """Nodes that are added one by one; `parameters` by name."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.parameters: dict[str, np.ndarray] = {}

    def variable(self, name: str, value: np.ndarray | None = None) -> list[int]:
        """An input, or a parameter."""
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        if value is not None:
            self.parameters[name] = value
        return [len(self.nodes) - 1, 0, 0]

    def add(self, operator: str, name: str, inputs: list[list[int]], inner: Any = None, **attributes: str) -> int:
        """A node; its position."""
        node: dict[str, Any] = {"op": operator, "name": name, "attrs": attributes, "inputs": inputs}
        if inner is not None:
            nodes: list[dict[str, Any]] = [{"op": "null", "name": "data0", "inputs": []}]
            for kind, given in inner:
                nodes.append({"op": kind, "name": kind, "attrs": given, "inputs": [[len(nodes) - 1, 0, 0]]})
            node["subgraphs"] = [{"nodes": nodes, "arg_nodes": [0], "heads": [[len(nodes) - 1, 0, 0]]}]
        self.nodes.append(node)
        return len(self.nodes) - 1

    def symbol(self, *heads: list[int]) -> bytes:
        """The symbol JSON."""
        arguments = [i for i, node in enumerate(self.nodes) if node["op"] == "null"]
        content = {"nodes": self.nodes, "arg_nodes": arguments, "heads": list(heads)}
        return json.dumps({**content, "attrs": {"mxnet_version": ["int", 10901]}}).encode()

    def weights(self) -> bytes:
        """The .params file."""
        return params_file({f"arg:{name}": value for name, value in self.parameters.items()})


def residual(channels: int = 4, deep: bool = False) -> Network:
    """Quantization, a fused convolution with normalization and relu, one with a sum, a fully-connected layer.

    deep: the last layer has a relu, no other tensor is added, and sums of the second convolution
    leave what binary32 holds exactly.
    """
    rng = np.random.default_rng(channels)
    net = Network()
    data = net.variable("data")
    first = net.add(
        "_contrib_quantize_v2", "q", [data], out_type="int8", min_calib_range="-2.5", max_calib_range="3.000000"
    )
    inner = 600 if deep else 6

    def values(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    kernel = {"kernel": "(3, 3)", "pad": "(1, 1)", "stride": "(1, 1)", "no_bias": "False"}
    numbers = [
        net.variable("c0_weight", values(inner, channels, 3, 3)),
        net.variable("c0_bias", values(inner)),
        net.variable("gamma", np.abs(values(inner)) + 1),
        net.variable("beta", values(inner)),
        net.variable("mean", values(inner)),
        net.variable("var", np.abs(values(inner))),
    ]
    convolution = net.add(
        "_sg_mkldnn_conv",
        "c0",
        [[first, 0, 0], *numbers, [first, 1, 0], [first, 2, 0]],
        [
            ("Convolution", {**kernel, "num_filter": str(inner)}),
            ("BatchNorm", {"eps": "0.001", "fix_gamma": "False"}),
            ("Activation", {"act_type": "relu"}),
        ],
        quantized="true",
        with_bn="true",
        with_act="true",
        min_calib_range="0.000000",
        max_calib_range="20.125",
    )
    second = [
        net.variable("c1_weight", np.abs(values(channels, inner, 3, 3)) if deep else values(channels, inner, 3, 3)),
        net.variable("c1_bias", values(channels)),
    ]
    total = net.add(
        "_sg_mkldnn_conv",
        "c1",
        [
            [convolution, 0, 0],
            *second,
            *([] if deep else [[first, 0, 0]]),
            [convolution, 1, 0],
            [convolution, 2, 0],
            *([] if deep else [[first, 1, 0], [first, 2, 0]]),
        ],
        [("Convolution", {**kernel, "num_filter": str(channels)}), *([] if deep else [("elemwise_add", {})])],
        quantized="true",
        **({} if deep else {"with_sum": "true"}),
        min_calib_range="-9.5" if not deep else "-90000",
        max_calib_range="11.0" if not deep else "80000",
    )
    quantized = rng.integers(-127, 128, (3, channels * 16)).astype(np.int8)
    layer = [
        net.variable("fc_weight", quantized),
        net.variable("fc_bias", rng.integers(-127, 128, 3).astype(np.int8)),
    ]
    ends = [net.variable(name, np.float32([v])) for name, v in (("wl", -0.5), ("wh", 0.4), ("bl", -2), ("bh", 2.5))]
    last = net.add(
        "_sg_mkldnn_fully_connected",
        "fc",
        [[total, 0, 0], *layer, [total, 1, 0], [total, 2, 0], *ends],
        [
            ("FullyConnected", {"num_hidden": "3", "no_bias": "False"}),
            *([("Activation", {"act_type": "relu"})] if deep else []),
        ],
        quantized="True",
        **({"with_eltwise": "True"} if deep else {}),
        min_calib_range="0.0" if deep else "-25.5",
        max_calib_range="30.0" if not deep else "300000.0",
    )
    net.add("_contrib_dequantize", "out", [[last, 0, 0], [last, 1, 0], [last, 2, 0]], out_type="float32")
    return net
