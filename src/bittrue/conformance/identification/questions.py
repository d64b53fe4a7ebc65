"""One operator of a device: questions are chosen so that each rules out as many candidates as it can.

First cases of the suite, those that split the remaining candidates best; where these give all of them alike, cases made
anew (`variations`). When one arithmetic is left, the rest of the suite's cases try to contradict it, and among them
cases made anew: whoever has recorded the suite's answers does not know these. Last, questions that decided something
are put once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

import numpy as np

from ...errors import BittrueError
from ..devices import Answer
from ..expected import Outputs
from ..suite import AIMS, SuiteCase
from .candidates import (
    Answers,
    Candidate,
    Group,
    key_of,
    of_all_numerics,
    rules_of,
    with_one_other_rule,
    with_several_other_rules,
)
from .parts import Answered, Part, parts_of
from .variations import variations

# From a numerics and questions, other arithmetics to try.
Finder = Callable[[Candidate, Sequence[SuiteCase]], Iterator[Candidate]]

# Cases that are looked at before one is chosen.
_WINDOW = 8
# Cases made and not asked, because the candidates give the same on all of them, before they count as inseparable.
_TRIES = 96
# Multiply-accumulates from which a case is no good to make many others of.
_HEAVY = 4_000_000
# Questions that were made and not answered before no more are made: recorded outputs are there for the suite alone.
_IN_VAIN = 3
# Questions without any output before the device is said not to run the operator.
_PATIENCE = 12
# Where no numerics is left, so many answers in all are the evidence for what is said instead.
_EVIDENCE = 32
# Single other rules are tried on so many numerics: those that the suite admits, then the nearest ones.
_BASES = 8
# Several other rules at once on fewer, and not more than so many for each.
_SEVERAL_BASES = 3
_MOST_TRIED = 200
# Of so many questions that try to contradict, one is made anew; the first one always.
_FRESH = 4
# Questions that decided something and are put once more: the last ones.
_AGAIN = 3
# From so many questions on, one is kept for that, and one for a question that is no case of the suite.
_RESERVING = 4


@dataclass(frozen=True, eq=False)
class Asked:
    """One question and its answer; `made` where it is no case of the suite."""

    case: SuiteCase
    answer: Answer
    made: bool = False

    @property
    def ran(self) -> bool:
        return self.answer.status == "outputs"


@dataclass
class Inquiry:
    """What is known about one operator and label of types.

    Attributes:
        ask: the device; of it nothing else is known here.
        cases: of the suite.
        preferred: numerics that come first.
        budget: most runs of the device.
        seed: of the questions that are made.
        left: candidates that give every answer so far.
        asked: questions, in order.
        contradicted: candidate to the question that ruled it out, by other bytes.
        aside: candidates that refuse what the device ran.
        inseparable: what is left differs, but no question in the budget tells it apart.
        deciding: questions that ruled something out.
        unstable: the question to which the device answered something else when it was put again, and that answer.
        repeated: questions that were put again.
        parts: where several numerics give the answers, each to some of the models: these.
    """

    ask: Callable[[SuiteCase], Answer]
    cases: list[SuiteCase]
    preferred: Sequence[str]
    budget: int
    seed: str = ""
    known: Answers = field(default_factory=Answers)
    left: list[Candidate] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    contradicted: dict[Candidate, Asked] = field(default_factory=dict)
    aside: dict[Candidate, None] = field(default_factory=dict)
    inseparable: bool = False
    deciding: list[Asked] = field(default_factory=list)
    unstable: tuple[Asked, Answer] | None = None
    repeated: int = 0
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        self.left = of_all_numerics(self.preferred)
        self._open = spread(self.cases)
        self._sources = list(self._open)
        self._contradicting = 0
        self._drawn = 0
        self._permissive = False

    @property
    def runs(self) -> int:
        """Of the device."""
        return len(self.asked) + self.repeated

    @property
    def in_vain(self) -> int:
        """Questions that were made and not answered."""
        return sum(one.made and not one.ran for one in self.asked)

    @property
    def ran(self) -> list[Asked]:
        return [one for one in self.asked if one.ran]

    @property
    def rules(self) -> bool:
        """Whether what is left are numerics with one other rule."""
        return any(candidate.changes for candidate in self.left)

    def run(self) -> None:
        """Ask until nothing is left to ask."""
        self._narrow()
        if not self.left and self.ran:
            self._take_back()
            self._narrow()
        if not self.left and self.ran:
            while self._open and len(self.asked) < min(self._most, _EVIDENCE):
                self._ask(self._open.pop(0), False)
        self._put_again()
        if self.left or not self.ran or self.unstable is not None:
            return
        self._try_other_rules(with_one_other_rule)
        if not self.left:
            self._try_parts()
        if not self.left and not self.parts:
            self._try_other_rules(with_several_other_rules)

    def _try_other_rules(self, find: Finder) -> None:
        self.left = self._other_rules(find)
        self.inseparable = False
        self._narrow()

    def _try_parts(self) -> None:
        """Several numerics, each for some of the models; once found, all the budget goes to contradict it."""
        if not self._parts():
            return
        while self._open and len(self.asked) < self._most:
            self._ask(self._open.pop(0), False)
        self.parts = self._parts()

    def _parts(self) -> tuple[Part, ...]:
        answered = [Answered(one.case, _key(one.answer.outputs)) for one in self.ran]
        return parts_of(answered, of_all_numerics(self.preferred), self.known)

    @property
    def _most(self) -> int:
        """Questions that may be put for the first time."""
        return self.budget - self.repeated - (self.budget >= _RESERVING and not self.repeated)

    def _narrow(self) -> None:
        while self.left and len(self.asked) < self._most and not self._gives_up():
            found = self._next()
            if found is None:
                return
            self._ask(*found)

    def _gives_up(self) -> bool:
        return len(self.asked) >= _PATIENCE and not self.ran

    def _next(self) -> tuple[SuiteCase, bool] | None:
        """What to ask: what tells candidates apart, else what may contradict them all."""
        last = self.budget >= _RESERVING and len(self.asked) == self._most - 1
        if not self.inseparable and len(self.left) > 1 and not (last and self._all_of_the_suite()):
            found = self._separating()
            if found is not None:
                return found
        self._contradicting += 1
        if self.ran and (self._contradicting % _FRESH == 1 or not self._open or (last and self._all_of_the_suite())):
            fresh = self._fresh()
            if fresh is not None:
                return fresh, True
        return (self._open.pop(0), False) if self._open else None

    def _all_of_the_suite(self) -> bool:
        return not any(one.made for one in self.asked)

    def _fresh(self) -> SuiteCase | None:
        """A case that is none of the suite and that what is left runs: other values, or other parameters, too."""
        if self.in_vain >= _IN_VAIN or self._drawn >= self.budget:
            return None
        for _ in range(_WINDOW):
            number, turn = divmod(self._drawn, len(self._sources))
            # The first one is of the model as it is: a device that takes few models takes this one.
            start = 2 * number + (turn + 1) % 2
            case = next(variations(self._sources[turn], start, self.seed))
            self._drawn += 1
            try:
                found = self.known.outputs(self.left[0], case)
            except (BittrueError, ValueError):
                found = None
            if found is not None and any(value.size for value in found.values()):
                return case
            self.known.forget(case)
        return None

    def _separating(self) -> tuple[SuiteCase, bool] | None:
        chosen = self._best(self._open)
        if chosen is not None:
            self._open.remove(chosen)
            return chosen, False
        if not self.ran and self._open:
            # Nothing is known yet: before questions are made, one of the suite's must be answered.
            return self._open.pop(0), False
        different = self.different()
        if len(different) < 2:
            return None
        made = self._made(different) if self.in_vain < _IN_VAIN else None
        if made is None:
            self.inseparable = True
            return None
        return made, True

    def _best(self, cases: Sequence[SuiteCase]) -> SuiteCase | None:
        """The case that splits the remaining candidates best, of the first few that split them at all."""
        for start in range(0, len(cases), _WINDOW):
            best: tuple[tuple[int, int], SuiteCase] | None = None
            for case in cases[start : start + _WINDOW]:
                groups = self.known.groups(self.left, case)
                score = (len(groups), -max(map(len, groups), default=0))
                if len(groups) > 1 and (best is None or score > best[0]):
                    best = score, case
            if best is not None:
                return best[1]
        return None

    def different(self) -> list[Candidate]:
        """One of each arithmetic that is left: they have different plans for some case."""
        found: dict[object, Candidate] = {}
        for candidate in self.left:
            found.setdefault(tuple(self.known.key(candidate, case) for case in self.cases), candidate)
        return list(found.values())

    def _made(self, different: Sequence[Candidate]) -> SuiteCase | None:
        """A case made anew on which candidates that differ give different outputs."""
        sources = [case for case in self.cases if self._is_source(case, different)]
        if not sources:
            return None
        streams = [variations(case, len(self.asked) * _TRIES, self.seed) for case in sources]
        for number in range(_TRIES):
            case = next(streams[number % len(streams)])
            try:
                groups = self.known.groups(different, case)
            except ValueError:
                groups = []
            if len(groups) > 1 and sum(map(len, groups)) == len(different):
                return case
            self.known.forget(case)
        return None

    def _is_source(self, case: SuiteCase, different: Sequence[Candidate]) -> bool:
        plans = [self.known.plan(candidate, case) for candidate in different]
        if any(plan is None or plan.work > _HEAVY for plan in plans):
            return False
        return len({self.known.key(candidate, case) for candidate in different}) > 1

    def _ask(self, case: SuiteCase, made: bool) -> None:
        one = Asked(case, self.ask(case), made)
        self.asked.append(one)
        if not one.ran:
            return
        wanted = _key(one.answer.outputs)
        kept = []
        for candidate in self.left:
            outputs = self.known.outputs(candidate, case)
            if outputs is None and not self._permissive:
                self.aside[candidate] = None
            elif outputs is None or key_of(outputs) == wanted:
                kept.append(candidate)
            else:
                self.contradicted[candidate] = one
        if len(kept) < len(self.left):
            self.deciding.append(one)
        self.left = kept

    def _take_back(self) -> None:
        """Candidates that refuse some of what the device ran, and give all of the rest, if that is most of it."""
        found: dict[Candidate, int] = {}
        for candidate in self.aside:
            outputs = [(self.known.outputs(candidate, one.case), one) for one in self.ran]
            given = [(key_of(own), _key(one.answer.outputs)) for own, one in outputs if own is not None]
            if 2 * len(given) > len(self.ran) and all(own == wanted for own, wanted in given):
                found[candidate] = len(given)
        self._permissive = True
        self.left = [candidate for candidate, count in found.items() if count == max(found.values())]

    def beyond(self) -> int:
        """Answers to models that what is left refuses."""
        if not self._permissive or not self.left:
            return 0
        return sum(self.known.outputs(self.left[0], one.case) is None for one in self.ran)

    def _put_again(self) -> None:
        """Questions that ruled something out are put once more, as far as the budget goes."""
        chosen = (self.deciding or self.ran)[-_AGAIN:][::-1]
        for one in chosen[: max(self.budget - len(self.asked), 0)]:
            again = self.ask(one.case)
            self.repeated += 1
            if again.status != "outputs" or _key(again.outputs) != _key(one.answer.outputs):
                self.unstable = one, again
                return

    def _other_rules(self, find: Finder) -> list[Candidate]:
        """Numerics with other rules that give every answer so far."""
        found: dict[object, list[Candidate]] = {}
        ran = sorted(self.ran, key=lambda one: sum(v.size for v in one.answer.outputs.values()))
        wanted = [(one.case, _key(one.answer.outputs)) for one in ran]
        bases = self._bases()
        for base in bases if find is with_one_other_rule else bases[:_SEVERAL_BASES]:
            for candidate in islice(find(base, [case for case, _ in wanted]), _MOST_TRIED):
                if all(self._gives(candidate, case, answer) for case, answer in wanted):
                    found.setdefault(tuple(change.rule for change in candidate.changes), []).append(candidate)
            if found:
                break
        return [candidate for many in found.values() for candidate in many]

    def _gives(self, candidate: Candidate, case: SuiteCase, wanted: object) -> bool:
        outputs = self.known.outputs(candidate, case)
        return outputs is not None and key_of(outputs) == wanted

    def _bases(self) -> list[Candidate]:
        """Numerics that can run what was answered, one of each arithmetic: preferred ones in their order, then the
        nearest.
        """
        order = {name: position for position, name in enumerate(self.preferred)}
        nearest = [candidate for candidate, _ in self.distances()]
        ordered = sorted(nearest, key=lambda candidate: order.get(candidate.name, len(order)))
        seen: dict[object, Candidate] = {}
        for candidate in ordered:
            seen.setdefault(tuple(self.known.key(candidate, one.case) for one in self.ran), candidate)
        return list(islice(seen.values(), _BASES))

    def distances(self) -> list[tuple[Candidate, tuple[float, float]]]:
        """All numerics, by how far they are from the answers: answers refused or of another shape, differing elements,
        sum of differences.
        """
        found = []
        for position, candidate in enumerate(of_all_numerics(self.preferred)):
            refused, strange, differing, apart = 0, 0, 0, 0.0
            for one in self.ran:
                outputs = self.known.outputs(candidate, one.case)
                counted = None if outputs is None else difference(outputs, one.answer.outputs)
                refused += outputs is None
                strange += counted is None
                if counted is not None:
                    differing, apart = differing + counted[0], apart + counted[1]
            if refused < len(self.ran):
                found.append((candidate, (strange, differing, apart, position)))
        return [(candidate, (float(far[1]), far[2])) for candidate, far in sorted(found, key=lambda one: one[1])]

    def only_the_suite(self) -> tuple[str, int, int] | None:
        """A numerics that gives every answer to the suite's own cases, if there were enough, and misses others: its
        name, answers of the suite, and others that it misses.
        """
        own = [one for one in self.ran if not one.made]
        made = [one for one in self.ran if one.made]
        for candidate in of_all_numerics(self.preferred):
            if len(own) >= _FRESH and all(self._gives(candidate, one.case, _key(one.answer.outputs)) for one in own):
                missed = sum(not self._gives(candidate, one.case, _key(one.answer.outputs)) for one in made)
                return candidate.name, len(own), missed
        return None

    def deciding_rules(self) -> dict[str, str]:
        """Slots in which numerics that can run a case differ, as what is left has them."""
        if not self.left:
            return {}
        found: dict[str, str] = {}
        others = [c for c in (*self.contradicted, *self.left) if not c.changes]
        for one in self.ran[:_WINDOW]:
            mine = self.known.plan(self.left[0], one.case)
            if mine is None:
                continue
            for slot, rule in rules_of(mine).items():
                for other in others:
                    plan = self.known.plan(other, one.case)
                    if plan is not None and rules_of(plan).get(slot, rule) != rule:
                        found.setdefault(slot, rule)
        return found


def spread(cases: Sequence[SuiteCase]) -> list[SuiteCase]:
    """One case of each aim in turn, so that the first few are of all kinds."""
    by_aim = [[case for case in cases if case.aim == aim] for aim in AIMS]
    return [case for row in zip_longest(*by_aim) for case in row if case is not None]


def difference(expected: Outputs, got: Outputs) -> tuple[int, float] | None:
    """Differing elements and the sum of their differences; None for other tensors, types or shapes."""
    count, apart = 0, 0.0
    if expected.keys() != got.keys():
        return None
    for name, one in expected.items():
        two = np.asarray(got[name])
        if one.dtype != two.dtype or one.shape != two.shape:
            return None
        wrong = unequal(one, two)
        count += int(wrong.sum())
        if one.dtype.kind in "iufb" and wrong.any():
            with np.errstate(all="ignore"):
                steps = np.abs(one[wrong].astype(np.float64) - two[wrong].astype(np.float64))
            apart += float(np.where(np.isfinite(steps), steps, 1e30).sum())
    return count, apart


def unequal(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Per element: other bytes."""
    if one.dtype.kind in "iub":
        return np.asarray(one != two)
    pair = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(*x.shape, x.dtype.itemsize) for x in (one, two)]
    return np.asarray((pair[0] != pair[1]).any(axis=-1))


def _key(outputs: Outputs) -> object:
    return key_of({name: np.asarray(value) for name, value in outputs.items()})


__all__ = ["Asked", "Group", "Inquiry", "difference", "spread", "unequal"]
