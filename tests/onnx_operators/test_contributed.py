"""Operators of com.microsoft with kernels of their own, and rare types: random one-node models against ONNX Runtime.

Stems: linear_attention causal_conv root_mean_square.
"""

from __future__ import annotations

import pytest

from support import contributed_models, wide_models
from support.onnx_models import Checks

_GENERATORS = {**contributed_models.GENERATORS, **wide_models.GENERATORS}


@pytest.mark.parametrize("operator", _GENERATORS)
def test_random_models(request: pytest.FixtureRequest, operator: str) -> None:
    checks = Checks(request, usual=10)
    for rng in checks:
        checks.add(*_GENERATORS[operator](rng))
    assert "equal" in checks.outcomes
