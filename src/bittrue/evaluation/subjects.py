"""What answers: an arithmetic that bittrue reproduces, or a real runtime."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .. import numerics as numerics_tables
from ..api import Model, Port
from ..errors import BittrueError
from ..files import scratch_bytes
from ..runners.apart import Apart
from ..runners.base import input_ports
from ..runners.guard import folder_of
from ..runners.named import choose, full_name, read_name
from .recipes import Made

# The arrays of all outputs, or why there are none.
Outcome: TypeAlias = Sequence[np.ndarray] | BittrueError


class Subject(ABC):
    """One model under one arithmetic or in one runtime, as one thread needs it.

    Attributes:
        inputs, outputs: what the model takes and gives.
    """

    inputs: Sequence[Port]
    outputs: Sequence[Port]

    def start(self) -> None:  # noqa: B027  most have nothing to start
        """Begin to get ready, without waiting."""

    def ready(self) -> None:  # noqa: B027  most are when they are made
        """Wait until it can run.

        Raises:
            BittrueError: it cannot.
        """

    @abstractmethod
    def run(self, inputs: Sequence[Made]) -> Sequence[Outcome]:
        """What each run gives, in order.

        Raises:
            StoppedError: another thread has called `end`.
        """

    @abstractmethod
    def end(self) -> None:
        """Make a run in progress end; another thread may call it."""

    @abstractmethod
    def another(self) -> Subject:
        """The same for another thread."""

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """End what was started."""


class Arithmetic(Subject):
    """The model under one of bittrue's numerics.

    Args:
        reset: whether every run begins with the first values of variable tensors.
    """

    def __init__(self, model: Model, name: str, executor: str, isa: str | None, reset: bool) -> None:
        self._session = model.prepare(name, executor=executor, isa=isa)
        self.inputs, self.outputs = self._session.inputs, self._session.outputs
        self._reset = reset

    def run(self, inputs: Sequence[Made]) -> Sequence[Outcome]:
        found = self._session.map(inputs, threads=1, reset=self._reset, errors="return")
        return [one if isinstance(one, BittrueError) else [*one.values()] for one in found]

    def another(self) -> Subject:
        return self  # its session is for any number of threads

    def end(self) -> None:
        self._session.interrupt()


class Runtime(Subject):
    """The model in a real runtime, in a process of its own, which takes a moment to start; unless told, the first run
    does it.

    Args:
        text: as users type it; see `bittrue.runners.named`.
        files: format to path of the model.
        like: the same model under an arithmetic: its inputs, and its outputs in their order.
        reset: as for `Arithmetic`.
    """

    def __init__(self, text: str, files: Mapping[str, Path], like: Subject, reset: bool) -> None:
        self.inputs, self.outputs = like.inputs, like.outputs
        self._made_of = text, files, like, reset
        self._apart = Apart(*read_name(text), files, like.inputs, [port.name for port in like.outputs])
        self._reset = reset

    def start(self) -> None:
        self._apart.start()

    def ready(self) -> None:
        self._apart.open()

    def run(self, inputs: Sequence[Made]) -> Sequence[Outcome]:
        runs = [[*x.values()] if isinstance(x, Mapping) else [x] for x in inputs]
        return self._apart.run(runs, self._reset)

    def another(self) -> Subject:
        made = Runtime(*self._made_of)
        made.start()
        return made

    def end(self) -> None:
        self._apart.interrupt()

    def close(self) -> None:
        self._apart.close()


def usual(model: Model) -> str:
    """The name of the arithmetic that files of this format come with."""
    return numerics_tables.default_of(model.format)


def several_inputs(model: Model) -> list[str]:
    """Names of a model's inputs; none where there is one."""
    names = [port.name for port in input_ports(model)]
    return names if len(names) > 1 else []


def versions(against: Sequence[str], model: Model) -> dict[str, str]:
    """Real runtimes by their full names, with the packages that they come from.

    Raises:
        InputError: there is no such runtime, or it has no such option.
        UnsupportedError: it is not installed, or does not read files of the model's format.
    """
    found = {}
    for text in against:
        name, options = read_name(text)
        chosen = choose(name, options)
        chosen.peer.check(model.format, chosen.title)
        found[full_name(name, options)] = f"{chosen.peer.package} {chosen.peer.version()}"
    return found


def model_file(model: Model, given: str | os.PathLike[str] | bytes) -> Path:
    """The file that a model was read from; bytes become one that stays as long as the model."""
    if not isinstance(given, bytes):
        return Path(given)
    path = folder_of(model) / f"model.{model.format}"
    scratch_bytes(path, given)
    return path


def open_team(
    model: Model,
    path: Path,
    numerics: Sequence[str],
    against: Collection[str],
    *,
    executor: str = "auto",
    isa: str | None = None,
    reset: bool = True,
) -> dict[str, Subject]:
    """Everything that answers a sample, by name, as one thread needs it.

    Args:
        model, path: the model, and the file that it was read from.
        numerics: names of arithmetics, at least one.
        against: real runtimes by their full names.
        executor, isa: of the arithmetics.
        reset: whether every run begins with the first values of variable tensors.

    Raises:
        InputError: there is no such arithmetic.
        BittrueError: one of them cannot run the model.
    """
    team: dict[str, Subject] = {name: Arithmetic(model, name, executor, isa, reset) for name in numerics}
    first = team[numerics[0]]
    return team | {text: Runtime(text, {model.format: path}, first, reset) for text in against}


def ready(team: Mapping[str, Subject]) -> None:
    """Wait until all of them can run; those that take a moment start side by side.

    Raises:
        BittrueError: one of them cannot.
    """
    for subject in team.values():
        subject.start()
    for subject in team.values():
        subject.ready()


def all_names(asked: Mapping[str, Any]) -> list[str]:
    """Names of everything that answers, arithmetics before runtimes, from what is evaluated."""
    return [*asked["numerics"], *asked["against"]]
