"""Figures of an evaluation: metrics per arithmetic, the answers that differ, digests of all bits."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from .digests import Combined
from .metrics import Metric, Own
from .rows import Row
from .tasks import Task

# Flips of a pair that a summary lists; the rows have all of them.
MOST_FLIPS = 1000
# Examples of each error.
_EXAMPLES = 10


class Summary:
    """Figures that are added up row by row.

    Args:
        task: the question.
        names: arithmetics.
        classes: names of the classes by number; may be empty.
        metric: for further figures.
    """

    def __init__(
        self, task: Task, names: Sequence[str], classes: Sequence[str] = (), metric: Metric | None = None
    ) -> None:
        self._task, self._names = task, tuple(names)
        self.samples = self.labelled = 0
        self.errors = Counter[str]()
        self._examples: dict[str, list[dict[str, Any]]] = {}
        self._own = {} if metric is None else {name: Own(metric, name) for name in names}
        self._figures = {name: task.figures(classes) for name in names}
        self._flips = {pair: Flips(task, pair) for pair in combinations(names, 2)}
        self._digests = {name: Combined() for name in names}

    def add(self, row: Row) -> None:
        """One more sample."""
        self.samples += 1
        for name, digest in self._digests.items():
            outputs = row.answers[name].digests if name in row.answers else ()
            digest.add((row.id, row.source, row.input, *outputs))
        if row.code:
            self.errors[row.code] += 1
            if self.errors[row.code] <= _EXAMPLES:
                example = {"position": row.position, "id": row.id, "error": row.error}
                self._examples.setdefault(row.code, []).append(example)
            return
        for own in self._own.values():
            own.add(row)
        right: Mapping[str, bool | None] = {}
        if row.label is not None:
            self.labelled += 1
            for name, answer in row.answers.items():
                self._figures[name].add(row.label, answer)
            if self._flips:
                right = {name: self._task.right(row.label, answer) for name, answer in row.answers.items()}
        for flips in self._flips.values():
            flips.add(row, right)

    def digest(self) -> str:
        """One digest of all samples under all arithmetics."""
        whole = Combined()
        for name in self._names:
            whole.add((name, self._digests[name].hexdigest()))
        return whole.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        return {
            "samples": self.samples,
            "labelled": self.labelled,
            "errors": dict(sorted(self.errors.items())),
            "examples": dict(sorted(self._examples.items())),
            "task": self._task.name,
            "headline": self._task.headline,
            "metrics": self._metrics(),
            "flips": [flips.to_dict() for flips in self._flips.values()],
            "digests": {name: digest.hexdigest() for name, digest in self._digests.items()},
            "digest": self.digest(),
        }

    def _metrics(self) -> dict[str, dict[str, Any]]:
        found = {name: figures.to_dict() for name, figures in self._figures.items()} if self.labelled else {}
        for name, own in self._own.items():
            figures = found.setdefault(name, {})
            figures.update(own.figures(figures.keys()))
        return found


class Flips:
    """Samples that two arithmetics answer differently, the clearest ones first.

    Args:
        task: the question; it says what differs.
        pair: the names of their answers in rows.
    """

    def __init__(self, task: Task, pair: tuple[str, str]) -> None:
        self._task, self._pair = task, pair
        self._count = self._gained = self._lost = 0
        self._judged = False
        self._kept: list[tuple[float, int, dict[str, Any]]] = []

    def add(self, row: Row, right: Mapping[str, bool | None]) -> None:
        """One more sample, and which answers are right."""
        one, two = (row.answers[name] for name in self._pair)
        margin = self._task.difference(one, two)
        if margin is None:
            return
        self._judged = self._judged or any(right.get(name) is not None for name in self._pair)
        was, now = (bool(right.get(name)) for name in self._pair)
        self._count += 1
        self._gained += now and not was
        self._lost += was and not now
        found = {
            "position": row.position,
            "id": row.id,
            "input": row.input,
            "label": None if row.label is None else self._task.shown(row.label),
            "predictions": [self._task.shown(answer.prediction) for answer in (one, two)],
            "margin": margin,
        }
        heapq.heappush(self._kept, (margin, -row.position, found))
        if len(self._kept) > MOST_FLIPS:
            heapq.heappop(self._kept)

    def to_dict(self) -> dict[str, Any]:
        """Their number, what they do to the metric, and the ones with the largest margins, those first."""
        return {
            "pair": list(self._pair),
            "count": self._count,
            "gained": self._gained if self._judged else None,
            "lost": self._lost if self._judged else None,
            "samples": [found for _, _, found in sorted(self._kept, key=lambda kept: (-kept[0], -kept[1]))],
        }
