"""The verdict on one operator with one combination of types, from the records of its cases.

Numerics are planned only as long as they may still be exact: after a few cases that is a handful. Those that
tolerances are derived from are asked when none is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import numerics as numerics_tables
from ..errors import BittrueError
from ..plan.declared import rewritten_graph
from ..plan.support import node_types
from .causes import SINGLE, STAGES, Differences, Evidence, Search
from .expected import Expected, Outputs, same_bytes
from .failing import find_failing
from .result import (
    ACCEPTS,
    COMBINED,
    EXACT,
    FAULTS,
    MUST,
    NO_ADVICE,
    NO_REFUSAL,
    PERMITS,
    REFUSED,
    SHOULD,
    SKIPPED,
    TOLERATED,
    WRONG,
    Bound,
    CaseResult,
    Class,
    Deviation,
    Limit,
    Match,
    OperatorResult,
)
from .suite import Suite, SuiteCase
from .tolerance import bound_for
from .verdicts import Record, case_result, deviation_of, misfit

# Cases of these aims were chosen so that roundings go one way; they say nothing about bias.
_CHOSEN = ("ties", "near ties", "saturation")
# Differences count as biased when those upward and downward lie further apart than so many standard deviations of
# as many fair coins.
BIAS_DEVIATIONS = 5
# Of the slots that tell numerics apart the first one decides; see `deciding`.
_HEAVY = ("accumulate", "byte_products", "rescale", "requantize")
_LIGHT = ("scale_form", "scale_form_per_axis", "store", "store_tail", "activation_range")
_MOST_DECIDING = 2
_OWN = "its own runtime runs them, too"


@dataclass
class _Group:
    """The cases that ran, and what numerics make of them."""

    records: Sequence[Record]
    asked: tuple[str, ...]
    # Numerics that are exact on all cases, with the rules they took in each.
    alive: dict[str, list[object]] = field(default_factory=dict)
    # Numerics that refused a case, and those that gave other bytes.
    refused: set[str] = field(default_factory=set)
    other: set[str] = field(default_factory=set)
    # Slots in which an exact numerics differs from one that gave other bytes, with the exact one's rule.
    decisive: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)

    def match(self) -> None:
        self.alive = {name: [] for name in self.asked}
        for record in self.records:
            if not self.alive:
                return
            expected = Expected(record.case, tuple(self.alive))
            good = expected.matching(record.outputs)
            bad = [a for a in expected.arithmetics if a not in good]
            for one in good:
                for name in one.names:
                    self.alive[name].append((one.operators, tuple(sorted(one.rules.items()))))
            for one in bad:
                for name in one.names:
                    self.other.add(name)
                    del self.alive[name]
            for name in expected.refusals:
                self.refused.add(name)
                del self.alive[name]
            for one in good:
                found = sorted({item for other in bad for item in _apart(one.rules, other.rules)})
                for name in one.names:
                    self.decisive.setdefault(name, {}).update(dict.fromkeys(found))

    def matches(self) -> tuple[Match, ...]:
        groups: dict[tuple[object, ...], list[str]] = {}
        for name, rules in self.alive.items():
            groups.setdefault(tuple(rules), []).append(name)
        return tuple(Match(tuple(names), deciding(self.decisive.get(names[0], ()))) for names in groups.values())


def _apart(rules: Mapping[str, str], others: Mapping[str, str]) -> list[tuple[str, str]]:
    """Slots that another arithmetic fills in another way, or not at all: it has another formula then.

    That it has no accumulator says nothing.

    >>> _apart({"accumulate": "s32_wrap", "average": "integer_trunc"}, {"affine_average": "exact_even"})
    [('average', 'integer_trunc')]
    """
    return [
        item for item in rules.items() if others.get(item[0], item[1] if item[0] == "accumulate" else "") != item[1]
    ]


def deciding(slots: Sequence[tuple[str, str]] | dict[tuple[str, str], None]) -> tuple[str, ...]:
    """The heaviest of some slots with their rules.

    >>> deciding([("store", "saturate"), ("rescale", "q31_one_step_up")])
    ('rescale = q31_one_step_up',)
    """

    def weight(slot: str) -> int:
        return -1 if slot in _HEAVY else slot in _LIGHT

    ordered = sorted(slots, key=lambda item: weight(item[0]))
    kept = [item for item in ordered if weight(item[0]) == weight(ordered[0][0])]
    return tuple(f"{slot} = {rule}" for slot, rule in kept[:_MOST_DECIDING])


def judge(
    suite: Suite, operator: str, types: str, records: Sequence[Record], numerics: str = "", device: str = ""
) -> OperatorResult:
    """The verdict on one operator.

    Args:
        suite: of the cases.
        operator, types: of all of them.
        records: in the suite's order.
        numerics: the only one that may be named; empty for any.
        device: what the user typed, for commands that ask it again.
    """
    asked = (numerics,) if numerics else numerics_tables.distinct()
    compared = (numerics,) if numerics else suite.admitted
    forms = {id(r): _form(r, asked) for r in records if r.status == "outputs" and not r.case.rejects}
    ran = [r for r in records if id(r) in forms and forms[id(r)] == ""]
    group = _Group(ran, asked)
    group.match()
    judged = _Judged(suite, operator, types, records, forms, ran, device)
    if ran and group.alive:
        # Another runtime's arithmetic may be the same: the suite's own is named where it is.
        reference = suite.numerics if suite.numerics in group.alive else next(iter(group.alive))
        return judged.exact(group.matches(), reference, not group.other)
    return judged.inexact(compared) if ran else judged.nothing_ran()


def _form(record: Record, names: Sequence[str]) -> str | None:
    """What is wrong with the form of a record's outputs; None where no numerics runs the case."""
    for name in names:
        try:
            return misfit(record.outputs, Expected(record.case, (name,)).outputs(name))
        except BittrueError:
            continue
    return None


