"""Slot `attention`: one head of attention over real numbers: scores, their softmax, and the weighted sums of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..arithmetic import elementary
from ..arithmetic.floats import fused_multiply_add
from ..records import dataclass, field
from .real_product import Layout, RealProductRule
from .real_softmax import RealSoftmaxRule

_LOWEST, _LOWEST_HALF = np.finfo(np.float32).min, np.float32(np.finfo(np.float16).min)
_ONE = np.float32(1)
# Bytes of the cache whose size decides how many keys make a block.
_CACHE = 1 << 20


@dataclass(frozen=True)
class Head:
    """What one head attends to.

    Attributes:
        q, k, v: queries [S, H], keys [T, H] and values [T, V], binary32.
        scale: of scores.
        start: what the sums of scores begin with [S, T].
        added: what is added to the scores that are summed, scaled and capped, one after the other [S, T].
        hidden: keys with the lowest score [S, T].
        strided: results of a single column do not lie side by side.
        blind: queries whose weights are all 0 [S].
        first, end: the keys that each query sees [S]; None: all of them.
        cap: scores x become cap * tanh(x / cap), unless it is 0.
        sink: a score without a value that takes part in the softmax.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: float
    start: np.ndarray | None = None
    added: tuple[np.ndarray, ...] = ()
    hidden: np.ndarray | None = None
    blind: np.ndarray | None = None
    strided: bool = False
    first: np.ndarray | None = None
    end: np.ndarray | None = None
    cap: float = 0.0
    sink: float | None = None


@dataclass(frozen=True)
class Attended:
    """The sums of values [S, V], and the scores on their way by name: ``products``, ``capped``, ``masked``,
    ``softmax``.
    """

    result: np.ndarray
    scores: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AttentionRule:
    """`apply(head, product, softmax)` by the rules of products and of softmax."""

    apply: Callable[[Head, RealProductRule, RealSoftmaxRule], Attended]
    formula: str
    source: str


def _capped(scores: np.ndarray, cap: float, joined: bool) -> np.ndarray:
    """Scores by the C library's tanh, whose products are perhaps joined to sums."""
    by = np.float32(cap)
    return elementary.tanh(scores / by, joined=joined) * by if cap > 0 else scores


def _with_additions(scores: np.ndarray, added: tuple[np.ndarray, ...], rows: slice, keys: slice) -> np.ndarray:
    for one in added:
        scores = scores + one[rows, keys]
    return scores


def _softmax_with_sink(rows: np.ndarray, sink: float, softmax: RealSoftmaxRule) -> np.ndarray:
    assert softmax.powers is not None
    one = np.float32(sink)
    largest = np.maximum(rows.max(axis=1, keepdims=True), one)
    powers, sums = softmax.powers(rows - largest)
    return np.asarray(powers * (_ONE / (sums + elementary.exp(one - largest))))


def _weights(rows: np.ndarray, head: Head, softmax: RealSoftmaxRule) -> np.ndarray:
    return softmax.softmax(rows, 1.0) if head.sink is None else _softmax_with_sink(rows, head.sink, softmax)


def _whole_rows(
    head: Head, product: RealProductRule, softmax: RealSoftmaxRule, half: bool = False, joined: bool = False
) -> Attended:
    """Keys that a query does not see have the weight 0."""

    def stored(values: np.ndarray) -> np.ndarray:
        return np.asarray(values).astype(np.float16).astype(np.float32) if half else values

    with np.errstate(all="ignore"):
        products = stored(product.apply(head.q, head.k.T, head.start, head.scale, 1.0, Layout(turned_b=True)))
        capped = stored(_capped(products, head.cap, joined))
        masked = capped
        for one in head.added:
            masked = stored(masked + one)
        if head.hidden is not None:
            masked = np.where(head.hidden, _LOWEST_HALF if half else _LOWEST, masked)
        if head.first is None or head.end is None:
            weights = _weights(masked, head, softmax)
            if head.blind is not None:
                weights = np.where(head.blind[:, None], np.float32(0), weights)
        else:
            seen, weights = masked, np.zeros_like(masked)
            masked = np.zeros_like(seen)
            for row, (first, end) in enumerate(zip(head.first, head.end, strict=True)):
                masked[row, first:end] = seen[row, first:end]
                if end > first:
                    weights[row, first:end] = _weights(seen[row : row + 1, first:end], head, softmax)[0]
        # A column with gaps is made like any other matrix.
        apart = head.strided and head.q.shape[0] > 1 and head.v.shape[1] == 1
        weights = stored(weights)
        result = product.apply(weights, head.v, None, 1.0, 1.0, Layout(turned_b=apart))
    return Attended(stored(result), {"products": products, "capped": capped, "masked": masked, "softmax": weights})


