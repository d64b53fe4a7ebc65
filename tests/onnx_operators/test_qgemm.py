"""matmul of quantized matrices with an addend (QGemm): random one-node models against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from support.onnx_models import KIND, MICROSOFT, Checks, integers, natively, odd_scale, scale, single, zero_point

U8, S8 = np.uint8, np.int8


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        first, second = [(U8, U8), (U8, S8), (S8, S8)][rng.integers(3)]
        m, k, n = (int(v) for v in rng.integers(1, 20, 3))
        if rng.random() < 0.05:
            m, n = (0, n) if rng.random() < 0.5 else (m, 0)
        attributes: dict[str, float | int] = {}
        if rng.random() < 0.5:
            attributes["alpha"] = float(rng.choice([0.3, 1.0, 2.0, -0.7, 0.0]))
        trans_a, trans_b = int(rng.random() < 0.3), int(rng.random() < 0.5)
        if trans_a or rng.random() < 0.5:
            attributes["transA"] = trans_a
        if trans_b or rng.random() < 0.5:
            attributes["transB"] = trans_b
        several = ((), (1,), (n,), (n,), (n + 1,))[int(rng.choice(5, p=[0.3, 0.18, 0.3, 0.2, 0.02]))]
        points = several if rng.random() < 0.95 else (1,)
        inputs: dict[str, np.ndarray | None] = {
            "a": integers(rng, (k, m) if trans_a else (m, k), first),
            "a_scale": odd_scale(rng, scale(rng, ((), (1,))[rng.integers(2)])),
            "a_zero": zero_point(rng, first),
            "b": integers(rng, (n, k) if trans_b else (k, n), second),
            "b_scale": odd_scale(rng, scale(rng, several)),
            "b_zero": zero_point(rng, second, points),
        }
        addends = [(n,), (m, n), (1, n), (m, 1), (1,), (), (1, 1), (m,)]
        if rng.random() < 0.6:
            shape = addends[rng.integers(len(addends))]
            inputs["c"] = rng.integers(-(2**16), 2**16, shape).astype(np.int32)
        drawn = rng.random()
        if drawn < 0.85:
            inputs.setdefault("c", None)
            inputs["y_scale"] = odd_scale(rng, scale(rng) * np.float32(16 * k)) if drawn < 0.8 else None
        if drawn < 0.6 or (drawn >= 0.8 and drawn < 0.85):
            inputs["y_zero"] = zero_point(rng, first)
        elif drawn < 0.85 and inputs["y_scale"] is None:
            del inputs["y_scale"]
        kind = KIND[np.dtype(first if "y_zero" in inputs else np.float32)]
        known = rng.random()
        constants = [name for name in inputs if name != "a" and (name != "b" or known < 0.7)] if known > 0.1 else []
        content, feeds = single("QGemm", inputs, [kind], attributes, domain=MICROSOFT, constants=constants)
        checks.add(content, feeds)
    assert set(checks.outcomes) == {"equal", "refused"}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("addend", [(), (9,), (5, 1), (5, 9)])
def test_products_are_native(addend: tuple[int, ...], transposed: bool) -> None:
    """Addends that differ by row, and transposed factors: every kernel gives the reference's bytes."""
    rng = np.random.default_rng(len(addend))
    for known in (True, False):
        inputs: dict[str, np.ndarray | None] = {
            "a": integers(rng, (7, 5) if transposed else (5, 7), U8),
            "a_scale": scale(rng),
            "a_zero": zero_point(rng, U8),
            "b": integers(rng, (9, 7), S8),
            "b_scale": scale(rng, (9,)),
            "b_zero": zero_point(rng, S8, (9,)),
            "c": rng.integers(-1000, 1000, addend).astype(np.int32),
        }
        constants = [name for name in inputs if name != "a" and (known or name not in "bc")]
        attributes = {"transA": int(transposed), "transB": 1}
        content, feeds = single(
            "QGemm", inputs, [KIND[np.dtype(np.float32)]], attributes, domain=MICROSOFT, constants=constants
        )
        natively(content, feeds)
