"""Which hypotheses to try, alone and in pairs, and how elements are accounted for when nothing gives all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .hypotheses import FAMILIES, Case, Hypothesis, rows, unequal
from .result import Cause

# How many of the hypotheses that come nearest to B are combined with all others.
_NEAREST = 10
# Elementwise accounting: a hypothesis counts when it is right about this share of the elements that it changes,
# and about at least so many of them.
_SHARE, _LEAST = 0.9, 8


def faults(case: Case) -> Iterator[Hypothesis]:
    """Every fault of every family that can be thought of for this tensor."""
    for family in FAMILIES:
        yield from family(case)


def pairs(case: Case, bases: list[tuple[Hypothesis, ...]]) -> Iterator[tuple[Hypothesis, ...]]:
    """Faults on other arithmetics, then two hypotheses at once, those first that alone come nearest to B."""
    singles = [*rows.used_slots(case), *faults(case)]
    for base in bases[1:]:
        yield from ((*base, h) for h in singles)
    ranked = _ranked(case, singles)
    tried = set()
    for _, one in ranked[:_NEAREST]:
        for _, two in ranked:
            if one.seat == two.seat or (id(two), id(one)) in tried:
                continue
            tried.add((id(one), id(two)))
            yield tuple(sorted((one, two), key=lambda h: bool(h.layer)))
            yield tuple(sorted((two, one), key=lambda h: bool(h.layer)))


def _ranked(case: Case, singles: list[Hypothesis]) -> list[tuple[float, Hypothesis]]:
    """Hypotheses that change something, by how far they leave the first input set from B."""
    found: list[tuple[float, int, Hypothesis]] = []
    wanted = case.theirs[0]
    for order, hypothesis in enumerate(singles):
        if case.runs_left <= 0:
            break
        predicted = case.predict((hypothesis,), 0)
        if predicted is None or not unequal(predicted, case.ours[0]).any():
            continue
        found.append((_distance(predicted, wanted), order, hypothesis))
    return [(distance, hypothesis) for distance, _, hypothesis in sorted(found, key=lambda f: f[:2])]


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return float(np.where(np.isfinite(apart), apart, 1e30).sum())


def account(case: Case, bases: list[tuple[Hypothesis, ...]]) -> tuple[tuple[Cause, ...], tuple[str, ...], int]:
    """Elements accounted for one by one: causes with their counts, and how many elements no cause gives."""
    return (), (), case.differing
