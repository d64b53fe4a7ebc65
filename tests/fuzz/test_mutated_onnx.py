"""Mutated ONNX files: typed errors or results only; no crash, no more than 5 s and 1 GiB."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import onnx
import pytest
from onnx import helper, numpy_helper

import bittrue
from support.official_onnx import official_cases

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
import numpy as np
from targets import onnx as target
from watch import changes, made, seeds


@cache
def official() -> list[bytes]:
    """The models of the onnx package's own tests: every operator, a few nodes at most."""
    return [case.model.SerializeToString() for case in official_cases()]


def prepared(content: bytes) -> bytes:
    """The same, if it can be prepared."""
    with suppress(bittrue.BittrueError):
        bittrue.load(content).prepare("onnx", executor="reference")
        return content
    return b""


def several_nodes() -> bytes:
    """Initializers of several types, constants, a function, a branching graph, free dimensions, claims."""
    inner = helper.make_function(
        "local",
        "twice",
        ["x"],
        ["y"],
        [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("Transpose", ["t"], ["y"], perm=[1, 0])],
        [helper.make_opsetid("", 21)],
    )
    parameters = {
        "a_scale": np.float32(0.5),
        "a_zero": np.uint8(3),
        "b": np.arange(12, dtype=np.uint8).reshape(3, 4),
        "b_scale": np.float32([0.5, 0.25, 1, 2]),
        "b_zero": np.uint8([0, 1, 2, 3]),
        "y_scale": np.float32(4),
        "y_zero": np.uint8(128),
    }
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.uint8([[1, 2, 3]]), "v")),
        helper.make_node("twice", ["a"], ["m"], domain="local"),
        helper.make_node("QLinearMatMul", ["m", *parameters], ["y"], "product"),
        helper.make_node("QLinearMatMul", ["c", *parameters], ["z"], "other"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, ["N", 3])],
        [helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None) for name in ("y", "z")],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in parameters.items()],
        value_info=[helper.make_tensor_value_info("m", onnx.TensorProto.UINT8, ["N", 3])],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=[inner], ir_version=10).SerializeToString()


@pytest.mark.parametrize("part", range(2))
def test_mutations_of_every_operator(
    part: int, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    contents = official()[part::2]
    tried = seeds(request, 60, 30_000)
    result = changes(target.change, target.attempt, made(contents, tried, prepared), tried, tmp_path)
    counts = result["counts"]
    kinds = len([outcome for outcome in counts if outcome.startswith("BT-")])
    record_property(
        "mutated",
        f"{len(contents)} official ONNX models: {len(tried)} files, {counts['result']} results, typed errors of "
        f"{kinds} kinds, slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 20
    assert kinds > 5


def test_mutations_of_one_model(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    content = several_nodes()
    assert bittrue.load(content).prepare("onnx")
    tried = seeds(request, 60, 40_000)
    result = changes(target.change, target.attempt, [content], tried, tmp_path)
    counts = result["counts"]
    record_property(
        "mutated",
        f"an ONNX model with a function: {len(tried)} files, {counts['result']} results, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > len(tried) // 20


def test_every_truncation() -> None:
    content = several_nodes()
    codes = set()
    for length in range(len(content)):
        with pytest.raises(bittrue.BittrueError) as caught:
            bittrue.load(content[:length]).prepare("onnx")
        codes.add(caught.value.code)
    assert "BT-ONNX-FORMAT" in codes
