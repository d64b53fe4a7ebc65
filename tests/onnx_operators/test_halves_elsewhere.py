"""Kernels of binary16 numbers on aarch64: which nodes `onnxruntime@aarch64` calls others.


Answers of that processor are in tests/data/recorded/onnxruntime@aarch64.npz.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.onnx_models import single

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
        ("Erf", "x", {}, True),
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
