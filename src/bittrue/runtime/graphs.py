"""What reaches beyond one plan: a session's state, the graphs that steps call, and stages planned while running."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..errors import MISFITS, BittrueError, InvalidModelError, ModelFormatError, ResourceError, RunError
from ..operators import Step, World, find
from ..operators.core.stopping import check_stop
from ..plan import Plan, PlanTensor
from ..plan.plan import Source
from ..plan.planner import Peek, plan_later, plan_nested
from ..records import replace
from .forks import after_fork
from .run import Observer, Run

if TYPE_CHECKING:
    from .profile import StepTime

# Executors of one graph that are kept, for different shapes and values. Loops that fill an array element by element
# need one per element.
_KEPT = 256
_KEPT_BYTES = 64 << 20

Shapes = Mapping[int, tuple[int, ...]]
# Variables, resources, and graphs that have run.
_Values = tuple[dict[int, np.ndarray], dict[int, np.ndarray], set[int]]


class State:
    """What a session remembers from run to run.

    Attributes:
        variables: values of the main graph's variable tensors by index.
        resources: values of resource variables by number.
        done: graphs that run once and have run.
        interrupts: an array of one number; runs end when it changes. The C++ core looks at it, too.
    """

    def __init__(self, plan: Plan) -> None:
        self._first = {i: t for i, t in enumerate(plan.tensors) if t.kind == "variable"}
        self.variables: dict[int, np.ndarray] = {}
        self.resources: MutableMapping[int, np.ndarray] = {}
        self.done: set[int] = set()
        self.interrupts = np.zeros(1, np.int64)
        # What to bring back when the run in progress is not finished, and the thread that it is in.
        self._before: _Values | None = None
        self._thread = 0
        self.reset()
        after_fork(self, State._begin_child)

    def inside(self) -> State:
        """The state as a called graph sees it, which has no variable tensors."""
        from copy import copy

        inner = copy(self)
        inner.variables = {}
        return inner

    def reset(self, resources: bool = True) -> None:
        """Everything as in a new session, or the variable tensors alone."""
        self.variables.update({index: initial_state(tensor) for index, tensor in self._first.items()})
        if resources:
            self.resources.clear()
            self.done.clear()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Brings back at the end what was there before."""
        before = self._values()
        try:
            yield
        finally:
            self._bring_back(before)

    @contextmanager
    def undone_unless_finished(self) -> Iterator[None]:
        """Brings back what was there before when the run inside is not finished, whatever ends it."""
        before = self._values()
        self._thread, self._before = get_ident(), before
        try:
            yield
        except BaseException:
            self._bring_back(before)
            raise
        finally:
            self._before = None

    def _values(self) -> _Values:
        """Values are replaced and never written, so that these stay as they are."""
        return dict(self.variables), dict(self.resources), set(self.done)

    def _bring_back(self, before: _Values) -> None:
        variables, resources, done = before
        for part, values in ((self.variables, variables), (self.resources, resources)):
            part.clear()
            part.update(values)
        self.done.clear()
        self.done.update(done)

    def _begin_child(self) -> None:
        """The thread of the run in progress is gone after a fork, unless it is the one that forked."""
        if self._before is not None and self._thread != get_ident():
            self._bring_back(self._before)
            self._before = None


def initial_state(tensor: PlanTensor) -> np.ndarray:
    """The first value of a variable tensor: 0, for s8 tensors with one scale their zero point (its low byte).

    Source: ResetVariableTensor, read; run for every type.
    """
    value = np.zeros(tensor.shape, tensor.type.numpy)
    if tensor.dtype == "s8" and tensor.quantization is not None and not tensor.quantization.per_axis:
        value.view(np.uint8)[...] = int(tensor.quantization.zero_points[0]) & 0xFF
    return value


class Executor(Protocol):
    """What runs one plan."""

    @property
    def plan(self) -> Plan: ...

    def run(
        self,
        inputs: Mapping[int, np.ndarray],
        observe: Observer | None = None,
        after_step: Callable[[int], None] | None = None,
        within: Run | None = None,
    ) -> list[np.ndarray]: ...

    def profile(self, inputs: Mapping[int, np.ndarray], rounds: int) -> list[StepTime]: ...


# Makes an executor for a called graph or a later stage, which see different parts of the state.
Make = Callable[[Plan, State], Executor]


# Which tensors' values were asked for, the shapes of the inputs, and the bytes of those values.
_Key = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[bytes, ...]]


