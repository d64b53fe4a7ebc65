"""Samples through a recipe and several arithmetics: read and prepared once, run under each."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api import Port
from ..errors import BittrueError, InputError, StoppedError
from ..runtime.side_by_side import in_order
from ..visible import visible
from .digests import digest_of
from .placement import Placement
from .recipes import Made, Recipe
from .sources import Sample
from .subjects import Subject
from .tasks import Answer, Task

# Nobody waits for single rows, and a runtime in another process takes a while for each request; Python's garbage
# collector goes through whatever there is of more samples again and again.
_CHUNK_SECONDS, _CHUNK_SAMPLES = 0.1, 64
# Samples that are made in less time are made by one thread at a time: each of the few system calls that a small
# file takes would hand the interpreter to another thread, which costs more than it gains.
_QUICK_SECONDS = 5e-5


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
    answers: dict[str, Answer] = field(default_factory=dict)
    code: str = ""
    error: str = ""

    def fail(self, error: BittrueError) -> None:
        """Make it one with an error, the first one that it meets."""
        if not self.code:
            self.answers, self.code, self.error = {}, error.code, str(error)


class Workers:
    """What makes rows, in one thread or several.

    Args:
        team: what answers, by name; it and those of the other threads are closed with this.
        threads: how many.
    """

    def __init__(self, recipe: Recipe, task: Task, team: Mapping[str, Subject], threads: int) -> None:
        teams = [team, *({name: one.another() for name, one in team.items()} for _ in range(threads - 1))]
        self._subjects = [subject for team in teams for subject in team.values()]
        alone = threading.Lock()
        self._workers = [_Worker(recipe, task, team, alone).rows for team in teams]

    def rows(self, samples: Iterable[tuple[int, Sample]]) -> Generator[Row, None, None]:
        """A row per sample, in the order of the samples, with bounded memory.

        Raises:
            BittrueError: whatever is wrong with the model; what is wrong with a sample stands in its row.
        """
        for chunk in in_order(self._workers, samples, most=_CHUNK_SAMPLES, seconds=_CHUNK_SECONDS, end=self._end):
            yield from chunk

    def _end(self) -> None:
        for subject in self._subjects:
            subject.end()

    def close(self) -> None:
        """Close what answers."""
        for subject in self._subjects:
            subject.close()


@dataclass(slots=True)
class _Begun:
    """A sample on its way to a row, which has its error once there is one.

    Attributes:
        inputs: what the subjects take.
        truth, placement: what answers are judged by.
    """

    row: Row
    inputs: Sequence[Made] = ()
    truth: Any = None
    placement: Placement | None = None


@dataclass
class _Worker:
    """What one thread needs.

    Attributes:
        alone: held by the one thread that makes samples, while that is quick.
        each: seconds that making a sample took lately.
    """

    recipe: Recipe
    task: Task
    subjects: Mapping[str, Subject]
    alone: threading.Lock
    each: float = 0.0

    def rows(self, samples: list[tuple[int, Sample]]) -> list[Row]:
        ports = next(iter(self.subjects.values())).inputs
        with self.alone if self.each < _QUICK_SECONDS else nullcontext():
            start = time.perf_counter()
            begun = [self._begun(position, sample, ports) for position, sample in samples]
            self.each = (time.perf_counter() - start) / len(samples)
        for name, subject in self.subjects.items():
            self._answer(name, subject, [one for one in begun if not one.row.code])
        return [one.row for one in begun]

    def _begun(self, position: int, sample: Sample, ports: Sequence[Port]) -> _Begun:
        row = Row(position, sample.id, sample.label)
        one = _Begun(row)
        try:
            if row.label is not None:
                self.task.check_label(row.label)
            parts = sample.read()
            row.source = digest_of(parts)
            made = [self.recipe.made(part, ports) for part in parts]
            one.inputs, one.placement = [x for x, _ in made], made[0][1]
            row.input = digest_of(one.inputs)
            one.truth = row.label if sample.truth is None else sample.truth()
        except StoppedError:
            raise
        except BittrueError as error:
            row.fail(error)
        except OSError as error:
            place = visible(str(error.filename or ""))
            row.fail(InputError("BT-FILE-READ", error.strerror or str(error), place=place))
        return one

    def _answer(self, name: str, subject: Subject, samples: Sequence[_Begun]) -> None:
        """What the subject says, in the rows of these samples."""
        outcomes = iter(subject.run([x for one in samples for x in one.inputs]))
        ran: list[tuple[_Begun, list[tuple[np.ndarray, Sequence[np.ndarray]]]]] = []
        for one in samples:
            runs = []
            for made, outcome in zip(one.inputs, outcomes):  # noqa: B905  the other samples' are left
                if isinstance(outcome, BittrueError):
                    one.row.fail(outcome)
                else:
                    runs.append((made if isinstance(made, np.ndarray) else next(iter(made.values())), outcome))
            if not one.row.code:
                ran.append((one, runs))
        answers = self.task.answers([runs for _, runs in ran], subject.inputs, subject.outputs)
        for (one, runs), found in zip(ran, answers, strict=True):
            row = one.row
            try:
                if isinstance(found, BittrueError):
                    raise found
                answer = found if row.label is None else self.task.judged(found, one.truth, one.placement)
                answer.digests = tuple(map(digest_of, zip(*(outputs for _, outputs in runs), strict=True)))
                row.answers[name] = answer
            except BittrueError as error:
                row.fail(error)
