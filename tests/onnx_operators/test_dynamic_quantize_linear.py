"""dynamic_quantize_linear: random tensors against ONNX Runtime, NaN in every place, and the specification's vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import bittrue
from support.onnx_models import HERE, Checks, build, options, single
from support.onnx_vectors import check_vector, vectors

KINDS = [TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8]


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        shape = tuple(int(v) for v in rng.integers(0 if rng.random() < 0.05 else 1, 9, rng.integers(0, 4)))
        x = np.asarray(rng.standard_normal(shape) * np.exp2(rng.uniform(-20, 20)) + rng.integers(-3, 4), np.float32)
        if rng.random() < 0.3:
            x = np.abs(x) * np.float32(rng.choice([1, -1]))
        if rng.random() < 0.5:
            special = np.float32([np.nan, np.nan, np.inf, -np.inf, 0, 1e-45, 3e38, -3e38])
            x = np.where(rng.random(shape) < rng.choice([0.02, 0.2, 1]), rng.choice(special, shape), x)
        content, feeds = single("DynamicQuantizeLinear", {"x": np.asarray(x, np.float32)}, KINDS, opset=11)
        checks.add(content, feeds)


def test_a_number_that_is_none_in_every_place() -> None:
    """Vectors of 8, four abreast, with all kinds of remainders."""
    rng = np.random.default_rng(8)
    compared = 0
    for size in (1, 7, 8, 9, 17, 31, 32, 39, 40, 65, 103):
        content, _ = single("DynamicQuantizeLinear", {"x": np.zeros(size, np.float32)}, KINDS, opset=11)
        ours = bittrue.load(content).prepare(HERE)
        theirs = onnxruntime.InferenceSession(content, options(), ["CPUExecutionProvider"])
        for place in range(size):
            x = rng.standard_normal(size).astype(np.float32)
            x[place] = np.nan
            x[rng.integers(size)] = np.nan
            for one, other in zip(ours.run(x).values(), theirs.run(None, {"x": x}), strict=True):
                assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), (size, place)
            compared += 1
    assert compared > 300


def test_scales_that_come_from_another_node(request: pytest.FixtureRequest) -> None:
    """There and back: the scale and the zero point of one tensor, known while running only."""
    checks = Checks(request, usual=20, only="equal")
    for rng in checks:
        x = (rng.standard_normal(int(rng.integers(1, 60))) * np.exp2(rng.uniform(-9, 9))).astype(np.float32)
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"], "there"),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], "back"),
            helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["again"], "again"),
        ]
        content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT, "again": TensorProto.UINT8}, opset=21)
        checks.add(content, feeds)


@pytest.mark.parametrize("values", [[0, 0], [], [1, np.nan], [np.inf, 0], [3e38, -3e38], [1e-45]])
def test_the_specification_defines_nothing_for(values: list[float]) -> None:
    x = np.array(values, np.float32)
    content, feeds = single("DynamicQuantizeLinear", {"x": x}, KINDS, opset=11)
    with pytest.raises(bittrue.RunError, match="BT-QUANT-DYNAMIC"):
        bittrue.load(content).prepare("onnx").run(*feeds)


@pytest.mark.parametrize("folder", vectors("dynamicquantizelinear(_m.._adjusted)?"))
def test_vectors_of_the_specification(folder: Any) -> None:
    check_vector(folder)
