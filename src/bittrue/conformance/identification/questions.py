"""One operator of a device: questions are chosen so that each rules out as many candidates as it can.

First cases of the suite, those that split the remaining candidates best; where these give all of them alike, cases made
anew (`variations`). When one arithmetic is left, the rest of the suite's cases try to contradict it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

import numpy as np

from ..devices import Answer, Device
from ..expected import Outputs
from ..suite import AIMS, SuiteCase
from .candidates import Answers, Candidate, Group, key_of, of_all_numerics, rules_of, with_one_other_rule
from .variations import variations

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
        device: what is asked.
        cases: of the suite.
        left: candidates that give every answer so far.
        asked: questions, in order.
        contradicted: candidate to the case that ruled it out, by other bytes.
        inseparable: what is left differs, but no question in the budget tells it apart.
        deciding: questions that ruled something out.
        unstable: asked again, the device answered something else.
        tick: called after every question.
    """

    device: Device
    cases: list[SuiteCase]
    preferred: Sequence[str]
    budget: int
    known: Answers = field(default_factory=Answers)
    left: list[Candidate] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    contradicted: dict[Candidate, SuiteCase] = field(default_factory=dict)
    inseparable: bool = False
    deciding: int = 0
    unstable: bool = False
    tick: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.left = of_all_numerics(self.preferred)
        self._open = spread(self.cases)

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
            while self._open and len(self.asked) < min(self.budget, _EVIDENCE):
                self._ask(self._open.pop(0), False)
            self.unstable = self._answers_change()
            if not self.unstable:
                self.left = self._other_rules()
                self._narrow()

    def _narrow(self) -> None:
        while self.left and len(self.asked) < self.budget and not self._gives_up():
            found = self._next()
            if found is None:
                return
            self._ask(*found)

    def _gives_up(self) -> bool:
        return len(self.asked) >= _PATIENCE and not self.ran

    def _next(self) -> tuple[SuiteCase, bool] | None:
        """What to ask: what tells candidates apart, else what may contradict them all."""
        if not self.inseparable and len(self.left) > 1:
            found = self._separating()
            if found is not None:
                return found
        return (self._open.pop(0), False) if self._open else None

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
        in_vain = sum(one.made and not one.ran for one in self.asked)
        made = self._made(different) if in_vain < _IN_VAIN else None
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
        streams = [variations(case, start=len(self.asked) * _TRIES) for case in sources]
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
        sessions = [self.known.session(candidate, case) for candidate in different]
        if any(session is None or session.plan.work > _HEAVY for session in sessions):
            return False
        return len({self.known.key(candidate, case) for candidate in different}) > 1

    def _ask(self, case: SuiteCase, made: bool) -> None:
        answer = self.device.answer(case)
        self.asked.append(Asked(case, answer, made))
        self.tick()
        if answer.status != "outputs":
            return
        before = len(self.left)
        wanted = _key(answer.outputs)
        kept = []
        for candidate in self.left:
            outputs = self.known.outputs(candidate, case)
            if outputs is not None and key_of(outputs) == wanted:
                kept.append(candidate)
            elif outputs is not None:
                self.contradicted[candidate] = case
        self.left = kept
        self.deciding += len(kept) < before

    def _answers_change(self) -> bool:
        """Whether the device gives something else now for the question that ruled the last candidate out."""
        ruled_out = [one for one in self.ran if one.case in self.contradicted.values()]
        if not ruled_out:
            return False
        last = ruled_out[-1]
        again = self.device.answer(last.case)
        self.asked.append(Asked(last.case, again, last.made))
        same = again.status == "outputs" and _key(again.outputs) == _key(last.answer.outputs)
        if same:
            self.asked.pop()
        return not same

    def _other_rules(self) -> list[Candidate]:
        """Numerics with one other rule that give every answer so far."""
        found: dict[object, list[Candidate]] = {}
        ran = sorted(self.ran, key=lambda one: sum(v.size for v in one.answer.outputs.values()))
        wanted = [(one.case, _key(one.answer.outputs)) for one in ran]
        for base in self._bases():
            for candidate in with_one_other_rule(base, [case for case, _ in wanted][:4]):
                if all(self._gives(candidate, case, answer) for case, answer in wanted):
                    found.setdefault(candidate.changes[0].rule, []).append(candidate)
            if found:
                break
        return [candidate for many in found.values() for candidate in many]

    def _gives(self, candidate: Candidate, case: SuiteCase, wanted: object) -> bool:
        outputs = self.known.outputs(candidate, case)
        return outputs is not None and key_of(outputs) == wanted

    def _bases(self) -> list[Candidate]:
        """Numerics that can run what was answered, one of each arithmetic."""
        nearest = [candidate for candidate, _ in self.distances()]
        ordered = sorted(nearest, key=lambda candidate: candidate.name not in self.preferred)
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

    def deciding_rules(self) -> dict[str, str]:
        """Slots in which numerics that can run a case differ, as what is left has them."""
        if not self.left:
            return {}
        found: dict[str, str] = {}
        others = [c for c in (*self.contradicted, *self.left) if not c.changes]
        for one in self.ran[:_WINDOW]:
            mine = self.known.session(self.left[0], one.case)
            if mine is None:
                continue
            for slot, rule in rules_of(mine.plan).items():
                for other in others:
                    session = self.known.session(other, one.case)
                    if session is not None and rules_of(session.plan).get(slot, rule) != rule:
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
