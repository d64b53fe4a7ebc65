"""The native executor: hands a plan to the C++ core, which runs it without coming back to Python.

A step without a native twin is done by its reference in between; `Plan.execution` names such steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import BittrueError, InputError, ResourceError
from ..operators import Step, find
from ..plan import Plan
from ..plan.passes import make_schedule
from ..plan.schedule import Schedule, Then
from .isa import choose_isa, native_module
from .profile import StepTime, step_time
from .reference import Observer, initial_state


class NativeExecutor:
    """Runs one schedule of a plan. Holds every buffer; runs from several threads wait for each other."""

    name = "native"

    def __init__(
        self, plan: Plan, *, threads: int = 1, isa: str | None = None, passes: Sequence[str] | None = None
    ) -> None:
        module = native_module()
        if module is None:
            raise InputError(
                "BT-EXECUTOR", "the C++ core is not built", place="executor", advice="pip install ., or use 'reference'"
            )
        self.plan = plan
        self.isa = choose_isa(isa)
        self.threads = threads
        self._module = module
        schedule = make_schedule(plan, passes)
        # Variables live in the program, so a plan that has any gets one program for runs and traces alike.
        if any(tensor.kind == "variable" for tensor in plan.tensors):
            schedule = Schedule(plan, plan.steps)
        self._main = _Program(module, schedule, threads, self.isa)

    @property
    def execution(self) -> tuple[str, ...]:
        """How the plan is carried out, for people."""
        return self._main.execution(self.isa, self.threads)

    @property
    def missing(self) -> Mapping[int, str]:
        """Positions in the plan of steps without a native twin, with the reason."""
        return self._observed.missing

    def run(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None = None,
        after_step: Callable[[int], None] | None = None,
    ) -> list[np.ndarray]:
        """Outputs in plan order; arguments as for `ReferenceExecutor.run`."""
        if observe is None and after_step is None:
            return self._main.run(inputs)
        program = self._main if observe is None else self._observed
        return program.run_by_step(inputs, observe, after_step)

    @property
    def run_one(self) -> Callable[[Any], np.ndarray | None] | None:
        """`run` for plans with one input and one output; None for all others.

        It returns None when it is not given an array of exactly the input's type and shape.
        """
        return self._main.run_one()

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]:
        """Median time of every step that runs, all rounds from the present values of the variable tensors."""
        return self._main.profile(inputs, rounds)

    def reset(self) -> None:
        """Put variable tensors back to their initial value."""
        self._main.reset()

    @cached_property
    def _observed(self) -> _Program:
        """A program in which every tensor of the plan exists."""
        if self._main.schedule.steps == self.plan.steps and not self._main.schedule.parts:
            return self._main
        return _Program(self._module, Schedule(self.plan, self.plan.steps), self.threads, self.isa)


class _Program:
    """A schedule in the C++ core, with the reference filling its gaps."""

    def __init__(self, module: ModuleType, schedule: Schedule, threads: int, isa: str) -> None:
        self.schedule = schedule
        self.plan = schedule.plan
        offsets, arena = schedule.offsets()
        try:
            self._program = module.Program(
                [_tensor_row(schedule, offsets, i) for i in range(len(self.plan.tensors))],
                [_step_row(step, schedule.then.get(step.index)) for step in schedule.steps],
                arena,
                threads,
                isa,
            )
        except MemoryError:
            raise ResourceError("BT-MEMORY", "out of memory", place=f"graph '{self.plan.name}'") from None
        self.missing: dict[int, str] = dict(self._program.missing)
        self._outputs = [(i, self.plan.tensors[i].shape, self.plan.tensors[i].type.numpy) for i in self.plan.outputs]
        self._length = len(schedule.steps)
        self._undefined = module.StepUndefined
        # Several threads may share a session, but there is one set of buffers.
        self._lock = threading.Lock()
        # Inputs and outputs that are passed to C++ as bytes, or that no step computes.
        ends = [self.plan.tensors[i] for i in (*self.plan.inputs, *self.plan.outputs)]
        self._opaque = any(t.value is not None or _plain(np.empty(0, t.type.numpy)).dtype != t.type.numpy for t in ends)

    def execution(self, isa: str, threads: int) -> tuple[str, ...]:
        native = self._length - len(self.missing)
        lines = [f"native executor, {isa}, {threads} thread{'s' if threads > 1 else ''}: {native} steps native"]
        lines += [
            f"step {position} {self.schedule.steps[position].source} runs on the reference: {reason}"
            for position, reason in self.missing.items()
        ]
        return (*self.schedule.notes, *lines)

    def reset(self) -> None:
        with self._lock:
            self._program.reset()

    def run(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        if self.missing or self._opaque:
            with self._lock:
                return self._run_with_gaps(inputs)
        results = [(i, np.empty(shape, dtype)) for i, shape, dtype in self._outputs]
        with self._lock:
            try:
                self._program.run(list(inputs.items()), results, 0, self._length)
            except self._undefined as error:
                self._resume(int(str(error)), self._length)
                return self._results()
        return [value for _, value in results]

    def run_one(self) -> Callable[[Any], np.ndarray | None] | None:
        if self.missing or self._opaque or len(self.plan.inputs) != 1 or len(self._outputs) != 1:
            return None
        call, empty, length, lock = self._program.run_one, np.empty, self._length, self._lock
        undefined = self._undefined
        source, (target, shape, dtype) = self.plan.inputs[0], self._outputs[0]

        def run(x: Any) -> np.ndarray | None:
            y = empty(shape, dtype)
            with lock:
                try:
                    return y if call(source, x, target, y, length) else None
                except undefined as error:
                    self._resume(int(str(error)), length)
                    return self._value(target)

        return run

    def _run_with_gaps(self, inputs: Mapping[int, np.ndarray]) -> list[np.ndarray]:
        self._write(inputs)
        for first, last in self._stretches():
            self._native(first, last)
            if last in self.missing:
                self._refer(last)
        return self._results()

    def run_by_step(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None,
        after_step: Callable[[int], None] | None,
    ) -> list[np.ndarray]:
        with self._lock:
            return self._run_by_step(inputs, observe, after_step)

    def _run_by_step(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None,
        after_step: Callable[[int], None] | None,
    ) -> list[np.ndarray]:
        self._write(inputs)
        for position, step in enumerate(self.schedule.steps):
            if position in self.missing:
                self._refer(position)
            else:
                self._native(position, position + 1)
            if observe is not None:
                for index in step.outputs:
                    observe(index, self._value(index))
                for state in self._states(step):
                    observe(state, self._value(state))
            if after_step is not None:
                after_step(position)
        if after_step is not None:
            # Steps that passes removed count as done, so that progress ends where callers expect it.
            for position in range(self._length, len(self.plan.steps)):
                after_step(position)
        return self._results()

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]:
        import statistics

        with self._lock:
            variables = {i: self._value(i) for i, t in enumerate(self.plan.tensors) if t.kind == "variable"}
            # Once untimed: caches are warm then, and values without a result raise the reference's error.
            self._run_with_gaps(inputs)
            self._write(variables)
            runs = [self._timed(inputs, variables) for _ in range(rounds)]
        # Removed steps are gone from the schedule, so positions are found by node.
        positions = {step.index: position for position, step in enumerate(self.plan.steps)}
        return [
            step_time(
                self.plan,
                positions[step.index],
                statistics.median(run[i] for run in runs),
                f"reference: {self.missing[i]}" if i in self.missing else self._program.note(i),
            )
            for i, step in enumerate(self.schedule.steps)
        ]

    def _timed(self, inputs: Mapping[int, np.ndarray], variables: Mapping[int, np.ndarray]) -> list[float]:
        seconds: list[float] = []
        self._write(inputs)
        for first, last in self._stretches():
            seconds += self._program.timed(first, last)
            if last in self.missing:
                start = time.perf_counter()
                self._refer(last)
                seconds.append(time.perf_counter() - start)
        self._write(variables)
        return seconds

    def _native(self, first: int, last: int) -> None:
        try:
            self._program.run([], [], first, last)
        except self._undefined as error:
            self._resume(int(str(error)), last)

    def _resume(self, position: int, last: int) -> None:
        """A native kernel met values without a defined result: the reference explains, or knows better."""
        self._refer(position)
        self._native(position + 1, last)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Runs of native steps [first, last) between those that are missing."""
        first = 0
        for position in (*sorted(self.missing), self._length):
            yield first, position
            first = position + 1

    def _write(self, inputs: Mapping[int, np.ndarray]) -> None:
        self._program.run([(index, _plain(value)) for index, value in inputs.items()], [], 0, 0)

    def _value(self, index: int) -> np.ndarray:
        tensor = self.plan.tensors[index]
        if tensor.value is not None:
            return tensor.value
        value = np.empty(tensor.shape, tensor.type.numpy)
        self._program.run([], [(index, _plain(value))], 0, 0)
        return value

    def _results(self) -> list[np.ndarray]:
        # Constants among the outputs belong to the plan.
        return [value if value.flags.writeable else value.copy() for value in map(self._value, self.plan.outputs)]

    def _states(self, step: Step) -> list[int]:
        return [i for i in step.inputs if i is not None and self.plan.tensors[i].kind == "variable"]

    def _arguments(self, step: Step) -> list[np.ndarray | None]:
        inputs = step.inputs[:-1] if step.index in self.schedule.then else step.inputs
        return [None if i is None else self._value(i) for i in inputs]

    def _refer(self, position: int) -> None:
        step = self.schedule.steps[position]
        operator = find(step.operator)
        if operator is None:
            raise KeyError(step.operator)
        try:
            results = operator.reference(step, self._arguments(step))
        except MemoryError:
            raise ResourceError("BT-MEMORY", "out of memory", place=step.place) from None
        except BittrueError as error:
            if error.place:
                raise
            raise type(error)(error.code, error.message, place=step.place, advice=error.advice) from None
        if "fused_table" in step.arrays:
            # What a pass moved into this step: stored values, counted from the smallest of the type.
            (value,) = results
            lowest = np.iinfo(value.dtype).min
            moved = step.arrays["fused_table"][value.astype(np.intp) - lowest].astype(np.int64) + lowest
            results = [moved.astype(value.dtype)]
        then = self.schedule.then.get(step.index)
        if then is not None:
            added = find(then.step.operator)
            other = self._value(step.inputs[-1] or 0)
            if added is None:
                raise KeyError(then.step.operator)
            results = added.reference(then.step, [results[0], other] if then.result_first else [other, results[0]])
        targets = [*step.outputs]
        if operator.stateful:
            targets += self._states(step)
        for index, value in zip(targets, results, strict=True):
            self._program.run([(index, _plain(value))], [], 0, 0)


