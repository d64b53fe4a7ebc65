"""Which hypotheses to try, alone and in pairs, and how elements are accounted for when nothing gives all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .hypotheses import FAMILIES, RARE, UNCOUNTED, Case, Hypothesis, Trial, unequal
from .result import Cause

# How many of the hypotheses that come nearest to B are combined with all others.
_NEAREST = 10
# Elementwise accounting: a hypothesis counts when it is right about this share of the elements that it changes,
# and about at least so many of them.
_SHARE, _LEAST = 0.9, 8
# Or when it is right about every element of a channel in which at least so many differ.
_LEAST_IN_CHANNEL = 6
# Seats of hypotheses about a tensor as a whole.
_WHOLE = ("stale", "result", "values", "layout")


def faults(case: Case) -> Iterator[Hypothesis]:
    """Every fault of every family that can be thought of for this tensor."""
    for family in FAMILIES:
        yield from family(case)


def rare_faults(case: Case) -> Iterator[Hypothesis]:
    """What is tried when nothing else holds."""
    for family in (*UNCOUNTED, *RARE):
        yield from family(case)


def pairs(case: Case, bases: list[tuple[Hypothesis, ...]]) -> Iterator[tuple[Hypothesis, ...]]:
    """Faults on other arithmetics, then two hypotheses at once, those first that alone come nearest to B."""
    tried = [(trial, h) for h, trial in case.trials.items() if trial is not None]
    ranked = [h for _, h in sorted(tried, key=lambda one: one[0].distance)]
    for base in bases[1:]:
        yield from ((*base, h) for h in ranked)
    # Beside a fault another rounding is likelier than a second fault that changes as little, even one that alone
    # changes nothing here.
    roundings = [h for h in case.trials if h.cause.numerics and h.cause.kind == "rounding"]
    partners = [*roundings, *(h for h in ranked if h not in roundings)]
    done = set()
    for one in ranked[:_NEAREST]:
        for two in partners:
            if one.seat == two.seat or (two, one) in done:
                continue
            done.add((one, two))
            yield one, two
            if (one.plan and two.plan) or (one.result and two.result) or (one.graph and two.graph):
                # The second change sees what the first one has made.
                yield two, one


def account(case: Case, bases: list[tuple[Hypothesis, ...]]) -> tuple[tuple[Cause, ...], int]:
    """Elements accounted for one by one: causes with their counts, and how many elements no cause gives.

    A hypothesis is taken for what it gives when it is right about nearly all that it changes, or about every single
    element of some channels; otherwise what it gives is chance. It ends when the case's budget does.
    """
    singles = [(h,) for h, trial in case.trials.items() if trial is not None and _promising(trial)]
    others = [h for h, trial in case.trials.items() if trial is not None]
    candidates = [*bases[1:], *singles, *((*base, h) for base in bases[1:] for h in others)]
    start = np.concatenate([mask.reshape(-1) for mask in case.differs])
    found = []
    for order, hypotheses in enumerate(candidates):
        if case.budget <= 0:
            break
        counted = _counted(case, hypotheses)
        if counted is not None:
            found.append((order, hypotheses, *counted))
    causes, left, belied = _taken(found, start)
    if (left | belied).any():
        # Channels that happen to look like a tensor that nobody wrote prove little beside what stays unexplained.
        causes, left, belied = _taken([f for f in found if not (f[4] and f[1][-1].seat in _WHOLE)], start)
    return tuple(causes), int((left | belied).sum())


def _taken(
    found: list[tuple[int, tuple[Hypothesis, ...], np.ndarray, np.ndarray, str]], left: np.ndarray
) -> tuple[list[Cause], np.ndarray, np.ndarray]:
    """Causes, those that give most first; what they leave over of `left`, and equal elements that they would change."""
    belied = np.zeros_like(left)
    causes: list[Cause] = []
    while found:
        order, hypotheses, right, wrong, place = max(found, key=lambda f: (int((f[2] & left).sum()), -f[0]))
        gained = int((right & left).sum())
        if gained < (1 if causes else _LEAST_IN_CHANNEL):
            break
        left = left & ~right
        cause = hypotheses[-1].cause if len(hypotheses) == 1 else _joined(hypotheses)
        if wrong.any():
            # What should differ then and does not is no more explained than what differs.
            place += f" (but {int(wrong.sum())} equal elements should differ then)"
            belied = belied | wrong
        causes.append(replace(cause, elements=gained, text=cause.text + place))
        found = [f for f in found if f[0] != order]
    return causes, left, belied


def _promising(trial: Trial) -> bool:
    """Whether elements may be counted for a hypothesis, as far as the first input set tells."""
    return trial.channels or trial.right >= _SHARE * trial.changed


def _joined(hypotheses: tuple[Hypothesis, ...]) -> Cause:
    causes = [h.cause for h in hypotheses]
    return replace(
        causes[-1],
        name=" and ".join(c.name for c in causes),
        text=" together with ".join(c.text for c in causes),
        benign=all(c.benign for c in causes),
    )


def _counted(case: Case, hypotheses: tuple[Hypothesis, ...]) -> tuple[np.ndarray, np.ndarray, str] | None:
    """Which elements a hypothesis is taken for, which equal ones it would change, and where it is; None when it may be
    chance.
    """
    predicted = []
    for position in range(len(case.theirs)):
        one = case.predict(hypotheses, position)
        if one is None:
            return None
        predicted.append(one)
    pairs = list(zip(predicted, case.theirs, strict=True))
    right = [~unequal(p, b) for p, b in pairs]
    changed = [unequal(p, a) for (p, _), a in zip(pairs, case.ours, strict=True)]
    gained = [r & d for r, d in zip(right, case.differs, strict=True)]
    number, total = (sum(int(m.sum()) for m in masks) for masks in (gained, changed))
    if number >= _LEAST and number >= _SHARE * total:
        belied = [c & ~r & ~d for c, r, d in zip(changed, right, case.differs, strict=True)]
        return _flat(gained), _flat(belied), ""
    channels = case.theirs[0].shape[-1] if case.theirs[0].ndim > 1 else 0
    if channels < 2 or all(h.cause.benign for h in hypotheses):
        # An arithmetic is that of all channels.
        return None
    whole = np.all([r.reshape(-1, channels).all(axis=0) for r in right], axis=0)
    differing = np.sum([d.reshape(-1, channels).sum(axis=0) for d in case.differs], axis=0)
    taken = whole & (differing >= _LEAST_IN_CHANNEL)
    if not taken.any():
        return None
    kept = [(g.reshape(-1, channels) & taken).reshape(-1) for g in gained]
    numbers = np.flatnonzero(taken)
    named = ", ".join(str(c) for c in numbers[:8]) + (" ..." if len(numbers) > 8 else "")
    right_ones = np.concatenate(kept)
    return right_ones, np.zeros_like(right_ones), f" (in channel{'s' if len(numbers) > 1 else ''} {named})"


def _flat(masks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([mask.reshape(-1) for mask in masks])
