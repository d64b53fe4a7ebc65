"""Convolutions of real numbers and pools over three axes, with the runtime's order of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.native import needs_native
from support.onnx_models import KIND, Checks, integers, single


def _convolution(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Filters of a few taps, now and then of a single channel, a single filter or as large as the image."""
    groups = int(rng.choice([1, 1, 2, 5]))
    depth, filters = int(rng.choice([1, 3, 8, 16, 40])), int(rng.choice([1, 2, 7, 16, 45]))
    sizes, taps = rng.integers(1, 9, 3), rng.integers(1, 4, 3)
    if rng.random() < 0.15:
        taps = sizes
    attributes: dict[str, Any] = {"group": groups}
    if rng.random() < 0.5:
        attributes["strides"] = rng.integers(1, 4, 3).tolist()
    if rng.random() < 0.3:
        attributes["dilations"] = rng.integers(1, 3, 3).tolist()
    if rng.random() < 0.6:
        attributes["pads"] = rng.integers(0, 3, 6).tolist()
    inputs: dict[str, np.ndarray | None] = {
        "x": rng.standard_normal((int(rng.integers(1, 3)), groups * depth, *sizes)).astype(np.float32),
        "w": rng.standard_normal((groups * filters, depth, *taps)).astype(np.float32),
    }
    if rng.random() < 0.5:
        inputs["b"] = rng.standard_normal(groups * filters).astype(np.float32)
    constants = [name for name in inputs if name != "x"] if rng.random() < 0.8 else []
    return single("Conv", inputs, [TensorProto.FLOAT], attributes, constants=constants)


def test_random_convolutions(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        checks.add(*_convolution(rng))
    assert "equal" in checks.outcomes


def _pool(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Largest elements of real numbers and of bytes; averages of real numbers."""
    operator = str(rng.choice(["MaxPool", "MaxPool", "AveragePool"]))
    shape, taps = (int(rng.integers(1, 3)), int(rng.integers(1, 4)), *rng.integers(1, 8, 3)), rng.integers(1, 4, 3)
    attributes: dict[str, Any] = {"kernel_shape": taps.tolist()}
    if rng.random() < 0.7:
        attributes["strides"] = rng.integers(1, 4, 3).tolist()
    if rng.random() < 0.6:
        attributes["pads"] = [int(rng.integers(0, size)) for size in (*taps, *taps)]
    if rng.random() < 0.3:
        attributes["ceil_mode"] = 1
    x = rng.standard_normal(shape).astype(np.float32)
    if operator == "AveragePool":
        attributes |= {"count_include_pad": 1} if rng.random() < 0.5 else {}
    elif rng.random() < 0.4:
        x = integers(rng, shape, np.dtype(rng.choice(["u1", "i1"])))
    else:
        attributes |= {"dilations": rng.integers(1, 3, 3).tolist()} if rng.random() < 0.3 else {}
        x = np.rint(x) + np.float32(0)
    return single(operator, {"x": x}, [KIND[x.dtype]], attributes, opset=int(rng.choice([12, 18, 19])))


def test_random_pools(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        checks.add(*_pool(rng))
    assert "equal" in checks.outcomes


@needs_native
def test_sums_over_three_axes_are_native() -> None:
    rng = np.random.default_rng(1)
    for filters, taps in ((1, 3), (7, 3), (16, 1), (16, 4)):
        x = rng.standard_normal((1, 3, 4, 4, 4)).astype(np.float32)
        w = rng.standard_normal((filters, 3, taps, taps, taps)).astype(np.float32)
        content, _ = single("Conv", {"x": x, "w": w}, [TensorProto.FLOAT], {}, constants=["w"])
        assert not bittrue.load(content).prepare("onnxruntime", executor="native").missing


@needs_native
@pytest.mark.parametrize(
    ("operator", "dtype"), [("MaxPool", np.float32), ("MaxPool", np.int8), ("AveragePool", np.float32)]
)
def test_pools_over_three_axes_are_native(operator: str, dtype: type) -> None:
    x = np.zeros((1, 2, 4, 4, 4), dtype)
    content, _ = single(operator, {"x": x}, [KIND[x.dtype]], {"kernel_shape": [2, 2, 2], "pads": [1] * 6})
    assert not bittrue.load(content).prepare("onnxruntime", executor="native").missing
