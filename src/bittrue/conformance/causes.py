"""What a device does differently: one cause, or two together, that give every byte of every case of an operator.

Candidates come from `bittrue.compare`: rules that numerics have, rules that none has here, and faults. A cause must
give all bytes of all failing cases, and must change nothing in the cases that are right. What nothing gives stays
unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from .. import numerics as numerics_tables
from ..compare.description import Sample, describe
from ..compare.hypotheses import BUDGET, Case, Hypothesis, rows
from ..compare.samples import samples_of
from ..compare.search import faults, pairs, rare_faults
from ..compare.segments import segments
from ..errors import BittrueError
from ..plan.planner import rewritten_graph
from .expected import Outputs, same_bytes
from .properties import properties
from .result import Class
from .suite import SuiteCase

# What combinations of two may cost, as `compare.hypotheses.Case.budget`: about 5 seconds.
_COMBINATIONS = BUDGET // 3
# Other causes that are named beside the one.
_MOST_ALSO = 6
# Causes that hold for the largest failing case are looked at in the others; more are chance.
_MOST_CANDIDATES = 60
_MOST_ALIKE = 3


@dataclass(frozen=True, eq=False)
class Evidence:
    """One case that ran: what the device gave, and what the reference gives."""

    case: SuiteCase
    outputs: Outputs
    wanted: Outputs

    @property
    def fails(self) -> bool:
        return not same_bytes(self.outputs, self.wanted)


Names = tuple[str, ...]
STAGES = ("likely", "rare", "two")
SINGLE = STAGES[:2]


class _Part(Case):
    """One output of one case."""

    @cached_property
    def by_name(self) -> dict[str, list[Hypothesis]]:
        """Hypotheses of one name may come in several ways (ports, axes): the first few of each."""
        found: dict[str, list[Hypothesis]] = {}
        for hypothesis in _hypotheses(self):
            alike = found.setdefault(hypothesis.cause.name, [])
            if len(alike) < _MOST_ALIKE:
                alike.append(hypothesis)
        return found


# Rules meet numbers that they were not made for: what comes out then is compared with the device like anything else.
@np.errstate(all="ignore")
def find_class(evidence: Sequence[Evidence], numerics: str, stages: Sequence[str] = SINGLE) -> Class | None:
    """The cause of all differences from `numerics`; None where none is known.

    Args:
        evidence: every case of the operator that ran and has a reference.
        numerics: the reference.
        stages: what to look for, one after the other, of `STAGES`.
    """
    failing = [e for e in evidence if e.fails]
    if not failing:
        return None
    try:
        parts = {id(e): _parts(e, numerics) for e in failing}
    except (BittrueError, LookupError):
        return None
    # The more elements differ, the fewer causes fit by chance.
    failing.sort(key=lambda e: -sum(part.differing for part in parts[id(e)]))
    first, *others = failing
    right = [e for e in evidence if not e.fails]
    # Small cases rule out what fits by chance at the least cost.
    others.sort(key=lambda e: sum(value.size for value in (*e.case.inputs.values(), *e.outputs.values())))
    for stage in stages:
        found = _FIND[stage](parts[id(first)])
        found = _survivors(found, others, parts)
        found = _unbelied(found, right, numerics)
        if found:
            return _class(found)
    return None


@np.errstate(all="ignore")
def describe_difference(evidence: Sequence[Evidence], numerics: str) -> tuple[str, ...]:
    """What is true of all elements in which a device differs from `numerics`, and of the cases in which it does.

    Args:
        evidence: every case of the operator that ran and has a reference.
        numerics: the reference.
    """
    samples: list[Sample] = []
    for one in evidence:
        try:
            samples += [sample for part in _parts(one, numerics) for sample in samples_of(part)]
        except (BittrueError, LookupError):
            samples += [Sample(value, one.outputs[name]) for name, value in one.wanted.items()]
    said = _common(evidence)
    return (*describe(samples, "reference", "device"), *((said,) if said else ()))


def _common(evidence: Sequence[Evidence]) -> str:
    """What tells the failing cases from the others; empty where nothing does."""
    described = [properties(one.case) for one in evidence]
    found = []
    for name, words in dict.fromkeys(item for known in described for item in known.items()):
        having = [known.get(name) == words for known in described]
        if having == [one.fails for one in evidence] and not all(having):
            found.append(words)
    return f"in all cases with {' or '.join(found[:2])}, and in no other" if found else ""


def _parts(evidence: Evidence, numerics: str) -> list[_Part]:
    """One part per output of the case's model.

    Raises:
        BittrueError: the numerics cannot run the case.
        LookupError: an output is known without running anything.
    """
    table = numerics_tables.find(numerics)
    session = evidence.case.model.prepare(numerics)
    graph, _ = rewritten_graph(evidence.case.model.graph, table)
    names = [session.plan.tensors[i].name for i in session.plan.results]
    found = {part.name: part for part in segments(graph, session.plan, table, names)}
    given = dict(evidence.case.inputs)
    missing = [name for name in names if name not in found or not found[name].shapes.keys() <= given.keys()]
    if missing:
        raise LookupError(missing[0])
    return [_Part(found[name], [given], [evidence.outputs[name]]) for name in names]


def _hypotheses(part: Case) -> Iterator[Hypothesis]:
    """Everything single: what numerics have first."""
    yield from _likely(part)
    yield from rare_faults(part)


def _likely(part: Case) -> Iterator[Hypothesis]:
    yield from rows.used_slots(part)
    yield from rows.used_pairs(part)
    yield from faults(part, aliases=True)
    yield from rows.unused_slots(part)


def _singles(
    parts: Sequence[_Part], make: Callable[[Case], Iterator[Hypothesis]] = _likely
) -> dict[Names, tuple[Hypothesis, ...]]:
    """Single hypotheses, by name, that give every output of a case."""
    part = max(parts, key=lambda p: p.differing)
    found: dict[Names, tuple[Hypothesis, ...]] = {}
    for hypothesis in make(part):
        name = (hypothesis.cause.name,)
        if name not in found and part.holds(hypothesis) and _hold(name, [p for p in parts if p is not part]):
            found[name] = (hypothesis,)
            if len(found) >= _MOST_CANDIDATES:
                break
    return found


def _doubles(parts: Sequence[_Part]) -> dict[Names, tuple[Hypothesis, ...]]:
    """Two hypotheses together that give every output of a case, where no single one does."""
    _singles(parts)
    part = max(parts, key=lambda p: p.differing)
    part.budget = _COMBINATIONS
    found: dict[Names, tuple[Hypothesis, ...]] = {}
    for hypotheses in pairs(part, [()]):
        if part.budget <= 0:
            break
        names = tuple(h.cause.name for h in hypotheses)
        if part.holds(*hypotheses) and _hold(names, [p for p in parts if p is not part]):
            found[names] = hypotheses
            if len(found) >= _MOST_ALSO:
                break
    return found


# What to look for, by stage; a rare fault is named where nothing likelier holds for all cases.
_FIND: dict[str, Callable[[Sequence[_Part]], dict[Names, tuple[Hypothesis, ...]]]] = {
    "likely": _singles,
    "rare": lambda parts: _singles(parts, rare_faults),
    "two": _doubles,
}


def _survivors(
    found: dict[Names, tuple[Hypothesis, ...]], others: Sequence[Evidence], parts: dict[int, list[_Part]]
) -> dict[Names, tuple[Hypothesis, ...]]:
    """Those that give every byte of the other failing cases, too."""
    for evidence in others:
        if not found:
            break
        found = {names: h for names, h in found.items() if _hold(names, parts[id(evidence)])}
    return found


def _unbelied(
    found: dict[Names, tuple[Hypothesis, ...]], right: Sequence[Evidence], numerics: str
) -> dict[Names, tuple[Hypothesis, ...]]:
    """Those that change nothing in cases that are right. What cannot be computed there has nothing to change."""
    for evidence in right:
        if not found:
            break
        try:
            parts = _parts(evidence, numerics)
        except (BittrueError, LookupError):
            continue
        found = {names: h for names, h in found.items() if not _changes(names, parts)}
    return found


def _hold(names: Names, parts: Sequence[_Part]) -> bool:
    """Whether hypotheses of these names give every byte of all parts."""
    return all(_give(names, part) for part in parts)


def _give(names: Names, part: _Part) -> bool:
    chosen = [part.by_name.get(name, []) for name in names]
    present = [h for h in chosen if h]
    if not part.differing:
        # What does not exist here changes nothing here.
        return not present or any(part.holds(*one) for one in _choices(present))
    return bool(present) and any(part.holds(*one) for one in _choices(present))


def _choices(present: Sequence[Sequence[Hypothesis]]) -> Iterator[tuple[Hypothesis, ...]]:
    """Every way that the hypotheses of these names may come in."""
    if len(present) == 1:
        yield from ((h,) for h in present[0])
    else:
        yield from ((one, two) for one in present[0] for two in present[1])


def _changes(names: Names, parts: Sequence[_Part]) -> bool:
    """Whether hypotheses of these names would change a case that is right."""
    for part in parts:
        present = [h for h in (part.by_name.get(name, []) for name in names) if h]
        if not present:
            continue
        predicted = [part.predict(one, 0) for one in _choices(present)]
        known = [p for p in predicted if p is not None]
        if known and not any(p.tobytes() == part.theirs[0].tobytes() for p in known):
            return True
    return False


def _class(found: dict[Names, tuple[Hypothesis, ...]]) -> Class:
    names, hypotheses = next(iter(found.items()))
    causes = [h.cause for h in hypotheses]
    legal = all(c.slot and c.numerics and c.benign for c in causes)
    also = tuple(" and ".join(other) for other in chain(list(found)[1:]))[:_MOST_ALSO]
    return Class(
        " and ".join(names),
        " together with ".join(c.text for c in causes),
        causes[-1].kind,
        legal,
        also,
    )
