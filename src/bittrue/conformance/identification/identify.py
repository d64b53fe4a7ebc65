"""Which numerics explains a black box: operator by operator, then for all of them together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...numerics import names as numerics_names
from ..devices import Device
from ..suite import Suite, SuiteCase, find_suite
from ..suite.suites import SUITE_VERSION
from .nearest import nearest_of
from .questions import Inquiry
from .result import Explained, Finding, IdentifyResult

# Questions per operator and label of types.
QUESTIONS = 64
# On top of so many numerics beside the nearest one a fault is looked for.
_MOST_NEAREST = 2
# (operators done, all of them)
Progress = Callable[[int, int], None]


def identify(
    device: Device | str | Any,
    suite: str | None = None,
    *,
    operators: Collection[str] = (),
    types: Collection[str] = (),
    questions: int = QUESTIONS,
    progress: Progress | None = None,
) -> IdentifyResult:
    """Which numerics gives a device's outputs, per operator and types.

    What the device says of itself is not looked at, only what it answers.

    Args:
        device: a spec (``"litert:xnnpack"``, ``"python:my.py:run"``, ``"program:./device.sh"``), a callable
            ``f(model, inputs) -> outputs``, or an object with ``load``, ``run`` and ``close``.
        suite: ``"litert"`` or ``"onnx"``; by default the one in the format that the device prefers.
        operators: as files call them; all when empty.
        types: labels, or ``"all"``; the suite's own choice when empty.
        questions: most runs of the device per operator and label.
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
            findings.append(_finding(opened, chosen, operator, label, cases, questions))
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


def _finding(
    device: Device, suite: Suite, operator: str, label: str, cases: list[SuiteCase], questions: int
) -> Finding:
    inquiry = Inquiry(device, cases, (suite.numerics, *suite.admitted), questions)
    inquiry.run()
    common: dict[str, Any] = {
        "operator": operator,
        "types": label,
        "asked": len(inquiry.asked),
        "answered": len(inquiry.ran),
        "made": sum(one.made for one in inquiry.asked),
        "deciding": inquiry.deciding,
        "contradicted": {c.name: case.identity for c, case in inquiry.contradicted.items() if not c.changes},
        "remark": _remark(inquiry),
    }
    if not inquiry.ran:
        return Finding(**common, verdict="not run")
    if inquiry.left:
        common["rules"] = inquiry.deciding_rules()
        common["alike"] = len(inquiry.different()) < 2
        names = tuple(dict.fromkeys(candidate.name for candidate in inquiry.left))
        if not inquiry.rules:
            return Finding(**common, verdict="named", numerics=names)
        changes = {str(c.changes[0]): c.changes[0] for c in inquiry.left}
        first = next(iter(changes.values()))
        texts = (f"{first} instead of {first.instead}", *list(changes)[1:])
        return Finding(**common, verdict="one rule otherwise", numerics=names, changes=texts, changed_in=first.users)
    if inquiry.unstable:
        return Finding(**common, verdict="unstable")
    ordered = _nearest_first(inquiry, suite)
    nearest = nearest_of(ordered, inquiry.known, inquiry.ran) if ordered else None
    return Finding(**common, verdict="unknown", nearest=nearest)


def _nearest_first(inquiry: Inquiry, suite: Suite) -> list[str]:
    """The numerics that comes nearest, then the suite's own and the others that it admits."""
    ordered = [candidate.name for candidate, _ in inquiry.distances()]
    admitted = [name for name in (suite.numerics, *suite.admitted) if name in ordered]
    return list(dict.fromkeys((*ordered[:1], *admitted[:_MOST_NEAREST])))


def _remark(inquiry: Inquiry) -> str:
    """What happened instead of outputs, with the first text that the device left."""
    counts: dict[str, int] = {}
    text = ""
    for one in inquiry.asked:
        if not one.ran:
            counts[one.answer.status] = counts.get(one.answer.status, 0) + 1
            text = text or next(iter(one.answer.text.strip().splitlines()), "")
    said = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{said}: {text}" if said and text else said


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
    """The fewest numerics that explain what can be named: always the one that explains most of what is left."""
    rank = _rank(suite)
    left = [finding for finding in findings if finding.verdict == "named"]
    found = []
    while left:
        counts = {name: sum(name in f.numerics for f in left) for name in rank}
        best = max(rank, key=lambda name: (counts[name], name in consistent, -rank[name]))
        found.append(Explained(best, tuple(_label(f) for f in left if best in f.numerics)))
        left = [f for f in left if best not in f.numerics]
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
        if finding.verdict == "one rule otherwise":
            users = f", as in {', '.join(finding.changed_in[:4])}" if finding.changed_in else ""
            otherwise.setdefault(f"{finding.numerics[0]} with {finding.changes[0]}{users}", []).append(_label(finding))
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
