"""What each numerics answers to a case, and which numerics are one and the same arithmetic for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import numerics as numerics_tables
from ..api import Model, Session
from ..compare.segments import Segment, segments
from ..errors import BittrueError
from ..numerics import Numerics
from ..plan import Plan
from ..plan.declared import rewritten_graph
from ..plan.first_plan import first_plan
from .suite import SuiteCase

Outputs = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """One way to compute a case, and all numerics that compute it so.

    Attributes:
        names: the numerics, in the order of `numerics.distinct()`.
        session: the prepared model.
        rules: slot to rule of the step that the operator became; of the last one where it became several.
        operators: the steps' operators.
    """

    names: tuple[str, ...]
    session: Session
    rules: Mapping[str, str]
    operators: tuple[str, ...]

    @property
    def plan(self) -> Plan:
        return self.session.plan


class Prepared:
    """What runs one model under each numerics, made when it is asked for; cases of the same model can share it."""

    def __init__(self) -> None:
        # Most numerics compute a model as others do: what runs it is made once for them.
        self._sessions: dict[object, Session] = {}
        self._found: dict[str, Session | BittrueError] = {}

    def session(self, case: SuiteCase, name: str) -> Session | BittrueError:
        """For the case's model and one numerics, or why that cannot run it."""
        if name not in self._found:
            try:
                plan = planned(case.model, numerics_tables.find(name))
                key = plan_key(plan)
                if key not in self._sessions:
                    self._sessions[key] = Session(plan)
                self._found[name] = self._sessions[key]
            except BittrueError as error:
                self._found[name] = error
        return self._found[name]


class Expected:
    """The answers of all numerics to one case, worked out when they are asked for.

    Args:
        case: one whose model bittrue can read.
        names: the numerics to look at; all when empty.
        prepared: that of another case of the same model.
    """

    def __init__(self, case: SuiteCase, names: Sequence[str] = (), prepared: Prepared | None = None) -> None:
        self.case = case
        self._prepared = prepared or Prepared()
        self._names = tuple(names) or numerics_tables.distinct()
        self._answers: dict[int, Outputs | BittrueError] = {}

    @cached_property
    def refusals(self) -> Mapping[str, BittrueError]:
        """Why numerics cannot run the case, by name."""
        return self._planned[1]

    @cached_property
    def arithmetics(self) -> tuple[Arithmetic, ...]:
        """Every arithmetic once."""
        return self._planned[0]

    @cached_property
    def _planned(self) -> tuple[tuple[Arithmetic, ...], Mapping[str, BittrueError]]:
        refusals: dict[str, BittrueError] = {}
        groups: dict[int, tuple[list[str], Session]] = {}
        for name in self._names:
            session = self._prepared.session(self.case, name)
            if isinstance(session, BittrueError):
                refusals[name] = session
            else:
                groups.setdefault(id(session), ([], session))[0].append(name)
        found = []
        for names, session in groups.values():
            steps = session.plan.steps
            found.append(
                Arithmetic(
                    tuple(names), session, dict(steps[-1].rules) if steps else {}, tuple(s.operator for s in steps)
                )
            )
        return tuple(found), refusals

    def arithmetic(self, name: str) -> Arithmetic:
        """That of one numerics.

        Raises:
            BittrueError: why it cannot run the case.
        """
        for found in self.arithmetics:
            if name in found.names:
                return found
        raise self.refusals[name]

    def outputs(self, arithmetic: Arithmetic | str) -> Outputs:
        """Outputs by name.

        Raises:
            BittrueError: the numerics cannot run the case.
        """
        chosen = self.arithmetic(arithmetic) if isinstance(arithmetic, str) else arithmetic
        key = id(chosen)
        if key not in self._answers:
            try:
                chosen.session.reset()
                self._answers[key] = chosen.session.run(dict(self.case.inputs))
            except BittrueError as error:
                self._answers[key] = error
        found = self._answers[key]
        if isinstance(found, BittrueError):
            raise found
        return found

    def matching(self, outputs: Outputs) -> tuple[Arithmetic, ...]:
        """The arithmetics that give exactly these bytes."""
        found = []
        for one in self.arithmetics:
            try:
                if same_bytes(self.outputs(one), outputs):
                    found.append(one)
            except BittrueError:
                continue
        return tuple(found)


def planned(model: Model, numerics: Numerics) -> Plan:
    """The model's first graph as `Model.prepare` plans it, without anything that runs it.

    Raises:
        BittrueError: the numerics cannot run it.
    """
    return first_plan(model.graph, numerics, shapes={}, notes=model.notes, graphs=model.graphs)


def same_bytes(one: Outputs, two: Outputs) -> bool:
    """Whether both have the same tensors: names, types, shapes and bytes."""
    return one.keys() == two.keys() and all(
        value.dtype == two[name].dtype and value.shape == two[name].shape and value.tobytes() == two[name].tobytes()
        for name, value in one.items()
    )


def plan_key(plan: Plan) -> object:
    """Plans with the same key compute the same: operators, how they are connected, rules, prepared parameters and
    constants.
    """
    # Rewrites number tensors differently: they are counted in the order in which steps touch them.
    order: dict[int | None, int] = {None: -1}
    order.update((index, position) for position, index in enumerate(plan.inputs))
    constants = []
    steps = []
    for step in plan.steps:
        for index in (*step.inputs, *step.outputs):
            if index not in order:
                order[index] = len(order)
                if index is not None and plan.tensors[index].value is not None:
                    constants.append((order[index], _plain(plan.tensors[index].value)))
        steps.append(
            (
                step.operator,
                tuple(order[index] for index in step.inputs),
                tuple(order[index] for index in step.outputs),
                tuple(sorted(step.rules.items())),
                tuple(sorted((k, _plain(v)) for k, v in step.parameters.items())),
            )
        )
    return tuple(steps), tuple(constants)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)


def segment_of(case: SuiteCase, numerics: Numerics) -> Segment:
    """What `bittrue.compare` needs to explain a device's first output: the case's model as one segment.

    Raises:
        BittrueError: the numerics cannot run the case.
        LookupError: the model has no such part (its outputs are known without running it).
    """
    session = case.model.prepare(numerics.name)
    graph, _ = rewritten_graph(case.model.graph, numerics)
    names = [session.plan.tensors[i].name for i in session.plan.results]
    return list(segments(graph, session.plan, numerics, names))[-1]
