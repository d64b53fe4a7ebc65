"""Arithmetics that may be a device's: numerics, and numerics with one rule filled differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations

import numpy as np

from ... import numerics as numerics_tables
from ...api import Session
from ...compare.hypotheses.case import quickest
from ...compare.hypotheses.rows import Place, place_of, users_of, with_rules
from ...compare.hypotheses.rows import Slot as ChangedSlot
from ...errors import BittrueError
from ...numerics import Numerics
from ...plan import Plan
from ...plan.declared import rewritten_graph
from ...rules import rules
from ..expected import Outputs, plan_key, planned
from ..suite import SuiteCase


@dataclass(frozen=True)
class Change:
    """One slot that is filled differently than the numerics has it, wherever a row serves these operators and types."""

    place: Place
    slot: str
    rule: str
    instead: str

    def __str__(self) -> str:
        return f"{self.slot} = {self.rule}"

    @property
    def users(self) -> tuple[str, ...]:
        """Numerics with a row for this place that has the rule."""
        return users_of([ChangedSlot(self.place, self.slot, self.rule, self.instead)])


@dataclass(frozen=True)
class Candidate:
    """One arithmetic of all cases.

    Attributes:
        name: of the numerics.
        changes: what it does differently: the same rule in a slot, at every place where the operator has it.
    """

    name: str
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} with {self.words}" if self.changes else self.name

    @property
    def words(self) -> str:
        """The slots that are filled differently."""
        return " and ".join(dict.fromkeys(map(str, self.changes)))

    @property
    def instead(self) -> str:
        """The rules that the numerics has there."""
        return " and ".join(dict.fromkeys(change.instead for change in self.changes))

    @property
    def users(self) -> tuple[str, ...]:
        """Numerics with a row that has all these rules."""
        if not self.changes:
            return ()
        place = self.changes[0].place
        return users_of([ChangedSlot(place, c.slot, c.rule, c.instead) for c in self.changes if c.place == place])

    @cached_property
    def table(self) -> Numerics:
        found = numerics_tables.find(self.name)
        changes: dict[Place, dict[str, str]] = {}
        for change in self.changes:
            changes.setdefault(change.place, {})[change.slot] = change.rule
        for place, filled in changes.items():
            found = with_rules(found, place, filled)
        return found


# Slots that are filled differently at once.
_MOST_CHANGES = 3
# One of them stands for all candidates that compute a case by the same plan.
Group = tuple[Candidate, ...]


@dataclass
class Answers:
    """What candidates make of cases; each plan is run once.

    Attributes:
        plans: how many were made so far.
    """

    plans: int = 0
    # By case, then by candidate and by the plan's key.
    _plans: dict[str, dict[Candidate, tuple[object, Plan] | None]] = field(default_factory=dict)
    _outputs: dict[str, dict[object, Outputs | None]] = field(default_factory=dict)

    def plan(self, candidate: Candidate, case: SuiteCase) -> Plan | None:
        """The model's plan; None where the candidate refuses it."""
        found = self._planned(candidate, case)
        return None if found is None else found[1]

    def _planned(self, candidate: Candidate, case: SuiteCase) -> tuple[object, Plan] | None:
        known = self._plans.setdefault(case.sha256, {})
        if candidate not in known:
            self.plans += 1
            known[candidate] = _prepared(candidate, case)
        return known[candidate]

    def key(self, candidate: Candidate, case: SuiteCase) -> object:
        """Equal for candidates that compute the case by the same plan; None where it is refused."""
        found = self._planned(candidate, case)
        return None if found is None else found[0]

    def outputs(self, candidate: Candidate, case: SuiteCase) -> Outputs | None:
        """Outputs by name; None where the candidate refuses the case."""
        found = self._planned(candidate, case)
        if found is None:
            return None
        key, plan = found
        known = self._outputs.setdefault(case.sha256, {})
        if key not in known:
            known[key] = _run(plan, case, _refusals(candidate))
        return known[key]

    def groups(self, candidates: Sequence[Candidate], case: SuiteCase) -> list[Group]:
        """Candidates with equal outputs together, those that refuse the case left out."""
        found: dict[object, list[Candidate]] = {}
        for candidate in candidates:
            outputs = self.outputs(candidate, case)
            if outputs is not None:
                found.setdefault(_bytes(outputs), []).append(candidate)
        return [tuple(group) for group in found.values()]

    def forget(self, case: SuiteCase) -> None:
        """Drop what is known of a case that is not asked."""
        self._plans.pop(case.sha256, None)
        self._outputs.pop(case.sha256, None)


