"""Why a tensor differs: which other rule, or which fault, gives B's bits. Proven by computing them again.

A cause counts only when computing with it gives every byte of B's tensor, on every input. Where no one cause does,
two together may; where not even those do, elements are accounted for one by one, and what no cause gives is
unexplained. Of several causes that fit, the one of a numerics comes before a fault, and fewer changes before more.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from ..errors import BittrueError
from ..numerics import Numerics
from ..numerics import distinct as distinct_numerics
from ..numerics import find as find_numerics
from ..plan import Plan
from .description import describe
from .files import Difference
from .hypotheses import BUDGET, SECONDS, Case, Hypothesis, budget_of, rows
from .proof import of_files
from .result import Cause, Verdict
from .samples import samples_of
from .search import account, faults, pairs, rare_faults
from .segments import Segment
from .witness import Witness

# Fewer differing elements than this may fit several causes by chance: then all that fit are named; with still fewer,
# rules that stand further down as well.
_FEW, _VERY_FEW = 24, 12
_MOST_ALSO = 12
# With more of them, only so many others that touch the same thing are tried.
_MOST_TRIED = 16
# What accounting for single elements of a tensor may cost, as `Case.budget`.
_ACCOUNTING = 2_000_000_000
# After so many tensors of one form on which the search was in vain, others of it are not searched.
_ENOUGH = 2
# On so many further inputs causes that fit are told from each other.
_FURTHER = 3


# Name to hypotheses: what fits besides the cause that is named.
Fitting = dict[str, tuple[Hypothesis, ...]]
# Hypotheses, alone or together, and what they are in words where the case's budget limits them.
_Stage = tuple[Callable[[], Iterator[tuple[Hypothesis, ...]]], str]


class Explainer:
    """Finds causes, tensor by tensor; what explained one tensor is tried first on the next.

    Args:
        own: A's arithmetic.
        other: what is said to be B's; None for a device.
        search: seconds that the search for causes that no numerics has may take.
        tried: called while it searches, with how many causes were tried on the tensor at hand.

    Attributes:
        unfinished: tensors on which the search ended before everything was tried, and found nothing.
        cut: what was not tried to the end on some of them, in words.
        untried: tensors on which it did not begin: it was in vain on others of the same form.
    """

    def __init__(
        self,
        own: Numerics,
        other: Numerics | None,
        search: float = SECONDS,
        tried: Callable[[int], None] | None = None,
    ) -> None:
        self.own = own
        self.unfinished: list[str] = []
        self._tried = tried or (lambda count: None)
        self.cut: dict[str, None] = {}
        self.untried: list[str] = []
        self._in_vain, self._left = 0, budget_of(search)
        self._vain: dict[Hashable, list[str]] = {}
        self._others = () if other is None else (other,)
        # A's own arithmetic is no other one.
        self._wholes = tuple(n for n in self._others if (n.name, n.rewrites) != (own.name, own.rewrites))
        self._known: dict[tuple[Hashable, ...], tuple[rows.Slot, ...]] = {}

    # Rules meet numbers that they were not made for: what comes out then is compared with B like anything else.
    @np.errstate(all="ignore")
    def explain(
        self,
        segment: Segment,
        values: Sequence[Mapping[str, np.ndarray]],
        theirs: Sequence[np.ndarray],
        command: str,
        files: Sequence[Difference] = (),
        more: Callable[[], Iterator[Hypothesis]] | None = None,
        rules: Mapping[str, str] | None = None,
        settled: bool = False,
    ) -> Verdict:
        """The verdict on one tensor.

        Args:
            segment: what computes it on A's side.
            values: per input set the inputs of the segment by name, as B had them.
            theirs: per input set B's tensor, in A's layout and type.
            command: ``bittrue explain MODEL`` and what it takes to get these values; tensor and element are added.
            files: in what B's file differs in this segment.
            more: hypotheses that take other tensors than the segment's, tried when no other single one holds.
            rules: of the step of B's own model that computes this tensor, by slot, where they are known.
            settled: B's own graph is known to give all of B's bits: only rules that numerics have are of interest.
        """
        case = Case(segment, values, theirs)
        if not case.differing:
            return Verdict(0, exact=True, text="equal")
        limit = self._inexact(case)
        causes, fitting, unexplained, hypotheses = self._causes(case, files, more, rules or {}, settled or bool(limit))
        if not unexplained:
            limit = ""
        if limit:
            causes, unexplained = (), 0
        also, alike = told_apart(case, hypotheses, fitting)
        witness = Witness(case, hypotheses)
        described = describe(samples_of(case)) if unexplained else ()
        place = f"--tensor {shlex.quote(segment.name)} --element {','.join(map(str, witness.element))}"
        return Verdict(
            differing=case.differing,
            causes=causes,
            exact=bool(causes) and not unexplained,
            unexplained=unexplained,
            text=verdict_text(case, causes, unexplained, also, alike, self._alike_in_vain(case), described, limit),
            also=also,
            witness=witness.work_out(),
            command=f"{command} {place}" if command else "",
            accumulators=witness.accumulator_range(),
            ties=witness.ties(),
            alike=alike,
            described=described,
        )

    def _inexact(self, case: Case) -> str:
        """Where rows of a side's numerics record results that differ in bits, in words; empty where none does.

        No rule of ours gives such results, and a search for faults could only be misled.
        """
        for numerics in (self.own, *self._others):
            try:
                steps = case.segment.plan(numerics).steps
            except BittrueError:
                continue
            found = next((step for step in steps if step.inexact), None)
            if found is not None:
                show = f"bittrue numerics show {numerics.name} --operator {found.operator}"
                return (
                    f"numerics '{numerics.name}' records other bits of {found.operator} than the runtime has ({show})"
                )
        return ""

    def _causes(
        self,
        case: Case,
        files: Sequence[Difference],
        more: Callable[[], Iterator[Hypothesis]] | None,
        rules: Mapping[str, str],
        settled: bool,
    ) -> tuple[tuple[Cause, ...], Fitting, int, tuple[Hypothesis, ...]]:
        """Causes, what fits as well, how many elements stay unexplained, and the hypotheses that give all of B."""
        bases = self._bases(case, rules)
        proven = of_files(case, self.own, files, bases) if files else None
        if proven is not None:
            return tuple(replace(h.cause, elements=case.differing) for h in proven), {}, 0, proven
        for hypothesis in chain(self._of_step(case, rules), self._as_before(case)):
            if case.holds(hypothesis):
                self._remember(case, (hypothesis,))
                return (replace(hypothesis.cause, elements=case.differing),), {}, 0, (hypothesis,)
        if not settled and len(self._vain.get(case.form, ())) >= _ENOUGH:
            self.untried.append(case.segment.name)
            return (), {}, case.differing, ()
        for stage, what in self._known_stages(case) if settled else self._stages(case, bases, more):
            before = case.budget
            found = self._first(case, stage, bool(what))
            self._left -= before - case.budget
            if found is None:
                if what and case.budget <= 0:
                    self.cut[what] = None
                continue
            hypotheses, also = found
            causes = tuple(h.cause for h in hypotheses)
            if case.differing < (_VERY_FEW if self._others else _FEW):
                also = self._rules_that_fit(case, causes, also)
            self._remember(case, hypotheses)
            counted = tuple(replace(cause, elements=case.differing) for cause in causes)
            return counted, also, 0, hypotheses
        if settled:
            return (), {}, case.differing, ()
        if case.budget <= 0:
            self.unfinished.append(case.segment.name)
        # A device that does many things differently would take as long over every tensor.
        self._in_vain += 1
        self._vain.setdefault(case.form, []).append(case.segment.name)
        before = case.budget = max(0, min(_ACCOUNTING, self._left))
        counted, unexplained = account(case, bases)
        self._left -= before - case.budget
        return counted, {}, unexplained, ()

    def _known_stages(self, case: Case) -> Iterator[_Stage]:
        """Arithmetics and rules that numerics have; no budget limits them."""
        yield lambda: self._of_numerics(case), ""
        yield lambda: ((h,) for h in rows.used_slots(case)), ""
        yield lambda: ((h,) for h in rows.used_pairs(case)), ""

    def _stages(
        self, case: Case, bases: list[tuple[Hypothesis, ...]], more: Callable[[], Iterator[Hypothesis]] | None
    ) -> Iterator[_Stage]:
        """What is tried, stage by stage."""
        yield from self._known_stages(case)
        case.budget = self._left
        yield lambda: ((h,) for h in faults(case)), "faults"
        yield lambda: ((h,) for h in rows.unused_slots(case)), "rules that no numerics has there"
        yield lambda: ((h,) for h in self._all_numerics(case)), "whole arithmetics of other numerics"
        if more is not None:
            yield lambda: ((h,) for h in more()), "values of other tensors"
        yield lambda: ((h,) for h in rare_faults(case)), "rare faults"
        case.budget = min(BUDGET >> self._in_vain, self._left // 2)
        yield lambda: pairs(case, bases), "two causes at once"

    def _alike_in_vain(self, case: Case) -> str:
        """The first tensor of this form, where the search was in vain on enough of them for this one to be left out."""
        return self._vain[case.form][0] if case.segment.name in self.untried else ""

    def _remember(self, case: Case, hypotheses: tuple[Hypothesis, ...]) -> None:
        """Rules that explain so many elements need no other evidence on the next tensor of such an operator."""
        if case.differing >= _FEW:
            for slots in (h.slots for h in hypotheses if h.slots):
                self._known[(slots[0].place.operator, *((s.slot, s.rule) for s in slots))] = slots

    def _first(
        self, case: Case, stage: Callable[[], Iterable[tuple[Hypothesis, ...]]], limited: bool
    ) -> tuple[tuple[Hypothesis, ...], Fitting] | None:
        """The first of a stage that holds, and others that do: of its own kind, with few differing elements of any."""
        first: tuple[Hypothesis, ...] | None = None
        also: Fitting = {}
        tried = 0
        for hypotheses in stage():
            if (limited and case.budget <= 0) or len(also) >= _MOST_ALSO or tried >= _MOST_TRIED:
                break
            # More than what suffices proves nothing of what is more.
            if first is not None and any(_contains(hypotheses, fits) for fits in (first, *also.values())):
                continue
            if first is not None and case.differing >= _FEW:
                if [h.seat for h in hypotheses] != [h.seat for h in first]:
                    continue
                tried += 1
            self._tried(case.tried)
            if case.holds(*hypotheses):
                if first is None:
                    first = hypotheses
                    if case.differing >= _FEW and hypotheses[0].cause.numerics:
                        # A rule that a numerics has, and gives so many elements.
                        break
                else:
                    also[" and ".join(h.cause.name for h in hypotheses)] = hypotheses
        return None if first is None else (first, also)

    def _rules_that_fit(self, case: Case, causes: tuple[Cause, ...], also: Fitting) -> Fitting:
        """`also`, and single rules of any numerics that fit as well."""
        names = dict(also)
        known = [{atom for cause in causes for atom in cause.name.split(" + ")}, *(set(n.split(" + ")) for n in also)]
        # Whose arithmetic is known is not guessed further.
        told = {other.name for other in self._others} & {name for cause in causes for name in cause.numerics}
        for hypothesis in chain(rows.used_slots(case), () if told else rows.used_pairs(case)):
            atoms = set(hypothesis.cause.name.split(" + "))
            if len(names) >= _MOST_ALSO:
                break
            if not any(fits <= atoms for fits in known) and case.holds(hypothesis):
                names[hypothesis.cause.name] = (hypothesis,)
                known.append(atoms)
        return names

    def _as_before(self, case: Case) -> Iterator[Hypothesis]:
        """Rules that explained many elements of earlier tensors of such an operator: these need no other evidence."""
        for slots in list(self._known.values()):
            yield from rows.refilled(case, slots)

    def _of_step(self, case: Case, rules: Mapping[str, str]) -> Iterator[Hypothesis]:
        """What B's own model is planned with at this place."""
        return rows.of_step(case, rules, tuple(other.name for other in self._others))

    def _of_numerics(self, case: Case) -> Iterator[tuple[Hypothesis, ...]]:
        """What is said to be B's arithmetic: the smallest part of its differences that suffices, else all of it."""
        for other in self._wholes:
            whole = rows.whole_row(case, other)
            if not case.holds(whole):
                continue
            plan = case.planned([whole], dict(case.segment.shapes))
            parts = self._parts(case, whole, plan)
            yield from ((part,) for part in parts)
            yield (replace(whole, cause=rows.fused_otherwise(case, plan, other) or whole.cause),)

    def _parts(self, case: Case, whole: Hypothesis, plan: Plan) -> list[Hypothesis]:
        slots = rows.differences(case, plan)
        if not slots:
            return []
        return [rows.rule_hypothesis(case, chosen, whole.cause.numerics) for chosen in rows.sufficient(slots)]

    def _all_numerics(self, case: Case) -> Iterator[Hypothesis]:
        said = {numerics.name for numerics in (self.own, *self._others)}
        for name in distinct_numerics():
            if name not in said:
                yield rows.whole_row(case, find_numerics(name))

    def _bases(self, case: Case, rules: Mapping[str, str]) -> list[tuple[Hypothesis, ...]]:
        """Arithmetics on which faults may sit: A's own, and what is said to be B's."""
        # All of the step's rules at once come last.
        step = list(self._of_step(case, rules))[-1:]
        return [(), *((rows.whole_row(case, other),) for other in self._wholes), *((one,) for one in step)]