def _whole_rows_of_halves(head: Head, product: RealProductRule, softmax: RealSoftmaxRule) -> Attended:
    return _whole_rows(head, product, softmax, half=True)


def block_sizes(head_size: int, value_size: int) -> tuple[int, int]:
    """Queries and keys of a block.

    >>> block_sizes(64, 64), block_sizes(8, 8)
    ((128, 512), (16, 4096))
    """
    keys = max(1, _CACHE // (16 * (head_size + value_size)))
    return min(keys, head_size + value_size), keys


def _hide(head: Head, scores: np.ndarray, rows: slice, keys: slice) -> None:
    """Scores of keys that are not seen become the lowest number."""
    if head.first is None or head.end is None:
        return
    places = np.arange(keys.start, keys.start + scores.shape[1])
    first, end = head.first[rows, None], head.end[rows, None]
    scores[(places < first) | (places >= end)] = _LOWEST


def _multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, joined: bool) -> np.ndarray:
    return fused_multiply_add(a, b, c) if joined else np.asarray(a * b + c)


def _in_blocks(
    head: Head,
    product: RealProductRule,
    softmax: RealSoftmaxRule,
    inverse: bool,
    joined: bool,
    upon_zeros: bool = False,
) -> Attended:
    assert softmax.powers is not None
    by_rows, by_keys = block_sizes(head.q.shape[1], head.v.shape[1])
    result = np.empty((head.q.shape[0], head.v.shape[1]), np.float32)
    for begin in range(0, head.q.shape[0], by_rows):
        rows = slice(begin, min(begin + by_rows, head.q.shape[0]))
        q = head.q[rows]
        sums = np.zeros((q.shape[0], 1), np.float32)
        largest = np.full((q.shape[0], 1), _LOWEST)
        total = np.zeros((q.shape[0], head.v.shape[1]), np.float32)
        reach = head.k.shape[0] if head.end is None else int(head.end[rows][-1])
        for at in range(0, min(head.k.shape[0], reach), by_keys):
            keys = slice(at, min(at + by_keys, head.k.shape[0]))
            scores = product.apply(q, head.k[keys].T, None, head.scale, 1.0, Layout(turned_b=True))
            scores = _with_additions(scores, head.added, rows, keys)
            _hide(head, scores, rows, keys)
            before, found = largest, scores.max(axis=1, keepdims=True)
            seen = found != _LOWEST if inverse else np.ones_like(found, bool)
            largest = np.where(seen, np.maximum(before, found), before)
            powers, sum_of = softmax.powers(scores - largest)
            powers = np.where(seen, powers, np.float32(0))
            if at:
                factor = np.where(seen, elementary.exp(before - largest), _ONE)
                sums = np.where(seen, _multiply_add(factor, sums, sum_of, joined), sums)
                total = np.where(seen, total * factor, total)
            else:
                sums = np.where(seen, sum_of, sums)
            total = product.apply(powers, head.v[keys], total if at or upon_zeros else None, 1.0, 1.0, Layout())
        result[rows] = total * np.where(sums > 0, _ONE / sums, np.float32(0)) if inverse else total / sums
    return Attended(result)


