"""One model, one input, bittrue and its peers: verdicts on the bytes, then interleaved times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..compare.difference import Difference, difference, summary
from ..errors import BittrueError, UnsupportedError
from ..ports import Port, pair
from ..runners.base import Opened, Peer
from .timing import Ratio, Timing, interleave, ratio, ratio_text

OURS = "bittrue"


@dataclass(frozen=True)
class Contender:
    """bittrue's side: `run` takes and returns what the session does; `outputs` come from a fresh state."""

    run: Callable[[], object]
    outputs: Mapping[str, np.ndarray]
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One row.

    Attributes:
        name, title: of the runtime.
        version: installed one; empty when unknown.
        timing: None when it did not run.
        ratio: its time over bittrue's, round by round; None for bittrue itself.
        differences: one per output, its bytes against bittrue's.
        problem: why it did not run.
        remarks: what one should know about how it ran.
    """

    name: str
    title: str
    version: str = ""
    timing: Timing | None = None
    ratio: Ratio | None = None
    differences: tuple[Difference, ...] = ()
    problem: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """About the bytes of all outputs; empty for bittrue itself and for what did not run."""
        return summary(self.differences) if self.differences else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times in seconds."""
        return {
            "name": self.name,
            "title": self.title,
            "version": self.version or None,
            "minimum": self.timing.minimum if self.timing else None,
            "median": self.timing.median if self.timing else None,
            "calls": self.timing.calls if self.timing else 0,
            "rounds": list(self.timing.rounds) if self.timing else [],
            "ratio": vars(self.ratio) if self.ratio else None,
            "equal": all(d.equal for d in self.differences) if self.differences else None,
            "verdict": self.verdict or None,
            "differences": [{**vars(d), "equal": d.equal} for d in self.differences],
            "problem": self.problem or None,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Comparison:
    """Results for one number of threads; bittrue first, then the peers in the order asked for."""

    threads: int
    results: tuple[Result, ...]

    @property
    def ours(self) -> Result:
        return self.results[0]

    @property
    def rounds(self) -> int:
        return len(self.ours.timing.rounds) if self.ours.timing else 0

    @property
    def best_peer(self) -> Result | None:
        """The peer with the lowest median; None when none ran."""
        ran = [(r.timing.median, i, r) for i, r in enumerate(self.results[1:]) if r.timing]
        return min(ran)[2] if ran else None

    @property
    def conclusion(self) -> str:
        """One sentence: bittrue against the fastest peer."""
        best = self.best_peer
        if best is None or best.ratio is None:
            return "no peer ran: nothing to compare with"
        r = best.ratio
        doubt = (
            f", but not in every round ({ratio_text(r.low)} to {ratio_text(r.high)})" if r.low <= 1 <= r.high else ""
        )
        if r.median >= 1:
            return f"bittrue is {r.median:.2f} times as fast as {best.title}, the fastest peer{doubt}"
        return f"bittrue is slower: it needs {1 / r.median:.2f} times the time of {best.title}, the fastest peer{doubt}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        best = self.best_peer
        return {
            "threads": self.threads,
            "rounds": self.rounds,
            "best_peer": best.name if best else None,
            "conclusion": self.conclusion,
            "results": [result.to_dict() for result in self.results],
        }


def compare(
    ours: Contender,
    peers: Sequence[Peer],
    files: Mapping[str, Path],
    ports: Sequence[Port],
    values: Sequence[np.ndarray],
    *,
    threads: int,
    rounds: int,
    seconds: float,
    version: str = "",
    refuse: str = "",
) -> Comparison:
    """Open the model in every peer, compare the bytes of its first run with ours, then time all that ran.

    Args:
        ours: bittrue's side, already on `threads` threads.
        peers: whom to compare with.
        files: format to path of the same network.
        ports, values: the inputs, the same that `ours` runs on.
        threads: what the peers may use.
        rounds, seconds: see `interleave`.
        version: of bittrue.
        refuse: why no peer can run this at all; becomes the reason of each.
    """
    opened: dict[str, Opened] = {}
    runs: dict[str, Callable[[], object]] = {OURS: ours.run}
    differences: dict[str, tuple[Difference, ...]] = {}
    problems: dict[str, str] = {}
    for peer in peers:
        try:
            if refuse:
                raise UnsupportedError("BT-PEER-MODEL", refuse)
            candidate = peer.open(files, ports, threads)
            inputs = candidate.fit(values)
            differences[peer.name] = _verdicts(ours.outputs, candidate.run(inputs), candidate.outputs)
            opened[peer.name] = candidate
            runs[peer.name] = partial(candidate.run, inputs)
        except BittrueError as error:
            problems[peer.name] = f"{error.message}: {error.advice}" if error.advice else error.message
        except Exception as error:  # another runtime's errors have no common base
            text = " ".join(str(error).split())
            problems[peer.name] = f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
    timings = interleave(runs, rounds=rounds, seconds=seconds)
    results = [Result(OURS, OURS, version, timings[OURS], remarks=(ours.note,) if ours.note else ())]
    for peer in peers:
        ran = peer.name in opened
        results.append(
            Result(
                peer.name,
                peer.title,
                peer.version() or "",
                timings[peer.name] if ran else None,
                ratio(timings[peer.name], timings[OURS]) if ran else None,
                differences.get(peer.name, ()),
                problems.get(peer.name, ""),
                opened[peer.name].remarks if ran else (),
            )
        )
    return Comparison(threads, tuple(results))


def _verdicts(
    expected: Mapping[str, np.ndarray], values: Sequence[np.ndarray], names: Sequence[str]
) -> tuple[Difference, ...]:
    order = pair(list(expected), names, "outputs")
    return tuple(difference(n, expected[n], np.asarray(values[i])) for n, i in zip(expected, order, strict=True))
