"""Deterministic mutations of model files, aimed at the bytes that describe structure rather than at weights."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from change import change
from watch import report, summary, watch

import bittrue

# Work (multiply-accumulates) up to which a mutated model is also run; larger ones are only planned. The reference walks
# through some operators element by element.
RUN_LIMIT = 20_000_000_000
SMALL = 1 << 20
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


def attempt(content: bytes, limit: int = RUN_LIMIT) -> str:
    """``"result"``, ``"planned"`` (too large to run here) or the code of the typed error."""
    try:
        # Mutated loops need not end.
        session = bittrue.load(content).prepare(iteration_limit=200)
        assert str(session.plan)
        if session.plan.work > limit:
            return "planned"
        rng = np.random.default_rng(0)
        feed = []
        for port in session.inputs:
            if port.dtype.kind not in "iufb":
                return "planned"
            feed.append(rng.integers(0, 2, port.shape).astype(port.dtype))
        session.run(*feed)
    except bittrue.BittrueError as error:
        # Only plan files can hold steps that contradict themselves; from a model, the planner is wrong.
        if not str(error) or error.code == "BT-PLAN-STEP":
            return f"FAILED: {error}"
        return error.code
    return "result"


def work(pipe: Any, contents: Sequence[bytes], seeds: Iterable[int], limit: int, folder: str) -> None:
    """Seed by seed: mutate one of the models and try what comes out. The last one is left in `folder`."""
    structures: dict[int, np.ndarray] = {}

    def one(seed: int) -> str:
        which = seed % len(contents)
        if which not in structures:
            structures[which] = structural_bytes(contents[which])
        # Every other time the file stays well-formed.
        content = contents[which]
        if seed // len(contents) % 2 == 0:
            try:
                changed = change(content, seed)
            except (AttributeError, TypeError, ValueError, struct.error):
                return "unwritable"
        else:
            changed = mutate(content, structures[which], seed)
        Path(folder, "mutated.tflite").write_bytes(changed)
        return attempt(changed, limit)

    report(pipe, seeds, one)


def campaign(contents: Sequence[bytes], seeds: range, folder: Path, limit: int = RUN_LIMIT) -> dict[str, Any]:
    """Run `work` in a process of its own. Returns counts per outcome, the slowest time (s) and the peak memory (KiB).

    Raises AssertionError naming the seed, and the folder where the file is, for anything but a result or a typed error.
    """
    return summary(f"{folder}", watch(work, contents, seeds, limit, str(folder)))
