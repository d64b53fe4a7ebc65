"""What a device does differently: one cause, or two together, that give every byte of every case of an operator.

Candidates come from `bittrue.compare`: rules that numerics have, rules that none has here, and faults. A cause must
give all bytes of all failing cases, and must change nothing in the cases that are right. What nothing gives stays
unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

import numpy as np

from .. import numerics as numerics_tables
from ..compare.description import Sample, describe
from ..compare.hypotheses import FAMILIES, RARE, SECONDS, UNCOUNTED, Case, Hypothesis, budget_of, rows
from ..compare.samples import samples_of
from ..compare.search import pairs
from ..compare.segments import Segment, segments
from ..errors import BittrueError
from ..plan.declared import rewritten_graph
from .expected import Outputs, same_bytes
from .properties import properties
from .result import Class
from .suite import SuiteCase

# What combinations of two may cost, in seconds of a search.
_COMBINATIONS = 2.0
# What one computation of a model of one operator costs beside its work, as `Case.budget`: it is planned anew.
_PART = 1_000_000
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
# What is looked for, one after the other, and what it is in words.
WORDS = {"likely": "rules and faults", "rare": "rare faults", "two": "two causes at once"}
STAGES = tuple(WORDS)
SINGLE = STAGES[:2]


Source = Callable[[Case], Iterable[Hypothesis]]


def _with_aliases(family: Source) -> Source:
    """What cannot be told apart in one case can be in another: every hypothesis under all its names."""

    def source(case: Case) -> Iterator[Hypothesis]:
        for hypothesis in family(case):
            yield hypothesis
            yield from (replace(hypothesis, cause=cause, aliases=()) for cause in hypothesis.aliases)

    return source


# Rules go by rows, which may be others in another case; the name of a fault comes from the same family everywhere.
_RULES: tuple[Source, ...] = (rows.used_slots, rows.used_pairs, rows.unused_slots)
# A rare fault is named where nothing likelier holds for all cases.
_SOURCES: Mapping[str, tuple[Source, ...]] = {
    "likely": (*_RULES[:2], *map(_with_aliases, FAMILIES), _RULES[2]),
    "rare": (*UNCOUNTED, *RARE),
}


class Search:
    """What the search for causes of one operator's differences may still cost, and what it left out.

    Args:
        seconds: on a machine of ordinary speed. They are counted and not measured: certificates are worked out again
            elsewhere, and then as much is found.

    Attributes:
        left: as `Case.budget`.
        cut: what was not tried, or not to the end.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds, self.left, self.cut = seconds, budget_of(seconds), dict[str, None]()

    @property
    def text(self) -> str:
        """For people; empty where everything was tried.

        >>> search = Search(0)
        >>> search.cut["rare faults"] = None
        >>> search.text
        'the search for causes ended after its 0 s; not tried, or not to the end: rare faults'
        """
        if not self.cut:
            return ""
        return f"the search for causes ended after its {self.seconds:g} s; not tried, or not to the end: " + ", ".join(
            self.cut
        )


class _Part(Case):
    """One output of one case."""

    def __init__(self, search: Search, segment: Segment, given: Mapping[str, np.ndarray], theirs: np.ndarray) -> None:
        super().__init__(segment, [given], [theirs])
        self._search = search
        self._made: dict[Source, Mapping[str, list[Hypothesis]]] = {}

    def predict(self, hypotheses: Sequence[Hypothesis], position: int) -> np.ndarray | None:
        """All parts are paid from the same search."""
        self._search.left -= _PART + self.plan.work
        return super().predict(hypotheses, position)

    def named(self, name: str, sources: Sequence[Source]) -> list[Hypothesis]:
        """Hypotheses of one name may come in several ways (ports, axes): the first few."""
        return [h for source in sources for h in self._of(source).get(name, ())][:_MOST_ALIKE]

    def _of(self, source: Source) -> Mapping[str, list[Hypothesis]]:
        """What one source makes of this case, by name. Some of them run the case to guess a number."""
        if source not in self._made:
            found: dict[str, list[Hypothesis]] = {}
            for hypothesis in source(self):
                alike = found.setdefault(hypothesis.cause.name, [])
                if len(alike) < _MOST_ALIKE:
                    alike.append(hypothesis)
            self._made[source] = found
        return self._made[source]


Found = dict[Names, tuple[Hypothesis, ...]]


