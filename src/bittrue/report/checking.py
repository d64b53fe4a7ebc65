"""What a check says, in the words and the order of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import words

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Group:
    """The findings of one rule.

    Attributes:
        code, name: of the rule; without a name where the result does not hold the rule.
        severity: the worst of its findings.
        findings: in the order of the result.
        page: the rule as the result holds it; None without one.
    """

    code: str
    name: str
    severity: str
    findings: list[dict[str, Any]]
    page: dict[str, Any] | None


@dataclass(frozen=True)
class Report:
    """One check, ready to be written down.

    Attributes:
        result: as `reading.checked` gives it.
        kind: worst severity, ``"equal"`` for none, ``"open"`` when rules came to no end.
        headline, sentence: the verdict, and what stands behind it.
        groups: by the worst severity, then by code.
        quiet: pages of the rules that found nothing.
    """

    result: dict[str, Any]
    kind: str
    headline: str
    sentence: str
    groups: list[Group]
    quiet: list[dict[str, Any]]


def report(result: dict[str, Any]) -> Report:
    """The verdict of a check (checked by `reading.checked`)."""
    pages = {rule["code"]: rule for rule in result["rules"]}
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in result["findings"]:
        found.setdefault(finding["code"], []).append(finding)
    groups = []
    for code, findings in found.items():
        page = pages.get(code)
        worst = min((f["severity"] for f in findings), key=SEVERITIES.index)
        groups.append(Group(code, page["name"] if page else "", worst, findings, page))
    groups.sort(key=lambda group: (SEVERITIES.index(group.severity), group.code))
    kind, headline, sentence = _verdict(result, groups)
    return Report(result, kind, headline, sentence, groups, [p for code, p in pages.items() if code not in found])


def _verdict(result: dict[str, Any], groups: list[Group]) -> tuple[str, str, str]:
    counts = [sum(f["severity"] == severity for f in result["findings"]) for severity in SEVERITIES]
    texts = [words.plural(number, severity) for number, severity in zip(counts, SEVERITIES, strict=True) if number]
    applied = (
        f"{words.plural(len(result['rules']), 'rule')} applied for {result['numerics'] or 'no particular numerics'}"
    )
    ended = ""
    if result["failures"]:
        ended = f" {words.plural(len(result['failures']), 'rule')} came to no end: the check is incomplete."
    if not groups:
        if not result["rules"]:
            return "open", "Nothing was checked", f"No rule was applied.{ended}"
        if result["failures"]:
            return "open", "No findings, but the check is incomplete", f"{applied}.{ended}"
        return "equal", "No findings", f"{applied}; none found anything."
    headline = ", ".join(texts)
    return groups[0].severity, headline, f"{words.plural(len(groups), 'rule')} with findings; {applied}.{ended}"


def place(finding: dict[str, Any]) -> str:
    """Where a finding is, in one line."""
    node = "" if finding["node"] is None else f"node {finding['node']} {finding['source']}".strip()
    return ", ".join(text for text in (finding["graph"], node, finding["tensor"], finding["place"]) if text)