class Planned:
    """Executors of one graph, planned when shapes, or values that decide shapes, are new. The least used go first."""

    def __init__(self, plan_for: Callable[[Shapes, Peek], Plan], make: Callable[[Plan], Executor]) -> None:
        self._plan_for = plan_for
        self._make = make
        self._executors: OrderedDict[_Key, Executor] = OrderedDict()
        # Sets of tensors whose values have been asked for; mostly one.
        self._asked: dict[tuple[int, ...], None] = {}
        self._bytes = 0
        self._open()
        after_fork(self, Planned._open)

    def _open(self) -> None:
        """A lock that nobody holds; in the child of a fork the one before may be held for ever."""
        self._lock = allocate_lock()

    def add(self, plan: Plan, shapes: Shapes, asked: Mapping[int, np.ndarray]) -> Executor:
        """A new executor for inputs of these shapes and values."""
        indices = tuple(asked)
        key = indices, tuple(shapes.values()), tuple(value.tobytes() for value in asked.values())
        executor = self._executors[key] = self._make(plan)
        self._asked[indices] = None
        self._bytes += _size(plan)
        while len(self._executors) > 1 and (len(self._executors) > _KEPT or self._bytes > _KEPT_BYTES):
            self._bytes -= _size(self._executors.popitem(last=False)[1].plan)
        return executor

    def find(self, inputs: Mapping[int, np.ndarray]) -> Executor:
        """The executor for these inputs, which come in the same order every time.

        Raises:
            RunError: shapes or values that the graph cannot run with.
        """
        shapes = {index: value.shape for index, value in inputs.items()}
        with self._lock:
            for indices in self._asked:
                key = indices, tuple(shapes.values()), tuple(inputs[i].tobytes() for i in indices)
                if key in self._executors:
                    self._executors.move_to_end(key)
                    return self._executors[key]
            asked: dict[int, np.ndarray] = {}

            def peek(index: int) -> np.ndarray | None:
                if index in inputs and index not in asked:
                    asked[index] = inputs[index].copy()
                return asked.get(index)

            check_stop()
            try:
                with Untrusted("planning while running"):
                    plan = self._plan_for(shapes, peek)
            except InvalidModelError as error:
                raise RunError(error.code, error.message, place=error.place, advice=error.advice) from None
            return self.add(plan, shapes, asked)


def _size(plan: Plan) -> int:
    """Bytes that an executor of the plan holds, roughly."""
    return plan.memory + sum(t.bytes for t in plan.tensors if t.value is not None) + (64 << 10)


class Graphs:
    """The graphs that a plan's steps call, and the stage that follows it."""

    def __init__(self, plan: Plan, state: State, make: Make) -> None:
        self.plan = plan
        self.state = state
        self._first: list[Executor] = []
        self._called = [self._nested(number, make) for number in range(len(plan.nested))]
        self._later = None
        if plan.later is not None:
            self._later = Planned(
                lambda shapes, peek: plan_later(_source(plan), plan, shapes, peek), lambda later: make(later, state)
            )

    def _nested(self, number: int, make: Make) -> Planned:
        plan, nested = self.plan, self.plan.nested[number]
        planned = Planned(
            lambda shapes, _: plan_nested(_source(plan), nested, shapes), lambda inner: make(inner, self.state.inside())
        )
        tensors = nested.plan.tensors
        self._first.append(planned.add(nested.plan, {i: tensors[i].shape for i in self.inputs(number)}, {}))
        return planned

    def called(self) -> Iterator[Executor]:
        """The first executor of every called graph."""
        yield from self._first

    def inputs(self, number: int) -> tuple[int, ...]:
        """Tensor indices of a called graph's inputs."""
        return _source(self.plan).graphs[self.plan.nested[number].graph].inputs

    def call(self, number: int, inputs: Sequence[np.ndarray], run: Run) -> list[np.ndarray]:
        """Results of a called graph."""
        if not 0 <= number < len(self._called) or len(inputs) != len(self.inputs(number)):
            raise ModelFormatError("BT-PLAN-STEP", f"the plan has no graph {number} with {len(inputs)} inputs")
        run.count()
        first = self.plan.nested[number].plan
        try:
            given = dict(zip(self.inputs(number), inputs, strict=True))
            executor = self._called[number].find(given)
            if run.observe is not None:
                for index in executor.plan.inputs:
                    run.observe(first.scope + first.tensors[index].name, given[index])
            return executor.run({i: given[i] for i in executor.plan.inputs}, within=run)
        except BittrueError as error:
            place = f"graph '{first.scope.removesuffix('::')}', {error.place}".removesuffix(", ")
            raise type(error)(error.code, error.message, place=place, advice=error.advice) from None

    def continued(
        self, results: list[np.ndarray], after_step: Callable[[int], None] | None, run: Run
    ) -> list[np.ndarray]:
        """These results of the plan, or what the stage that follows makes of them."""
        if self._later is None:
            return results
        given = dict(zip(self.plan.outputs, results, strict=True))
        tell = None if after_step is None else lambda position: after_step(len(self.plan.steps) + position)
        return self._later.find(given).run(given, after_step=tell, within=run)

    def profile_later(self, results: list[np.ndarray], rounds: int) -> list[StepTime]:
        """Times of the stages that follow these results of the plan."""
        if self._later is None:
            return []
        given = dict(zip(self.plan.outputs, results, strict=True))
        times = self._later.find(given).profile(given, rounds)
        return [replace(part, position=len(self.plan.steps) + part.position) for part in times]

    def world(self, run: Run) -> WorldOfRun:
        return WorldOfRun(self, run)


