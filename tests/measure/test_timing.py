"""Interleaved timing with a clock of our own: who runs when, what counts, and when it stops."""

from __future__ import annotations

import pytest

from bittrue.measure import interleave
from bittrue.measure.timing import ratio


class Clock:
    """Time passes only in calls."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def work(self, name: str, seconds: float):
        def call() -> None:
            self.now += seconds
            self.order.append(name)

        return call


def test_fast_ones_run_often_slow_ones_once_a_round() -> None:
    clock = Clock()
    timings = interleave(
        {"fast": clock.work("fast", 0.001), "slow": clock.work("slow", 0.5)}, rounds=10, seconds=2.0, clock=clock
    )
    assert timings["slow"].calls == len(timings["slow"].rounds)
    assert timings["fast"].calls >= 90 * len(timings["fast"].rounds)
    assert timings["fast"].minimum == pytest.approx(timings["fast"].median) == pytest.approx(0.001)


def test_every_round_has_everyone_and_the_first_changes() -> None:
    clock = Clock()
    interleave({n: clock.work(n, 1.0) for n in "abc"}, rounds=7, seconds=1e-9, clock=clock)
    # One warm-up call each, then six rounds although the time was over at once.
    rounds = ["".join(clock.order[3 + 3 * i : 6 + 3 * i]) for i in range(6)]
    assert len(clock.order) == 3 + 18
    assert rounds == ["abc", "bca", "cab", "abc", "bca", "cab"]


def test_asking_for_fewer_rounds_is_possible() -> None:
    clock = Clock()
    assert len(interleave({"a": clock.work("a", 1.0)}, rounds=2, seconds=0.1, clock=clock)["a"].rounds) == 2


def test_ratio_is_taken_per_round() -> None:
    clock = Clock()

    def drifting(factor: float):
        def call() -> None:
            clock.now += factor * (1 + clock.now)

        return call

    timings = interleave({"ours": drifting(0.01), "theirs": drifting(0.02)}, rounds=6, seconds=1e-9, clock=clock)
    # The machine becomes slower and slower; per round the contenders met nearly the same machine.
    found = ratio(timings["theirs"], timings["ours"])
    assert 1.9 < found.low <= found.median <= found.high < 2.1
    assert timings["ours"].rounds[-1] > 1.15 * timings["ours"].rounds[0]


def test_nobody() -> None:
    assert interleave({}, rounds=3, seconds=1) == {}
