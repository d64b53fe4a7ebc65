"""What every C++ file reads stays small: installing compiles all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"
# Each costs as much time in every file as a small kernel; `core/thread_pool.cc` and `core/stop.cc` need some of them.
HEAVY = {"chrono", "condition_variable", "functional", "iostream", "mutex", "regex", "set", "sstream", "thread"}
HEAVY |= {"unordered_map", "unordered_set"}


def reached(header: Path, seen: set[Path]) -> Iterator[tuple[Path, str]]:
    """(our header, standard header) for all that includes lead to."""
    seen.add(header)
    for bracket, name in re.findall(r'^#include ([<"])(.*)[>"]', header.read_text(), re.MULTILINE):
        if bracket == "<":
            yield header, name
        elif (found := NATIVE / name) not in seen:
            yield from reached(found, seen)


def test_headers_of_kernels_and_cores_are_light() -> None:
    seen: set[Path] = set()
    headers = [NATIVE / "core" / "kernel.h", *(NATIVE / "operators").rglob("*.h"), *(NATIVE / "isa").rglob("*.h")]
    found = [(ours, name) for header in headers if header not in seen for ours, name in reached(header, seen)]
    assert len(found) > 100
    assert [f"{ours.relative_to(NATIVE)}: {name}" for ours, name in found if name in HEAVY] == []
