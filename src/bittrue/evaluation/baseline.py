"""What changed against an earlier result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .metrics import Metric
from .requirements import numbers
from .results import differing, stored
from .rows import Row
from .subjects import all_names
from .summary import Flips, Summary
from .tasks import Task

# What must be the same for samples to be compared one by one; model, recipe and versions may be others.
_SAME = ("data", "task", "reset", "limit", "shard")
_BEFORE, _NOW = "before", "now"


class Baseline:
    """An earlier result, which rows of another run of the same samples are compared with.

    Args:
        path: its folder.
        asked: what is evaluated now.
        task: the question.
        metric: for further figures.

    Raises:
        InputError: it is of other samples, of no arithmetic that is asked for now, or it was never finished.
        ModelFormatError: the folder holds no results.
    """

    def __init__(
        self, path: str | os.PathLike[str], asked: Mapping[str, Any], task: Task, metric: Metric | None = None
    ) -> None:
        folder = stored(Path(path), task)
        self._place, self._task = str(path), task
        others = [name for name in _SAME if _same(folder.asked, name) != _same(asked, name)]
        if others:
            raise self._error(f"it is of other samples: {', '.join(others)} differ")
        before, runtimes = all_names(folder.asked), folder.asked["against"]
        names = [name for name in all_names(asked) if name in before]
        if not names:
            raise self._error(f"it has none of {', '.join(all_names(asked))}, only {', '.join(before)}")
        if folder.count() != len(folder.positions()):
            raise self._error(f"it has {folder.count():,} of its {len(folder.positions()):,} samples")
        self._differs = [name for name in differing(folder.asked, asked) if name not in ("numerics", "against")]
        self._differs += [name for name in names if name in runtimes and asked["against"][name] != runtimes[name]]
        self._rows = folder.rows()
        self._summary = Summary(task, before, folder.asked["data"]["classes"], metric)
        self._flips = {name: Flips(task, (_BEFORE, _NOW)) for name in names}
        self._outputs = dict.fromkeys(names, 0)
        self._sources = self._errors = 0

    def _error(self, text: str) -> InputError:
        return InputError("BT-EVALUATE-BASELINE", text, place=self._place)

    def add(self, row: Row) -> None:
        """The next sample.

        Raises:
            InputError: the earlier result has another one in its place.
        """
        was = next(self._rows)
        self._summary.add(was)
        if was.id != row.id:
            raise self._error(f"it is of other samples: that at position {row.position} is '{was.id}', now '{row.id}'")
        self._sources += was.source != row.source
        if was.code or row.code:
            self._errors += was.code != row.code
            return
        for name, flips in self._flips.items():
            answers = {_BEFORE: was.answers[name], _NOW: row.answers[name]}
            self._outputs[name] += answers[_BEFORE].digests != answers[_NOW].digests
            right = {} if row.label is None else {at: self._task.right(row.label, one) for at, one in answers.items()}
            flips.add(replace(row, answers=answers), right)

    def to_dict(self, metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Plain data, fit for JSON.

        Args:
            metrics: those of this run, by arithmetic.
        """
        before = self._summary.to_dict()
        changes = []
        for name, flips in self._flips.items():
            was = numbers(before["metrics"].get(name, {}))
            now = numbers(metrics.get(name, {}))
            figures = {figure: [was[figure], now[figure]] for figure in was if figure in now}
            changes.append(
                {"numerics": name, "metrics": figures, "outputs": self._outputs[name], "answers": flips.to_dict()}
            )
        return {
            "folder": self._place,
            "digest": before["digest"],
            "differs": self._differs,
            "sources": self._sources,
            "errors": self._errors,
            "changes": changes,
        }


def _same(asked: Mapping[str, Any], name: str) -> Any:
    """What must be equal: names of classes may come from the model."""
    value = asked.get(name)
    return {key: value[key] for key in value if key != "classes"} if name == "data" and value else value
