"""add and mul of operands with scales: random one-node models against ONNX Runtime, and against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.onnx_models import KIND, MICROSOFT, Checks, check, integers, scale, single, zero_point

OPERATORS = ("QLinearAdd", "QLinearMul")


def _shapes(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast together: equal, with axes of 1 and missing axes on either side, scalars."""
    common = tuple(int(v) for v in rng.integers(1, 8, rng.integers(1, 5)))
    if rng.random() < 0.4:
        common = (*common[:-1], int(rng.integers(1, 70)))
    found = []
    for _ in range(2):
        kept = tuple(size if rng.random() < 0.7 else 1 for size in common) if rng.random() < 0.6 else common
        found.append(kept[rng.integers(len(kept) + 1) :] if rng.random() < 0.2 else kept)
    return found[0], found[1]


def _inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    dtype = (np.uint8, np.int8)[rng.integers(2)]
    first, second = _shapes(rng)
    far_apart = rng.random() < 0.15

    def any_scale() -> np.ndarray:
        return np.asarray(np.float32(2.0 ** rng.uniform(-70, 70))) if far_apart else scale(rng)

    inputs: dict[str, np.ndarray] = {
        "a": integers(rng, first, dtype),
        "a_scale": any_scale(),
        "a_zero": zero_point(rng, dtype),
        "b": integers(rng, second, dtype),
        "b_scale": any_scale(),
        "b_zero": zero_point(rng, dtype),
        "y_scale": any_scale(),
        "y_zero": zero_point(rng, dtype),
    }
    if rng.random() < 0.05:
        del inputs["y_zero"]
    return inputs


@pytest.mark.parametrize("operator", OPERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        inputs = _inputs(rng)
        constants = [name for name in inputs if name not in ("a", "b") or (name == "b" and rng.random() < 0.2)]
        if rng.random() < 0.1:
            constants = []
        content, feeds = single(operator, inputs, [KIND[inputs["a"].dtype]], domain=MICROSOFT, constants=constants)
        checks.add(content, feeds)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_of_bytes(operator: str) -> None:
    """All 65536 pairs, scales that make ties, and those for which the order of the two products shows."""
    rng = np.random.default_rng(5)
    quantized = np.arange(256).astype(np.uint8)
    for scales in [(0.5, 0.25, 1.0), (0.125, 0.125, 0.0625), (0.05, 0.07, 0.1), (2.0**-20, 3.0, 2.0**-24 * 3)]:
        for dtype in (np.uint8, np.int8):
            zeros = [zero_point(rng, dtype) for _ in range(3)]
            column, row = quantized.view(dtype).reshape(256, 1), quantized.view(dtype).reshape(1, 256)
            for a, b in ((column, row), (np.tile(column, (1, 256)), row), (column, np.tile(row, (256, 1)))):
                inputs = {
                    "a": a,
                    "a_scale": np.asarray(np.float32(scales[0])),
                    "a_zero": zeros[0],
                    "b": b,
                    "b_scale": np.asarray(np.float32(scales[1])),
                    "b_zero": zeros[1],
                    "y_scale": np.asarray(np.float32(scales[2])),
                    "y_zero": zeros[2],
                }
                constants = [name for name in inputs if name not in ("a", "b")]
                kind = KIND[np.dtype(dtype)]
                content, feeds = single(operator, inputs, [kind], domain=MICROSOFT, constants=constants)
                assert check(content, feeds, native=False) == "equal"


def _exact(operator: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The schema's formula in fractions, quantized: ties to even, zero point, saturation."""
    values = {"y_zero": np.int64(0), **inputs}
    a, b = np.broadcast_arrays(values["a"], values["b"])
    s = [Fraction(float(values[f"{name}_scale"])) for name in "aby"]
    z = [int(values[f"{name}_zero"]) for name in "aby"]
    info = np.iinfo(a.dtype)
    out = np.empty(a.shape, a.dtype)
    for index in np.ndindex(a.shape):
        one, two = int(a[index]) - z[0], int(b[index]) - z[1]
        real = one * s[0] + two * s[1] if operator == "QLinearAdd" else one * s[0] * two * s[1]
        out[index] = min(max(round(real / s[2]) + z[2], info.min), info.max)
    return out


@pytest.mark.parametrize("operator", OPERATORS)
def test_specification(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, only="equal")
    for rng in checks:
        inputs = _inputs(rng)
        a, b = inputs["a"], inputs["b"]
        if np.broadcast(a, b).size > 300:
            inputs["a"], inputs["b"] = a.reshape(-1)[:300], b.reshape(-1)[:1]
        constants = [name for name in inputs if name not in ("a", "b")] if rng.random() < 0.9 else []
        content, feeds = single(operator, inputs, [KIND[a.dtype]], domain=MICROSOFT, constants=constants)
        expected = {"y0": _exact(operator, inputs)}
        checks.add(content, feeds, numerics="onnx", expected=lambda found=expected: found)


def test_scales_that_are_vectors_are_refused() -> None:
    rng = np.random.default_rng(1)
    inputs = _inputs(rng)
    for name in inputs:
        if "_" in name:
            changed = {**inputs, name: inputs[name].reshape(1)}
            constants = [name for name in inputs if "_" in name]
            content, feeds = single(
                "QLinearAdd", changed, [KIND[inputs["a"].dtype]], domain=MICROSOFT, constants=constants
            )
            assert check(content, feeds) == "refused"