class WorldOfRun:
    """The `World` of one plan in one run."""

    def __init__(self, graphs: Graphs, run: Run) -> None:
        self._graphs = graphs
        self._run = run
        self.resources = graphs.state.resources

    def call(self, graph: int, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self._graphs.call(graph, inputs, self._run)

    def call_once(self, graph: int) -> None:
        done = self._graphs.state.done
        if not 0 <= graph < len(self._graphs.plan.nested) or self._graphs.plan.nested[graph].graph not in done:
            self.call(graph, [])
            done.add(self._graphs.plan.nested[graph].graph)


def _source(plan: Plan) -> Source:
    if plan.source is None:
        raise ModelFormatError("BT-PLAN-FILE", "the plan does not hold what its later stages are planned from")
    return plan.source


class Untrusted:
    """Typed errors for whatever goes wrong inside because the numbers of a plan file do not fit together.

    Every step that runs in Python enters it: a class costs a quarter of what a generator does.
    """

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, MemoryError):
            raise ResourceError("BT-MEMORY", "out of memory", place=self._place) from None
        if isinstance(error, MISFITS):
            raise ModelFormatError(
                "BT-PLAN-STEP",
                f"the numbers of the plan do not fit together ({type(error).__name__}: {error})",
                place=self._place,
                advice="plan the model again",
            ) from error


def carry_out(plan: Plan, step: Step, arguments: Sequence[np.ndarray | None], *world: World) -> list[np.ndarray]:
    """Results of a step's reference, then the new values of its variable tensors. Errors are placed at the step.

    Raises:
        ModelFormatError: the step's numbers do not fit its tensors.
    """
    operator = find(step.operator)
    if operator is None:
        raise ModelFormatError("BT-PLAN-STEP", f"unknown operator '{step.operator}'", place=step.place)
    try:
        # What overflows and what is no number is decided by the rules.
        with Untrusted(step.place), np.errstate(all="ignore"):
            # Arithmetic of rank 0 gives NumPy scalars.
            results = [np.asarray(result) for result in operator.reference(step, arguments, *world)]
            targets = written(plan, step)
            if len(results) != len(targets):
                raise ValueError(f"{len(results)} results for {len(targets)} tensors")
            for index, result in zip(targets, results, strict=True):
                tensor = plan.tensors[index]
                if tensor.dtype != "resource" and result.dtype != tensor.type.numpy:
                    raise ValueError(f"'{tensor.name}' would become {result.dtype}")
                if tensor.kind not in ("unknown", "later") and result.shape != tensor.shape:
                    raise ValueError(f"'{tensor.name}' would take shape {list(result.shape)}")
            return results
    except BittrueError as error:
        if error.place.startswith("node "):
            raise
        place = f"{step.place}: {error.place}" if error.place else step.place
        raise type(error)(error.code, error.message, place=place, advice=error.advice) from None


def written(plan: Plan, step: Step) -> list[int]:
    """The tensors that a step writes: its outputs, then the variable tensors that it reads and changes."""
    operator = find(step.operator)
    targets = [*step.outputs]
    if operator is not None and operator.stateful:
        targets += [i for i in step.inputs if i is not None and plan.tensors[i].kind == "variable"]
    return targets
