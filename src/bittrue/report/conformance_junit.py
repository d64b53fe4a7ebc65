"""A conformance run as JUnit XML: a suite per operator and types, a test per case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from ..visible import visible

# Models that only the specification forbids fail nothing, whatever a device makes of them.
_FINE = (
    "exact",
    "refused as it must",
    "refuses what the specification forbids",
    "runs what the specification forbids",
    "no answer to what the specification forbids",
)
_SKIPPED = ("skipped", "no reference")
# What the device does not live to answer is an error, what it answers wrongly a failure.
_ERRORS = ("crashed", "timed out", "raised", "unreadable", "no answer where it must refuse")


def render(result: Mapping[str, Any]) -> str:
    """The XML of a run (JSON of format ``bittrue-conform-1``).

    A case fails when it is not exact, also within the tolerance and where another numerics would be exact: the
    verdict of its operator stands in the message.
    """
    name = visible(f"bittrue conform {result['device']}")
    suites = ElementTree.Element("testsuites", {"name": name})
    totals = [0, 0, 0, 0]
    for found in result["operators"]:
        counts = _counts(found)
        totals = [one + two for one, two in zip(totals, counts, strict=True)]
        seconds = sum(case.get("seconds", 0.0) for case in found["cases"])
        labels = {"name": visible(f"{found['operator']} {found['types']}"), **_attributes(counts)}
        suite = ElementTree.SubElement(suites, "testsuite", {**labels, "time": f"{seconds:.3f}"})
        if result.get("date"):
            suite.set("timestamp", visible(result["date"].removesuffix("+00:00")))
        properties = ElementTree.SubElement(suite, "properties")
        values = {
            "device": result["device_title"],
            "suite_version": result["suite_version"],
            "verdict": found["verdict"],
            "level": f"L{found['level']}" if found["level"] else "",
            "numerics": ", ".join(n for match in found.get("matches", ()) for n in match["names"]),
            "version": result.get("version", ""),
            "digest": result.get("digest", ""),
        }
        for key, value in values.items():
            if value:
                ElementTree.SubElement(properties, "property", {"name": key, "value": visible(value)})
        for case in found["cases"]:
            _case(suite, found, case)
    for key, value in _attributes(totals).items():
        suites.set(key, value)
    suites.set("time", f"{result.get('seconds', 0.0):.3f}")
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _attributes(counts: list[int]) -> dict[str, str]:
    return dict(zip(("tests", "failures", "errors", "skipped"), map(str, counts), strict=True))


def _counts(found: Mapping[str, Any]) -> list[int]:
    outcomes = [case["outcome"] for case in found["cases"]]
    errors = sum(outcome in _ERRORS for outcome in outcomes)
    skipped = sum(outcome in _SKIPPED for outcome in outcomes)
    fine = sum(outcome in _FINE for outcome in outcomes)
    return [len(outcomes), len(outcomes) - errors - skipped - fine, errors, skipped]


def _case(suite: ElementTree.Element, found: Mapping[str, Any], case: Mapping[str, Any]) -> None:
    labels = {
        "classname": visible(f"bittrue.conform.{found['operator']}.{found['types']}"),
        "name": visible(case["identity"]),
        "time": f"{case.get('seconds', 0.0):.3f}",
    }
    test = ElementTree.SubElement(suite, "testcase", labels)
    outcome, text = case["outcome"], case.get("text", "")
    if outcome in _FINE:
        return
    message = visible(f"{outcome}: {text}" if text else outcome)
    if outcome in _SKIPPED:
        ElementTree.SubElement(test, "skipped", {"message": message})
        return
    kind = "error" if outcome in _ERRORS else "failure"
    failure = ElementTree.SubElement(test, kind, {"message": message, "type": visible(outcome)})
    lines = [f"case: {case.get('note', '')}", f"operator: {found['verdict']}: {found['text']}"]
    failure.text = "\n".join(map(visible, lines))