def told_apart(
    case: Case, hypotheses: tuple[Hypothesis, ...], fitting: Fitting
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What fits as well: what further random inputs tell from `hypotheses`, and what they do not."""
    others: list[str] = []
    alike: list[str] = []
    if not fitting:
        return (), ()
    more = case.elsewhere(_FURTHER)
    runs = range(len(more.theirs))
    mine = [more.predict(hypotheses, k) for k in runs]
    for name, other in fitting.items():
        same = all(_same(mine[k], more.predict(other, k)) for k in runs)
        (alike if same else others).append(name)
    return tuple(others), tuple(alike)


def _same(one: np.ndarray | None, two: np.ndarray | None) -> bool:
    return one is not None and two is not None and one.tobytes() == two.tobytes()


def _contains(hypotheses: tuple[Hypothesis, ...], first: tuple[Hypothesis, ...]) -> bool:
    """Whether `hypotheses` are `first` and something more."""
    one, two = ({atom for h in many for atom in h.cause.name.split(" + ")} for many in (first, hypotheses))
    whole = {name for h in hypotheses if h.seat == "numerics" for name in h.cause.numerics}
    return one <= two or bool(whole & {name for h in first for name in h.cause.numerics})


def verdict_text(
    case: Case,
    causes: Sequence[Cause],
    unexplained: int,
    also: Sequence[str] = (),
    alike: Sequence[str] = (),
    untried: str = "",
    described: Sequence[str] = (),
    limit: str = "",
) -> str:
    """One sentence on a tensor.

    Args:
        limit: what a numerics records of bits that differ there, in words; empty where that is not the reason.
        untried: a tensor that is computed in the same way and on which the search was in vain, so this has had none.
    """
    total = sum(b.size for b in case.theirs)
    differing = case.differing
    by = ""
    if case.largest is not None:
        same = {float(v) for a, b, m in zip(case.ours, case.theirs, case.differs, strict=True) for v in _steps(a, b, m)}
        by = f", all by {case.largest:.9g}" if len(same) == 1 else f", by at most {case.largest:.9g}"
        by = by.replace(", all", ",") if differing == 1 else by
    start = f"{_count(differing)} of {_count(total)} elements {'differs' if differing == 1 else 'differ'}{by}"
    seen = f"; seen: {'; '.join(described)}" if described else ""
    if limit:
        return f"{start}; inexact here: {limit}"
    if untried:
        why = f"not searched, since nothing was found for '{untried}', which is computed in the same way"
        return f"{start}; unexplained: {why}{seen}"
    if not causes:
        return f"{start}; unexplained: no known rule and no known fault gives these bits{seen}"
    if unexplained:
        parts = ", ".join(f"{_count(c.elements)} by {c.text}" for c in causes)
        return f"{start}; explained: {parts}; unexplained: {_count(unexplained)} of {_count(differing)}{seen}"
    if len(causes) > 1 and any(c.elements < differing for c in causes):
        return f"{start}; all are explained: {', '.join(f'{_count(c.elements)} by {c.text}' for c in causes)}"
    subject = "it is" if differing == 1 else "all are"
    # Rules are things, faults are sentences.
    by = "" if all(c.slot for c in causes) else ":"
    text = f"{start}; {subject} explained{by or ' by'} {' together with '.join(c.text for c in causes)}"
    remarks = [f"{_others(len(also))} as well; more inputs tell them apart: --runs 4"] if also else []
    if alike:
        subject = "1 other gives" if len(alike) == 1 else f"{len(alike)} others give"
        remarks.append(f"{subject} the same on further random inputs, too")
    return f"{text} ({'; '.join(remarks)})" if remarks else text


def _others(count: int) -> str:
    return "1 other cause fits" if count == 1 else f"{count} other causes fit"


def _steps(a: np.ndarray, b: np.ndarray, mask: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.unique(np.abs(b[mask].astype(np.float64) - a[mask].astype(np.float64)))[:3]


def _count(number: int) -> str:
    return f"{number:,}"
