"""Kernels of binary16 numbers on aarch64: which nodes `onnxruntime@aarch64` calls others.

Answers of that processor are in tests/data/recorded/onnxruntime@aarch64.npz.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import bittrue
from support.onnx_models import MICROSOFT, build, single

_SHAPES = {
    "x": (2, 8, 4, 4),
    "w": (8, 8, 1, 1),
    "g": (8, 4, 1, 1),
    "d": (8, 1, 1, 1),
    "a": (3, 5),
    "b": (5, 4),
    "c": (5, 1),
}


@pytest.mark.parametrize(
    ("operator", "names", "attributes", "others"),
    [
        ("Conv", "xw", {}, False),
        ("Conv", "xd", {"group": 8}, False),
        ("Conv", "xg", {"group": 2}, True),
        ("LeakyRelu", "x", {"alpha": 0.1}, False),
        ("LeakyRelu", "x", {"alpha": -0.1}, True),
        ("Gemm", "ab", {"alpha": 0.5}, False),
        ("Gemm", "ac", {}, False),
        ("Gemm", "ac", {"alpha": 0.5}, True),
        ("MatMul", "ab", {}, False),
        ("Erf", "x", {}, False),
        ("GlobalAveragePool", "x", {}, False),
    ],
)
def test_which_kernels_are_others(operator: str, names: str, attributes: dict[str, Any], others: bool) -> None:
    inputs = {name: np.zeros(_SHAPES[name], np.float16) for name in names}
    content, _ = single(operator, inputs, [TensorProto.FLOAT16], attributes)
    plan = bittrue.load(content).prepare("onnxruntime@aarch64").plan
    assert any("are not reproduced" in note for note in plan.notes) == others
    assert any(step.inexact for step in plan.steps) == others


def test_alpha_is_rounded() -> None:
    """0.1 in binary16 is 0.0999755859375."""
    content, _ = single("LeakyRelu", {"x": np.float16([-1])}, [TensorProto.FLOAT16], {"alpha": 0.1})
    model = bittrue.load(content)
    x = np.float16([-3.002])
    here, there = (model.prepare(name).run(x)["y0"] for name in ("onnxruntime", "onnxruntime@aarch64"))
    assert there == np.float16(np.float32(x) * np.float32(0.0999755859375))
    assert here == np.float16(np.float32(x) * np.float32(0.1))


@pytest.mark.parametrize(("domain", "approximate"), [("", "none"), ("", "tanh"), (MICROSOFT, "none")])
def test_gelu_has_a_kernel_there(domain: str, approximate: str) -> None:
    """Elsewhere other operators define it, as they do the one of com.microsoft everywhere."""
    attributes = {} if domain else {"approximate": approximate}
    content, _ = single("Gelu", {"x": np.zeros(9, np.float16)}, [TensorProto.FLOAT16], attributes, domain=domain)
    steps = {
        name: [step.operator for step in bittrue.load(content).prepare(name).plan.steps]
        for name in ("onnxruntime", "onnxruntime@aarch64")
    }
    assert "gelu" not in steps["onnxruntime"]
    assert (steps["onnxruntime@aarch64"] == ["convert", "gelu", "convert"]) == (domain == "")


def test_windows_that_reach_beyond_their_padding() -> None:
    """Sums round to binary16, 2048 + 1 = 2048, but where padding counts and windows reach beyond it: 2051 / 3."""
    x = np.float16([2048, 1, 1, 1]).reshape(1, 1, 4)
    found = []
    for ceil_mode, padded in ((0, 0), (0, 1), (1, 0), (1, 1)):
        attributes = {"kernel_shape": [3], "strides": [3], "ceil_mode": ceil_mode, "count_include_pad": padded}
        content, _ = single("AveragePool", {"x": x}, [TensorProto.FLOAT16], attributes, opset=11)
        found.append(bittrue.load(content).prepare("onnxruntime@aarch64").run(x)["y0"].ravel()[0])
    assert found == [682.5, 682.5, 682.5, 683.5]


def _steps(nodes: list[Any], inputs: dict[str, np.ndarray], opset: int) -> dict[str, Any]:
    """By operator, the last ones of each."""
    content, _ = build(nodes, inputs, {"y": TensorProto.FLOAT16}, opset=opset)
    return {step.operator: step for step in bittrue.load(content).prepare("onnxruntime@aarch64").plan.steps}


@pytest.mark.parametrize("opset", [13, 16, 22])
def test_leaky_relu_has_a_kernel_where_it_has_a_definition(opset: int) -> None:
    """Elsewhere it is carried out by its definition from set 16 on."""
    nodes = [helper.make_node("LeakyRelu", ["x"], ["y"])]
    assert list(_steps(nodes, {"x": np.zeros(9, np.float16)}, opset)) == ["convert", "leaky_relu"]


@pytest.mark.parametrize("also_read", [False, True])
def test_sums_before_a_normalization_are_its_own(also_read: bool) -> None:
    """Seen: SkipLayerNormalization, which widens what it adds up. A sum that others read, too, is rounded."""
    inputs = {name: np.zeros((1, 2, 8), np.float16) for name in "ab"} | {"s": np.ones(8, np.float16)}
    nodes = [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("LayerNormalization", ["t", "s"], ["n"])]
    nodes.append(helper.make_node("Mul", ["n", "t"], ["y"]) if also_read else helper.make_node("Relu", ["n"], ["y"]))
    steps = _steps(nodes, inputs, 17)
    assert (steps["layer_normalization"].inputs[0] in steps["add"].outputs) == (not also_read)


@pytest.mark.parametrize(("row", "apart"), [((8,), False), ((2, 8), True)])
def test_gelu_of_a_sum_with_a_vector_is_widened(row: tuple[int, ...], apart: bool) -> None:
    """Seen: BiasGelu, which has no kernel."""
    inputs = {"a": np.zeros((2, 8), np.float16), "b": np.zeros(row, np.float16)}
    nodes = [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("Gelu", ["t"], ["y"])]
    steps = _steps(nodes, inputs, 20)
    assert (steps["gelu"].inputs[0] in steps["add"].outputs) == (not apart)
