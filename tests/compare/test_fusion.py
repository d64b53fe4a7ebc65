"""One file under a runtime that fuses and under one that does not: named as such, and only where it is proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue

pytest.importorskip("onnxruntime")


def pooled(scale: float = 0.05) -> bytes:
    """DequantizeLinear, AveragePool, QuantizeLinear: sums of real numbers in one, of scaled quantized values in the
    other.
    """
    constants = [
        numpy_helper.from_array(np.float32(0.031), "s"),
        numpy_helper.from_array(np.uint8(117), "z"),
        numpy_helper.from_array(np.float32(scale), "t"),
        numpy_helper.from_array(np.uint8(121), "u"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["real"]),
        helper.make_node("AveragePool", ["real"], ["mean"], kernel_shape=[3, 2], strides=[1, 1]),
        helper.make_node("QuantizeLinear", ["mean", "t", "u"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 5, 40, 40))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 5, 38, 39))],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("levels", [("disable", "all"), ("all", "disable")])
def test_fused_against_node_by_node(tmp_path: Path, levels: tuple[str, str]) -> None:
    path = tmp_path / "pool.onnx"
    path.write_bytes(pooled())
    a, b = (f"ort:{path}?level={level}" for level in levels)
    result = bittrue.compare_models(a, b, seeds=range(4))
    y = next(p for p in result.pairs if p.a == "y")
    assert y.isolated is not None
    assert not y.isolated.equal
    assert y.isolated.largest == 1
    assert y.verdict is not None
    assert (y.verdict.exact, y.verdict.benign, y.verdict.unexplained) == (True, True, 0)
    (cause,) = y.verdict.causes
    fused, single = "average_pool", "dequantize + average_pool + quantize"
    assert cause.name == f"operators={fused if levels[1] == 'all' else single}"
    assert f"instead of {single if levels[1] == 'all' else fused}" in cause.text
    assert cause.elements == y.isolated.differing


def test_another_file_is_no_reason(tmp_path: Path) -> None:
    """B's model has another scale: its own graph gives its bits, and that explains nothing."""
    (tmp_path / "a.onnx").write_bytes(pooled())
    (tmp_path / "b.onnx").write_bytes(pooled(0.0503))
    result: Any = bittrue.compare_models(
        f"ort:{tmp_path / 'a.onnx'}?level=disable", f"ort:{tmp_path / 'b.onnx'}?level=all", seeds=range(2)
    )
    y = next(p for p in result.pairs if p.a == "y")
    assert y.verdict is not None
    assert not any(cause.name.startswith("operators=") for cause in y.verdict.causes)
    assert not y.verdict.benign
