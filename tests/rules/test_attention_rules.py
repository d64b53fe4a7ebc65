"""Rules of attention: against softmax in binary64, and apart.

Slots: attention.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bittrue.rules import attention, real_product, real_softmax
from bittrue.rules.attention import Head

_PRODUCT = real_product.RULES["binary32_fused_blocks"]
_SOFTMAX = real_softmax.RULES["binary32_polynomial_16_lanes"]


def _head(queries: int, size: int) -> Head:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, size)).astype(np.float32) for n in (queries, 90, 90))
    return Head(q, k, v, 0.25)


@pytest.mark.parametrize("name", attention.RULES)
@pytest.mark.parametrize("queries", [1, 5])
def test_rules_are_near_real_numbers(name: str, queries: int) -> None:
    head = _head(queries, 700)
    scores = 0.25 * head.q.astype(np.float64) @ head.k.astype(np.float64).T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True) @ head.v.astype(np.float64)
    found = attention.RULES[name].apply(head, _PRODUCT, _SOFTMAX).result
    assert np.abs(found - expected).max() < (1e-2 if name.endswith("halves") else 1e-4)


def test_attention_rules_are_told_apart() -> None:
    head = _head(5, 700)
    found = {name: rule.apply(head, _PRODUCT, _SOFTMAX).result for name, rule in attention.RULES.items()}
    for one, other in combinations(found, 2):
        assert not np.array_equal(found[one], found[other]), (one, other)
