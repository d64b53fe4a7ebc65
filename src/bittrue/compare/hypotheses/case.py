"""What a hypothesis changes, and how it is put to the test: by computing the tensor again."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...api import Session
from ...graph import Graph, Quantization, Tensor
from ...numerics import Numerics
from ...operators import Step
from ...plan import Plan, make_plan
from ..result import Cause
from ..segments import ChangeGraph, ChangePlan, Segment, writer
from . import layers

if TYPE_CHECKING:
    from .rows import Slot

Values = Mapping[str, np.ndarray]
# What a search costs is counted in multiply-accumulates of NumPy, about 400 million a second: planning and starting a
# run costs as much as so many of them, kernels do so many in the time of one, and one tensor's combinations may cost
# so much. What takes longer than its count (exact fractions near ties, long recurrences) is charged by the clock.
_OVERHEAD, _FASTER, BUDGET, _PER_SECOND = 4_000_000, 16, 6_000_000_000, 400_000_000
# What a search for causes that no numerics has may cost unless something else is asked for.
SECONDS = 20.0
# Multiply-accumulates that NumPy has done before the native executor is prepared.
_LITTLE = 1 << 14
# Plans of hypotheses that are kept, beside that of none: pairs come one after the other.
_KEPT = 4


def budget_of(seconds: float) -> int:
    """As `Case.budget`.

    >>> budget_of(20)
    8000000000
    """
    return int(seconds * _PER_SECOND)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One thing that B may have done differently.

    Attributes:
        cause: what is claimed if it holds.
        seat: what it touches: of two hypotheses with the same seat only one can hold.
        numerics: gives the table to plan with, from that of the base.
        graph, plan: changes of the segment's graph, of its plan.
        values: gives the inputs of input set i, from those of all sets.
        layer: other ways of the last layer with accumulators, see `layers.Ways`; then NumPy computes.
        compute: gives the tensor from the changed plan and the inputs, instead of running it.
        reference: run by the NumPy references, where kernels may decline or clamp.
        result: changes the computed tensor, given the plan.
        slots: for rules: what is filled differently, as `rows.Slot`.
        aliases: other causes that come to the same here, and need not elsewhere.
    """

    cause: Cause
    seat: str
    numerics: Callable[[Numerics], Numerics] | None = None
    graph: ChangeGraph | None = None
    plan: ChangePlan | None = None
    values: Callable[[Sequence[Values], int], Values | None] | None = None
    layer: Mapping[str, Any] = field(default_factory=dict)
    compute: Callable[[Plan, Values], np.ndarray | None] | None = None
    reference: bool = False
    result: Callable[[np.ndarray, Plan], np.ndarray | None] | None = None
    slots: tuple[Slot, ...] = ()
    aliases: tuple[Cause, ...] = ()


def quickest(plan: Plan) -> str:
    """The executor that has run a plan once first: preparing the native one takes longer than little work."""
    return "reference" if plan.work <= _LITTLE else "auto"


