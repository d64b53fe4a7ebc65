"""The reference executor: interprets a plan with the operators' NumPy meaning, one step after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping

import numpy as np

from ..errors import BittrueError, ResourceError
from ..operators import Operator, Step, find
from ..plan import Plan, PlanTensor
from .profile import StepTime, step_medians, step_time

Observer = Callable[[int, np.ndarray], None]


class ReferenceExecutor:
    """Runs one plan. Keeps the values of variable tensors between runs; everything else is local to a run."""

    name = "reference"

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._constants = {i: t.value for i, t in enumerate(plan.tensors) if t.value is not None}
        self._operators = [_operator(step) for step in plan.steps]
        # Positions at which a computed value is read for the last time, so that memory follows the plan's lifetimes.
        self._expiring: dict[int, list[int]] = {}
        for index, tensor in enumerate(plan.tensors):
            if tensor.kind in ("input", "computed") and tensor.last < len(plan.steps):
                self._expiring.setdefault(tensor.last, []).append(index)
        self.variables: MutableMapping[int, np.ndarray] = {}
        self.reset()

    def reset(self) -> None:
        """Set every variable tensor to its first value."""
        for index, tensor in enumerate(self.plan.tensors):
            if tensor.kind == "variable":
                self.variables[index] = initial_state(tensor)

    def run(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None = None,
        after_step: Callable[[int], None] | None = None,
    ) -> list[np.ndarray]:
        """Outputs in plan order.

        Args:
            inputs: tensor index to array, one per plan input, already checked.
            observe: called with (tensor index, value) for every result, in execution order. Values are kept by the
                caller at will: they are never written again.
            after_step: called with the position of each finished step (progress).
        """
        plan = self.plan
        values: dict[int, np.ndarray] = {**self._constants, **inputs}
        for position, (step, operator) in enumerate(zip(plan.steps, self._operators, strict=True)):
            arguments = [None if i is None else self._value(values, i) for i in step.inputs]
            try:
                results = operator.reference(step, arguments)
            except MemoryError:
                raise ResourceError("BT-MEMORY", "out of memory", place=step.place) from None
            except BittrueError as error:
                raise (
                    error
                    if error.place
                    else type(error)(error.code, error.message, place=step.place, advice=error.advice)
                ) from None
            for index, result in zip(step.outputs, results, strict=False):
                values[index] = result
                if observe is not None:
                    observe(index, result)
            if operator.stateful:
                self._keep_state(step, results[len(step.outputs) :], observe)
            for index in self._expiring.get(position, ()):
                values.pop(index, None)
            if after_step is not None:
                after_step(position)
        return [self._value(values, i) for i in plan.outputs]

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]:
        """Median time of every step over `rounds` runs, all from the present values of the variable tensors."""
        before = dict(self.variables)
        runs = []
        for _ in range(rounds):
            stamps = [time.perf_counter()]
            self.run(inputs, after_step=lambda _, stamps=stamps: stamps.append(time.perf_counter()))  # type: ignore[misc]
            runs.append(stamps)
            # Values are replaced, never written, so a shallow copy brings the state back.
            self.variables = dict(before)
        return [step_time(self.plan, position, seconds) for position, seconds in enumerate(step_medians(runs))]

    def _value(self, values: Mapping[int, np.ndarray], index: int) -> np.ndarray:
        return self.variables[index] if index in self.variables else values[index]

    def _keep_state(self, step: Step, states: list[np.ndarray], observe: Observer | None) -> None:
        variables = [i for i in step.inputs if i is not None and i in self.variables]
        for index, state in zip(variables, states, strict=True):
            self.variables[index] = state
            if observe is not None:
                observe(index, state)


def initial_state(tensor: PlanTensor) -> np.ndarray:
    """The first value of a variable tensor: its zero point (real zero) for s8, 0 for every other type."""
    quantization = tensor.quantization if tensor.dtype == "s8" else None
    return np.full(tensor.shape, 0 if quantization is None else quantization.zero_points[0], tensor.type.numpy)


def _operator(step: Step) -> Operator:
    operator = find(step.operator)
    if operator is None:
        raise KeyError(step.operator)
    return operator
