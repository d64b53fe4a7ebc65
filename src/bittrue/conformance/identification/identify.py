"""Which numerics explains a black box: operator by operator, then for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from ...numerics import names as numerics_names
from ..devices import Device
from ..suite import Suite, SuiteCase, find_suite
from ..suite.suites import SUITE_VERSION
from .candidates import key_of
from .nearest import counter_example, nearest_of
from .questions import Asked, Inquiry
from .result import Explained, Finding, IdentifyResult, RuledOut

# Questions per operator and label of types.
QUESTIONS = 64
# On top of so many numerics beside the nearest one a fault is looked for.
_MOST_NEAREST = 2
# Numerics of the summary of which all combinations are tried.
_MOST_COMBINED = 3
# (operators done, all of them)
Progress = Callable[[int, int], None]


def identify(
    device: Device | str | Any,
    suite: str | None = None,
    *,
    operators: Collection[str] = (),
    types: Collection[str] = (),
    questions: int = QUESTIONS,
    seed: str = "",
    progress: Progress | None = None,
) -> IdentifyResult:
    """Which numerics gives a device's outputs, per operator and types.

    Only what the device answers is looked at: of what it says of itself, the spec is written into the result at the
    end, and the formats that it reads choose the suite where none is given.

    Args:
        device: a spec (``"litert:xnnpack"``, ``"python:my.py:run"``, ``"program:./device.sh"``), a callable
            ``f(model, inputs) -> outputs``, or an object with ``load``, ``run`` and ``close``.
        suite: ``"litert"`` or ``"onnx"``; by default the one in the format that the device prefers.
        operators: as files call them; all when empty.
        types: labels, or ``"all"``; the suite's own choice when empty.
        questions: most runs of the device per operator and label. With few the answer is less precise, not less true:
            more numerics are left.
        seed: any word: other questions are made than without it.
        progress: called with operators that are done, and all.

    Raises:
        InputError: no such device, suite, operator or label.

    >>> bittrue.identify("bittrue:xnnpack", operators=["CONV_2D"]).summary  # doctest: +SKIP
    ('all operators (1): xnnpack',)
    """
    import bittrue

    opened = device if isinstance(device, Device) else _open(device)
    try:
        chosen = find_suite(suite or _suite_for(opened))
        grouped = _grouped(chosen, operators, types)
        findings = []
        for number, ((operator, label), cases) in enumerate(grouped.items()):
            if progress is not None:
                progress(number, len(grouped))
            inquiry = Inquiry(opened.answer, cases, (chosen.numerics, *chosen.admitted), questions, seed)
            inquiry.run()
            findings.append(_finding(inquiry, chosen, operator, label))
        if progress is not None:
            progress(len(grouped), len(grouped))
    finally:
        if opened is not device:
            opened.close()
    consistent = _consistent(chosen, findings)
    named = _fewest(chosen, findings, consistent)
    ordered = tuple(_ordered(finding, named, consistent) for finding in findings)
    return IdentifyResult(
        device=opened.spec,
        suite=chosen.name,
        suite_version=SUITE_VERSION,
        seed=seed,
        bittrue=bittrue.__version__,
        findings=ordered,
        named=named,
        consistent=consistent,
        summary=tuple(_summary(ordered, named)),
        questions=sum(finding.asked for finding in ordered),
    )


def _open(device: Any) -> Device:
    from ..devices.opening import open_device

    opened: Device = open_device(device)
    return opened


def _suite_for(device: Device) -> str:
    return "onnx" if device.reads[:1] == ("onnx",) else "litert"


def _grouped(
    suite: Suite, operators: Collection[str], types: Collection[str]
) -> dict[tuple[str, str], list[SuiteCase]]:
    """What may be asked, by operator and label; models that must be refused tell no arithmetic."""
    found: dict[tuple[str, str], list[SuiteCase]] = {}
    for case in suite.cases(operators, (() if "all" in types else types) if types else None):
        if not case.rejects:
            found.setdefault((case.operator, case.types), []).append(case)
    return found


def _finding(inquiry: Inquiry, suite: Suite, operator: str, label: str) -> Finding:
    common: dict[str, Any] = {
        "operator": operator,
        "types": label,
        "asked": inquiry.runs,
        "answered": len(inquiry.ran),
        "made": sum(one.made for one in inquiry.asked),
        "repeated": inquiry.repeated,
        "deciding": tuple(one.case.identity for one in inquiry.deciding),
        "ruled_out": _ruled_out(inquiry),
        "refusing": tuple(c.name for c in inquiry.aside if c not in inquiry.left and c not in inquiry.contradicted),
        "remark": _remark(inquiry),
    }
    if not inquiry.ran:
        return Finding(**common, verdict="not run")
    if inquiry.unstable is not None:
        return Finding(**common, verdict="unstable")
    if inquiry.left:
        common["rules"] = inquiry.deciding_rules()
        common["alike"] = len(inquiry.different()) < 2
        names = tuple(dict.fromkeys(candidate.name for candidate in inquiry.left))
        if not inquiry.rules:
            return Finding(**common, verdict="named", numerics=names)
        changes = {candidate.words: candidate for candidate in inquiry.left}
        first, *others = changes.values()
        texts = (f"{first.words} instead of {first.instead}", *(other.words for other in others))
        return Finding(**common, verdict="other rules", numerics=names, changes=texts, changed_in=first.users)
    if inquiry.parts:
        return Finding(**common, verdict="several numerics", parts=inquiry.parts)
    ordered = _nearest_first(inquiry, suite)
    nearest = nearest_of(ordered, inquiry.known, inquiry.ran) if ordered else None
    return Finding(**common, verdict="unknown", nearest=nearest)


def _ruled_out(inquiry: Inquiry) -> tuple[RuledOut, ...]:
    """Numerics together that gave the same to the same question."""
    found: dict[object, tuple[Asked, list[str]]] = {}
    for candidate, one in inquiry.contradicted.items():
        outputs = inquiry.known.outputs(candidate, one.case)
        if not candidate.changes and outputs is not None:
            found.setdefault((one.case.identity, key_of(outputs)), (one, []))[1].append(candidate.name)
    return tuple(RuledOut(tuple(names), counter_example(names[0], inquiry.known, one)) for one, names in found.values())


def _nearest_first(inquiry: Inquiry, suite: Suite) -> list[str]:
    """The numerics that comes nearest, then the suite's own and the others that it admits."""
    ordered = [candidate.name for candidate, _ in inquiry.distances()]
    admitted = [name for name in (suite.numerics, *suite.admitted) if name in ordered]
    return list(dict.fromkeys((*ordered[:1], *admitted[:_MOST_NEAREST])))