@dataclass(frozen=True)
class Trial:
    """How a hypothesis did on the first input set.

    Attributes:
        distance: sum of |predicted - B|.
        right: differing elements that it gives.
        changed: elements that it changes.
        channels: it gives some channels with differing elements as a whole.
    """

    distance: float
    right: int
    changed: int
    channels: bool


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A plan, and what runs it, by executor."""

    plan: Plan
    sessions: dict[str, Session] = field(default_factory=dict)

    def run(self, given: Values, executor: str) -> np.ndarray:
        session = self.sessions.get(executor)
        if session is None:
            session = self.sessions[executor] = Session(self.plan, executor=executor)
        else:
            session.reset()
        return next(iter(session.run({p.name: given[p.name] for p in session.inputs}).values()))


class Case:
    """One tensor that differs, and what is known about it.

    Attributes:
        segment: what computes it; what is known at plan time is a constant there.
        whole: the same, with the nodes that compute constants.
        values: per input set: the inputs, as B had them.
        theirs: per input set: B's tensor.
        ours: per input set: A's arithmetic on the same inputs.
        budget: what combinations of hypotheses may still cost; single ones are always tried.
        tried: how many hypotheses and combinations of them were put to the test.
        trials: how single hypotheses did; None for those that cannot be computed or change nothing.
    """

    def __init__(self, segment: Segment, values: Sequence[Values], theirs: Sequence[np.ndarray]) -> None:
        # Hypotheses are about constants, wherever these come from; other arithmetics make them anew.
        self.whole, self.segment, self.values, self.theirs = segment, segment.settled, values, theirs
        self.ours = [segment.run(given) for given in values]
        self.differs = [unequal(a, b) for a, b in zip(self.ours, theirs, strict=True)]
        self.budget = BUDGET
        self.trials: dict[Hypothesis, Trial | None] = {}
        self.tried = 0
        self._sums: dict[int, layers.Sums] = {}
        self._plans: dict[tuple[object, ...], _Prepared] = {}

    def elsewhere(self, count: int) -> Case:
        """The same part on `count` further sets of random values as large as those of the first."""
        generator = np.random.default_rng(0)

        def drawn(value: np.ndarray) -> np.ndarray:
            if value.dtype.kind in "iu" and value.size:
                return generator.integers(value.min(), value.max(), value.shape, value.dtype, endpoint=True)
            if value.dtype.kind == "f":
                return (generator.standard_normal(value.shape) * (value.std() or 1.0)).astype(value.dtype)
            return generator.permutation(value.reshape(-1)).reshape(value.shape)

        values = [{name: drawn(self.values[0][name]) for name in self.segment.shapes} for _ in range(count)]
        return Case(self.whole, values, [self.segment.run(given) for given in values])

    @property
    def plan(self) -> Plan:
        """A's plan of the segment."""
        return self.segment.own_plan

    @property
    def step(self) -> Step:
        """A's step that makes the tensor's elements."""
        return self.segment.step

    @property
    def form(self) -> Hashable:
        """What it has in common with the same part of another layer: operators, rules, types and shapes."""
        steps = tuple((step.operator, *sorted(step.rules.items())) for step in self.plan.steps)
        return steps, tuple((t.dtype, t.shape, t.kind) for t in self.plan.tensors)

    @cached_property
    def differing(self) -> int:
        return sum(int(mask.sum()) for mask in self.differs)

    @cached_property
    def largest(self) -> float | None:
        """Largest |b - a|; None when one of them is not a number."""
        found = 0.0
        for a, b, mask in zip(self.ours, self.theirs, self.differs, strict=True):
            if mask.any():
                with np.errstate(all="ignore"):
                    apart = np.abs(b[mask].astype(np.float64) - a[mask].astype(np.float64)).max()
                if not np.isfinite(apart):
                    return None
                found = max(found, float(apart))
        return found

    @cached_property
    def base(self) -> Numerics:
        """A's numerics with the rows of the segment's operators alone, unchecked; its rewrites are done."""
        wanted = {node.operator for node in self.whole.graph.nodes}
        own = self.segment.numerics
        rows = tuple(replace(row, requires=()) for row in own.rows if row.operator in wanted)
        return replace(own, rows=rows, rewrites=())

    def planned(self, hypotheses: Sequence[Hypothesis], shapes: Mapping[str, tuple[int, ...]]) -> Plan:
        """The segment's plan under all of `hypotheses`."""
        arithmetic = all(h.graph is None and h.plan is None for h in hypotheses)
        graph, numerics = (self.whole if arithmetic else self.segment).graph, self.base
        for hypothesis in hypotheses:
            if hypothesis.numerics is not None:
                numerics = hypothesis.numerics(numerics)
            if hypothesis.graph is not None:
                graph = hypothesis.graph(graph)
        plan = make_plan(graph, numerics, shapes=shapes, memory_limit=self.segment.memory_limit)
        for hypothesis in hypotheses:
            if hypothesis.plan is not None:
                plan = hypothesis.plan(plan)
        return plan

    def _prepared(self, hypotheses: Sequence[Hypothesis], shapes: Mapping[str, tuple[int, ...]]) -> _Prepared:
        """`planned`, and the same again for those that change nothing of a plan."""
        planning = tuple(h for h in hypotheses if h.numerics or h.graph or h.plan)
        key = (planning, *shapes.items())
        found = self._plans.pop(key, None) or _Prepared(self.planned(hypotheses, shapes))
        if planning:
            others = [other for other in self._plans if other[0]]
            for oldest in others[: max(0, len(others) - _KEPT + 1)]:
                del self._plans[oldest]
        self._plans[key] = found
        return found

    def predict(self, hypotheses: Sequence[Hypothesis], position: int) -> np.ndarray | None:
        """What B's tensor of one input set is if all of `hypotheses` hold; None where they cannot hold together.

        Rules and parameters are put into places that they were not made for, so any exception means just that.
        """
        slow = any(h.layer or h.compute or h.reference for h in hypotheses)
        begin = time.thread_time()
        try:
            return self._predict(hypotheses, position)
        except Exception:
            return None
        finally:
            counted = _OVERHEAD + self.plan.work // (1 if slow else _FASTER)
            self.budget -= max(counted, int((time.thread_time() - begin) * _PER_SECOND))

    def _predict(self, hypotheses: Sequence[Hypothesis], position: int) -> np.ndarray | None:
        given = self.values[position]
        ways: dict[str, Any] = {}
        for hypothesis in hypotheses:
            if hypothesis.values is not None:
                changed = hypothesis.values(self.values, position)
                if changed is None:
                    return None
                given = changed
            ways.update(hypothesis.layer)
        graph = self.segment.graph
        shapes = {graph.tensors[i].name: given[graph.tensors[i].name].shape for i in graph.inputs}
        prepared = self._prepared(hypotheses, shapes)
        plan = prepared.plan
        compute = next((h.compute for h in hypotheses if h.compute is not None), None)
        found: np.ndarray | None
        if compute is not None:
            found = compute(plan, given)
        elif ways:
            found = self._layer(hypotheses, plan, position, given, layers.Ways(**ways))
        else:
            found = prepared.run(given, "reference" if any(h.reference for h in hypotheses) else quickest(plan))
        for hypothesis in hypotheses:
            if hypothesis.result is not None and found is not None:
                found = hypothesis.result(found, plan)
        wanted = self.theirs[position]
        if found is None or found.shape != wanted.shape or found.dtype != wanted.dtype:
            return None
        return found

    def _layer(
        self, hypotheses: Sequence[Hypothesis], plan: Plan, position: int, given: Values, ways: layers.Ways
    ) -> np.ndarray | None:
        """The last layer in NumPy; hypotheses about its end alone share its sums."""
        shared = ways.ends_alone and not any(h.numerics or h.graph or h.plan or h.values for h in hypotheses)
        if not shared:
            return layers.run(plan, given, ways)
        if position not in self._sums:
            found = layers.sums(plan, given, layers.Ways())
            if found is None:
                return None
            self._sums[position] = found
        return layers.finish(plan, self._sums[position], ways)

    def holds(self, *hypotheses: Hypothesis) -> bool:
        """Whether `hypotheses` together give every bit of B's tensor, for all input sets."""
        self.tried += 1
        for position, wanted in enumerate(self.theirs):
            found = self.predict(hypotheses, position)
            wrong = None if found is None else unequal(found, wanted)
            if position == 0 and len(hypotheses) == 1:
                self.trials[hypotheses[0]] = None if found is None or wrong is None else self._trial(found, wrong)
            if wrong is None or wrong.any():
                return False
        return True

    def _trial(self, found: np.ndarray, wrong: np.ndarray) -> Trial | None:
        changed = unequal(found, self.ours[0])
        if not changed.any():
            return None
        with np.errstate(all="ignore"):
            apart = np.abs(found.astype(np.float64) - self.theirs[0].astype(np.float64))
        right = self.differs[0] & ~wrong
        channels = np.zeros(1, bool)
        if wrong.ndim > 1 and wrong.shape[-1] > 1:
            flat, gained = wrong.reshape(-1, wrong.shape[-1]), right.reshape(-1, wrong.shape[-1])
            channels = ~flat.any(axis=0) & gained.any(axis=0)
        distance = float(np.where(np.isfinite(apart), apart, 1e30).sum())
        return Trial(distance, int(right.sum()), int(changed.sum()), bool(channels.any()))


