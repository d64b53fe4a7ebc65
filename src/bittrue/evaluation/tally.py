"""Rows added up to a result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .baseline import Baseline
from .metrics import Metric
from .requirements import check_requirements, lower_of, unmet_requirements
from .results import Folder
from .rows import Row
from .sampled import add_commands
from .subjects import all_names
from .summary import Summary
from .tasks import Task


class Tally:
    """Figures, what changed against an earlier result, and what is not as required, row by row.

    Args:
        asked: what is evaluated, as plain data.
        task: the question.
        metric, require, baseline: as for `evaluate`.

    Raises:
        InputError: something that no result can be required to have, or a baseline that does not fit.
        ModelFormatError: the baseline is no folder of results.
    """

    def __init__(
        self,
        asked: Mapping[str, Any],
        task: Task,
        metric: Metric | None,
        require: Mapping[str, float] | None,
        baseline: str | os.PathLike[str] | None,
    ) -> None:
        names = all_names(asked)
        self._asked, self._require, self._lower = asked, require or {}, lower_of(task, metric)
        check_requirements(self._require, task, names, metric)
        self._summary = Summary(task, names, asked["data"]["classes"], metric)
        self._earlier = None if baseline is None else Baseline(baseline, asked, task, metric)

    def add(self, row: Row) -> None:
        """The next sample."""
        self._summary.add(row)
        if self._earlier is not None:
            self._earlier.add(row)

    def end(self, folder: Folder | None, seconds: float) -> dict[str, Any]:
        """What `evaluate` returns, written as the summary of a folder of results, if there is one."""
        found = {**self._asked, **self._summary.to_dict()}
        add_commands(found)
        if self._earlier is not None:
            found["baseline"] = self._earlier.to_dict(found["metrics"])
        found |= {"unmet": unmet_requirements(found, self._require, self._lower), "seconds": seconds}
        if folder is not None:
            folder.finish(found)
        return found
