"""Rules of attention: against softmax and products in binary64, and apart.

Slots: attention cached_product state_step.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bittrue.rules import attention, cached_product, real_product, real_softmax, state_step
from bittrue.rules.attention import Head

_PRODUCT = real_product.RULES["binary32_fused_blocks"]
_SOFTMAX = real_softmax.RULES["binary32_polynomial_16_lanes"]


def _head(queries: int, size: int, keys: int = 90) -> Head:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, size)).astype(np.float32) for n in (queries, keys, keys))
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
    """A single query has ways of its own; sums of several blocks meet each other; some scores are capped."""
    heads = [_head(5, 700), _head(1, 700), _head(20, 300, 900), replace(_head(60, 16, 900), cap=5.0)]
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


def test_products_of_a_cache_are_told_apart() -> None:
    rng = np.random.default_rng(4)
    q, cache = rng.standard_normal((3, 64)).astype(np.float32), rng.integers(-128, 128, (7, 64)).astype(np.float32)
    found = [
        rule.scores(q, cache, np.full(1, 0.1, np.float32), False, np.float32(1))
        for rule in cached_product.RULES.values()
    ]
    for one, other in combinations(found, 2):
        assert not np.array_equal(one, other)


@pytest.mark.parametrize(("bits", "scales"), [(8, 1), (8, 8), (4, 1), (4, 8)])
def test_columns_behind_whole_vectors_are_fused_or_not(bits: int, scales: int) -> None:
    """Scores are fused of 4 bits with one scale alone, sums of values always: 1 + 2^-11 and 2^-24 is the square."""
    one, square = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-11)
    rule, scaled = cached_product.RULES["binary32_16_lanes"], scales > 1 or bits == 4
    row, cache = np.zeros((1, 8), np.float32), np.full((1, 8), 1 if scaled else one)
    row[0, :2] = -one, one
    of_columns = np.full(scales, one if scaled else 1, np.float32)
    score = rule.scores(row, cache, of_columns, scaled, np.float32(1))[0, 0]
    assert score == (2.0**-24 if bits == 4 and scales == 1 else 0)
    found = rule.sums(row[:, 1:2], cache, of_columns, scaled, np.full((1, 8), -square))
    assert (found == 2.0**-24).all()


def _step(name: str, size: int, decays: bool, rate: np.float32 | None) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(5)
    state = rng.standard_normal((size, 64)).astype(np.float32)
    decay = rng.uniform(0.5, 1, (size, 1)).astype(np.float32) if decays else None
    key, value, queries = (rng.standard_normal(shape).astype(np.float32) for shape in (size, 64, (1, size)))
    product = _PRODUCT if name.endswith("in_turn") else None
    place = state_step.Place(decay, key, value, rate, queries, np.float32(0.5))
    found = state_step.RULES[name].apply(state, place, product)
    wide = state.astype(np.float64) * (1 if decay is None else decay)
    wide = wide + key[:, None] * (value if rate is None else rate * (value - key @ wide))
    return (*found, wide, 0.5 * queries @ wide)


_STATES = list(itertools.product((16, 64, 128), (False, True), (None, np.float32(0.7))))


@pytest.mark.parametrize("name", state_step.RULES)
@pytest.mark.parametrize(("size", "decays", "rate"), _STATES)
def test_states_are_near_real_numbers(name: str, size: int, decays: bool, rate: np.float32 | None) -> None:
    behind, read, real, real_read = _step(name, size, decays, rate)
    assert np.abs(behind - real).max() < 1e-3
    assert np.abs(read - real_read).max() < 1e-3


@pytest.mark.parametrize("pair", list(itertools.combinations(state_step.RULES, 2)))
def test_rules_of_states_are_told_apart(pair: tuple[str, str]) -> None:
    assert any(
        any(not np.array_equal(*both) for both in zip(*(_step(name, *state)[:2] for name in pair), strict=True))
        for state in _STATES
    )
