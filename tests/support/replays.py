"""Recorded vectors through several executors: reading and planning a case takes longer than running it, so both are
done once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bittrue.conformance.recorded.adapters import Adapter, Trial
from bittrue.conformance.recorded.replay import Replay, replay
from bittrue.conformance.recorded.vectors import Case
from bittrue.graph import Graph
from bittrue.numerics import Numerics
from bittrue.plan import Plan

# Its package has the function under the module's name.
module = import_module("bittrue.conformance.recorded.replay")


def replays(folder: Path, executors: Sequence[str]) -> dict[str, Replay]:
    """By executor, what became of the folder; whatever is wrong with a case is found by each of them."""
    known: dict[str, tuple[Trial, ...]] = {}
    read = module._single

    def remembered(adapter: Adapter, case: Case) -> Iterator[Trial]:
        if case.place not in known:
            known[case.place] = tuple(read(adapter, case))
        yield from known[case.place]

    plans: dict[tuple[int, str], Plan] = {}
    make = module.make_plan

    def planned(graph: Graph, table: Numerics, **how: Any) -> Plan:
        # The trials that are remembered hold the graphs.
        key = id(graph), table.name
        if key not in plans:
            plans[key] = make(graph, table, **how)
        return plans[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_single", remembered)
        patch.setattr(module, "make_plan", planned)
        found = {executor: replay(folder, executor=executor) for executor in executors}
    # Else one would have been taken for another.
    assert all(len({one.case for one in result.outcomes}) == len(result.outcomes) for result in found.values())
    return found
