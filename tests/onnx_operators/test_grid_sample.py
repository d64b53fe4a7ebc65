"""grid_sample (GridSample of all versions, com.microsoft's too) against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.floating_models import reals
from support.onnx_models import MICROSOFT, Checks, check, single
from support.wide_models import doubled

MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def draw(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    opset = int(rng.choice([16, 20, 22]))
    axes = 3 if opset >= 20 and rng.random() < 0.3 else 2
    mode = str(rng.choice(list(MODES)[: 2 if axes == 3 else 3]))
    batch, channels = (int(v) for v in rng.integers(1, 4, 2))
    x = reals(rng, (batch, channels, *rng.integers(1, 7, axes)))
    grid = reals(rng, (batch, *rng.integers(1, 6, axes), axes), 1) * np.float32(rng.choice([0.5, 1, 3]))
    if rng.random() < 0.3:
        far = rng.choice([np.nan, np.inf, -np.inf, 1e7, -3e9, 1e12, 4e18, -9e18, 3e38], grid.shape)
        grid = np.where(rng.random(grid.shape) < 0.1, far, grid).astype(np.float32)
        x = np.where(rng.random(x.shape) < 0.05, np.float32(np.inf), x)
    attributes = {
        "mode": mode if opset >= 20 else MODES[mode],
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"])),
        "align_corners": int(rng.integers(2)),
    }
    domain = MICROSOFT if opset == 16 and rng.random() < 0.3 else ""
    return single("GridSample", {"x": x, "grid": grid}, [TensorProto.FLOAT], attributes, opset=opset, domain=domain)


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        checks.add(*draw(rng))
    assert "equal" in checks.outcomes


def test_doubles(request: pytest.FixtureRequest) -> None:
    """Sets before 20 have no kernel for them."""
    checks = Checks(request, usual=15)
    for rng in checks:
        checks.add(*doubled(draw(rng), rng))
    assert set(checks.outcomes) == {"equal", "refused"}


@pytest.mark.parametrize(
    ("shape", "grid", "attributes"),
    [
        ((2, 1, 3, 3), (1, 2, 2, 2), {}),
        ((1, 1, 3, 3), (1, 2, 2, 3), {}),
        ((1, 1, 3, 3, 3), (1, 2, 2, 2, 3), {"mode": "cubic"}),
        ((1, 1, 3, 3), (1, 2, 2, 2), {"mode": "bilinear"}),
        ((1, 1, 3, 3), (1, 2, 2, 2), {"padding_mode": "edge"}),
    ],
)
def test_what_does_not_fit(shape: tuple[int, ...], grid: tuple[int, ...], attributes: dict[str, str]) -> None:
    operands = {"x": np.ones(shape, np.float32), "grid": np.zeros(grid, np.float32)}
    content, feeds = single("GridSample", operands, [TensorProto.FLOAT], attributes, opset=20)
    assert check(content, feeds) == "refused"


# What the aarch64 wheel (1.31.1) gives for 36 numbers in turn, row by row, by mode and `align_corners`.
_MIRRORED = {
    ("nearest", 0): [19.0, 9.0, 6.0, 6.0, 30.0, 21.0],
    ("nearest", 1): [19.0, 9.0, 11.0, 17.0, 33.0, 20.0],
    ("linear", 0): [42.79999923706055, 18.5, 0.0, 0.0, 0.0, 0.0],
    ("linear", 1): [41.0, 18.25, 0.0, 0.0, 0.0, 0.0],
    ("cubic", 0): [23.544002532958984, 21.296875, 6.0, 18.0, 30.0, 19.512001037597656],
    ("cubic", 1): [24.78125, 33.166015625, 12.78125, 29.0, 33.0, 18.21875],
}


@pytest.mark.parametrize(("mode", "aligned"), _MIRRORED)
def test_places_far_away_are_mirrored_with_one_rounding_on_aarch64(mode: str, aligned: int) -> None:
    x = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)
    places = [[1e7, 0.3], [0.25, 1e7], [-3e9, -5.5], [1e12, -1e7], [3e7, 1e8], [-12345678, 0.1]]
    grid = np.float32([[places]])
    attributes = {"mode": mode, "padding_mode": "reflection", "align_corners": aligned}
    content, feeds = single("GridSample", {"x": x, "grid": grid}, [TensorProto.FLOAT], attributes, opset=20)
    model, wanted = bittrue.load(content), np.float32(_MIRRORED[mode, aligned]).tobytes()
    there, here = (model.prepare(name).run(*feeds)["y0"] for name in ("onnxruntime@aarch64", "onnxruntime"))
    assert there.tobytes() == wanted != here.tobytes()
