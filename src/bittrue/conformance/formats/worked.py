"""A case with its answers, worked out once for all formats that it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...api import Session
from ...errors import BittrueError
from ...explain.accumulators import accumulators, channel_axis, tie_distances
from ...plan import Plan
from ..suite import SuiteCase


@dataclass(frozen=True, eq=False)
class Sums:
    """What the accumulators of one output hold before they are rescaled.

    Attributes:
        values: in the shape of the output, of the type of the register: s32 or s64.
        tie_distance: how far each, times its multiplier, is from the nearest tie, 0 to 1/2; None where the plan holds
            no multiplier for them.
        multiplier, exponent: of each channel, or of all; None where the rule has no integers.
        factor: likewise, for rules that multiply by a real number of binary32 or binary64.
        channel_axis: the axis that they belong to.
    """

    values: np.ndarray
    tie_distance: np.ndarray | None
    multiplier: np.ndarray | None
    exponent: np.ndarray | None
    factor: np.ndarray | None
    channel_axis: int


class Worked:
    """A case under one numerics.

    Args:
        case: one that a device must run; of others nothing is worked out.
        numerics: whose answers are the expected ones.
    """

    def __init__(self, case: SuiteCase, numerics: str) -> None:
        self.case = case
        self.numerics = numerics

    @cached_property
    def session(self) -> Session:
        """Raises BittrueError when the numerics cannot run the case."""
        return self.case.model.prepare(self.numerics)

    @property
    def plan(self) -> Plan:
        return self.session.plan

    @cached_property
    def outputs(self) -> Mapping[str, np.ndarray]:
        """What the numerics answers, by output name; nothing for a case that a device must refuse."""
        return {} if self.case.rejects else self.session.run(dict(self.case.inputs))

    @cached_property
    def refuses(self) -> bool:
        """Whether the numerics itself refuses the case: of what only a specification forbids, its runtime may not."""
        try:
            self.session.run(dict(self.case.inputs))
        except BittrueError:
            return True
        return False

    @cached_property
    def accumulators(self) -> Mapping[str, Sums]:
        """By name of the tensor that the sums become; empty where the operator has none."""
        if self.case.rejects:
            return {}
        plan = self.plan
        steps = [step for step in plan.steps if step.accumulator is not None]
        if not steps:
            return {}
        values = self.session.trace(dict(self.case.inputs))
        found = {}
        for step in steps:
            inputs = [None if i is None else _value(plan, i, values) for i in step.inputs]
            sums = accumulators(plan, step, inputs)
            if sums is not None:
                m, e, factor = (step.arrays.get(name) for name in ("multiplier", "exponent", "factor"))
                axis = channel_axis(step, sums.ndim) if sums.ndim else 0
                name = plan.tensors[step.outputs[0]].name
                # Registers of 32 bits wrap, so what they hold fits.
                register = np.int64 if step.rules["accumulate"] == "s64" else np.int32
                found[name] = Sums(sums.astype(register), tie_distances(step, sums), m, e, factor, axis)
        return found


def _value(plan: Plan, index: int, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
    tensor = plan.tensors[index]
    return tensor.value if tensor.value is not None else values.get(tensor.name)
