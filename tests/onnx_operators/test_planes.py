"""Global averages of 16 or more channels: in blocks or in planes, as what computes the image leaves it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from support.onnx_models import Checks, build, check

_UNARY = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Abs", "Neg", "Identity", "Softsign")
_BINARY = ("Add", "Mul", "Sub", "Sum", "Concat")


def test_random_images(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20)
    for rng in checks:
        channels = int(rng.choice([16, 32]))
        x = rng.normal(size=(1, channels, *(int(v) for v in rng.integers(2, 9, 2)))).astype(np.float32)
        # Convolutions with a unit matrix are exact in any order.
        constants = {"unit": np.eye(channels, dtype=np.float32)[:, :, None, None]}
        nodes: list[NodeProto] = []
        made = {"x": channels}
        for step in range(int(rng.integers(4))):
            names = sorted(made)
            a, b = str(rng.choice(names)), str(rng.choice(names))
            kind = int(rng.integers(4))
            target, size = f"t{step}", made[a]
            if kind == 0 and made[a] == channels:
                nodes.append(helper.make_node("Conv", [a, "unit"], [target]))
            elif kind == 1:
                operator = str(rng.choice(["MaxPool", "AveragePool"]))
                nodes.append(helper.make_node(operator, [a], [target], kernel_shape=[1, 1]))
            elif kind == 2 and made[a] == made[b]:
                operator = str(rng.choice(_BINARY))
                size = made[a] + made[b] if operator == "Concat" else made[a]
                nodes.append(helper.make_node(operator, [a, b], [target], **({"axis": 1} if size > made[a] else {})))
            else:
                nodes.append(helper.make_node(str(rng.choice(_UNARY)), [a], [target]))
            made[target] = size
        nodes.append(helper.make_node("GlobalAveragePool", [list(made)[-1]], ["y"]))
        used = any(node.op_type == "Conv" for node in nodes)
        content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants if used else {})
        checks.add(content, feeds)


@pytest.mark.parametrize("total", ["Add", "Sum"])
def test_a_sum_that_begins_a_convolution_is_in_blocks(total: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 16, 7, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "unit"], ["a"]),
        helper.make_node("Conv", ["a", "unit"], ["b"]),
        helper.make_node(total, ["b", "a"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    unit = np.eye(16, dtype=np.float32)[:, :, None, None]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"unit": unit})
    assert check(content, feeds) == "equal"


@pytest.mark.parametrize("channels", [3, 16])
def test_averages_of_negative_zeros_are_positive(channels: int) -> None:
    x = np.full((1, channels, 14, 14), -0.0, np.float32)
    for operator, attributes in (
        ("GlobalAveragePool", {}),
        ("AveragePool", {"kernel_shape": [3, 3]}),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ):
        node = helper.make_node(operator, ["x"], ["y"], **attributes)
        content, feeds = build([node], {"x": x}, {"y": TensorProto.FLOAT})
        assert check(content, feeds) == "equal"


@pytest.mark.parametrize("pool", ["GlobalMaxPool", "GlobalAveragePool", "MaxPool"])
def test_normalizations_behind_pools_of_given_images(pool: str) -> None:
    """Such images are put into blocks, where a normalization is a convolution."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 32, 5, 5)).astype(np.float32)
    constants = {name: rng.uniform(0.5, 2, 32).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    nodes = [
        helper.make_node(pool, ["x"], ["pooled"], **({"kernel_shape": [2, 2]} if pool == "MaxPool" else {})),
        helper.make_node("BatchNormalization", ["pooled", *constants], ["y"]),
    ]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert check(content, feeds) == "equal"
