"""Certificates: results of `bittrue conform`, verified."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from damage import damaged, spoiled, written
from oracle import tried

from bittrue.conformance.certificate import verify
from bittrue.conformance.conform import conform
from bittrue.conformance.result import ConformResult, digest_of


def seeds(folder: Path) -> Iterable[bytes]:
    """A device that is off by one, and one that is exact, on two small cases."""
    from support.changed_answers import Planted, above

    cases = ("SQUEEZE/s8/codes/000", "SQUEEZE/s8/shapes/000")
    for change in (lambda case, o: above(1)(case, o) if case.aim == "codes" else o, lambda case, o: o):
        result = conform(Planted(change), cases=cases, demo=False, repeat=1)
        yield json.dumps(result.to_dict()).encode()


def change(content: bytes, seed: int) -> bytes:
    """Entries, the digest made to fit or not; one time in four bytes."""
    numbers = random.Random(seed)
    if seed % 4 == 0:
        return spoiled(content, numbers)
    data = damaged(json.loads(content), numbers)
    if seed % 4 == 1 and isinstance(data, dict):
        data["digest"] = digest_of(data)
    return written(data)


def attempt(content: bytes, folder: Path) -> str:
    def call() -> str:
        try:
            data: Any = json.loads(content)
        except (ValueError, RecursionError):
            return "no JSON"
        result = ConformResult.from_dict(data)
        # Counted before anything is made: the whole suite, which an empty selection means, takes most of a minute.
        if not 0 < len(result.selection.cases) <= 4:
            return "large"
        return "broken" if verify(data) else "holds"

    return tried(call)
