"""Runs what may crash, hang or eat memory in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Seconds for one file, and address space for all.
SECONDS = 5
ADDRESSES = 4 << 30
# Resident memory (KiB) that a file may take.
RESIDENT = 1 << 20

Outcome = tuple[int, str, float, int]


def report(pipe: Any, seeds: Iterable[int], attempt: Callable[[int], str]) -> None:
    """Try all seeds; name each before it is tried, so that a crash names its seed."""
    # Address sanitizers need more than there is.
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    for seed in seeds:
        pipe.send(("start", seed))
        started = time.perf_counter()
        try:
            outcome = attempt(seed)
        except Exception as error:
            outcome = f"FAILED {type(error).__name__}: {error}"
        pipe.send(("done", outcome, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    pipe.send(("end",))


def watch(work: Callable[..., None], *arguments: object, seconds: float = SECONDS) -> Iterator[Outcome]:
    """Seed, outcome, seconds and peak memory (KiB) of what `work(pipe, *arguments)` reports."""
    context = multiprocessing.get_context("spawn")
    pipe, child = context.Pipe()
    process = context.Process(target=work, args=(child, *arguments), daemon=True)
    process.start()
    child.close()
    current = -1
    try:
        while True:
            # The first message waits for imports.
            if not pipe.poll(seconds if current >= 0 else 60):
                yield current, f"FAILED: more than {seconds:g} seconds", seconds, 0
                return
            message = pipe.recv()
            if message[0] == "end":
                return
            if message[0] == "start":
                current = message[1]
            else:
                yield current, *message[1:]
    except (EOFError, ConnectionResetError):
        process.join(10)
        yield current, f"FAILED: the process died ({process.exitcode})", 0.0, 0
    finally:
        process.kill()
        process.join()


def summary(name: str, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts per outcome, the slowest time (s) and the peak memory (KiB).

    Raises AssertionError for failures and for too much memory.
    """
    counts: dict[str, int] = {}
    slowest, peak = 0.0, 0
    for seed, outcome, elapsed, memory in outcomes:
        assert not outcome.startswith("FAILED"), f"{name}, seed {seed}: {outcome}"
        counts[outcome] = counts.get(outcome, 0) + 1
        slowest, peak = max(slowest, elapsed), max(peak, memory)
        assert memory < RESIDENT, f"{name}, seed {seed}: {memory} KiB"
    return {"counts": counts, "slowest": slowest, "peak": peak}