def _one_query(head: Head, softmax: RealSoftmaxRule, joined: bool) -> Attended:
    """Products in 8 lanes, the elements that are left one by one; values are added up in order; `joined`: all fused."""
    assert softmax.powers is not None
    size = head.q.shape[1]
    lanes: np.ndarray = np.zeros((head.k.shape[0], 8), np.float32)
    for i in range(0, size // 8 * 8, 8):
        lanes = _multiply_add(head.q[0, i : i + 8], head.k[:, i : i + 8], lanes, joined)
    pairs = lanes[:, 0::2] + lanes[:, 1::2]
    fours = pairs[:, 0::2] + pairs[:, 1::2]
    total = fours[:, 0] + fours[:, 1]
    for i in range(size // 8 * 8, size):
        total = _multiply_add(head.q[0, i], head.k[:, i], total, joined)
    scores = (total * np.float32(head.scale))[None]
    scores = _with_additions(scores, head.added, slice(None), slice(None))
    _hide(head, scores, slice(0, 1), slice(0, head.k.shape[0]))
    largest = scores.max(axis=1, keepdims=True)
    result = np.zeros((1, head.v.shape[1]), np.float32)
    if largest[0, 0] == _LOWEST:
        return Attended(result)
    powers, sums = softmax.powers(scores - largest)
    for power, value in zip(powers[0], head.v, strict=True):
        result = _multiply_add(power, value, result, joined)
    return Attended(result * (_ONE / sums if sums[0, 0] > 0 else np.float32(0)))


def _blocks(head: Head, product: RealProductRule, softmax: RealSoftmaxRule, joined: bool = False) -> Attended:
    with np.errstate(all="ignore"):
        return _in_blocks(head, product, softmax, False, joined)


def _blocks_of_all(head: Head, product: RealProductRule, softmax: RealSoftmaxRule, joined: bool = False) -> Attended:
    with np.errstate(all="ignore"):
        return _in_blocks(head, product, softmax, True, joined, upon_zeros=True)


def _blocks_by_inverse(
    head: Head, product: RealProductRule, softmax: RealSoftmaxRule, joined: bool = False
) -> Attended:
    with np.errstate(all="ignore"):
        if head.q.shape[0] == 1:
            return _one_query(head, softmax, joined)
        return _in_blocks(head, product, softmax, True, joined)


RULES: dict[str, AttentionRule] = {
    "whole_rows": AttentionRule(
        _whole_rows,
        "softmax(scale * q k^T + start) v: scores of all keys, weights that are divided by their sum, then products",
        "a runtime's operators of transformers for x86-64, read; verified by running",
    ),
    "whole_rows_of_halves": AttentionRule(
        _whole_rows_of_halves,
        "the same with what is stored rounded to binary16: scores, capped and masked ones, weights, the result",
        "a runtime's operators of transformers for x86-64, read; verified by running",
    ),
    "binary32_blocks": AttentionRule(
        _blocks,
        "blocks of b = 2^16 / (H + V) keys for min(b, H + V) queries: m = max(m, scores), e = exp(scores - m), "
        "l = exp(m' - m) l + sum of e, o = exp(m' - m) o + e v; o / l",
        "a runtime's operators of transformers for x86-64 with 1 MiB of second-level cache, read; verified by running",
    ),
    "binary32_blocks_of_all_queries": AttentionRule(
        _blocks_of_all,
        "as binary32_blocks_by_inverse, for a single query, too",
        "a runtime's operators of transformers for x86-64 with 1 MiB of second-level cache, read; verified by running",
    ),
    "binary32_blocks_by_inverse": AttentionRule(
        _blocks_by_inverse,
        "the same with o * f32(1 / l), blocks that no query of the block sees left out; a single query takes all "
        "keys at once: products in 8 lanes, values added up in order, nothing fused",
        "a runtime's operators of transformers for x86-64 with 1 MiB of second-level cache, read; verified by running",
    ),
    "whole_rows_joined": AttentionRule(
        partial(_whole_rows, joined=True),
        "whole_rows, with products joined to sums in the C library's tanh, which caps scores",
        "a runtime's operators of transformers for aarch64, read; verified by running",
    ),
    **{
        f"{name}_joined": AttentionRule(
            partial(apply, joined=True),
            f"{name} with one rounding of every product and the sum that it enters",
            "a runtime's operators of transformers for aarch64, read; verified by running",
        )
        for name, apply in (
            ("binary32_blocks", _blocks),
            ("binary32_blocks_of_all_queries", _blocks_of_all),
            ("binary32_blocks_by_inverse", _blocks_by_inverse),
        )
    },
}
