"""softmax of operands with scales: random one-node models against ONNX Runtime, and against fractions."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bittrue
from support.onnx_models import KIND, MICROSOFT, Checks, check, integers, scale, single, zero_point

OUTPUT_SCALES = (1 / 256, 1 / 255, 0.0039, 1 / 128, 0.3, 1e-3, 1e-4, 1.5)


def _case(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    dtype = (np.uint8, np.int8)[rng.integers(2)]
    shape = [int(v) for v in rng.integers(1, 9, rng.integers(1, 5))]
    if rng.random() < 0.2:
        shape[-1] = int(rng.integers(1, 300))
    x = integers(rng, shape, dtype)
    if rng.random() < 0.6:
        # Near each other, so that many have a share.
        x = (int(rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max - 20)) + rng.integers(0, 20, shape)).astype(
            dtype
        )
    wild = rng.random()
    inputs = {
        "x": x,
        "x_scale": scale(rng) if wild < 0.9 else np.asarray(np.float32(2.0 ** rng.uniform(-70, 70))),
        "x_zero": zero_point(rng, dtype),
        "y_scale": np.asarray(np.float32(rng.choice(OUTPUT_SCALES))) if rng.random() < 0.8 else scale(rng),
        "y_zero": zero_point(rng, dtype),
    }
    axis = int(rng.integers(-len(shape), len(shape)))
    return inputs, {"axis": axis, "opset": int(rng.choice([1, 11, 12, 13, 21]))}


def _single(inputs: dict[str, Any], attributes: dict[str, Any], rng: np.random.Generator) -> Any:
    constants = [name for name in inputs if name != "x"] if rng.random() < 0.9 else []
    kind = KIND[inputs["x"].dtype]
    return single("QLinearSoftmax", inputs, [kind], attributes, domain=MICROSOFT, constants=constants)


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        checks.add(*_single(*_case(rng), rng))


@pytest.mark.parametrize(("length", "scale", "output"), [(2, 0.101357736, 0.3), (2, 2.0**-7, 0.3), (10, 0.05, 1 / 256)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_many_rows(dtype: Any, length: int, scale: float, output: float) -> None:
    """The first two lengths and scales show that the logarithm of the table is binary32's."""
    rng = np.random.default_rng(11)
    inputs = {
        "x": integers(rng, (100_000 // length, length), dtype),
        "x_scale": np.asarray(np.float32(scale)),
        "x_zero": np.asarray(dtype(3)),
        "y_scale": np.asarray(np.float32(output)),
        "y_zero": np.asarray(dtype(5)),
    }
    content, feeds = _single(inputs, {"axis": -1, "opset": 13}, rng)
    assert check(content, feeds, native=False) == "equal"


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_odd_scales(dtype: Any) -> None:
    rng = np.random.default_rng(12)
    for first in (0.1, -0.1, 0.0, np.inf, np.nan, 1e-45, 3e38):
        for second in (0.01, -0.01, 0.0, np.inf, np.nan, 1e-45, 3e38):
            inputs = {
                "x": integers(rng, (5, 7), dtype),
                "x_scale": np.asarray(np.float32(first)),
                "x_zero": zero_point(rng, dtype),
                "y_scale": np.asarray(np.float32(second)),
                "y_zero": zero_point(rng, dtype),
            }
            assert check(*_single(inputs, {"axis": -1, "opset": 13}, rng)) == "equal"


def _exact(inputs: dict[str, np.ndarray], attributes: dict[str, Any]) -> np.ndarray:
    x = inputs["x"]
    axis = attributes["axis"] % x.ndim
    end = axis + 1 if attributes["opset"] >= 13 else x.ndim
    order = [*range(axis), *range(end, x.ndim), *range(axis, end)]
    moved = np.transpose(x, order)
    rows = moved.reshape(-1, int(np.prod(x.shape[axis:end])))
    s, t = (Fraction(float(inputs[name])) for name in ("x_scale", "y_scale"))
    zero, info = int(inputs["y_zero"]), np.iinfo(x.dtype)
    context, out = Context(prec=120), np.empty(rows.shape, x.dtype)
    for row, stored in zip(rows.astype(int), out, strict=True):
        exponents = [s * int(v - row.max()) for v in row]
        powers = [Fraction(context.exp(Decimal(e.numerator) / Decimal(e.denominator))) for e in exponents]
        total = sum(powers)
        stored[:] = [min(max(round(power / total / t) + zero, info.min), info.max) for power in powers]
    return np.transpose(out.reshape(moved.shape), np.argsort(order))


def test_specification(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        inputs, attributes = _case(rng)
        inputs["x"] = inputs["x"][tuple(slice(0, 4) for _ in inputs["x"].shape)]
        inputs["x_scale"] = np.minimum(inputs["x_scale"], np.float32(30))
        content, feeds = _single(inputs, attributes, rng)
        expected = {"y0": np.ascontiguousarray(_exact(inputs, attributes))}
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)


@pytest.mark.parametrize(
    ("attributes", "code"), [({"axis": 0}, "BT-ONNX-ATTRIBUTE"), ({"opset": 13}, "BT-SHAPE-EMPTY")]
)
def test_refused(attributes: dict[str, int], code: str) -> None:
    """An operator set is needed, and elements: ONNX Runtime gives an output without a shape otherwise."""
    one, zero = np.asarray(np.float32(1)), np.asarray(np.uint8(0))
    inputs = {"x": np.zeros((2, 0, 3), np.uint8), "x_scale": one, "x_zero": zero, "y_scale": one, "y_zero": zero}
    content, _ = single("QLinearSoftmax", inputs, [2], attributes, domain=MICROSOFT, constants=list(inputs)[1:])
    with pytest.raises(bittrue.BittrueError) as caught:
        bittrue.load(content).prepare("onnxruntime")
    assert caught.value.code == code
