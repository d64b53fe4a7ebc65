"""What a conformance run says, in the words and the order of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import words

# Verdicts with the badge that they get; the rest are faults.
_KINDS = {"exact": "equal", "exact to a combination": "equal", "within tolerance": "benign", "skipped": "nothing"}
# Outcomes of cases that are listed one by one.
_FINE = ("exact", "refused as it must", "refuses what the specification forbids")
# Outcomes of models that only the specification forbids: refused, run, no answer.
_ADVISORY = (
    "refuses what the specification forbids",
    "runs what the specification forbids",
    "no answer to what the specification forbids",
)
LEVELS = (
    "refuses what it must",
    "within the derived tolerance of the operator",
    "within one unit of the last place, unbiased",
    "bit-exact to a named numerics",
    "bit-exact end to end on models and data",
)


@dataclass(frozen=True)
class Report:
    """One run, ready to be written down.

    Attributes:
        result: as `reading.checked` gives it.
        kind: worst verdict as a badge.
        headline, sentence: the level, and the claim.
        groups: verdict to operators, as (place in the table, title), in the order of the table.
        classes: what devices do differently, with the operators it was found in.
    """

    result: dict[str, Any]
    kind: str
    headline: str
    sentence: str
    groups: dict[str, list[tuple[int, str]]]
    classes: dict[str, list[str]]


def report(result: dict[str, Any]) -> Report:
    """The verdict of a run (checked by `reading.checked`)."""
    operators = result["operators"]
    groups: dict[str, list[tuple[int, str]]] = {}
    classes: dict[str, list[str]] = {}
    for place, found in enumerate(operators, 1):
        groups.setdefault(found["verdict"], []).append((place, title(found)))
        if found["cause"] is not None:
            classes.setdefault(found["cause"]["name"], []).append(title(found))
    level = result["level"]
    ran = [found for found in operators if found["verdict"] != "skipped"]
    if result["selection"]["shard"]:
        kind, headline = "open", f"Part {result['selection']['shard']} of a run"
    elif not ran:
        kind, headline = "nothing", "Nothing ran"
    elif level is None:
        kind, headline = "fault", "Conforms to nothing"
    else:
        kind = "fault" if not level else "equal" if level >= 3 and result["refuses"] else "benign"
        what = LEVELS[level] if 0 < level < len(LEVELS) else "wrong results"
        headline = f"Level L{level}: {what}" if level else "Wrong results"
        headline += "" if result["refuses"] else ", without L0"
    return Report(result, kind, headline, result["claim"], groups, classes)


def title(found: dict[str, Any]) -> str:
    """Operator and types."""
    return f"{found['operator']} {found['types']}"


def kind(found: dict[str, Any]) -> str:
    """The badge of an operator's verdict."""
    return _KINDS.get(found["verdict"], "fault")


def level(found: dict[str, Any]) -> str:
    """The level of an operator's arithmetic; a dash without one."""
    return f"L{found['level']}" if found["level"] else "–"


def who(found: dict[str, Any]) -> str:
    """The numerics that match, with what decides; else the class, else the verdict's sentence."""
    if found["every"]:
        return "every numerics"
    parts = []
    for match in found["matches"]:
        rules = f" ({', '.join(f'`{rule}`' for rule in match['deciding'])})" if match["deciding"] else ""
        parts.append(f"{', '.join(match['names'])}{rules}")
    if parts:
        return "; ".join(parts)
    return found["cause"]["name"] if found["cause"] is not None else ""


def recorded(found: dict[str, Any]) -> str:
    """What the reference records of the runtime's difference from it; empty where it records none."""
    return f"recorded of {found['reference']}: {found['known']}" if found["known"] else ""


def counted(found: dict[str, Any]) -> tuple[int, int, int]:
    """Exact cases, cases that ran, skipped ones."""
    counts = found["counts"]
    skipped = counts.get("skipped", 0)
    ran = sum(counts.values()) - skipped - sum(must_refuse(found)) - sum(counts.get(name, 0) for name in _ADVISORY)
    return counts.get("exact", 0), ran, skipped


def must_refuse(found: dict[str, Any]) -> tuple[int, int]:
    """Models that must be refused: how many were, and how many were not."""
    counts = found["counts"]
    wrong = counts.get("accepts what it must refuse", 0) + counts.get("no answer where it must refuse", 0)
    return counts.get("refused as it must", 0), wrong


def means(found: dict[str, Any]) -> tuple[float | None, float | None]:
    """Bias and mean square of an operator's differences."""
    deviation = found["deviation"]
    elements = max(deviation.get("elements", 0), 1)
    total, squares = deviation.get("total", 0), deviation.get("squares", 0)
    return (None if total is None else total / elements), (None if squares is None else squares / elements)


def odd_cases(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Cases that are not as they should be."""
    return [case for case in found["cases"] if case["outcome"] not in _FINE]


def facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What was run on what."""
    chosen = result["selection"]
    cases = sum(sum(found["counts"].values()) for found in result["operators"])
    rows = [
        ("device", result["device_title"]),
        ("given as", result["device"]),
        ("suite", f"{result['suite_title']}, version {result['suite_version']}"),
        ("types", ", ".join(chosen["types"]) or "all"),
        ("operators", ", ".join(chosen["operators"]) or "all"),
        ("aims", ", ".join(chosen["aims"])),
        ("part", chosen["shard"]),
        ("cases", f"{words.count(cases)}, each asked {words.plural(result['repeat'], 'time')}"),
        ("claims only", result["numerics"]),
        ("digest", result["digest"]),
    ]
    return [(label, value) for label, value in rows if value]
