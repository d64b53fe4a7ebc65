"""The native executor: hands a plan to the C++ core, which runs it without coming back to Python.

A step without a native twin is done by its reference in between; `Plan.execution` names such steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, StoppedError, out_of_memory
from ..operators import Step, find
from ..operators.core.stopping import stopped_by
from ..plan import Plan, PlanTensor
from ..plan.passes import make_schedule
from ..plan.schedule import Schedule, Then, check_reads
from .graphs import Graphs, State, Untrusted, carry_out, initial_state, written
from .isa import choose_isa, native_module
from .run import DEFAULT_ITERATION_LIMIT, Observer, Run, placed, reentered

if TYPE_CHECKING:
    from .profile import StepTime

# A call's arguments and its deadline to output name and array.
RunCall = Callable[[tuple[Any, ...], float | None], "dict[str, np.ndarray] | None"]


class NativeExecutor:
    """Runs one schedule of a plan. Holds every buffer; runs from several threads wait for each other.

    Args:
        state: shared by all plans of a session; None for a new one.
        iteration_limit: runs of called graphs that one run may take.
    """

    name = "native"

    def __init__(
        self,
        plan: Plan,
        *,
        threads: int = 1,
        isa: str | None = None,
        passes: Sequence[str] | None = None,
        state: State | None = None,
        iteration_limit: int = DEFAULT_ITERATION_LIMIT,
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
        self._limit = iteration_limit
        # Variable tensors live in the program; between the stages of a run they pass through the state.
        self._shares_variables = state is not None or plan.later is not None
        with Untrusted(f"graph '{plan.name}'"):
            self._prepare(plan, passes, state)

    def _prepare(self, plan: Plan, passes: Sequence[str] | None, state: State | None) -> None:
        threads, isa = self.threads, self.isa
        check_reads(plan)
        self.state = State(plan) if state is None else state

        def make(inner: Plan, shared: State) -> NativeExecutor:
            return NativeExecutor(inner, threads=threads, isa=isa, passes=passes, state=shared)

        self._graphs = Graphs(plan, self.state, make)
        schedule = make_schedule(plan, passes)
        # A plan that has variables gets one program for runs and traces alike.
        self._variables = [i for i, tensor in enumerate(plan.tensors) if tensor.kind == "variable"]
        if self._variables:
            schedule = Schedule(plan, plan.steps)
        self._main = _Program(self._module, schedule, threads, isa, self._graphs)
        self._alone = plan.later is None and not self._main.driven
        # Runs that reach beyond one program.
        self._turn = self._module.Turn()
        self._all_tensors: _Program | None = None

    @property
    def execution(self) -> tuple[str, ...]:
        """How the plan is carried out, for people."""
        lines = self._main.execution(self.isa, self.threads)
        for executor in self._graphs.called():
            if isinstance(executor, NativeExecutor):
                lines += tuple(f"{executor.plan.scope.removesuffix('::')}: {line}" for line in executor.execution)
        return lines

    @property
    def missing(self) -> Mapping[int, str]:
        """Positions in the plan of steps without a native twin, with the reason."""
        return self._observed.missing

    def kernel(self, position: int) -> str:
        """Which kernel carries out the step at `position` of the plan, where every tensor is wanted."""
        return self._observed.note(position)

    def run(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None = None,
        after_step: Callable[[int], None] | None = None,
        within: Run | None = None,
        timeout: float | None = None,
    ) -> list[np.ndarray]:
        """Results in plan order; arguments and errors as for `ReferenceExecutor.run`, ended inside of steps as well."""
        run = within or Run(self._limit, self.state.interrupts, observe, timeout)
        if self._alone and not self._shares_variables:
            return self._stage(inputs, after_step, run)
        with self._turn_of(run):
            if within is not None:
                return self._graphs.continued(self._stage(inputs, after_step, run), after_step, run)
            with self.state.undone_unless_finished():
                return self._graphs.continued(self._stage(inputs, after_step, run), after_step, run)

    def _stage(
        self, inputs: Mapping[int, np.ndarray], after_step: Callable[[int], None] | None, run: Run
    ) -> list[np.ndarray]:
        program = self._main if run.observe is None else self._observed
        if self._shares_variables and self._variables:
            program.write({i: self.state.variables[i] for i in self._variables})
        if run.observe is None and after_step is None:
            results = program.run(inputs, run)
        else:
            results = program.run_by_step(inputs, after_step, run)
        if self._shares_variables and self._variables:
            self.state.variables.update(program.read(self._variables))
        return results

    def run_samples(self, count: int, given: list[Any], from_start: bool, run: Run) -> tuple[int, list[np.ndarray]]:
        """How many of the first of `count` samples run without Python, and for every output an array with their results
        along a new first axis; `run` is for those behind them.

        Args:
            given: an array per input of the first sample, then of the second one, and so on; or an array per input with
                all samples, joined along its first axis.
            from_start: variables have their first values before every sample.
            run: what ends all of them.
        """
        if not self._alone or self._shares_variables:
            return 0, []
        return self._main.run_samples(count, given, from_start and bool(self._variables), run)

    @property
    def run_call(self) -> RunCall | None:
        """`run` of the arguments of a call, with a deadline, for plans that need nothing else; None for all others.

        It gives output name to array; None for what it leaves to `run`: arguments that are not one array per input, or
        a dictionary of them, of exactly the inputs' types and shapes, and values without a defined result. `failure`
        says what its errors mean.
        """
        return self._main.run_call() if self._alone and not self._shares_variables else None

    def failure(self, error: Exception, timeout: float | None) -> Exception:
        """What callers of `run_call` shall see of an error that it raised."""
        return self._main.failure(error, self.new_run(timeout))

    def new_run(self, timeout: float | None = None) -> Run:
        """What ends a run that begins now."""
        return Run(self._limit, self.state.interrupts, timeout=timeout)

    @contextmanager
    def _turn_of(self, run: Run) -> Iterator[None]:
        with _typed(self._module, run), self._turn.turn(run.deadline, self.state.interrupts, run.seen):
            yield

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]:
        """Median time of every step that runs, all rounds from the present state."""
        with self._turn_of(self.new_run()), self.state.kept():
            if self._shares_variables:
                self._main.write({i: self.state.variables[i] for i in self._variables})
            times = self._main.profile(inputs, rounds, self.new_run, self.state)
            if self.plan.later is None:
                return times
            return times + self._graphs.profile_later(self._stage(inputs, None, self.new_run()), rounds)

    def reset(self, resources: bool = True) -> None:
        """Put all state back to its start, or the variable tensors alone."""
        with self._turn_of(self.new_run()):
            self.state.reset(resources)
            self._main.reset()

    @property
    def _observed(self) -> _Program:
        """A program in which every tensor of the plan exists."""
        if self._main.schedule.steps == self.plan.steps and not self._main.schedule.parts:
            return self._main
        if self._all_tensors is None:
            schedule = Schedule(self.plan, self.plan.steps)
            self._all_tensors = _Program(self._module, schedule, self.threads, self.isa, self._graphs)
        return self._all_tensors


class _Program:
    """A schedule in the C++ core, with the reference filling its gaps."""

    def __init__(self, module: ModuleType, schedule: Schedule, threads: int, isa: str, graphs: Graphs) -> None:
        self.schedule = schedule
        self.plan = schedule.plan
        self._graphs = graphs
        # Steps that reach beyond the program, or whose results have a shape that only they know, are done from here.
        self.driven = {p for p, step in enumerate(schedule.steps) if _is_driven(self.plan, step)}
        # Values of tensors that have no memory in the program.
        self._held: dict[int, np.ndarray] = {}
        offsets, arena = schedule.offsets()
        self._program = module.Program(
            _tensor_rows(schedule, offsets),
            [
                _no_step(self.plan, step, offsets)
                if position in self.driven
                else _step_row(step, _then(schedule, step))
                for position, step in enumerate(schedule.steps)
            ],
            arena,
            threads,
            isa,
            graphs.state.interrupts,
        )
        self.missing = {p: reason for p, reason in self._program.missing if p not in self.driven}
        self._gaps = sorted(self.driven.union(self.missing))
        self._outputs = [(i, self.plan.tensors[i].shape, self.plan.tensors[i].type.numpy) for i in self.plan.outputs]
        self._length = len(schedule.steps)
        self._module = module
        self._undefined, self._stopped, self._reentered = module.StepUndefined, module.StepStopped, module.TurnReentered
        # Inputs and outputs that are passed to C++ as bytes, or that no step computes.
        ends = [self.plan.tensors[i] for i in (*self.plan.inputs, *self.plan.outputs)]
        for index, tensor in zip((*self.plan.inputs, *self.plan.outputs), ends, strict=True):
            if index not in offsets and tensor.kind != "variable" and tensor.value is None and not _is_held(tensor):
                raise ValueError(f"nothing holds '{tensor.name}'")
        # Values without a defined result have been met: they will come again, and then the reference has its say.
        self._met_undefined = False
        self._opaque = any(
            t.value is not None or _is_held(t) or not (t.type.numpy == np.float16 or _is_known(t.type.numpy))
            for t in ends
        )

    def execution(self, isa: str, threads: int) -> tuple[str, ...]:
        native = self._length - len(self._gaps)
        lines = [f"native executor, {isa}, {threads} thread{'s' if threads > 1 else ''}: {native} steps native"]
        lines += [
            f"step {position} {self.schedule.steps[position].source} runs on the reference: {reason}"
            for position, reason in self.missing.items()
        ]
        if self.driven:
            count = f"{len(self.driven)} step{'s' if len(self.driven) > 1 else ''}"
            lines.append(f"{count} from Python: calls of graphs, variables by name, and shapes that are in the values")
        return (*self.schedule.notes, *lines)

    def reset(self) -> None:
        with self._program.turn(math.inf, -1):
            self._program.reset()

    def write(self, values: Mapping[int, np.ndarray]) -> None:
        with self._program.turn(math.inf, -1):
            self._write(values)

    def read(self, indices: Sequence[int]) -> dict[int, np.ndarray]:
        with self._program.turn(math.inf, -1):
            return {index: self._value(index) for index in indices}

    def run(self, inputs: Mapping[int, np.ndarray], run: Run) -> list[np.ndarray]:
        if not (self._gaps or self._opaque or self._met_undefined):
            results = [(i, np.empty(shape, dtype)) for i, shape, dtype in self._outputs]
            try:
                self._program.run_whole(list(inputs.items()), results, self._length, run.deadline, run.seen)
                return [value for _, value in results]
            except self._stopped as error:
                raise self._ended(error, run) from None
            except self._reentered:
                raise reentered() from None
            except self._undefined:
                self._met_undefined = True
        with self._turn_of(run):
            return self._run_with_gaps(inputs, run)

    def run_samples(self, count: int, given: list[Any], from_start: bool, run: Run) -> tuple[int, list[np.ndarray]]:
        if self._gaps or self._opaque or self._met_undefined:
            return 0, []
        wanted = [np.empty((count, *shape), dtype) for _, shape, dtype in self._outputs]
        inputs, outputs = self.plan.inputs, self.plan.outputs
        try:
            done = self._program.run_samples(
                count, given, wanted, inputs, outputs, self._length, from_start, run.deadline, run.seen
            )
        except self._stopped as error:
            raise self._ended(error, run) from None
        except self._reentered:
            raise reentered() from None
        return done, [rows[:done] for rows in wanted]

    def run_call(self) -> RunCall | None:
        if self._gaps or self._opaque:
            return None
        tensors = self.plan.tensors
        inputs, outputs = (
            [(tensors[i].name, i, (tensors[i].shape, np.dtype(tensors[i].type.numpy))) for i in ports]
            for ports in (self.plan.inputs, self.plan.outputs)
        )
        call: RunCall = self._module.Call(self._program, inputs, outputs, np.empty, self._length).run
        return call

    def failure(self, error: Exception, run: Run) -> Exception:
        if isinstance(error, self._stopped):
            return self._ended(error, run)
        if isinstance(error, MemoryError):
            return out_of_memory(error)
        return reentered() if isinstance(error, self._reentered) else error

    @contextmanager
    def _turn_of(self, run: Run) -> Iterator[None]:
        """The buffers are this run's. The variables are as before unless it is finished."""
        with _typed(self._module, run), self._program.turn(run.deadline, run.seen), stopped_by(run.check):
            self._program.keep()
            try:
                yield
                self._program.forget()
            finally:
                self._program.undo()

    def _ended(self, error: Exception, run: Run) -> StoppedError:
        """The error of a run that the C++ core has ended."""
        position, reason = str(error).split()
        stopped = run.stopped(interrupted=reason == "interrupt")
        if int(position) < 0:
            return stopped  # it waited for another run
        return placed(stopped, self.schedule.steps[int(position)], int(position), self._length)

    def _run_with_gaps(self, inputs: Mapping[int, np.ndarray], run: Run) -> list[np.ndarray]:
        self._write(inputs)
        for first, last in self._stretches():
            self._native(first, last, run)
            if last < self._length:
                self._refer(last, run)
        return self._results()

    def run_by_step(
        self, inputs: Mapping[int, np.ndarray], after_step: Callable[[int], None] | None, run: Run
    ) -> list[np.ndarray]:
        with self._turn_of(run):
            return self._run_by_step(inputs, after_step, run)

    def _run_by_step(
        self, inputs: Mapping[int, np.ndarray], after_step: Callable[[int], None] | None, run: Run
    ) -> list[np.ndarray]:
        def observe(index: int) -> None:
            if run.observe is not None:
                run.observe(self.plan.scope + self.plan.tensors[index].name, self._value(index))

        self._write(inputs)
        for index in self.plan.folded:
            observe(index)
        gaps = set(self._gaps)
        for position, step in enumerate(self.schedule.steps):
            if position in gaps:
                self._refer(position, run)
            else:
                self._native(position, position + 1, run)
            for index in (*step.outputs, *self._states(step)):
                observe(index)
            if after_step is not None:
                after_step(position)
        if after_step is not None:
            # Steps that passes removed count as done, so that progress ends where callers expect it.
            for position in range(self._length, len(self.plan.steps)):
                after_step(position)
        return self._results()

    def profile(
        self, inputs: Mapping[int, np.ndarray], rounds: int, new_run: Callable[[], Run], state: State
    ) -> list[StepTime]:
        import statistics

        from .profile import step_time

        with self._turn_of(new_run()):
            variables = {i: self._value(i) for i, t in enumerate(self.plan.tensors) if t.kind == "variable"}
            # Once untimed: caches are warm then, and values without a result raise the reference's error.
            with state.kept():
                self._run_with_gaps(inputs, new_run())
            self._write(variables)
            runs = []
            for _ in range(rounds):
                with state.kept():
                    runs.append(self._timed(inputs, variables, new_run()))
        # Removed steps are gone from the schedule, so positions are found by node.
        positions = {step.index: position for position, step in enumerate(self.plan.steps)}
        return [
            step_time(self.plan, positions[step.index], statistics.median(run[i] for run in runs), self.note(i), step)
            for i, step in enumerate(self.schedule.steps)
        ]

    def note(self, position: int) -> str:
        """Which kernel carries out a step, or why none does."""
        if position in self.driven:
            return "driven"
        return f"reference: {self.missing[position]}" if position in self.missing else self._program.note(position)

    def _timed(self, inputs: Mapping[int, np.ndarray], variables: Mapping[int, np.ndarray], run: Run) -> list[float]:
        seconds: list[float] = []
        self._write(inputs)
        for first, last in self._stretches():
            seconds += self._program.timed(first, last)
            if last < self._length:
                start = time.perf_counter()
                self._refer(last, run)
                seconds.append(time.perf_counter() - start)
        self._write(variables)
        return seconds

    def _native(self, first: int, last: int, run: Run) -> None:
        while first < last:
            try:
                self._program.run(first, last, run.deadline, run.seen)
                return
            except self._stopped as error:
                raise self._ended(error, run) from None
            except self._undefined as error:
                # Values without a defined result: the reference explains, or knows better.
                self._refer(int(str(error)), run)
                first = int(str(error)) + 1

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Runs of native steps [first, last) between those that are not."""
        first = 0
        for position in (*self._gaps, self._length):
            yield first, position
            first = position + 1

    def _write(self, inputs: Mapping[int, np.ndarray]) -> None:
        ready = []
        for index, value in inputs.items():
            if _is_held(self.plan.tensors[index]):
                self._held[index] = value
            else:
                ready.append((index, _plain(value)))
        self._program.move(ready, [])

    def _value(self, index: int) -> np.ndarray:
        tensor = self.plan.tensors[index]
        if tensor.value is not None:
            return tensor.value
        if _is_held(tensor):
            return self._held[index]
        value = np.empty(tensor.shape, tensor.type.numpy)
        self._program.move([], [(index, _plain(value))])
        return value

    def _results(self) -> list[np.ndarray]:
        with Untrusted(f"graph '{self.plan.name}'"):
            values = [self._value(index) for index in self.plan.outputs]
        # Constants among the outputs belong to the plan.
        return [value if value.flags.writeable else value.copy() for value in values]

    def _states(self, step: Step) -> list[int]:
        return [i for i in step.inputs if i is not None and self.plan.tensors[i].kind == "variable"]

    def _arguments(self, step: Step) -> list[np.ndarray | None]:
        inputs = step.inputs[:-1] if _then(self.schedule, step) else step.inputs
        return [None if i is None else self._value(i) for i in inputs]

    def _refer(self, position: int, run: Run) -> None:
        try:
            run.check()
            self._carry_out(position, run)
        except StoppedError as error:
            raise placed(error, self.schedule.steps[position], position, self._length) from None

    def _carry_out(self, position: int, run: Run) -> None:
        step = self.schedule.steps[position]
        operator = find(step.operator)
        if operator is None:
            raise KeyError(step.operator)
        world = (self._graphs.world(run),) if operator.worldly else ()
        with Untrusted(step.place):
            arguments = self._arguments(step)
        results = carry_out(self.plan, step, arguments, *world)
        if "fused_table" in step.arrays:
            # What a pass moved into this step: stored values, counted from the smallest of the type.
            (value,) = results
            lowest = np.iinfo(value.dtype).min
            moved = step.arrays["fused_table"][value.astype(np.intp) - lowest].astype(np.int64) + lowest
            results = [moved.astype(value.dtype)]
        if "limit_low" in step.parameters:
            (value,) = results
            low, high = np.float32(step["limit_low"]), np.float32(step["limit_high"])
            raised = np.where(value < low, low, value)
            results = [np.where(raised > high, high, raised)]
        then = _then(self.schedule, step)
        if then is not None:
            operands = [None if i is None or i == then.result else self._value(i) for i in then.step.inputs]
            operands[then.step.inputs.index(then.result)] = results[0]
            results = carry_out(self.plan, then.step, operands)
        self._write(dict(zip(written(self.plan, step), results, strict=True)))


@contextmanager
def _typed(module: ModuleType, run: Run) -> Iterator[None]:
    """Typed errors for turns that did not come."""
    try:
        yield
    except module.StepStopped as error:
        raise run.stopped(interrupted=str(error).endswith("interrupt")) from None
    except module.TurnReentered:
        raise reentered() from None


def _no_step(plan: Plan, step: Step, offsets: Mapping[int, int]) -> tuple[Any, ...]:
    """Stands for a step that the program leaves out: what it reads and writes in the program's memory."""
    placed = [
        [i for i in some if i is not None and i in offsets and not _is_held(plan.tensors[i])]
        for some in (step.inputs, step.outputs)
    ]
    return "", {}, {}, {}, *placed, None, True, 0, None


