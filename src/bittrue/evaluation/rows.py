"""Samples through a recipe and several arithmetics: read and prepared once, run under each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ..api import Port
from ..errors import BittrueError, StoppedError
from ..runtime.side_by_side import in_order
from .digests import digest_of
from .placement import Placement
from .recipes import Recipe
from .sources import Sample
from .subjects import Outcome, Subject
from .tasks import Answer, Task

# Nobody waits for single rows, and a runtime in another process takes a while for each request.
_CHUNK_SECONDS = 0.1


@dataclass(slots=True)
class Row:
    """What is known about one sample.

    Attributes:
        position: of the sample in its source.
        id, label: of the sample.
        source: SHA-256 of what was read; empty where it could not be read.
        input: SHA-256 of the input tensor; empty where none was made.
        answers: by arithmetic; empty where there is an error.
        code, error: of the error, and what went wrong; empty where nothing did.
    """

    position: int
    id: str
    label: Any
    source: str = ""
    input: str = ""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    code: str = ""
    error: str = ""


def rows_of(
    samples: Iterable[tuple[int, Sample]], recipe: Recipe, task: Task, teams: Sequence[Mapping[str, Subject]]
) -> Iterator[Row]:
    """A row per sample, in the order of the samples, with bounded memory; the teams are closed then.

    Args:
        teams: what answers, by name; a thread for each.

    Raises:
        BittrueError: whatever is wrong with the model; what is wrong with a sample stands in its row.
    """

    def end() -> None:
        for team in teams:
            for subject in team.values():
                subject.end()

    try:
        workers = [_Worker(recipe, task, team).rows for team in teams]
        for chunk in in_order(workers, samples, seconds=_CHUNK_SECONDS, end=end):
            yield from chunk
    finally:
        for team in teams:
            for subject in team.values():
                subject.close()


@dataclass
class _Begun:
    """A sample on its way to a row; `inputs` is empty once there is an error."""

    position: int
    sample: Sample
    source: str = ""
    ready: str = ""
    truth: Any = None
    inputs: Sequence[np.ndarray] = ()
    placement: Placement | None = None
    answers: dict[str, Answer] = field(default_factory=dict)
    error: BittrueError | None = None

    def row(self) -> Row:
        sample, error = self.sample, self.error
        if error is None:
            return Row(self.position, sample.id, sample.label, self.source, self.ready, self.answers)
        return Row(self.position, sample.id, sample.label, self.source, self.ready, {}, error.code, str(error))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Takes what is wrong with the sample."""
        try:
            yield
        except StoppedError:
            raise
        except BittrueError as error:
            self.error, self.inputs = error, ()


@dataclass(frozen=True)
class _Worker:
    """What one thread needs."""

    recipe: Recipe
    task: Task
    subjects: Mapping[str, Subject]

    def rows(self, samples: list[tuple[int, Sample]]) -> list[Row]:
        port = next(iter(self.subjects.values())).inputs[0]
        begun = [self._begun(position, sample, port) for position, sample in samples]
        for name, subject in self.subjects.items():
            runs = subject.run([x for one in begun for x in one.inputs])
            for one in begun:
                if one.error is None:
                    with one.errors():
                        one.answers[name] = self._answer(one, subject, list(islice(runs, len(one.inputs))))
        return [one.row() for one in begun]

    def _begun(self, position: int, sample: Sample, port: Port) -> _Begun:
        one = _Begun(position, sample)
        with one.errors():
            if sample.label is not None:
                self.task.check_label(sample.label)
            parts = sample.read()
            one.source = digest_of(parts)
            placed = [self.recipe.placed(part, port) for part in parts]
            inputs = [x for x, _ in placed]
            one.ready = digest_of(inputs)
            one.truth = sample.label if sample.truth is None else sample.truth()
            one.inputs, one.placement = inputs, placed[0][1]
        return one

    def _answer(self, one: _Begun, subject: Subject, outcomes: Sequence[Outcome]) -> Answer:
        outputs = []
        for outcome in outcomes:
            if isinstance(outcome, BittrueError):
                raise outcome
            outputs.append(outcome)
        found = self.task.answer(list(zip(one.inputs, outputs, strict=True)), subject.inputs, subject.outputs)
        if one.sample.label is not None:
            found = self.task.judged(found, one.truth, one.placement)
        digests = tuple(map(digest_of, zip(*outputs, strict=True)))
        return Answer(found.prediction, found.margin, found.details, digests)
