"""qlinear_matmul: random one-node models against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from support.onnx_models import KIND, cases, check, integers, scale, single, zero_point

U8, S8 = np.uint8, np.int8


@pytest.mark.parametrize("part", range(2))
def test_random_models(request: pytest.FixtureRequest, part: int) -> None:
    outcomes = set()
    for rng in cases(request, part, 2):
        first, second, out = [(U8, U8, U8), (U8, S8, U8), (S8, S8, S8)][rng.integers(3)]
        m, k, n = (int(v) for v in rng.integers(1, 20, 3))
        batch = tuple(int(v) for v in rng.integers(1, 4, rng.integers(3)))
        columns = (n,) if rng.random() < 0.4 else ()
        inputs = {
            "a": integers(rng, (*batch, m, k), first),
            "a_scale": scale(rng),
            "a_zero": zero_point(rng, first),
            "b": integers(rng, (k, n) if rng.random() < 0.6 else (*batch, k, n), second),
            "b_scale": scale(rng, columns),
            "b_zero": zero_point(rng, second, columns),
            "y_scale": scale(rng) * np.float32(16 * k),
            "y_zero": zero_point(rng, out),
        }
        constants = [name for name in inputs if name != "a" and (name != "b" or rng.random() < 0.7)]
        if rng.random() < 0.1:
            constants = []
        content, feeds = single("QLinearMatMul", inputs, [KIND[np.dtype(out)]], constants=constants)
        outcomes.add(check(content, feeds))
    assert "equal" in outcomes
