"""What may be said of a device: levels, and the sentence that names everything that was not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .result import ACCEPTS, NO_REFUSAL, PERMITS, SHOULD, SKIPPED, ConformResult, OperatorResult
from .suite import find_suite

_MOST_NAMED = 12


def with_claim(result: ConformResult) -> ConformResult:
    """The result with its level, the numerics that all operators share, the claim, and the digest."""
    ran = [o for o in result.operators if o.verdict != SKIPPED]
    level = _level(ran)
    claimed = _shared(ran)
    if level == 3 and claimed and result.models:
        whole = [name for name in claimed if all(name in model.matches for model in result.models)]
        if whole:
            level, claimed = 4, tuple(whole)
    refuses = all(o.refuses for o in result.operators)
    settled = replace(result, level=level, refuses=refuses, claimed=claimed, claim="", digest="")
    return replace(settled, claim=_claim(settled, ran), notes=_advice(settled)).sealed()


def _level(ran: Sequence[OperatorResult]) -> int | None:
    """The least of all operators; one with nothing but models to refuse limits nothing."""
    levels = [o.level for o in ran if o.level is None or _cases_ran(o)]
    if not ran or any(level is None for level in levels):
        return None
    return min((level for level in levels if level is not None), default=0)


def _cases_ran(found: OperatorResult) -> bool:
    return any(found.counts.get(outcome) for outcome in ("exact", "differs", "no reference"))


def _shared(ran: Sequence[OperatorResult]) -> tuple[str, ...]:
    """Numerics that are exact on every operator that has cases which ran; none where an operator has none."""
    judged = [o for o in ran if _cases_ran(o) or o.level is None]
    if not judged:
        return ()
    names = [set(o.names) for o in judged]
    shared = set.intersection(*names)
    return tuple(name for name in judged[0].names if name in shared)


def _claim(result: ConformResult, ran: Sequence[OperatorResult]) -> str:
    if not ran:
        return f"{_subject(result)} makes no claim: nothing ran"
    what = f"operators of the {result.suite_title}, suite version {result.suite_version}"
    counted = f"{len(ran)} of {_all_of(result)} operators{_partly(result)}"
    rest = _skipped(result)
    if result.selection.shard:
        return (
            f"{_subject(result)}: part {result.selection.shard} of the {what}, {counted}{rest}; "
            "claims are made of all parts together (`bittrue conform merge`)"
        )
    if result.level is None:
        bad = _named([_title(o) for o in ran if o.level is None])
        why = f"{bad} came to no proper end or broke a rule of conduct"
        return f"{_subject(result)} conforms to nothing: {why}; {what}, {counted}{rest}"
    if not any(_cases_ran(o) for o in ran):
        found = "every one was refused" if result.refuses else "not every one was refused"
        told = f"no claim of arithmetic: only models that must be refused were asked, {found}"
        return f"{_subject(result)} makes {told}; {what}, {counted}{rest}{_accepting(result)}"
    head = f"{_subject(result)} conforms"
    if result.level < 3:
        # What is right is counted: one wrong operator says nothing of the others.
        exact = sum(o.level == 3 for o in ran)
        wrong = [_title(o) for o in ran if o.level == 0 and _cases_ran(o)]
        head = f"{_subject(result)}: {exact} of {len(ran)} operators exact"
        head += f"; {_named(wrong)} {'differs' if len(wrong) == 1 else 'differ'}" if wrong else ""
    if result.claimed:
        others = f" (and equally {', '.join(result.claimed[1:])})" if len(result.claimed) > 1 else ""
        head += f" to numerics {result.claimed[0]}{others}"
    elif result.level == 3:
        head += f" to one numerics per operator ({_per_operator(ran)})"
    extra = ""
    if result.level == 4:
        runs = sum(sum(m.counts.values()) for m in result.models)
        extra = f", and {len(result.models)} model{'s' if len(result.models) > 1 else ''} end to end on {runs} inputs"
    level = f"level L{result.level}" if result.level else "no level of arithmetic"
    level += "" if result.refuses else ", without L0"
    return f"{head}, {level}, {what}, {counted}{extra}{rest}{_limits(ran, result.level)}{_accepting(result)}"


def _accepting(result: ConformResult) -> str:
    """Operators that run what they must refuse."""
    bad = [o for o in result.operators if not o.refuses]
    if not bad:
        return ""
    parts = []
    for outcome, verb in ((ACCEPTS, "accepts"), (NO_REFUSAL, "ends without an answer over")):
        count = sum(o.counts.get(outcome, 0) for o in bad)
        if count:
            parts.append(f"{verb} {count} model{'s' if count > 1 else ''}")
    return f"; not L0: {' and '.join(parts)} that must be refused ({_named([_title(o) for o in bad])})"


def _advice(result: ConformResult) -> tuple[str, ...]:
    """What became of the models that only the specification forbids, if anything did."""
    count, ran = result.count(*SHOULD), result.count(PERMITS)
    if not ran:
        return ()
    return (
        f"runs {ran} of {count} models that only the words of the specification forbid; the suite's own runtime runs "
        "them, too, and nothing is held against the device",
    )


def _subject(result: ConformResult) -> str:
    return result.device_title or result.device


def _all_of(result: ConformResult) -> int:
    """Operators with types that the suite has in the chosen types, whether they were chosen or not."""
    suite = find_suite(result.suite)
    types = result.selection.types
    return sum(1 for g in suite.generators().values() for label in g.types if not types or label in types)


def _partly(result: ConformResult) -> str:
    chosen = result.selection
    words = []
    if chosen.types:
        words.append(f"types {', '.join(chosen.types)}")
    if chosen.aims:
        words.append(f"only cases aimed at {', '.join(chosen.aims)}")
    if chosen.cases:
        words.append(f"only {len(chosen.cases)} chosen case{'s' if len(chosen.cases) > 1 else ''}")
    return f" ({'; '.join(words)})" if words else ""


def _skipped(result: ConformResult) -> str:
    whole = [_title(o) for o in result.operators if o.verdict == SKIPPED]
    partly = [
        f"{_title(o)} {sum(o.skipped.values())} of {sum(o.counts.values())} cases"
        for o in result.operators
        if o.skipped and o.verdict != SKIPPED
    ]
    text = f", {len(whole)} skipped (refused): {', '.join(whole)}" if whole else ", none skipped"
    return text + (f"; in part: {', '.join(partly)}" if partly else "")


def _limits(ran: Sequence[OperatorResult], level: int) -> str:
    """Which operators keep the level from being higher."""
    low = [_title(o) for o in ran if o.level == level]
    return f"; no more than L{level} because of {_named(low)}" if low and 0 < level < 3 else ""


def _per_operator(ran: Sequence[OperatorResult]) -> str:
    """Numerics that stand for operators, those first that stand for most."""
    left = [o for o in ran if o.names]
    groups: list[tuple[str, list[OperatorResult]]] = []
    while left:
        names = list(dict.fromkeys(name for o in left for name in o.names))
        best = max(names, key=lambda name: sum(name in o.names for o in left))
        groups.append((best, [o for o in left if best in o.names]))
        left = [o for o in left if best not in o.names]
    return "; ".join(f"{name}: {_named([_title(o) for o in group])}" for name, group in groups)


def _title(found: OperatorResult) -> str:
    return f"{found.operator} {found.types}"


def _named(titles: Sequence[str], most: int = _MOST_NAMED) -> str:
    more = f" and {len(titles) - most} more" if len(titles) > most else ""
    return ", ".join(titles[:most]) + more
