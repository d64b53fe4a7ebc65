"""What answers: an arithmetic that bittrue reproduces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import numerics as numerics_tables
from ..api import Model, Port

Run = Callable[[np.ndarray], list[np.ndarray]]


@dataclass(frozen=True)
class Subject:
    """One model under one arithmetic, as one thread needs it.

    Attributes:
        inputs, outputs: what the model takes and gives.
        run: the arrays of all outputs for one input.
        end: makes runs in progress end.
    """

    inputs: Sequence[Port]
    outputs: Sequence[Port]
    run: Run
    end: Callable[[], None]


def usual(model: Model) -> str:
    """The name of the arithmetic that files of this format come with."""
    return numerics_tables.default_of(model.format)


def opener(
    model: Model, name: str, *, executor: str = "auto", isa: str | None = None, reset: bool = True
) -> Callable[[], Subject]:
    """What opens the model under the arithmetic called `name`, once for each thread.

    With `reset`, every run begins with the first values of variable tensors.

    Raises:
        InputError: there is no such arithmetic.
        BittrueError: it cannot run the model.
    """
    numerics_tables.find(name)

    def open_one() -> Subject:
        session = model.prepare(name, executor=executor, isa=isa)

        def run(x: np.ndarray) -> list[np.ndarray]:
            if reset:
                session.reset()
            return list(session.run(x).values())

        return Subject(session.inputs, session.outputs, run, session.interrupt)

    return open_one
