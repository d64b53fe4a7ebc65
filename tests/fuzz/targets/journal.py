"""Journals of `bittrue conform`: lines of JSON from a run that was ended."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from damage import damaged, spoiled, written
from oracle import tried

from bittrue.conformance.expected import Expected
from bittrue.conformance.journal import Journal
from bittrue.conformance.suite import find_suite
from bittrue.conformance.verdicts import Record

_HEADER = {"suite": "litert", "numerics": ""}


@cache
def _cases() -> Any:
    return list(find_suite("litert").cases(("SQUEEZE",)))[:3]


def seeds(folder: Path) -> Iterable[bytes]:
    """Three answers."""
    journal = Journal(folder / "seed.journal", _HEADER)
    for case in _cases():
        journal.add(Record(case, "outputs", Expected(case, ("litert",)).outputs("litert"), seconds=0.5))
    yield journal.path.read_bytes()


def change(content: bytes, seed: int) -> bytes:
    """Entries of a line; one time in three bytes."""
    numbers = random.Random(seed)
    lines = content.split(b"\n")
    if seed % 3 == 0 or len(lines) < 2:
        return spoiled(content, numbers)
    number = numbers.randrange(len(lines) - 1)
    lines[number] = written(damaged(json.loads(lines[number]), numbers))
    return b"\n".join(lines)


def attempt(content: bytes, folder: Path) -> str:
    path = folder / "one.journal"
    path.write_bytes(content)

    def call() -> str:
        journal = Journal(path, _HEADER)
        return f"{sum(journal.find(case) is not None for case in _cases())} answers"

    return tried(call)