@dataclass
class _Judged:
    suite: Suite
    operator: str
    types: str
    records: Sequence[Record]
    forms: dict[int, str | None]
    ran: list[Record]
    device: str
    search: Search = field(default_factory=Search)

    def exact(self, matches: tuple[Match, ...], reference: str, every: bool) -> OperatorResult:
        answers = {id(r): r.outputs for r in self.ran}
        result = self._result(reference, answers)
        names = [name for match in matches for name in match.names]
        who = "every numerics that runs them" if every else names_text(matches)
        count = len(self.ran)
        text = f"bit-exact to {who}: {_many(sum_elements(result), 'element')} of {_many(count, 'case')}"
        return self._finish(
            replace(result, verdict=EXACT, level=3 if names else None, text=text, matches=matches, every=every)
        )

    def inexact(self, compared: Sequence[str]) -> OperatorResult:
        found = {name: answers for name in compared if (answers := self._answers(name))}
        if not found:
            return self._incomparable()
        # Numerics that refuse cases which the device runs say less about it.
        most = max(map(len, found.values()))
        found = {name: answers for name, answers in found.items() if len(answers) == most}
        deviations = {
            name: [deviation_of(r.outputs, answers[id(r)]) for r in self.ran if id(r) in answers]
            for name, answers in found.items()
        }
        bound = bound_for(self.suite, self.operator, self.types)
        levels = {name: self._level(parts, found[name], bound) for name, parts in deviations.items()}
        order = sorted(found, key=lambda n: (-levels[n], sum(d.differing for d in deviations[n])))
        reference = order[0]
        beside = self._differences(order, found)
        cause, name = self._cause(order[0], beside)
        if cause is not None:
            # The arithmetic that the change is made to is the one to speak of, where it costs no level.
            cause = cause if levels[name] == levels[reference] else _beside(cause, name)
            reference = name if levels[name] == levels[reference] else reference
        level = levels[reference]
        result = self._result(reference, found[reference])
        verdict = COMBINED if cause is not None and cause.legal else TOLERATED if level else WRONG
        described = () if cause is not None else beside[reference].describe()
        why = _why(cause, self.search, described)
        text = _inexact_text(result.deviation, reference, verdict, level, cause, bound, why)
        compared_ones = [r for r in self.ran if id(r) in found[reference]]
        failing = find_failing(compared_ones, found[reference], reference, self.device)
        known = "" if verdict == COMBINED else known_limits([r.case for r in compared_ones], reference)
        done = replace(result, verdict=verdict, level=level, text=text, cause=cause, bound=bound, failing=failing)
        return self._finish(replace(done, known=known, described=described))

    def _differences(self, order: Sequence[str], found: Mapping[str, dict[int, Outputs]]) -> dict[str, Differences]:
        """What the device gives beside each numerics, of those that give the same the first one's."""
        different: dict[str, Differences] = {}
        for name in order:
            if not any(_same_answers(found[name], found[other]) for other in different):
                different[name] = Differences(self._evidence(found[name]), name, self.search)
        return different

    def _cause(self, nearest: str, beside: Mapping[str, Differences]) -> tuple[Class | None, str]:
        """One thing done differently, from any arithmetic, is likelier than two from the nearest."""
        for stage in STAGES:
            for name in beside if stage in SINGLE else (nearest,):
                cause = beside[name].find(stage)
                if cause is not None:
                    return cause, name
        return None, nearest

    def _evidence(self, answers: dict[int, Outputs]) -> list[Evidence]:
        return [Evidence(r.case, r.outputs, answers[id(r)]) for r in self.ran if id(r) in answers]

    def _level(self, parts: Sequence[Deviation], answers: dict[int, Outputs], bound: Bound) -> int:
        """1 or 2 within the bound, else 0: also where a case has no reference."""
        if len(parts) < len(self.ran):
            return 0
        pairs = [(d, r.case) for d, r in zip(parts, self.ran, strict=True) if id(r) in answers]
        narrow = sum((d for d, case in pairs if case.identity not in bound.wide), Deviation())
        wide = [(d, bound.wide[case.identity]) for d, case in pairs if case.identity in bound.wide]
        own = Limit(bound.largest, bound.bias, bound.mean_square)
        if not all(_within(d, limit) for d, limit in [(narrow, own), *wide]):
            return 0
        fair = sum((d for d, case in pairs if case.aim not in _CHOSEN), Deviation())
        return 2 if all((d.largest or 0) <= 1 for d in parts) and not biased(fair) else 1

    def _answers(self, name: str) -> dict[int, Outputs]:
        """One numerics' outputs of the cases that ran, without those that it refuses."""
        found = {}
        for record in self.ran:
            try:
                found[id(record)] = Expected(record.case, (name,)).outputs(name)
            except BittrueError:
                continue
        return found

    def _incomparable(self) -> OperatorResult:
        result = self._result("", {})
        text = "no admitted numerics runs any of these cases, and none is exact: nothing can be said"
        return self._finish(replace(result, verdict=WRONG, level=0, text=text))

    def nothing_ran(self) -> OperatorResult:
        result = self._result("", {})
        refused = result.counts.get(REFUSED, 0)
        if not result.skipped and any(result.counts.get(name) for name in (*MUST, *SHOULD)):
            text = f"refuses {_many(refused, 'model')} that it must refuse"
            return self._finish(replace(result, verdict=EXACT, level=0, text=text))
        count = sum(result.skipped.values())
        reasons = "; ".join(result.skipped)
        text = f"{_many(count, 'case')} skipped: {reasons}" if count else "nothing ran that could be compared"
        return self._finish(replace(result, verdict=SKIPPED, text=text))

    def _result(self, reference: str, answers: dict[int, Outputs]) -> OperatorResult:
        """Cases, counts and deviation; the verdict is still open."""
        cases: list[CaseResult] = []
        whole = Deviation()
        for record in self.records:
            wanted = answers.get(id(record))
            outcome, text = self._outcome(record, wanted)
            if wanted is not None:
                whole = whole + deviation_of(record.outputs, wanted)
            cases.append(case_result(record, outcome, text, wanted))
        counts = dict(Counter(case.outcome for case in cases))
        skipped = dict(Counter(case.text or "no reason given" for case in cases if case.outcome == "skipped"))
        return OperatorResult(
            self.operator,
            self.types,
            SKIPPED,
            None,
            "",
            reference=reference,
            counts=counts,
            skipped=skipped,
            deviation=whole,
            cases=tuple(cases),
        )

    def _outcome(self, record: Record, wanted: Outputs | None) -> tuple[str, str]:
        if record.status == "skipped":
            return "skipped", record.text
        if record.case.rejects:
            # Saying no with an exception is still saying no; ending the process or never coming back is not.
            good, ran, nothing = SHOULD if record.case.advisory else MUST
            if record.status in ("refused", "raised"):
                return good, record.text
            if record.status in ("outputs", "wrong outputs", "changes its answers"):
                return ran, record.case.rejects
            return nothing, f"{record.status}: {record.text}; {record.case.rejects}"
        if record.status == "refused":
            return "skipped", record.text
        if record.status != "outputs":
            return record.status, record.text
        form = self.forms[id(record)]
        if form is None:
            return "no reference", "no numerics runs this case"
        if form:
            return "wrong outputs", form
        if wanted is None:
            return "no reference", "the reference refuses this case"
        return ("exact" if same_bytes(record.outputs, wanted) else "differs"), ""

    def _finish(self, result: OperatorResult) -> OperatorResult:
        """Faults of conduct come before what the other cases say; what is accepted wrongly is said in any case."""
        advice = advisory_text(result.counts)
        result = replace(result, text=f"{result.text}; {advice}") if advice and not result.skipped else result
        for outcome, verb in ((NO_REFUSAL, "ends without an answer over"), (ACCEPTS, "accepts")):
            bad = [case for case in result.cases if case.outcome == outcome]
            if not bad:
                continue
            must = sum(result.counts.get(name, 0) for name in MUST)
            said = f"{verb} {len(bad)} of {_many(must, 'model')} that it must refuse ({bad[0].identity}: {bad[0].text})"
            result = replace(result, refuses=False, text=f"{result.text}; {said}" if self.ran else said)
            if not self.ran and result.verdict != SKIPPED:
                result = replace(result, verdict=outcome, level=0)
        faults = [name for name in FAULTS if result.counts.get(name)]
        if not faults:
            return result
        worst = faults[-1]
        parts = [f"{name}: {_many(result.counts[name], 'case')}" for name in reversed(faults)]
        shown = next(case for case in result.cases if case.outcome == worst)
        said = f" ({shown.identity}{': ' + shown.text if shown.text else ''})"
        text = "; ".join(parts) + said + (f"; the others: {result.text}" if self.ran else "")
        return replace(result, verdict=worst, level=None, text=text)


