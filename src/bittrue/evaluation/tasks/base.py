"""What a task makes of outputs: what a sample is answered with, and figures over all samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...api import Port
from ...errors import BittrueError, InputError
from ..placement import Placement


@dataclass(slots=True)
class Answer:
    """What one arithmetic says about one sample.

    Attributes:
        prediction: what it says; two arithmetics whose predictions differ make a flip (`Task.difference`).
        margin: how far it is from saying something else, in the real numbers that the output stands for.
        details: what figures need, by name; see `Task.columns`.
        digests: SHA-256 of every output.
    """

    prediction: Any
    margin: float
    details: Mapping[str, Any] = field(default_factory=dict)
    digests: tuple[str, ...] = ()


class Figures(ABC):
    """Figures of one arithmetic, added up sample by sample."""

    @abstractmethod
    def add(self, label: Any, answer: Answer) -> None:
        """One more sample; `label` is never None."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Names and figures, fit for JSON; only numbers may be asked for (``--require``)."""


class Task(ABC):
    """A question that a model answers.

    Attributes:
        name: for command lines.
        headline: the figure that matters most.
        lower: figures that are the better the lower they are: ``--require`` says how large they may be.
        keys: what a recipe may say about it, in the table ``[task]``: keyword arguments of the class.
        columns: what results have for every arithmetic beside margin and digests: name -> type as Arrow writes it
            (``"int64"``, ``"double"``, ``"string"``, ``"list<int64>"`` ...). ``"prediction"`` is one of them.
    """

    name: str
    headline: str
    lower: Collection[str] = frozenset()
    keys: Sequence[str] = ()
    columns: ClassVar[Mapping[str, str]]

    @abstractmethod
    def check(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Raises InputError where a model with these inputs and outputs cannot answer the question."""

    def classes(self, outputs: Sequence[Port]) -> int | None:
        """How many classes answers are numbers of; None: nobody knows, 0: they are no such numbers."""
        return None

    @abstractmethod
    def answer(
        self,
        runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> Answer:
        """The answer, without digests, that outputs mean.

        Args:
            runs: first input and outputs of every run of the sample; mostly there is one.
            inputs, outputs: the ports that they belong to.
        """

    def answers(
        self,
        samples: Sequence[Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
    ) -> list[Answer | BittrueError]:
        """`answer` for many samples, each with its own runs; what is wrong with one stands in its place."""
        found: list[Answer | BittrueError] = []
        for runs in samples:
            try:
                found.append(self.answer(runs, inputs, outputs))
            except BittrueError as error:
                found.append(error)
        return found

    def check_label(self, label: Any) -> None:  # noqa: B027  most take what sources give
        """Raises InputError where a sample cannot have this label, which is never None."""

    def judged(self, answer: Answer, truth: Any, placement: Placement | None) -> Answer:
        """The answer with what figures need to know of it beside the label; called for samples with labels.

        Args:
            answer: what `answer` gave.
            truth: the label, or what it names.
            placement: of the image in the model's input; None for samples that are no images.

        Raises:
            InputError: the answer and the label cannot belong together.
        """
        return answer

    @abstractmethod
    def right(self, label: Any, answer: Answer) -> bool | None:
        """Whether the answer is right; None where a single answer is neither right nor wrong."""

    def difference(self, one: Answer, two: Answer) -> float | None:
        """How far apart two answers are, which is what flips are listed by; None where they say the same."""
        return None if one.prediction == two.prediction else min(one.margin, two.margin)

    def shown(self, value: Any) -> Any:
        """What lists of flips say of a label or a prediction: small plain data, fit for JSON."""
        return value

    @abstractmethod
    def figures(self, classes: Sequence[str]) -> Figures:
        """Figures of no sample.

        Args:
            classes: names of the classes by number; may be empty.
        """


def real(values: np.ndarray, port: Port) -> np.ndarray:
    """The real numbers that an input or output stands for, as float64."""
    numbers = values.astype(np.float64)
    if port.scale is None or port.zero_point is None or values.dtype.kind not in "iu":
        return numbers
    return (numbers - port.zero_point) * port.scale


def only(runs: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]) -> Sequence[np.ndarray]:
    """The outputs of a sample that is one run."""
    if len(runs) != 1:
        raise InputError("BT-TASK", f"the answer comes from one run, the sample has {len(runs)}")
    return runs[0][1]
