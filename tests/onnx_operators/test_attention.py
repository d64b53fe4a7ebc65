"""Attention and what goes with it: random one-node models against ONNX Runtime.

Stems: attention rotary_embedding.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from support.attention_models import GENERATORS, normal
from support.onnx_models import MICROSOFT, Checks, check, needs_wide, single

pytestmark = needs_wide


@pytest.mark.parametrize("operator", GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, usual=15)
    for rng in checks:
        checks.add(*GENERATORS[operator](rng))
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan])
def test_many_keys_in_blocks(odd: float) -> None:
    """Heads of 1000 and 300 columns leave room for 50 keys."""
    rng = np.random.default_rng(3)
    query, key, value = normal(rng, 1, 5, 1000), normal(rng, 1, 120, 1000), normal(rng, 1, 120, 300)
    key[0, 60, 0] = odd
    inputs = {"q": query, "k": key, "v": value}
    assert (
        check(*single("MultiHeadAttention", inputs, [TensorProto.FLOAT], {"num_heads": 1}, domain=MICROSOFT)) == "equal"
    )
