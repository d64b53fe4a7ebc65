"""Samples through a recipe and several arithmetics: read and prepared once, run under each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..api import Port
from ..errors import BittrueError, StoppedError
from ..runtime.side_by_side import in_order
from .digests import digest_of
from .recipes import Recipe
from .sources import Sample
from .subjects import Subject
from .tasks import Answer, Task


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
    samples: Iterable[tuple[int, Sample]],
    recipe: Recipe,
    task: Task,
    openers: Mapping[str, Callable[[], Subject]],
    threads: int,
) -> Iterator[Row]:
    """A row per sample, in the order of the samples, with bounded memory.

    Raises:
        BittrueError: whatever is wrong with the model; what is wrong with a sample stands in its row.
    """
    workers = [_Worker(recipe, task, {name: open_one() for name, open_one in openers.items()}) for _ in range(threads)]

    def end() -> None:
        for worker in workers:
            for subject in worker.subjects.values():
                subject.end()

    return chain.from_iterable(in_order([worker.rows for worker in workers], samples, end=end))


@dataclass(frozen=True)
class _Worker:
    """What one thread needs."""

    recipe: Recipe
    task: Task
    subjects: Mapping[str, Subject]

    def rows(self, samples: list[tuple[int, Sample]]) -> list[Row]:
        port = next(iter(self.subjects.values())).inputs[0]
        return [self._row(position, sample, port) for position, sample in samples]

    def _row(self, position: int, sample: Sample, port: Port) -> Row:
        source = ready = ""
        answers = {}
        try:
            if sample.label is not None:
                self.task.check_label(sample.label)
            parts = sample.read()
            source = digest_of(parts)
            placed = [self.recipe.placed(part, port) for part in parts]
            inputs = [x for x, _ in placed]
            ready = digest_of(inputs)
            truth = sample.label if sample.truth is None else sample.truth()
            for name, subject in self.subjects.items():
                runs = [(x, subject.run(x)) for x in inputs]
                found = self.task.answer(runs, subject.inputs, subject.outputs)
                if sample.label is not None:
                    found = self.task.judged(found, truth, placed[0][1])
                digests = tuple(map(digest_of, zip(*(values for _, values in runs), strict=True)))
                answers[name] = Answer(found.prediction, found.margin, found.details, digests)
        except StoppedError:
            raise
        except BittrueError as error:
            return Row(position, sample.id, sample.label, source, ready, {}, error.code, str(error))
        return Row(position, sample.id, sample.label, source, ready, answers)