def of_all_numerics(preferred: Sequence[str]) -> list[Candidate]:
    """All numerics, preferred ones first."""
    return [Candidate(name) for name in dict.fromkeys((*preferred, *numerics_tables.distinct()))]


def with_one_other_rule(base: Candidate, cases: Sequence[SuiteCase]) -> Iterator[Candidate]:
    """The base with each other rule of each of its slots; the rules that other numerics use for the operator first."""
    found = [Candidate(base.name, changes) for changes in _single_changes(base, cases)]
    yield from sorted(found, key=lambda candidate: not candidate.users)


def with_several_other_rules(base: Candidate, cases: Sequence[SuiteCase]) -> Iterator[Candidate]:
    """The base with two slots, then three, filled as any other numerics fill them for the operator."""
    used = [changes for changes in _single_changes(base, cases) if changes[0].users]
    for count in range(2, _MOST_CHANGES + 1):
        for chosen in combinations(used, count):
            if len({changes[0].slot for changes in chosen}) == count:
                yield Candidate(base.name, tuple(chain.from_iterable(chosen)))


def _single_changes(base: Candidate, cases: Sequence[SuiteCase]) -> list[tuple[Change, ...]]:
    """Each other rule of each slot, wherever the operator has the slot."""
    table = numerics_tables.find(base.name)
    own: dict[str, dict[Place, str]] = {}
    for case in cases:
        for place, filled in _places(case, table).items():
            for slot, rule in filled.items():
                own.setdefault(slot, {}).setdefault(place, rule)
    found = []
    for slot, at in own.items():
        for rule in rules(slot):
            changes = tuple(Change(place, slot, rule, instead) for place, instead in at.items() if rule != instead)
            if changes:
                found.append(changes)
    return found


def _places(case: SuiteCase, table: Numerics) -> dict[Place, Mapping[str, str]]:
    """The rows by which a numerics computes a case."""
    try:
        plan = planned(case.model, table)
        graph, _ = rewritten_graph(case.model.graph, table)
    except BittrueError:
        return {}
    used = {step.index: step.rules for step in plan.steps}
    return {place_of(graph, node): used[node.index] for node in graph.nodes if node.index in used}


def _prepared(candidate: Candidate, case: SuiteCase) -> tuple[object, Plan] | None:
    try:
        plan = planned(case.model, candidate.table)
    except _refusals(candidate):
        return None
    return plan_key(plan), plan


def _refusals(candidate: Candidate) -> type[Exception]:
    """A rule may meet operators, types and numbers that it was not made for: whatever that raises refuses the case."""
    return Exception if candidate.changes else BittrueError


def _run(plan: Plan, case: SuiteCase, refusals: type[Exception]) -> Outputs | None:
    with np.errstate(all="ignore"):
        try:
            return Session(plan, executor=quickest(plan)).run(dict(case.inputs))
        except refusals:
            return None


def _bytes(outputs: Outputs) -> object:
    return tuple((name, value.dtype.str, value.shape, value.tobytes()) for name, value in sorted(outputs.items()))


def key_of(outputs: Outputs) -> object:
    """Hashable; equal for the same tensors: names, types, shapes, bytes."""
    return _bytes(outputs)


def rules_of(plan: Plan) -> Mapping[str, str]:
    """Slot to rule, of all steps; the last step's where two have the slot."""
    return {slot: rule for step in plan.steps for slot, rule in step.rules.items()}
