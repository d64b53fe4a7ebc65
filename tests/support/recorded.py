"""Vectors recorded from runtimes that cannot be installed beside the one of the test extra.

A file holds, for many small models, their bytes, the inputs of every run, and what the runtime computed in the last
one (or that it refused). `BITTRUE_RECORD=folder` makes `differential.check` write such files while the operator tests
run against the real runtime; `tests/models/test_recorded.py` replays them everywhere.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .oracle import Answer

FOLDER = Path(__file__).resolve().parents[1] / "data" / "recorded"
# Cases kept of one test: those that ran, and those that were refused.
_RAN, _REFUSED = int(os.environ.get("BITTRUE_RECORD_CASES", 4)), 1
# A case with more bytes than this, when they are packed, is left out; recordings are part of the repository.
_LARGEST = 6000


@dataclass
class Case:
    """One model, its inputs run by run, the runtime's answer by tensor index, and with what bittrue may refuse it."""

    test: str
    content: bytes
    feeds: list[list[np.ndarray]]
    answer: Answer
    may_refuse: tuple[str, ...] = ()


@dataclass
class Recorder:
    """Collects cases and writes them when the session ends."""

    cases: list[Case] = field(default_factory=list)
    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def add(self, case: Case) -> None:
        """Keep the case unless its test has enough of its kind."""
        if any(value is None for value in case.answer.values.values()):
            return
        arrays = [*case.answer.values.values(), *(a for feed in case.feeds for a in feed)]
        size = len(case.content) + sum(a.nbytes for a in arrays)
        if size > _LARGEST:
            size = len(zlib.compress(case.content + b"".join(a.tobytes() for a in arrays)))
        kind = (case.test, case.answer.ran)
        if case.answer.aborted or size > _LARGEST or any(a.size == 0 for a in arrays):
            return
        if self.counts[kind] < (_RAN if case.answer.ran else _REFUSED):
            self.counts[kind] += 1
            self.cases.append(case)

    def write(self, path: Path) -> None:
        """One compressed file: an index in JSON and all bytes in a row."""
        blob = bytearray()

        def place(data: bytes) -> list[int]:
            blob.extend(data)
            return [len(blob) - len(data), len(data)]

        def array(value: np.ndarray) -> dict[str, Any]:
            data = np.ascontiguousarray(value)
            return {"dtype": data.dtype.name, "shape": list(value.shape), "at": place(data.tobytes())[0]}

        index = [
            {
                "test": case.test,
                "model": place(case.content),
                "feeds": [[array(value) for value in feed] for feed in case.feeds],
                "values": {_name(i): array(value) for i, value in case.answer.values.items()},
                "refused": not case.answer.ran,
                "may_refuse": case.may_refuse,
            }
            for case in self.cases
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            path, index=np.frombuffer(json.dumps(index).encode(), np.uint8), blob=np.frombuffer(bytes(blob), np.uint8)
        )


def _name(key: int | tuple[int, int]) -> str:
    return str(key) if isinstance(key, int) else f"{key[0]}:{key[1]}"


def _key(name: str) -> int | tuple[int, int]:
    """A tensor of the main graph, or (graph, tensor)."""
    graph, _, index = name.rpartition(":")
    return (int(graph), int(index)) if graph else int(index)


def read(path: Path) -> Iterator[Case]:
    """The cases of one file."""
    with np.load(path) as file:
        index, blob = json.loads(file["index"].tobytes()), file["blob"].tobytes()

    def array(entry: dict[str, Any]) -> np.ndarray:
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        return np.frombuffer(blob, dtype, count, entry["at"]).reshape(entry["shape"])

    for entry in index:
        start, size = entry["model"]
        values = {_key(i): array(value) for i, value in entry["values"].items()}
        yield Case(
            entry["test"],
            blob[start : start + size],
            [[array(value) for value in feed] for feed in entry["feeds"]],
            Answer(values=values, refused="refused by the runtime" if entry["refused"] else ""),
            tuple(entry["may_refuse"]),
        )