def _remark(inquiry: Inquiry) -> str:
    """What happened instead of outputs, with the first text that the device left, and what else is odd."""
    counts: dict[str, int] = {}
    text = ""
    for one in inquiry.asked:
        if not one.ran:
            counts[one.answer.status] = counts.get(one.answer.status, 0) + 1
            text = text or next(iter(one.answer.text.strip().splitlines()), "")
    said = ", ".join(f"{count} {status}" for status, count in counts.items())
    found = [f"{said}: {text}" if said and text else said] if said else []
    if inquiry.unstable is not None:
        one, again = inquiry.unstable
        then = "other outputs" if again.status == "outputs" else again.status
        found.append(f"{one.case.identity} put again: {then}")
    made = [one for one in inquiry.asked if one.made]
    if inquiry.ran and made and not any(one.ran for one in made):
        found.append("only cases of the suite were answered, none that was made for this run")
    if inquiry.beyond():
        found.append(f"{inquiry.beyond()} answers to models that this numerics refuses")
    if not (inquiry.left or inquiry.parts or inquiry.unstable):
        only = inquiry.only_the_suite()
        if only is not None:
            name, own, missed = only
            found.append(f"{name} gives all {own} answers to cases of the suite and misses {missed} to cases made anew")
    return "\n".join(found)


def _rank(suite: Suite) -> dict[str, int]:
    """Numerics in the order in which they are named."""
    order = dict.fromkeys((suite.numerics, *suite.admitted, *numerics_names()))
    return {name: position for position, name in enumerate(order)}


