"""Interleaved timing: contenders take turns in every round, so that a machine that slows down slows all of them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Fewer rounds say nothing about their spread; only an explicit smaller number of rounds goes below.
FEWEST_ROUNDS = 6
# Part of the time that is spent on calls before the first timed one.
_WARM_UP = 0.1

Call = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Times of one contender, in seconds.

    Attributes:
        calls: how many were timed.
        minimum, median: over all of them.
        rounds: median of each round.
    """

    calls: int
    minimum: float
    median: float
    rounds: tuple[float, ...]


@dataclass(frozen=True)
class Ratio:
    """Time of one contender over the time of another, round by round: median and range."""

    median: float
    low: float
    high: float


def interleave(
    calls: Mapping[str, Call], *, rounds: int, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Timing]:
    """Time every call in `rounds` rounds within about `seconds`.

    In a round each contender runs for an equal share of the time, at least once, call after call; who begins changes
    from round to round. When slow contenders overdraw the time, rounds are left out, down to six of them.
    """
    if not calls:
        return {}
    share = seconds / (rounds * len(calls))
    names = list(calls)
    samples: dict[str, list[list[float]]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for name in names:
            _fill(calls[name], seconds * _WARM_UP / len(names), clock)
        begin = clock()
        for number in range(rounds):
            if number >= FEWEST_ROUNDS and clock() - begin > seconds:
                break
            first = number % len(names)
            for name in names[first:] + names[:first]:
                samples[name].append(_fill(calls[name], share, clock))
    finally:
        if collecting:
            gc.enable()
    return {name: _timing(samples[name]) for name in names}


def ratio(theirs: Timing, ours: Timing) -> Ratio:
    """How many times as long as ours theirs takes, per round."""
    ratios = [a / b for a, b in zip(theirs.rounds, ours.rounds, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def ratio_text(value: float) -> str:
    """Two decimals, or two significant digits below 0.1.

    >>> ratio_text(1.504), ratio_text(0.03224)
    ('1.50', '0.032')
    """
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _fill(call: Call, share: float, clock: Callable[[], float]) -> list[float]:
    """Times of the calls that fit into `share` seconds, at least one."""
    times = []
    end = clock() + share
    while True:
        start = clock()
        call()
        stop = clock()
        times.append(stop - start)
        if stop >= end:
            return times


def _timing(rounds: list[list[float]]) -> Timing:
    every = [seconds for times in rounds for seconds in times]
    return Timing(len(every), min(every), statistics.median(every), tuple(statistics.median(r) for r in rounds))
