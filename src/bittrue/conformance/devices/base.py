"""What a device under test is to bittrue: it is shown one model and its inputs at a time, and whatever it does is an
answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...names import brief
from ..suite import SuiteCase

# What a device can answer. All but the first three are faults of the device.
STATUSES = ("outputs", "refused", "skipped", "crashed", "timed out", "raised", "unreadable")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a device made of one case.

    Attributes:
        status: ``"outputs"``: it ran; ``"refused"``: it says that it does not run such a model; ``"skipped"``:
            nobody asked it: a folder of recorded outputs has none for this case; ``"crashed"``: its process ended;
            ``"timed out"``; ``"raised"``: an exception or failure that is no refusal; ``"unreadable"``: it left
            something that is no array, or nothing.
        outputs: by name, as the device gave them: types and shapes may be wrong.
        text: what it said.
        seconds: how long it took.
        printed: the end of what it wrote on standard output and standard error, where somebody kept it.
    """

    status: str
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    text: str = ""
    seconds: float = 0.0
    printed: str = ""


class Device(ABC):
    """One device.

    Attributes:
        spec: what the user typed.
        title: for people, with version.
        reads: model formats that it takes, the preferred one first.
        numerics: the numerics that stands for it where that is known; empty for a black box. Verdicts never use it.
    """

    spec: str
    title: str
    reads: tuple[str, ...] = ("tflite", "onnx")
    numerics: str = ""

    def __repr__(self) -> str:
        # Classes of users may set neither.
        return f"{type(self).__name__}({brief(getattr(self, 'spec', ''))}: {brief(getattr(self, 'title', ''))})"

    @abstractmethod
    def answer(self, case: SuiteCase) -> Answer:
        """Load the case's model, run it on its inputs, and return what came of it. Never raises what the device did."""

    def answers(self, cases: Iterable[SuiteCase]) -> Iterator[Answer]:
        """The answers to several cases, in their order; devices that are expensive to start take many at once."""
        for case in cases:
            yield self.answer(case)

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """End what was started."""
