"""Deterministic mutations of model files, aimed at the bytes that describe structure rather than at weights."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

import bittrue

# Work (multiply-accumulates) up to which a mutated model is also run; larger ones are only planned.
RUN_LIMIT = 20_000_000_000
WORDS = (0, 1, 2, 3, 255, 256, 0x7FFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x7FC00000, 0x00800000)


def structural_bytes(content: bytes) -> np.ndarray:
    """Offsets outside the content of large constants."""
    whole = np.frombuffer(content, np.uint8)
    start = whole.__array_interface__["data"][0]
    keep = np.ones(len(content), bool)
    for graph in bittrue.load(whole).graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and tensor.data.nbytes > 64:
                first = tensor.data.__array_interface__["data"][0] - start
                if 0 <= first < len(content):
                    keep[first : first + tensor.data.nbytes] = False
    return np.flatnonzero(keep)


def mutate(content: bytes, structure: np.ndarray, seed: int) -> bytes:
    """One to eight mutations: bit flips, words, swapped bytes, inserted or removed spans, truncation."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        place = int(rng.choice(structure)) if rng.random() < 0.95 else int(rng.integers(len(content)))
        place = min(place, len(data) - 1)
        kind = rng.integers(10)
        if kind < 4:
            data[place] ^= 1 << int(rng.integers(8))
        elif kind < 7:
            aligned = place & ~3
            data[aligned : aligned + 4] = int(rng.choice(WORDS)).to_bytes(4, "little")
        elif kind == 7:
            data[place] = int(rng.integers(256))
        elif kind == 8:
            other = int(rng.choice(structure)) & ~3
            aligned = place & ~3
            data[aligned : aligned + 4] = content[other : other + 4]
        elif rng.random() < 0.5:
            del data[place : place + int(rng.integers(1, 9))]
        else:
            data[place:] = b"" if rng.random() < 0.5 else data[place:][:-1]
        if len(data) < 8:
            break
    return bytes(data)


def attempt(content: bytes) -> str:
    """``"result"``, ``"planned"`` (too large to run here) or the code of the typed error."""
    try:
        # Mutated loops need not end.
        session = bittrue.load(content).prepare(iteration_limit=200)
        if session.plan.work > RUN_LIMIT:
            return "planned"
        rng = np.random.default_rng(0)
        feed = []
        for port in session.inputs:
            if port.dtype.kind not in "iufb":
                return "planned"
            feed.append(rng.integers(0, 2, port.shape).astype(port.dtype))
        session.run(*feed)
    except bittrue.BittrueError as error:
        return error.code if str(error) else "FAILED: an error that says nothing"
    return "result"


def _too_long(*_: Any) -> None:
    raise TimeoutError("more than 5 seconds")


def work(pipe: Any, path: str, seeds: range) -> None:
    """Try all seeds for one file; report each outcome before the next, so that a crash names its seed."""
    signal.signal(signal.SIGALRM, _too_long)
    content = Path(path).read_bytes()
    structure = structural_bytes(content)
    for seed in seeds:
        pipe.send(("start", seed))
        mutated = mutate(content, structure, seed)
        signal.alarm(5)
        started = time.perf_counter()
        try:
            outcome = attempt(mutated)
        except BaseException as error:
            outcome = f"FAILED {type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
        pipe.send(("done", outcome, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    pipe.send(("end",))


def campaign(path: Path, seeds: range) -> dict[str, Any]:
    """Run `work` in a process of its own. Returns counts per outcome, the slowest time (s) and the peak memory (KiB).

    Raises AssertionError naming file and seed for anything but a result or a typed error.
    """
    context = multiprocessing.get_context("spawn")
    pipe, child = context.Pipe()
    process = context.Process(target=work, args=(child, str(path), seeds), daemon=True)
    process.start()
    child.close()
    counts: dict[str, int] = {}
    slowest, peak, current = 0.0, 0, -1
    try:
        while True:
            message = pipe.recv()
            if message[0] == "end":
                break
            if message[0] == "start":
                current = message[1]
                continue
            _, outcome, elapsed, memory = message
            assert not outcome.startswith("FAILED"), f"{path.name}, seed {current}: {outcome}"
            counts[outcome] = counts.get(outcome, 0) + 1
            slowest, peak = max(slowest, elapsed), max(peak, memory)
            assert memory < 1 << 20, f"{path.name}, seed {current}: {memory} KiB"
    except EOFError:
        raise AssertionError(f"{path.name}, seed {current}: the process died") from None
    finally:
        process.kill()
        process.join()
    return {"counts": counts, "slowest": slowest, "peak": peak}
