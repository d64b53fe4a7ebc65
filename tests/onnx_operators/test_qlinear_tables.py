"""concatenation, select, logistic and leaky_relu of operands with scales: random one-node models against
ONNX Runtime, and against real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from bittrue.arithmetic import fused
from support.onnx_models import HERE, KIND, MICROSOFT, Checks, check, integers, run_runtime, scale, single, zero_point


def _scale(rng: np.random.Generator, far_apart: bool) -> np.ndarray:
    return np.asarray(np.float32(2.0 ** rng.uniform(-80, 80))) if far_apart else scale(rng)


def _type(rng: np.random.Generator) -> Any:
    return (np.uint8, np.int8)[rng.integers(2)]


def _concat(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    dtype, far_apart = _type(rng), rng.random() < 0.1
    shape = [int(v) for v in rng.integers(1, 7, rng.integers(1, 5))]
    axis = int(rng.integers(len(shape)))
    inputs = {"y_scale": _scale(rng, far_apart), "y_zero": zero_point(rng, dtype)}
    for i in range(rng.integers(1, 6)):
        sizes = [*shape[:axis], int(rng.integers(1, 9)), *shape[axis + 1 :]]
        inputs[f"x{i}"] = integers(rng, sizes, dtype)
        same = rng.random() < 0.3
        inputs[f"scale{i}"] = inputs["y_scale"] if same else _scale(rng, far_apart)
        inputs[f"zero{i}"] = inputs["y_zero"] if same else zero_point(rng, dtype)
    return inputs, {"axis": axis - len(shape) if rng.random() < 0.5 else axis}


def _where(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    dtype, far_apart = _type(rng), rng.random() < 0.1
    common = tuple(int(v) for v in rng.integers(1, 7, rng.integers(1, 5)))
    shapes = []
    for _ in range(3):
        kept = tuple(size if rng.random() < 0.7 else 1 for size in common) if rng.random() < 0.5 else common
        shapes.append(kept[rng.integers(len(kept) + 1) :] if rng.random() < 0.2 else kept)
    scales, zeros = (
        [make() for _ in range(3)] for make in (lambda: _scale(rng, far_apart), lambda: zero_point(rng, dtype))
    )
    for i in range(2):
        if rng.random() < 0.3:
            scales[i], zeros[i] = scales[2], zeros[2]
    return {
        "condition": np.asarray(rng.random(shapes[0]) < 0.5),
        "x": integers(rng, shapes[1], dtype),
        "x_scale": scales[0],
        "x_zero": zeros[0],
        "y": integers(rng, shapes[2], dtype),
        "y_scale": scales[1],
        "y_zero": zeros[1],
        "z_scale": scales[2],
        "z_zero": zeros[2],
    }, {}


def _unary(rng: np.random.Generator) -> dict[str, np.ndarray]:
    dtype, far_apart = _type(rng), rng.random() < 0.1
    x = np.arange(256).astype(np.uint8).view(dtype) if rng.random() < 0.7 else integers(rng, (3, 7), dtype)
    return {
        "x": x,
        "x_scale": _scale(rng, far_apart),
        "x_zero": zero_point(rng, dtype),
        "y_scale": _scale(rng, far_apart),
        "y_zero": zero_point(rng, dtype),
    }


def _sigmoid(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    inputs = _unary(rng)
    if rng.random() < 0.7:
        inputs["y_scale"] = np.asarray(np.float32(rng.choice([1 / 256, 1 / 255, 1 / 128, 0.0039, 1 / 300])))
    return inputs, {}


def _leaky_relu(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if rng.random() < 0.1:
        return _unary(rng), {}
    return _unary(rng), {"alpha": float(np.float32(rng.choice([rng.uniform(-2, 2), 0.125, 0.5, 0.0, 1.0, 0.1, -0.5])))}


CASES: dict[str, Callable[[np.random.Generator], tuple[dict[str, np.ndarray], dict[str, Any]]]] = {
    "QLinearConcat": _concat,
    "QLinearWhere": _where,
    "QLinearSigmoid": _sigmoid,
    "QLinearLeakyRelu": _leaky_relu,
}
TENSORS = {"condition", "x", "y", *(f"x{i}" for i in range(9))}


def _model(rng: np.random.Generator, operator: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
    constants = [] if rng.random() < 0.1 else [name for name in inputs if name not in TENSORS]
    dtype = next(array.dtype for name, array in inputs.items() if name.startswith("x"))
    return single(operator, inputs, [KIND[dtype]], attributes, domain=MICROSOFT, constants=constants)


@pytest.mark.parametrize("operator", CASES)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        checks.add(*_model(rng, operator, *CASES[operator](rng)))


def test_bits_of_the_logistic_function() -> None:
    """ONNX Runtime's Sigmoid of real numbers is the function of its tables."""
    rng = np.random.default_rng(0)
    x = [rng.uniform(-20, 20, 200_000), rng.standard_normal(200_000), 10.0 ** rng.uniform(-40, 3, 50_000)]
    values = np.concatenate(x).astype(np.float32)
    content, _ = single("Sigmoid", {"x": values}, [TensorProto.FLOAT])
    found = run_runtime(content, [values])
    assert isinstance(found, dict)
    wanted = fused.logistic_quotient(values)
    if HERE.endswith("@aarch64"):
        wanted = np.minimum(wanted, np.float32(1))
    assert found["y0"].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("operator", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_absent_zero_point(operator: str) -> None:
    rng = np.random.default_rng(1)
    inputs = {**_unary(rng), "x_zero": None}
    assert check(*_model(rng, operator, inputs, {})) == "equal"


def _requantized(q: np.ndarray, pair: tuple[Any, Any], output: tuple[Any, Any], function: Any = None) -> np.ndarray:
    info, (s, z), (t, w) = (
        np.iinfo(q.dtype),
        *[(Fraction(float(s)), int(z)) for s, z in (pair, output)],
    )
    stored = []
    for value in q.reshape(-1).tolist():
        real = (value - z) * s
        rounded = round((real if function is None else function(real)) / t) + w
        stored.append(min(max(rounded, info.min), info.max))
    return np.array(stored, q.dtype).reshape(q.shape)


def _series(x: Fraction) -> Fraction:
    """1 / (1 + e^-x) by the series of e^(|x| / 2^n), squared n times, with 300 bits."""
    magnitude, halvings = min(abs(x), Fraction(200)), 12
    y, unit = magnitude / 2**halvings, 2**300
    term = total = Fraction(1)
    for i in range(1, 60):
        term = Fraction(int(term * y / i * unit), unit)
        total += term
    for _ in range(halvings):
        total = Fraction(int(total * total * unit), unit)
    return total / (1 + total) if x >= 0 else 1 / (1 + total)


def _expected(operator: str, inputs: dict[str, Any], attributes: dict[str, Any]) -> np.ndarray:
    if operator == "QLinearConcat":
        output = inputs["y_scale"], inputs["y_zero"]
        count = (len(inputs) - 2) // 3
        parts = [_requantized(inputs[f"x{i}"], (inputs[f"scale{i}"], inputs[f"zero{i}"]), output) for i in range(count)]
        return np.concatenate(parts, attributes["axis"])
    if operator == "QLinearWhere":
        output = inputs["z_scale"], inputs["z_zero"]
        x, y = (_requantized(inputs[n], (inputs[f"{n}_scale"], inputs[f"{n}_zero"]), output) for n in "xy")
        return np.where(inputs["condition"], x, y)
    pair, output = (inputs["x_scale"], inputs["x_zero"]), (inputs["y_scale"], inputs["y_zero"])
    if operator == "QLinearSigmoid":
        return _requantized(inputs["x"], pair, output, _series)
    alpha = Fraction(float(np.float32(attributes.get("alpha", 0.01))))
    return _requantized(inputs["x"], pair, output, lambda real: real if real >= 0 else alpha * real)


@pytest.mark.parametrize("operator", CASES)
def test_specification(request: pytest.FixtureRequest, operator: str) -> None:
    # The sigmoid's oracle is slow.
    checks = Checks(request, usual=10 if operator == "QLinearSigmoid" else 75, only="equal")
    for rng in checks:
        inputs, attributes = CASES[operator](rng)
        if operator == "QLinearSigmoid":
            inputs["x"] = inputs["x"].reshape(-1)[::9]
        content, feeds = _model(rng, operator, inputs, attributes)
        expected = {"y0": _expected(operator, inputs, attributes)}
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)


def test_the_usual_slope_is_a_binary32_number() -> None:
    """-100 / 64 * 0.01 / (1 / 32) is -0.5 but for what the slope is rounded by: 0.01 becomes 0.00999999977."""
    scale = {"x_scale": np.float32(1 / 64), "x_zero": np.int8(0), "y_scale": np.float32(1 / 32), "y_zero": np.int8(127)}
    inputs = {"x": np.int8([-100]), **scale}
    content, _ = _model(np.random.default_rng(3), "QLinearLeakyRelu", inputs, {})
    session = bittrue.load(content).prepare("onnx")
    (value,) = session.run({port.name: np.asarray(inputs[port.name]) for port in session.inputs}).values()
    assert value.tolist() == [127]


def test_concat_needs_an_axis() -> None:
    inputs = _concat(np.random.default_rng(1))[0]
    content, feeds = _model(np.random.default_rng(1), "QLinearConcat", inputs, {})
    assert check(content, feeds) == "refused"