def unequal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Per element: other bytes."""
    if a.dtype.kind in "iub":
        return np.asarray(a != b)
    shape = (*a.shape, a.dtype.itemsize)
    one, two = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(shape) for x in (a, b))
    return np.asarray((one != two).any(axis=-1))


def change_tensors(graph: Graph, change: Mapping[int, Callable[[Tensor], Tensor]]) -> Graph:
    """The graph with some of its tensors changed, by index."""
    return replace(graph, tensors=tuple(change[i](t) if i in change else t for i, t in enumerate(graph.tensors)))


def with_quantization(tensor: Tensor, scales: object = None, zero_points: object = None) -> Tensor:
    """The tensor with other scales or zero points."""
    old = tensor.quantization
    assert old is not None
    new_scales = old.scales if scales is None else np.broadcast_to(np.asarray(scales, np.float32), old.scales.shape)
    points = old.zero_points if zero_points is None else np.asarray(zero_points, np.int64)
    points = np.broadcast_to(points, old.zero_points.shape)
    return replace(tensor, quantization=Quantization(new_scales.copy(), points.copy(), old.axis))


def change_steps(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    """The plan with its steps changed; None leaves a step alone.

    Raises:
        ValueError: no step was changed: the hypothesis has nothing to act on.
    """
    steps = tuple(change(step) or step for step in plan.steps)
    if steps == plan.steps:
        raise ValueError("nothing to change")
    return replace(plan, steps=steps)


def change_writer(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    """The same for the step that makes the elements of the plan's output."""
    made = writer(plan).outputs
    return change_steps(plan, lambda step: change(step) if step.outputs == made else None)


def with_parameters(step: Step, **parameters: Any) -> Step:
    """The step with other parameters."""
    return replace(step, parameters={**step.parameters, **parameters})
