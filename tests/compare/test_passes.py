"""The level and the passes of ONNX Runtime's optimiser that change bits are found, and the runtime confirms them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.cli import cli
from bittrue.compare.minimal import smallest
from bittrue.compare.optimizer_passes import bisect_passes, passes_text
from bittrue.runners.onnxruntime import LEVELS

F32 = np.float32
X = np.random.default_rng(3).standard_normal((1, 4, 9, 9)).astype(F32)


def save(folder: Path, nodes: Sequence[onnx.NodeProto], constants: dict[str, np.ndarray], y: Any = None) -> Path:
    """A model from x [1, 4, 9, 9] to y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def quantized_pool(read: str, write: str) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """A pool between quantized tensors: real arithmetic node by node, integers once it is fused."""
    nodes = [
        helper.make_node("QuantizeLinear", [read, "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("AveragePool", ["xd"], ["p"], kernel_shape=[3, 3], name="pool"),
        helper.make_node("QuantizeLinear", ["p", "t", "u"], ["pq"]),
        helper.make_node("DequantizeLinear", ["pq", "t", "u"], [write]),
    ]
    # Sums of nine come to lie on ties.
    return nodes, {"s": F32(0.018), "z": np.uint8(128), "t": F32(0.004), "u": np.uint8(120)}


def convolution_and_product(read: str, write: str) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Level basic multiplies the weights instead of the results, which rounds elsewhere."""
    rng = np.random.default_rng(4)
    nodes = [
        helper.make_node("Conv", [read, "w"], ["c"], name="conv"),
        helper.make_node("Mul", ["c", "k"], [write], name="mul"),
    ]
    weights = rng.standard_normal((4, 4, 3, 3)).astype(F32)
    return nodes, {"w": weights, "k": rng.standard_normal((4, 1, 1)).astype(F32)}


def bytes_at(path: Path, level: str, disable: Sequence[str] = ()) -> bytes:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[level])
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disable)
    )
    content: bytes = session.run(None, {"x": X})[0].tobytes()
    return content


def test_fusion_of_quantized_operators(tmp_path: Path) -> None:
    path = save(tmp_path, *quantized_pool("x", "y"))
    found = bisect_passes(path, [{"x": X}])
    assert [entry["level"] for entry in found["levels"] if entry["changed"]] == ["extended"]
    (change,) = found["changes"]
    assert (change["before"], change["level"]) == ("basic", "extended")
    assert change["passes"] == change["alone"] == ["QDQSelectorActionTransformer"]
    assert change["tensor"] == "pq"
    assert [node["operator"] for node in change["added"]] == ["com.microsoft.QLinearAveragePool"]
    assert sorted(node["operator"] for node in change["removed"]) == [
        "AveragePool",
        "DequantizeLinear",
        "QuantizeLinear",
    ]
    # What it says is so.
    assert bytes_at(path, "extended") != bytes_at(path, "basic")
    assert bytes_at(path, "extended", change["passes"]) == bytes_at(path, "basic")
    assert found["text"] == "level extended changes the bits that level basic gives: QDQSelectorActionTransformer"
    json.dumps(found, allow_nan=False)


def test_one_rule_of_a_pass(tmp_path: Path) -> None:
    path = save(tmp_path, *convolution_and_product("x", "y"))
    found = bisect_passes(path, [{"x": X}])
    change = found["changes"][0]
    assert (change["before"], change["level"], change["passes"]) == ("disable", "basic", ["ConvMulFusion"])
    assert change["alone"] == ["ConvMulFusion"]
    assert {node["name"] for node in change["removed"]} == {"conv", "mul"}
    assert bytes_at(path, "basic") != bytes_at(path, "disable") == bytes_at(path, "basic", ["ConvMulFusion"])


def test_two_levels(tmp_path: Path) -> None:
    one, constants = convolution_and_product("x", "h")
    two, more = quantized_pool("h", "y")
    path = save(tmp_path, [*one, *two], {**constants, **more})
    found = bisect_passes(path, [{"x": X * k} for k in (F32(1), F32(0.5))])
    assert found["inputs"] == 2
    responsible = {change["level"]: change["passes"] for change in found["changes"]}
    assert responsible["extended"] == ["QDQSelectorActionTransformer"]
    text = "\n".join(passes_text(found))
    assert "from basic to extended:" in text
    assert "1 com.microsoft.QLinearAveragePool" in text


def test_nothing_changes(tmp_path: Path) -> None:
    path = save(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {})
    found = bisect_passes(path, [{"x": X}])
    assert found["changes"] == []
    assert not any(entry["differing"] for entry in found["levels"])
    assert all(entry["elements"] == X.size for entry in found["levels"])
    assert "no level of the optimiser changes a bit" in passes_text(found)[-1]


def test_what_goes_wrong(tmp_path: Path) -> None:
    path = save(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {})
    with pytest.raises(bittrue.InputError, match="no inputs"):
        bisect_passes(path, [])
    with pytest.raises(bittrue.RunError, match="level disable"):
        bisect_passes(path, [{"x": X[..., :3]}])
    path.write_bytes(b"no model")
    with pytest.raises(bittrue.InvalidModelError, match="refuses this model"):
        bisect_passes(path, [{"x": X}])


def test_command_line(tmp_path: Path) -> None:
    path = save(tmp_path, *quantized_pool("x", "y"))
    np.save(tmp_path / "x.npy", X)
    sides = [f"ort:{path}?level=disable", f"ort:{path}"]
    done = CliRunner().invoke(cli, ["compare", *sides, "--passes", "--json", "-i", str(tmp_path / "x.npy")])
    assert done.exit_code == 1, done.output
    assert json.loads(done.output)["passes"]["changes"][0]["passes"] == ["QDQSelectorActionTransformer"]
    done = CliRunner().invoke(cli, ["compare", *sides, "--passes", "-i", str(tmp_path / "x.npy")])
    assert "responsible: QDQSelectorActionTransformer" in done.output
    done = CliRunner().invoke(cli, ["compare", str(path), f"{path}@onnx", "--passes"])
    assert isinstance(done.exception, bittrue.InputError)


@pytest.mark.parametrize(
    ("wanted", "items"),
    [("", "abc"), ("b", "abc"), ("ac", "abcdefgh"), ("adh", "abcdefgh"), ("chknz", "abcdefghijklmnopqrstuvwxyz")],
)
def test_smallest(wanted: str, items: str) -> None:
    assert smallest(items, lambda part: {*wanted} <= {*part}) == [*wanted]
    assert smallest(items, lambda part: False) is None
