"""Runs what may crash, hang or eat memory in a process of its own: changed inputs, one after the other."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest
from damage import spoiled

# Seconds of processor time for one file, and address space for all.
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
        pipe.send(("done", outcome, time.perf_counter() - started, _peak()))
    pipe.send(("end",))


def _peak() -> int:
    """The most KiB that this process has had; ru_maxrss would be what the process that started it had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


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
            if not _answers(pipe, process.pid, seconds if current >= 0 else 60):
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


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def _answers(pipe: Any, pid: int, seconds: float) -> bool:
    """Whether a message comes before the process has used that much time, or ten times that by the clock."""
    used, clock = processor_seconds(pid), time.monotonic()
    while not pipe.poll(0.5):
        if processor_seconds(pid) - used > seconds or time.monotonic() - clock > 10 * seconds:
            return False
    return True


def summary(name: str, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts per outcome, the slowest time (s) and the peak memory (KiB).

    Raises AssertionError for failures and for too much memory.
    """
    counts: dict[str, int] = {}
    slowest, peak = 0.0, 0
    for seed, outcome, elapsed, memory in outcomes:
        assert not outcome.startswith("FAILED"), f"{name}, seed {seed}: {outcome}"
        code = outcome.split(" ")[0] if outcome.startswith("BT-") else outcome
        counts[code] = counts.get(code, 0) + 1
        slowest, peak = max(slowest, elapsed), max(peak, memory)
        assert memory < RESIDENT, f"{name}, seed {seed}: {memory} KiB"
    return {"counts": counts, "slowest": slowest, "peak": peak}


def seeds(request: pytest.FixtureRequest, usual: int, deep: int, parts: int = 3) -> list[int]:
    """Of changed inputs: `usual`, one in `parts` of them new, from `--seed`; with `--deep` so many new ones.
    They follow each other, so that each of several contents gets its share.
    """
    from support.seed import KEPT_SEED  # the campaigns' workers do without

    option = request.config.option
    fixed, new = (0, deep) if option.deep else (usual // 3, usual // parts)
    kept = 0 if option.deep else usual - fixed - new

    def some(seed: int, count: int) -> range:
        first = random.Random(f"{seed} {request.node.nodeid}").getrandbits(30)
        return range(first, first + count)

    return [*range(fixed), *some(KEPT_SEED, kept), *some(option.seed, new)]


Change = Callable[[bytes, int], bytes]
Attempt = Callable[[bytes, Path], str]


def changed(change: Change, content: bytes, seed: int) -> bytes:
    """Another input; damaged bytes where `change` cannot read the content."""
    try:
        return bytes(change(content, seed))
    except Exception:
        return spoiled(content, random.Random(seed))


def made(contents: Sequence[bytes], seeds: Sequence[int], make: Callable[[bytes], bytes]) -> list[bytes]:
    """What `make` makes of the contents that the seeds change, each in its place; one of which it makes nothing leaves
    its place to the one before. Making all of them would take longer than to try the few.
    """
    found, kept, last = [b""] * len(contents), dict[bytes, bytes](), b""
    for place in sorted({seed % len(contents) for seed in seeds}):
        content = contents[place]
        if content not in kept:
            kept[content] = make(content)
        last = found[place] = kept[content] or last
    return found


def _change_all(
    pipe: Any, change: Change, attempt: Attempt, contents: Sequence[bytes], seeds: Iterable[int], folder: str
) -> None:
    place = Path(folder)

    def one(seed: int) -> str:
        content = changed(change, contents[seed % len(contents)], random.Random(seed).getrandbits(31))
        (place / "changed").write_bytes(content)
        return attempt(content, place)

    report(pipe, seeds, one)


def changes(
    change: Change,
    attempt: Attempt,
    contents: Sequence[bytes],
    seeds: Sequence[int],
    folder: Path,
    seconds: float = SECONDS,
) -> dict[str, Any]:
    """Every seed changes one of the contents and tries it: functions of a fuzz target, or of a module like one.

    The input that is tried lies in `folder` under the name ``changed``. See `summary`.
    """
    return summary(f"{folder}", watch(_change_all, change, attempt, contents, seeds, str(folder), seconds=seconds))
