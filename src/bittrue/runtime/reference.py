"""The reference executor: interprets a plan with the operators' NumPy meaning, one step after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..errors import StoppedError
from ..operators import Operator, Step, find
from ..operators.core.stopping import stopped_by
from ..plan import Plan
from ..plan.schedule import check_reads
from .graphs import Graphs, State, Untrusted, carry_out, written
from .run import DEFAULT_ITERATION_LIMIT, Observer, Run, placed

if TYPE_CHECKING:
    from .profile import StepTime


class ReferenceExecutor:
    """Runs one plan. Its state lasts from run to run; everything else is local to a run.

    Args:
        state: shared by all plans of a session; None for a new one.
        iteration_limit: runs of called graphs that one run may take.
    """

    name = "reference"

    def __init__(
        self, plan: Plan, *, state: State | None = None, iteration_limit: int = DEFAULT_ITERATION_LIMIT
    ) -> None:
        self.plan = plan
        with Untrusted(f"graph '{plan.name}'"):
            check_reads(plan)
            self.state = State(plan) if state is None else state
        self._limit = iteration_limit
        self._graphs = Graphs(plan, self.state, lambda inner, shared: ReferenceExecutor(inner, state=shared))
        self._constants = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
        self._operators = [_operator(step) for step in plan.steps]
        # Positions at which a computed value is read for the last time, so that memory follows the plan's lifetimes.
        self._expiring: dict[int, list[int]] = {}
        for index, tensor in enumerate(plan.tensors):
            if tensor.kind in ("input", "computed") and tensor.last < len(plan.steps):
                self._expiring.setdefault(tensor.last, []).append(index)

    def reset(self, resources: bool = True) -> None:
        """Put all state back to its start, or the variable tensors alone."""
        self.state.reset(resources)

    def run(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None = None,
        after_step: Callable[[int], None] | None = None,
        within: Run | None = None,
        timeout: float | None = None,
    ) -> list[np.ndarray]:
        """Results in plan order, those of later stages included.

        Args:
            inputs: tensor index to array, one per plan input, already checked.
            observe: called with (name, value) for every folded tensor and every result, in execution order; names in
                called graphs begin with the graph's. Values are kept by the caller at will: they are never written.
            after_step: called with the position of each finished step (progress); later stages count on.
            within: the run that this one is part of.
            timeout: seconds after which the run ends; looked at between steps and in long loops of Python.

        Raises:
            StoppedError: the timeout has passed, or another thread ended the run. The state is as before.
        """
        if within is not None:
            return self._graphs.continued(self._stage(inputs, after_step, within), after_step, within)
        run = Run(self._limit, self.state.interrupts, observe, timeout)
        with self.state.undone_unless_finished(), stopped_by(run.check):
            return self._graphs.continued(self._stage(inputs, after_step, run), after_step, run)

    def _stage(
        self, inputs: Mapping[int, np.ndarray], after_step: Callable[[int], None] | None, run: Run
    ) -> list[np.ndarray]:
        plan, world, variables = self.plan, self._graphs.world(run), self.state.variables
        values: dict[int, np.ndarray] = {**self._constants, **inputs}

        def observe(index: int, value: np.ndarray) -> None:
            if run.observe is not None:
                run.observe(plan.scope + plan.tensors[index].name, value)

        for index in plan.folded:
            observe(index, values[index])
        for position, (step, operator) in enumerate(zip(plan.steps, self._operators, strict=True)):
            with Untrusted(step.place):
                arguments = [None if i is None else self._value(values, i) for i in step.inputs]
            try:
                run.check()
                results = carry_out(plan, step, arguments, *((world,) if operator.worldly else ()))
            except StoppedError as error:
                raise placed(error, step, position, len(plan.steps)) from None
            for index, result in zip(written(plan, step), results, strict=True):
                (variables if index in variables else values)[index] = result
                observe(index, result)
            for index in self._expiring.get(position, ()):
                values.pop(index, None)
            if after_step is not None:
                after_step(position)
        with Untrusted(f"graph '{plan.name}'"):
            return [self._value(values, i) for i in plan.outputs]

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]:
        """Median time of every step over `rounds` runs, all from the present state."""
        from .profile import step_medians, step_time

        runs = []
        for _ in range(rounds):
            with self.state.kept():
                stamps = [time.perf_counter()]
                self._stage(inputs, lambda _, to=stamps: to.append(time.perf_counter()), self.new_run())  # type: ignore[misc]
                runs.append(stamps)
        times = [step_time(self.plan, position, seconds) for position, seconds in enumerate(step_medians(runs))]
        if self.plan.later is None:
            return times
        with self.state.kept():
            return times + self._graphs.profile_later(self._stage(inputs, None, self.new_run()), rounds)

    def new_run(self, timeout: float | None = None) -> Run:
        """What ends a run that begins now."""
        return Run(self._limit, self.state.interrupts, timeout=timeout)

    def _value(self, values: Mapping[int, np.ndarray], index: int) -> np.ndarray:
        return self.state.variables[index] if index in self.state.variables else values[index]


def _operator(step: Step) -> Operator:
    operator = find(step.operator)
    if operator is None:
        raise KeyError(step.operator)
    return operator
