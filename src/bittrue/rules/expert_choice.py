"""Slot `expert_choice`: which experts a row asks, and how much each of them counts."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from ..arithmetic import elementary
from ..arithmetic.heap import partial_sort
from ..records import dataclass, replace

_F32 = np.float32
_ZERO, _ONE = _F32(0), _F32(1)
_LEAST = _F32(1e-8)
_Scored = tuple[np.float32, int]


@dataclass(frozen=True)
class Choice:
    """Experts of every row [rows, k], what each counts [rows, k], and whether it is asked at all [rows, k]."""

    experts: np.ndarray
    factors: np.ndarray
    asked: np.ndarray


@dataclass(frozen=True, eq=False)
class ExpertChoiceRule:
    """`apply(scores, weights, k, normalized)`: scores [rows, experts]; `weights`, None or like the scores, count in
    place of what follows from them.

    Attributes:
        before: whether an expert of so many rows comes before one of so many others; None: they come in order.
    """

    apply: Callable[[np.ndarray, np.ndarray | None, int, bool], Choice]
    before: Callable[[int, int], bool] | None
    formula: str
    source: str


def _before(a: _Scored, b: _Scored) -> bool:
    """The larger score first, of equal ones the later expert; NaN is before and after nothing."""
    return bool(b[0] < a[0]) or bool(a[0] == b[0] and b[1] < a[1])


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """The experts of the k largest scores of every row."""
    rows = [partial_sort([(x, i) for i, x in enumerate(row)], k, _before) for row in scores]
    return np.array([[i for _, i in row] for row in rows], np.int64).reshape(-1, k)


def _sum(values: np.ndarray) -> np.ndarray:
    """Sums of rows, one number after the other."""
    return np.add.accumulate(np.concatenate([np.zeros_like(values[:, :1]), values], axis=1), axis=1)[:, -1:]


def _inverse(sums: np.ndarray) -> np.ndarray:
    return np.where(sums == 0, _ZERO, _ONE / sums)


def _of_all(scores: np.ndarray, weights: np.ndarray | None, k: int, normalized: bool) -> Choice:
    largest = scores[:, :1]
    for column in range(1, scores.shape[1]):
        other = scores[:, column : column + 1]
        largest = np.where(largest < other, other, largest)
    powers = elementary.exp(scores - largest)
    shares = powers * (_ONE / _sum(powers))
    experts = _best(shares, k)
    factors = np.take_along_axis(shares, experts, 1)
    if normalized:
        factors = factors * (_ONE / _sum(factors))
    return Choice(experts, factors, factors > 0)


def _of_best(scores: np.ndarray, weights: np.ndarray | None, k: int, normalized: bool) -> Choice:
    experts = _best(scores, k)
    if weights is not None:
        factors = np.take_along_axis(weights, experts, 1)
        if normalized:
            factors = factors * _inverse(_sum(factors))
    else:
        best = np.take_along_axis(scores, experts, 1)
        powers = elementary.exp(best - best[:, :1])
        factors = powers * _inverse(_sum(powers))
    return Choice(experts, factors, factors > _LEAST)


_BEST = ExpertChoiceRule(
    _of_best,
    operator.gt,
    "the k largest x, p = e^(x - max) * f32(1 / sum) of these; or weights of their own, normalized: times f32(1 / "
    "their sum); what counts 1e-8 or less is not asked; experts of many rows first",
    "a runtime's mixture of experts with quantized weights for x86-64, read; verified by running",
)

RULES: dict[str, ExpertChoiceRule] = {
    "softmax_then_best": ExpertChoiceRule(
        _of_all,
        None,
        "p = e^(x - max) * f32(1 / sum) of all experts, the k largest; normalized: times f32(1 / their sum)",
        "a runtime's mixture of experts for x86-64, read; verified by running",
    ),
    "best_then_softmax": _BEST,
    "best_then_softmax_fewest_first": replace(
        _BEST,
        before=operator.lt,
        formula="the same with experts of few rows first",
        source="the same runtime, run",
    ),
}
