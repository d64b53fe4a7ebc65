"""Rules of attention: against softmax in binary64, and apart.

Slots: attention cached_product.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bittrue.rules import attention, cached_product, real_product, real_softmax
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
    """A single query has ways of its own."""
    heads = [_head(5, 700), _head(1, 700)]
    found = {
        name: [rule.apply(head, _PRODUCT, _SOFTMAX).result for head in heads] for name, rule in attention.RULES.items()
    }
    for one, other in combinations(found, 2):
        assert not all(map(np.array_equal, found[one], found[other])), (one, other)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("size", [8, 24, 64])
@pytest.mark.parametrize("name", cached_product.RULES)
def test_products_of_a_cache_are_near_real_numbers(name: str, size: int, scaled: bool) -> None:
    """One scale multiplies sums, or what they are made of."""
    rng = np.random.default_rng(2)
    rule, scales = cached_product.RULES[name], rng.uniform(0.5, 2, size if scaled else 1).astype(np.float32)
    a, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, size), (3, 7)))
    cache = rng.integers(-128, 128, (7, size)).astype(np.float32)
    real, begin = cache.astype(np.float64) * scales, np.ones((3, size), np.float32)
    for found, expected in (
        (rule.scores(a, cache, scales, scaled, np.float32(0.5)), 0.5 * a @ real.T),
        (rule.sums(weights, cache, scales, scaled, None), weights @ real),
        (rule.sums(weights, cache, scales, scaled, begin), weights @ real + 1),
    ):
        assert np.abs(found - expected).max() < 1e-3