def _same_answers(one: Mapping[int, Outputs], two: Mapping[int, Outputs]) -> bool:
    return one.keys() == two.keys() and all(same_bytes(one[key], two[key]) for key in one)


def _within(found: Deviation, limit: Limit) -> bool:
    bias, square = found.bias, found.mean_square
    if found.largest is None or bias is None or square is None:
        return False
    return found.largest <= limit.largest and abs(bias) <= limit.bias and square <= limit.mean_square


def biased(deviation: Deviation) -> bool:
    """Whether differences lean one way: (above - below)^2 > 25 (above + below).

    Of n differences that are as likely up as down, above - below has the standard deviation sqrt(n); five of them are
    exceeded once in 1.7 million suites.

    >>> biased(Deviation(1000, 25, 25)), biased(Deviation(1000, 26, 26)), biased(Deviation(1000, 90, 52))
    (False, True, False)
    """
    below = deviation.differing - deviation.above
    return (deviation.above - below) ** 2 > BIAS_DEVIATIONS**2 * deviation.differing


def advisory_text(counts: Mapping[str, int]) -> str:
    """What became of the models that only the specification forbids; empty where a device refuses them all.

    >>> from bittrue.conformance.result import ADVISED, PERMITS
    >>> advisory_text({PERMITS: 2, ADVISED: 1})
    'runs 2 of 3 models that the specification forbids; its own runtime runs them, too'
    """
    count = sum(counts.get(name, 0) for name in SHOULD)
    parts = [(PERMITS, "runs"), (NO_ADVICE, "ends without an answer over")]
    said = [f"{verb} {counts[name]}" for name, verb in parts if counts.get(name)]
    if not said:
        return ""
    return f"{' and '.join(said)} of {_many(count, 'model')} that the specification forbids; {_OWN}"