class Differences:
    """What a device gave in all cases of an operator, beside what one numerics gives.

    Args:
        evidence: every case of the operator that ran and has a reference.
        numerics: the reference.
        search: what looking for causes may cost; several numerics may share it.
    """

    def __init__(self, evidence: Sequence[Evidence], numerics: str, search: Search | None = None) -> None:
        self._evidence, self._numerics = evidence, numerics
        self._search = Search() if search is None else search
        self._parts: dict[int, list[_Part] | None] = {}
        # Where hypotheses of a name come from.
        self._sources: dict[str, dict[Source, None]] = {}

    # Rules meet numbers that they were not made for: what comes out then is compared with the device all the same.
    @np.errstate(all="ignore")
    def find(self, stage: str) -> Class | None:
        """The cause of all differences; None where none of the stage is known.

        Args:
            stage: what to look for, of `STAGES`.
        """
        failing = [e for e in self._evidence if e.fails]
        parts = [self._of(e) for e in failing]
        if not failing or not all(parts):
            return None
        # The more elements differ, the fewer causes fit by chance.
        failing.sort(key=lambda e: -sum(part.differing for part in self._of(e)))
        first, *others = failing
        # Small cases rule out what fits by chance at the least cost.
        others.sort(key=lambda e: sum(value.size for value in (*e.case.inputs.values(), *e.outputs.values())))
        found = (self._doubles if stage == "two" else self._singles)(self._of(first), stage)
        for evidence in others:
            found = {names: h for names, h in found.items() if self._hold(names, self._of(evidence))} if found else {}
        # What cannot be computed in a case that is right has nothing to change there.
        for evidence in (e for e in self._evidence if not e.fails):
            found = (
                {names: h for names, h in found.items() if not self._changes(names, self._of(evidence))}
                if found
                else {}
            )
        return _class(found) if found else None

    @np.errstate(all="ignore")
    def describe(self) -> tuple[str, ...]:
        """What is true of all elements that differ, and of the cases in which some do."""
        samples: list[Sample] = []
        for one in self._evidence:
            parts = self._of(one)
            try:
                samples += [sample for part in parts for sample in samples_of(part)]
            except (BittrueError, LookupError):
                parts = []
            if not parts:
                samples += [Sample(value, one.outputs[name]) for name, value in one.wanted.items()]
        said = _common(self._evidence)
        return (*describe(samples, "reference", "device"), *((said,) if said else ()))

    def _of(self, evidence: Evidence) -> list[_Part]:
        """One part per output of a case; none where an output cannot be computed alone."""
        key = id(evidence)
        if key not in self._parts:
            try:
                self._parts[key] = _parts(evidence, self._numerics, self._search)
            except (BittrueError, LookupError):
                self._parts[key] = None
        return self._parts[key] or []

    def _singles(self, parts: Sequence[_Part], stage: str) -> Found:
        """Single hypotheses, by name, that give every output of a case."""
        part = max(parts, key=lambda p: p.differing)
        others = [p for p in parts if p is not part]
        found: Found = {}
        for source in _SOURCES[stage]:
            for hypothesis in source(part):
                if self._search.left <= 0:
                    self._search.cut[WORDS[stage]] = None
                    return found
                name = hypothesis.cause.name
                self._sources.setdefault(name, dict.fromkeys(_RULES))[source] = None
                if (name,) not in found and part.holds(hypothesis) and self._hold((name,), others):
                    found[(name,)] = (hypothesis,)
                    if len(found) >= _MOST_CANDIDATES:
                        return found
        return found

    def _doubles(self, parts: Sequence[_Part], stage: str) -> Found:
        """Two hypotheses together that give every output of a case, where no single one does."""
        part = max(parts, key=lambda p: p.differing)
        if not part.trials:
            self._singles(parts, STAGES[0])
        least = max(0, self._search.left - budget_of(_COMBINATIONS))
        found: Found = {}
        for hypotheses in pairs(part, [()]):
            if self._search.left <= least:
                break
            names = tuple(h.cause.name for h in hypotheses)
            if part.holds(*hypotheses) and self._hold(names, [p for p in parts if p is not part]):
                found[names] = hypotheses
                if len(found) >= _MOST_ALSO:
                    break
        if self._search.left <= 0:
            self._search.cut[WORDS[stage]] = None
        return found

    def _present(self, names: Names, part: _Part) -> list[list[Hypothesis]]:
        """The hypotheses of each name, of those that there are in this case."""
        found = [part.named(name, tuple(self._sources[name])) for name in names]
        return [ways for ways in found if ways]

    def _hold(self, names: Names, parts: Sequence[_Part]) -> bool:
        """Whether hypotheses of these names give every byte of all parts. What is not there changes nothing."""
        for part in parts:
            present = self._present(names, part)
            if not present and not part.differing:
                continue
            if not any(part.holds(*one) for one in _choices(present)):
                return False
        return True

    def _changes(self, names: Names, parts: Sequence[_Part]) -> bool:
        """Whether hypotheses of these names would change a case that is right."""
        for part in parts:
            right = part.theirs[0].tobytes()
            known = False
            for one in _choices(self._present(names, part)):
                predicted = part.predict(one, 0)
                if predicted is not None and predicted.tobytes() == right:
                    break
                known = known or predicted is not None
            else:
                if known:
                    return True
        return False


def find_class(evidence: Sequence[Evidence], numerics: str) -> Class | None:
    """The single cause of all differences from `numerics`, a likely one before a rare one; None where none is known."""
    differences = Differences(evidence, numerics)
    return next((found for stage in SINGLE if (found := differences.find(stage)) is not None), None)


def _common(evidence: Sequence[Evidence]) -> str:
    """What tells the failing cases from the others; empty where nothing does."""
    described = [properties(one.case) for one in evidence]
    found = []
    for name, words in dict.fromkeys(item for known in described for item in known.items()):
        having = [known.get(name) == words for known in described]
        if having == [one.fails for one in evidence] and not all(having):
            found.append(words)
    return f"in all cases with {' or '.join(found[:2])}, and in no other" if found else ""


def _parts(evidence: Evidence, numerics: str, search: Search) -> list[_Part]:
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
    return [_Part(search, found[name], given, evidence.outputs[name]) for name in names]


def _choices(present: Sequence[Sequence[Hypothesis]]) -> Iterator[tuple[Hypothesis, ...]]:
    """Every way that the hypotheses of these names may come in."""
    if present:
        yield from product(*present)


def _class(found: Found) -> Class:
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
