"""Constant second factors [K, N], which cores pack as they lie, on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest

import bittrue

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def model(rng: np.random.Generator, k: int, n: int, weights: str, zero_point: int, stored: bool) -> bytes:
    """QLinearMatMul, or MatMulInteger, whose sums are the result."""
    info = np.iinfo(weights)
    constants = {
        "b": rng.integers(info.min, info.max + 1, (k, n)).astype(weights),
        "b_zero": np.array(zero_point, weights),
        "a_zero": np.uint8(131),
        "a_scale": np.float32(0.02),
        "b_scale": rng.uniform(0.001, 0.004, n).astype(np.float32),
        "y_scale": np.float32(0.3),
        "y_zero": np.uint8(120),
    }
    if stored:
        constants["b_zero"] = np.full(n, zero_point, weights)
        names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
        node, result = helper.make_node("QLinearMatMul", names, ["y"]), TensorProto.UINT8
    else:
        names = ["a", "b", "a_zero", "b_zero"]
        node, result = helper.make_node("MatMulInteger", names, ["y"]), TensorProto.INT32
    kept = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items() if name in names]
    ends = [
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [5, k])],
        [helper.make_tensor_value_info("y", result, [5, n])],
    ]
    graph = helper.make_graph([node], "product", *ends, kept)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    content: bytes = whole.SerializeToString()
    return content


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(("weights", "zero_point"), [("int8", 0), ("int8", 3), ("uint8", 128), ("uint8", 7)])
@pytest.mark.parametrize(("k", "n"), [(4, 64), (64, 130), (68, 47), (30, 80), (128, 17)])
def test_native_is_the_reference(
    k: int, n: int, weights: str, zero_point: int, stored: bool, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng([request.config.option.seed, k, n, zero_point])
    loaded = bittrue.load(model(rng, k, n, weights, zero_point, stored))
    a = rng.integers(0, 256, (5, k)).astype(np.uint8)
    expected = loaded.prepare(executor="reference").run({"a": a})["y"]
    for isa in bittrue.isas():
        session = loaded.prepare(executor="native", isa=isa)
        assert "1 steps native" in str(session.plan.execution), session.plan.execution
        assert session.run({"a": a})["y"].tobytes() == expected.tobytes(), isa