def known_limits(cases: Sequence[SuiteCase], numerics: str) -> str:
    """What a numerics records of its own difference from the runtime in the rows that run these cases."""
    table = numerics_tables.find(numerics)
    found: dict[str, None] = {}
    for case in cases:
        try:
            graph, _ = rewritten_graph(case.model.graph, table)
            steps = case.model.prepare(numerics).plan.steps
        except BittrueError:
            continue
        for node in graph.nodes:
            rows = table.candidates(node.operator, *node_types(graph, node))
            taken = [row for row in rows if any(step.rules == row.rules for step in steps)]
            found.update(dict.fromkeys(row.limit for row in taken[:1] if row.limit))
    return "; ".join(found)


def names_text(matches: Sequence[Match]) -> str:
    """Numerics with what decides, for people.

    >>> names_text([Match(("xnnpack",), ("rescale = binary32_multiply_even",))])
    'xnnpack (rescale = binary32_multiply_even)'
    """
    parts = []
    for match in matches:
        rules = f" ({', '.join(match.deciding)})" if match.deciding else ""
        parts.append(f"{', '.join(match.names)}{rules}")
    return "; ".join(parts)


def sum_elements(result: OperatorResult) -> int:
    """How many output elements were compared."""
    return result.deviation.elements


def _beside(cause: Class, name: str) -> Class:
    return replace(cause, text=f"{cause.text} (beside the arithmetic of {name})")


