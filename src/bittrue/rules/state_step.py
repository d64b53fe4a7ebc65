"""Slot `state_step`: one place of a sequence decays a state, writes a key and a value to it, and reads it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import elementary, fused_polynomials
from ..arithmetic.floats import fused_multiply_add as fma
from ..records import dataclass
from .real_product import Layout, RealProductRule

# Numbers of a state from which on it is multiplied by the rule for matrices.
_LARGE = 4096
_LANES, _FOUR = 16, 4


@dataclass(frozen=True, eq=False)
class Place:
    """One place of a sequence; arrays are binary32.

    Attributes:
        decay: numbers [K, 1] that the state is multiplied by; without them it stays.
        key: [K].
        value: [V].
        rate: how much of the value's difference from what the key reads is written; without it the value as it is.
        queries: [R, K].
        scale: what everything that is read is multiplied by.
    """

    decay: np.ndarray | None
    key: np.ndarray
    value: np.ndarray
    rate: np.float32 | None
    queries: np.ndarray
    scale: np.float32


# A state [K, V], the place, and the rule of products: the state behind the place and what is read, [K, V] and [R, V].
Apply = Callable[[np.ndarray, Place, RealProductRule | None], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class StateStepRule:
    """What one place does to a state; decays of single numbers of a key are `power` of what is given."""

    apply: Apply
    formula: str
    source: str
    power: Callable[[np.ndarray], np.ndarray] = elementary.exp


def _times(product: RealProductRule | None, row: np.ndarray, state: np.ndarray, fused: bool) -> np.ndarray:
    """A row [K] times a state [K, V]."""
    if product is not None and state.size >= _LARGE:
        return product.apply(row[None], state, None, 1.0, 1.0, Layout())[0]
    total = np.zeros(state.shape[1], np.float32)
    for x, values in zip(row, state, strict=True):
        total = fma(values, x, total) if fused else total + x * values
    return total


def _in_turn(
    state: np.ndarray, place: Place, product: RealProductRule | None, fused: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Every operation is rounded; with `fused` products and sums of states that are not large are joined.

    >>> state, one = np.float32([[2]]), np.float32([1])
    >>> place = Place(None, one, one, None, queries=state, scale=np.float32(1))
    >>> [part.tolist() for part in RULES["binary32_in_turn"].apply(state, place, None)]
    [[[3.0]], [[6.0]]]
    """
    value = place.value
    if place.decay is not None:
        state = state * place.decay
    if place.rate is not None:
        value = place.rate * (value - _times(product, place.key, state, fused))
    joined = fused and state.size < _LARGE
    state = fma(place.key[:, None], value, state) if joined else state + place.key[:, None] * value
    return state, np.stack([_times(product, query, state, fused) for query in place.queries]) * place.scale


def _from_old_state(state: np.ndarray, place: Place, product: RealProductRule | None) -> tuple[np.ndarray, np.ndarray]:
    key, value, queries = place.key, place.value, place.queries
    rows = np.concatenate([key[None], queries])
    factors = rows if place.decay is None else rows * place.decay[:, 0]
    total = np.zeros((len(rows), state.shape[1]), np.float32)
    for k in range(len(state)):
        total = fma(factors[:, k : k + 1], state[k], total)
    if place.rate is not None:
        value = place.rate * (value - total[0])
    dots = np.zeros((len(queries), _LANES), np.float32)
    for k in range(0, len(key), _LANES):
        part = queries[:, k : k + _LANES]
        dots[:, : part.shape[1]] = fma(part, key[k : k + _LANES], dots[:, : part.shape[1]])
    while dots.shape[1] > 1:
        lower, upper = np.split(dots, 2, axis=1)
        dots = lower + upper
    reads = place.scale * fma(dots, value, total[1:])
    written = key[:, None]
    return fma(written, value, state) if place.decay is None else fma(place.decay, state, written * value), reads


def _by_fours(state: np.ndarray, place: Place, product: RealProductRule | None) -> tuple[np.ndarray, np.ndarray]:
    key, value, query, decay = place.key, place.value, place.queries[0], place.decay
    if place.rate is None:
        written = key[:, None]
        state = fma(written, value, state) if decay is None else fma(decay, state, written * value)
        return state, (_times(None, query, state, True) * place.scale)[None]
    rows = (key, query) if decay is None else (key * decay[:, 0], query * decay[:, 0])
    seen, read = (_times(None, row, state, True) for row in rows)
    value = place.rate * (value - seen)
    lanes = np.zeros((4, _FOUR), np.float32)
    for k in range(0, len(key), _FOUR):
        # Sixteens go to all four sums, what is left to the first one.
        lane = k // _FOUR % 4 if k < len(key) // 16 * 16 else 0
        lanes[lane] = fma(query[k : k + _FOUR], key[k : k + _FOUR], lanes[lane])
    four = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    both = (four[0] + four[1]) + (four[2] + four[3])
    read = place.scale * fma(both, value, read)
    written = key[:, None]
    return fma(written, value, state) if decay is None else fma(decay, state, written * value), read[None]


RULES: dict[str, StateStepRule] = {
    "binary32_in_turn": StateStepRule(
        _in_turn,
        "S = S d, r = k S, u = rate (v - r) (or v), S = S + k u, y = scale (q S): every operation is rounded, sums go "
        "from the first element to the last; from K V = 4096 on products of matrices are made by their rule",
        "a runtime's operators of transformers for x86-64 with AVX2, read; verified by running",
    ),
    "binary32_fused_from_old_state": StateStepRule(
        _from_old_state,
        "r = (k d) S and a = (q d) S as chains of fused multiply-adds from 0 on, u = rate (v - r) (or v), "
        "y = scale fma(q k, u, a) with q k in 16 fused lanes that are folded by halves, S = fma(d, S, f32(k u)), "
        "or fma(k, u, S) without decays",
        "a library of matrix kernels for x86-64 with 512-bit vectors, read; verified by running",
    ),
    "binary32_fused_in_turn": StateStepRule(
        partial(_in_turn, fused=True),
        "as binary32_in_turn, but below K V = 4096 every product is joined with the sum that it enters",
        "a runtime's operators of transformers for aarch64; verified by running",
    ),
    "binary32_fused_by_fours": StateStepRule(
        _by_fours,
        "with rates as binary32_fused_from_old_state for one query, q k in four sums of 4 fused lanes, (0 + 1) + (2 + "
        "3), folded by neighbours; without rates S = fma(d, S, f32(k v)), or fma(k, v, S), and y = scale (q S), a "
        "chain of fused multiply-adds from 0 on; decays of single numbers are polynomials",
        "a library of matrix kernels for aarch64, read; verified by running",
        fused_polynomials.exp,
    ),
}
