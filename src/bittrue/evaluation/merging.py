"""One result from those of shards."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import InputError
from .metrics import Metric
from .results import PART_ROWS, Folder, differing, folder_on_disk, stored
from .rows import Row
from .tally import Tally
from .tasks import Task

# Missing shards and samples that a message names.
_NAMED = 5


def merge_evaluations(
    folders: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    task: Task | None = None,
    metric: Metric | None = None,
    require: Mapping[str, float] | None = None,
    baseline: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Put the results of shards together: what one run over all samples would have written and returned.

    Args:
        folders: results of `evaluate`, of the same evaluation but for their shards.
        output: a folder for all rows and the summary.
        task: the question, where it is one's own.
        metric, require, baseline: as for `evaluate`.

    Returns:
        As `evaluate` does.

    Raises:
        InputError: results of different evaluations, samples that several folders have, or that none has.
        ModelFormatError: a folder that holds no results, or damaged ones.
    """
    start = time.monotonic()
    if not folders:
        raise InputError("BT-EVALUATE-MERGE", "no folders to merge")
    parts = [stored(Path(path), task) for path in folders]
    first = parts[0]
    asked = {**first.asked, "shard": [1, 1]}
    for part in parts[1:]:
        names = [name for name in differing(asked, part.asked) if name != "shard"]
        if names:
            raise InputError(
                "BT-EVALUATE-MERGE",
                f"results of another evaluation than in {first.path}: {', '.join(names)} differ",
                place=str(part.path),
            )
    _check_shards(parts)
    tally = Tally(asked, first.task, metric, require, baseline)
    folder = Folder(folder_on_disk(output), asked, first.task)
    folder.begin()
    rows = _in_order(parts)
    done = 0
    while some := list(islice(rows, PART_ROWS)):
        folder.write_part(done, [folder.table(some)])
        for row in some:
            tally.add(row)
        done += len(some)
    return tally.end(folder, time.monotonic() - start)


def _check_shards(parts: Sequence[Folder]) -> None:
    """Raises InputError where samples are missing or there twice, before anything is written."""
    owners: dict[int, Folder] = {}
    problems = []
    for part in parts:
        expected, count = part.positions(), part.count()
        if count < len(expected):
            problems.append(f"{part.path} has {count:,} of its {len(expected):,} samples, --resume goes on with them")
        twice = [position for position in expected if position in owners]
        if twice:
            other = owners[twice[0]]
            problems.append(
                f"{len(twice):,} samples, the first at position {twice[0]}, are in {other.path} "
                f"(shard {_shard(other)}) and in {part.path} (shard {_shard(part)})"
            )
        owners.update(dict.fromkeys(expected, part))
    whole = range(parts[0].samples())
    missing = [position for position in whole if position not in owners]
    if missing:
        counts = {part.asked["shard"][1] for part in parts}
        if len(counts) == 1:
            (count,) = counts
            there = {part.asked["shard"][0] for part in parts}
            names = [f"{index}/{count}" for index in range(1, count + 1) if index not in there]
            problems.append(f"no folder has {'shard' if len(names) == 1 else 'shards'} {_some(names)}")
        else:
            problems.append(f"no folder has the samples at positions {_some([str(one) for one in missing])}")
    if problems:
        raise InputError("BT-EVALUATE-MERGE", "; ".join(problems))


def _in_order(parts: Sequence[Folder]) -> Iterator[Row]:
    return heapq.merge(*(part.rows() for part in parts), key=lambda row: row.position)


def _shard(part: Folder) -> str:
    return "/".join(map(str, part.asked["shard"]))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