def _why(cause: Class | None, search: Search, described: Sequence[str]) -> str:
    if cause is not None:
        return f"; all of it is {cause.text}"
    ended = f" ({search.text})" if search.text else ""
    return f"; unexplained{ended}{'; seen: ' if described else ''}{'; '.join(described)}"


def _inexact_text(
    deviation: Deviation,
    reference: str,
    verdict: str,
    level: int,
    cause: Class | None,
    bound: Bound,
    why: str,
) -> str:
    far = "" if deviation.largest is None else f" by at most {deviation.largest}"
    share = f"{deviation.differing:,} of {_many(deviation.elements, 'element')} differ from {reference}{far}"
    share = share.replace(" differ ", " differs ", 1) if deviation.differing == 1 else share
    if deviation.bias is not None and deviation.mean_square is not None:
        share += f", bias {deviation.bias:+.3g}, mean square {deviation.mean_square:.3g}"
    limit = f"derived: {bound.largest}, {bound.bias:.3g}, {bound.mean_square:.3g}"
    limit += f"; {_many(len(bound.wide), 'case')} with limits of their own" if bound.wide else ""
    if verdict == COMBINED and cause is not None:
        rules = cause.name.replace("=", " = ")
        return f"bit-exact to {reference} with {rules}, which no numerics has as a whole; {share} ({limit})"
    if level:
        lean = "unbiased" if level == 2 else "not known to be unbiased within one unit"
        return f"{share}: within the tolerance ({limit}), {lean}{why}"
    return f"{share}: outside the tolerance ({limit}){why}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
