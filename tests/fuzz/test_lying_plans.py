"""Plan files that lie: typed errors or results only, on every executor; no crash, no hang, no huge allocation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bittrue
from support.graphs import growing, nested_loops, staged, stream
from support.seeds import built_by_tests

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
import lie
from watch import summary, watch


def models() -> list[bytes]:
    """Models whose plans have steps: of every operator, and of several graphs."""
    found = [nested_loops(), growing(3, True), staged(), stream()]
    found += [content for contents in built_by_tests().values() for content in contents]
    return [content for content in found if _has_steps(content)]


def _has_steps(content: bytes) -> bool:
    try:
        return bool(bittrue.load(content).prepare(executor="reference").plan.steps)
    except bittrue.BittrueError:
        return False


@pytest.mark.parametrize("part", range(2))
def test_lies(
    part: int, tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    contents = models()
    count = len(contents) * (100 if request.config.getoption("--deep") else 1)
    executors: lie.Executors = [("reference", None)]
    if bittrue.isas():
        # The fastest set, and the portable one that all others fall back to.
        executors = [("native", isa) for isa in dict.fromkeys([bittrue.isas()[0], "portable"])] if part else executors
    result = summary(f"{tmp_path}", watch(lie.work, contents, range(count), str(tmp_path), executors))
    counts = result["counts"]
    record_property(
        "mutated",
        f"plans of {len(contents)} models on {executors[0][0]}: {count} files, {counts['result']} results, "
        f"slowest {result['slowest']:.2f} s, peak {result['peak'] >> 10} MiB",
    )
    assert counts["result"] > count // 20
    assert counts["BT-PLAN-FILE"] > count // 20