def _is_driven(plan: Plan, step: Step) -> bool:
    operator = find(step.operator)
    tensors = [plan.tensors[i] for i in (*step.inputs, *step.outputs) if i is not None]
    return (operator is not None and operator.worldly) or any(_is_held(tensor) for tensor in tensors)


def _is_held(tensor: PlanTensor) -> bool:
    """Whether its shape is unknown, or its type is not for arithmetic."""
    return tensor.kind == "unknown" or tensor.dtype == "resource" or tensor.type.numpy.hasobject


def _plain(value: np.ndarray) -> np.ndarray:
    """`value` in C order, as bytes where the C++ side does not know the type."""
    value = np.ascontiguousarray(value).reshape(value.shape)
    return value if _is_known(value.dtype) else value.reshape(-1).view(np.uint8)


def _is_known(dtype: np.dtype) -> bool:
    """Whether kernels know what arrays of this type hold."""
    return dtype.kind in "biu" or dtype in (np.float32, np.float64)


def _tensor_rows(schedule: Schedule, offsets: Mapping[int, int]) -> list[tuple[Any, ...]]:
    plan = schedule.plan
    inputs, outputs = set(plan.inputs), set(plan.outputs)
    # Results that are added to have no memory, but a shape.
    shaped = {then.result for then in schedule.then.values()}
    return [
        (*_memory(schedule, offsets, i, i in shaped), i in inputs, i in outputs, schedule.root(i))
        for i in range(len(plan.tensors))
    ]


def _memory(schedule: Schedule, offsets: Mapping[int, int], index: int, shaped: bool) -> tuple[Any, ...]:
    tensor = schedule.plan.tensors[index]
    part = schedule.parts.get(index)
    home, offset, stride, value = "none", 0, -1, None
    if _is_held(tensor):
        pass
    elif index in offsets:
        home, offset, stride = "arena", offsets[index], -1 if part is None else part.row_stride
    elif tensor.kind == "variable":
        home, value = "variable", _plain(initial_state(tensor))
    elif tensor.value is not None:
        home, value = "constant", _plain(tensor.value)
    return tensor.dtype, tensor.shape if shaped or home != "none" else (), home, offset, stride, value


def _then(schedule: Schedule, step: Step) -> Then | None:
    """What is done inside of the step as well."""
    return schedule.then.get(step.outputs[0]) if step.outputs else None


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
        None if then is None else _step_row(then.step),
    )
