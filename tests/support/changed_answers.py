"""Devices in this process whose conduct or arithmetic is wrong in a known way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import bittrue
from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.suite import SuiteCase

Outputs = Mapping[str, np.ndarray]
Change = Callable[[SuiteCase, Outputs], "Answer | Outputs"]


class Planted(Device):
    """Computes under a numerics, then does something else with what came out.

    Args:
        change: from the case and the right outputs to the answer; None leaves them alone.
        numerics: whose outputs are right.
        before: changes the case that is computed.
    """

    spec, title, reads = "planted", "planted device", ("tflite",)

    def __init__(
        self,
        change: Change | None = None,
        numerics: str = "litert",
        before: Callable[[SuiteCase], SuiteCase] | None = None,
    ) -> None:
        self.change, self.base, self.before = change, numerics, before
        self.asked: list[str] = []

    def answer(self, case: SuiteCase) -> Answer:
        self.asked.append(case.identity)
        try:
            asked = case if self.before is None else self.before(case)
            outputs: Outputs = dict(asked.model.prepare(self.base).run(dict(asked.inputs)))
        except bittrue.BittrueError as error:
            return Answer("refused", text=error.message)
        given = outputs if self.change is None else self.change(case, outputs)
        return given if isinstance(given, Answer) else Answer("outputs", given)


def each(function: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Every output changed alike; results keep type and shape."""
    return lambda case, outputs: {n: function(v).astype(v.dtype) for n, v in outputs.items()}


def above(amount: int, every: int = 1, start: int = 0) -> Change:
    """Every so many-th number of 8-bit outputs is larger, and saturates."""

    def changed(value: np.ndarray) -> np.ndarray:
        wide = value.astype(np.int64).reshape(-1)
        wide[start::every] += amount
        ends = np.iinfo(value.dtype)
        return np.clip(wide, ends.min, ends.max).reshape(value.shape)

    return each(changed)


def only(operator: str, change: Change) -> Change:
    """The change for one operator alone."""
    return lambda case, outputs: change(case, outputs) if case.operator == operator else outputs
