"""What families of faults share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...operators import Step
from ...plan import Plan
from ..result import Cause
from .case import Hypothesis, Values, change_writer

Array = np.ndarray


def cause(name: str, text: str, kind: str = "data") -> Cause:
    """A fault."""
    return Cause(name, f"{text}: a fault", kind, False)


def of_result(name: str, text: str, change: Callable[[Array], Array | None]) -> Hypothesis:
    """The right result, changed."""
    return Hypothesis(cause(name, text), "result", result=lambda y, plan: change(y))


def of_step(name: str, text: str, change: Callable[[Step], Step | None]) -> Hypothesis:
    """The step that writes the result, prepared differently. None where `change` has nothing to act on."""

    def changed(plan: Plan) -> Plan:
        return change_writer(plan, change)

    return Hypothesis(cause(name, text, "parameters"), "step", plan=changed)


def of_inputs(name: str, text: str, change: Mapping[str, Callable[[Array], Array]]) -> Hypothesis:
    """Inputs read differently, by name."""

    def values(sets: Sequence[Values], position: int) -> Values | None:
        given = dict(sets[position])
        for key, function in change.items():
            given[key] = function(given[key])
        return given

    return Hypothesis(cause(name, text), "inputs", values=values)


def of_computation(name: str, text: str, compute: Callable[[Plan, Values], Any], kind: str = "order") -> Hypothesis:
    """The result computed in another way altogether."""
    return Hypothesis(cause(name, text, kind), "computation", compute=compute)