def _consistent(suite: Suite, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Numerics that give all answers that were given at all."""
    ran = [finding for finding in findings if finding.verdict != "not run"]
    if not ran:
        return ()
    return tuple(n for n in _rank(suite) if all(f.verdict == "named" and n in f.numerics for f in ran))


def _fewest(suite: Suite, findings: Sequence[Finding], consistent: Sequence[str]) -> tuple[Explained, ...]:
    """The fewest numerics that explain what can be named, that of most operators first."""
    rank = _rank(suite)
    left = [finding for finding in findings if finding.verdict == "named"]
    # Which operators a numerics explains; of several with the same ones, the first in rank stands for all.
    explains: dict[frozenset[int], str] = {}
    for name in sorted(rank, key=lambda name: (name not in consistent, rank[name])):
        explains.setdefault(frozenset(i for i, f in enumerate(left) if name in f.numerics), name)
    chosen = _cover(explains, frozenset(range(len(left))))
    found, open_ = [], set(range(len(left)))
    for covered in sorted(chosen, key=lambda one: (-len(one), rank[explains[one]])):
        found.append(Explained(explains[covered], tuple(_label(left[i]) for i in sorted(covered & open_))))
        open_ -= covered
    return tuple(found)


def _cover(sets: Collection[frozenset[int]], everything: frozenset[int]) -> tuple[frozenset[int], ...]:
    """The fewest sets with everything in them, and of these the ones with the largest; many are chosen greedily."""
    largest = sorted(sets, key=len, reverse=True)
    for count in range(_MOST_COMBINED + 1):
        for chosen in combinations(largest, count):
            if everything <= frozenset().union(*chosen):
                return chosen
    found, open_ = [], everything
    while open_:
        found.append(max(largest, key=lambda one: len(one & open_)))
        open_ -= found[-1]
    return tuple(found)


def _label(finding: Finding) -> str:
    return f"{finding.operator} {finding.types}"


def _ordered(finding: Finding, named: Sequence[Explained], consistent: Collection[str]) -> Finding:
    """The numerics of the summary first, then those that nothing contradicts."""
    chosen = [one.numerics for one in named]
    order: Mapping[str, int] = {name: position for position, name in enumerate((*chosen, *consistent))}
    names = sorted(finding.numerics, key=lambda name: order.get(name, len(order)))
    return replace(finding, numerics=tuple(names))


def _summary(findings: Sequence[Finding], named: Sequence[Explained]) -> list[str]:
    ran = [finding for finding in findings if finding.verdict != "not run"]
    if not ran:
        return ["the device ran nothing of the suite"]
    lines = []
    for one in named:
        if len(one.operators) == len(ran):
            lines.append(f"all operators ({len(ran)}): {one.numerics}")
        else:
            lines.append(f"{len(one.operators)} of {len(ran)} operators: {one.numerics} ({_few(one.operators)})")
    otherwise: dict[str, list[str]] = {}
    for finding in ran:
        if finding.verdict == "other rules":
            users = f", as in {', '.join(finding.changed_in[:4])}" if finding.changed_in else ""
            otherwise.setdefault(f"{finding.numerics[0]} with {finding.changes[0]}{users}", []).append(_label(finding))
        if finding.nearest is not None and finding.nearest.cause:
            kind = "rule" if finding.nearest.legal else "fault"
            otherwise.setdefault(f"{finding.nearest.name} with the {kind} '{finding.nearest.cause}'", []).append(
                _label(finding)
            )
        if finding.verdict == "several numerics":
            text = "; ".join(f"{part.numerics[0]} for {part.where}" for part in finding.parts)
            otherwise.setdefault(text, []).append(_label(finding))
    lines += [f"{_few(labels)}: {text}" for text, labels in otherwise.items()]
    for verdict, text in (("unknown", "no numerics gives the answers"), ("unstable", "answers change between runs")):
        labels = [_label(finding) for finding in ran if finding.verdict == verdict]
        if labels:
            lines.append(f"{len(labels)} of {len(ran)} operators: {text} ({_few(labels)})")
    missing = [_label(finding) for finding in findings if finding.verdict == "not run"]
    if missing:
        lines.append(f"not run by the device: {_few(missing)}")
    return lines


def _few(labels: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
