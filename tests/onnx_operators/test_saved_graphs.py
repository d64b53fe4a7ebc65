"""Graphs as ONNX Runtime saves them after optimising: opened again, and optimised once more, with its bytes.

At level all, float images lie in blocks of as many channels as the processor's vectors hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.float_images import ImageNetworkMaker
from support.fused_models import optimised
from support.onnx_models import HERE, Refused, build, cases, run_runtime
from support.quantized_graphs import GraphMaker
from support.real_graphs import RealGraphMaker

Make = Callable[[np.random.Generator], tuple[bytes, list[np.ndarray]]]


def _real(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    maker = RealGraphMaker(rng, opset=int(rng.choice([13, 17, 18])), usual=0.95)
    maker.grow(int(rng.integers(1, 5)))
    return maker.model()


def _quantized(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    maker = GraphMaker(rng, opset=int(rng.choice([13, 17, 21])), usual=0.95)
    while not maker.outputs:
        maker.grow(int(rng.integers(1, 6)))
    return maker.model()


def _images(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    return ImageNetworkMaker(rng).model()


@pytest.mark.parametrize("level", ["", "BASIC", "EXTENDED", "ALL"])
@pytest.mark.parametrize("make", [_real, _quantized, _images])
def test_bytes(request: pytest.FixtureRequest, level: str, make: Make) -> None:
    compared = 0
    for rng in cases(request, usual=10):
        content, feeds = make(rng)
        if isinstance(run_runtime(content, feeds), Refused):
            continue
        saved = optimised(content, level, off=()) if level else content
        theirs = run_runtime(saved, feeds)
        if isinstance(theirs, Refused):
            continue
        session = bittrue.load(saved).prepare(HERE, executor=str(rng.choice(["reference", "auto"])))
        ours = session.run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
            compared += 1
    assert compared


def _blocked(filters: tuple[int, ...] = (16, 16, 1, 1), *, reorder: bool = True) -> bytes:
    """A convolution in blocks of channels, as the runtime writes it."""
    domain, x = "com.microsoft.nchwc", np.zeros((1, 16, 2, 2), np.float32)
    nodes = [helper.make_node("ReorderInput", ["x"], ["b"], domain=domain)] if reorder else []
    nodes.append(helper.make_node("Conv", ["b" if reorder else "x", "w"], ["c"], domain=domain))
    nodes.append(helper.make_node("ReorderOutput", ["c"], ["y"], domain=domain, channels=16))
    weights = np.ones(filters, np.float32)
    return build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {"w": weights})[0]


def test_images_whose_sizes_the_runtime_does_not_know(request: pytest.FixtureRequest) -> None:
    """It joins them on five axes, the channels of a block last."""
    joined = 0
    for rng in cases(request, usual=8):
        channels, size = 16 * int(rng.integers(1, 3)), int(rng.integers(2, 6))
        x = rng.normal(size=(1, 5, size, size)).astype(np.float32)
        operators = [str(rng.choice(["Add", "Mul", "Sum"])) for _ in range(2)]
        nodes = [
            # An image of sizes that only running tells.
            helper.make_node("Slice", ["x", "from", "upto", "axes"], ["i"]),
            helper.make_node("Conv", ["i", "w0"], ["a"]),
            helper.make_node("Conv", ["i", "w1"], ["b"]),
            helper.make_node(operators[0], ["a", "b"], ["h"]),
            helper.make_node("GlobalAveragePool", ["h"], ["p"]),
            helper.make_node("Conv", ["p", "w2"], ["g"]),
            helper.make_node(operators[1], ["h", "g"] if rng.random() < 0.5 else ["g", "h"], ["s"]),
            helper.make_node("Conv", ["s", "w2"], ["y"]),
            helper.make_node("Relu", [str(rng.choice(["h", "p"]))], ["z"]),
        ]
        weights = {
            "w0": rng.normal(size=(channels, 5, 1, 1)).astype(np.float32),
            "w1": rng.normal(size=(channels, 5, 1, 1)).astype(np.float32),
            "w2": rng.normal(size=(channels, channels, 1, 1)).astype(np.float32),
            "from": np.array([0]),
            "axes": np.array([2]),
        }
        results = {"y": TensorProto.FLOAT, "z": TensorProto.FLOAT}
        content, feeds = build(nodes, {"x": x, "upto": np.array([size])}, results, weights)
        saved = optimised(content, "ALL", off=())
        joined += sum(node.op_type == "Reshape" for node in onnx.load_from_string(saved).graph.node)
        theirs = run_runtime(saved, feeds)
        ours = bittrue.load(saved).prepare(HERE, executor=str(rng.choice(["reference", "auto"]))).run(*feeds)
        for name, value in theirs.items():
            assert_same(name, ours[name], np.asarray(value))
    assert joined or HERE.endswith("@aarch64")  # where there are no blocks


def test_blocks_that_do_not_fit() -> None:
    assert bittrue.load(_blocked()).prepare("onnxruntime").run(np.ones((1, 16, 2, 2), np.float32))["y"].max() == 16
    for content in (_blocked((16, 20, 1, 1)), _blocked((8, 16, 1, 1)), _blocked(reorder=False)):
        with pytest.raises(bittrue.BittrueError, match="BT-ONNX-BLOCKS"):
            bittrue.load(content).prepare("onnxruntime")


def test_blocks_that_a_numerics_does_not_know_are_refused() -> None:
    with pytest.raises(bittrue.BittrueError, match="BT-OPERATOR"):
        bittrue.load(_blocked()).prepare("onnx")
