"""Recorded vectors through several executors: reading a case takes as long as running it, so it is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from bittrue.conformance.recorded.adapters import Adapter, Trial
from bittrue.conformance.recorded.replay import Replay, replay
from bittrue.conformance.recorded.vectors import Case

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

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_single", remembered)
        found = {executor: replay(folder, executor=executor) for executor in executors}
    # Else one would have been taken for another.
    assert all(len({one.case for one in result.outcomes}) == len(result.outcomes) for result in found.values())
    return found