def _plain(value: np.ndarray) -> np.ndarray:
    """`value` in C order, as bytes where the C++ side does not know the type."""
    value = np.ascontiguousarray(value).reshape(value.shape)
    if value.dtype.kind in "biu" or value.dtype in (np.float32, np.float64):
        return value
    return value.reshape(-1).view(np.uint8)


def _tensor_row(schedule: Schedule, offsets: Mapping[int, int], index: int) -> tuple[Any, ...]:
    tensor = schedule.plan.tensors[index]
    part = schedule.parts.get(index)
    stride = -1 if part is None else part.row_stride
    value = tensor.value
    if index in offsets:
        return tensor.dtype, tensor.shape, "arena", offsets[index], stride, None
    if tensor.kind == "variable":
        return tensor.dtype, tensor.shape, "variable", 0, -1, _plain(initial_state(tensor))
    if value is not None:
        return tensor.dtype, tensor.shape, "constant", 0, -1, _plain(value)
    return tensor.dtype, (), "none", 0, -1, None


def _step_row(step: Step, then: Then | None = None) -> tuple[Any, ...]:
    return (
        step.operator,
        dict(step.rules),
        dict(step.parameters),
        {name: _plain(array) for name, array in step.arrays.items()},
        [-1 if i is None else i for i in step.inputs],
        list(step.outputs),
        None if step.accumulator is None else step.accumulator.magnitude,
        True if step.accumulator is None else step.accumulator.wraps,
        step.work,
        None if then is None else (_step_row(then.step), then.result_first),
    )
