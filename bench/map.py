"""`session.map` and `run_batch` on one thread against a loop over `run`, on two threads, and in two processes at once.

    python bench/map.py [MODEL...] [--rounds 15] [--output bench/results/map]

Two processes that share nothing but the machine say what a second core is worth: memory, caches and the clock are
shared, so that may be less than 2. `run_batch` has no Python per sample: what `map` takes longer than it is Python's,
which holds the interpreter's lock, and two threads cannot be faster than that. All ways take turns in every round, and
the best rate (samples per second) of each counts. Writes OUTPUT.md and OUTPUT.json.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import bittrue
from bittrue.measure.machine import environment
from bittrue.runners.peers import PEERS
from pages import RESULTS, SHARED, made_on, write

MODELS = SHARED / "models"
USUAL = (
    "inception_v3_299_int8",
    "coral_tf2_mobilenet_v2_1.0_224_ptq",
    "tiny_resnet8_int8",
    "tiny_kws_int8",
    "tflm_hello_world_int8",
)
WAYS = ("run", "map, 1 thread", "map, 2 threads", "run_batch, 1 thread", "run_batch, 2 threads")
# A round of one way lasts so long at least.
_SECONDS = 0.2


def loops(path: Path) -> dict[str, Callable[[int], None]]:
    """What runs so many samples, by way."""
    session = bittrue.load(path).prepare()
    rng = np.random.default_rng(0)
    kinds = [(port, np.iinfo(port.dtype)) for port in session.inputs]
    samples = [
        {port.name: rng.integers(kind.min, kind.max, port.shape, port.dtype, endpoint=True) for port, kind in kinds}
        for _ in range(16)
    ]

    def run(count: int) -> None:
        for x in islice(cycle(samples), count):
            session.run(x)

    def mapped(threads: int, count: int) -> None:
        for _ in session.map(islice(cycle(samples), count), threads=threads):
            pass

    @lru_cache
    def batch(count: int) -> dict[str, np.ndarray]:
        return {name: np.concatenate([x[name] for x in islice(cycle(samples), count)]) for name in samples[0]}

    def batched(threads: int, count: int) -> None:
        session.run_batch(batch(count), threads=threads)

    ways = (run, *(partial(way, threads) for way in (mapped, batched) for threads in (1, 2)))
    return dict(zip(WAYS, ways, strict=True))


def worker(path: Path, line: Connection) -> None:
    """Does what it is told, a way and a number of samples, until None comes."""
    ways = loops(path)
    while (told := line.recv()) is not None:
        way, count = told
        ways[way](count)
        line.send(None)


def measured(path: Path, rounds: int) -> dict[str, float]:
    """The best rate of every way, and of a loop over `run` in two processes at once."""
    context = multiprocessing.get_context("spawn")
    lines, processes = [], []
    for _ in range(2):
        here, there = context.Pipe()
        processes.append(context.Process(target=worker, args=(path, there)))
        processes[-1].start()
        lines.append(here)

    def rate(way: str, count: int, used: Sequence[Connection]) -> float:
        begun = time.perf_counter()
        for line in used:
            line.send((way, count))
        for line in used:
            line.recv()
        return count * len(used) / (time.perf_counter() - begun)

    for way in WAYS:
        rate(way, 16, lines)
    count = max(16, int(_SECONDS * rate("run", 16, lines[:1])))
    for way in WAYS:
        rate(way, count, lines[:1])
    best = dict.fromkeys((*WAYS, "run, 2 processes"), 0.0)
    for _ in range(rounds):
        for way in WAYS:
            best[way] = max(best[way], rate(way, count, lines[:1]))
        best["run, 2 processes"] = max(best["run, 2 processes"], rate("run", count, lines))
    for line, process in zip(lines, processes, strict=True):
        line.send(None)
        process.join()
    return best


def page(found: dict[str, dict[str, float]], machine: dict[str, object], rounds: int) -> str:
    """The page in Markdown."""
    lines = [
        "# `session.map` against `run`",
        "",
        f"{made_on(machine)} Best of {rounds} interleaved rounds. Made by `python bench/map.py`.",
        "",
        "| model | run, µs | map, 1 thread, µs | run_batch, 1 thread, µs | map / run | map, 2 threads / 1 | at most | "
        "run_batch, 2 threads / 1 | 2 processes / 1 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, rates in found.items():
        run, one, two, batch, both, apart = rates.values()
        # Samples per second that Python alone would allow; two threads give no more than twice one.
        python = 1 / max(1 / one - 1 / batch, 1e-12)
        lines.append(
            f"| {name} | {1e6 / run:.2f} | {1e6 / one:.2f} | {1e6 / batch:.2f} | {run / one:.3f} | {two / one:.2f} | "
            f"{min(python / one, 2):.2f} | {both / batch:.2f} | {apart / run:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="files whose inputs are integers")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS / "map")
    arguments = parser.parse_args()
    models = arguments.models or [MODELS / f"{name}.tflite" for name in USUAL]
    found = {path.stem: measured(path, arguments.rounds) for path in models}
    machine = environment(bittrue.__version__, PEERS.values())
    text = page(found, machine, arguments.rounds)
    print(text)
    write(arguments.output, text, {"machine": machine, "rounds": arguments.rounds, "best": found})


if __name__ == "__main__":
    main()
