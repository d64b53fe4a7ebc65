"""A check as JUnit XML, which continuous integration shows as tests: one per rule, failed when it found errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from ..visible import visible
from . import conformance_junit
from .reading import CONFORM


def render(result: Mapping[str, Any]) -> str:
    """The XML of a check (JSON of format ``bittrue-check-1``) or of a conformance run.

    Errors fail a rule's test. Warnings and notes are its output. A rule that came to no end is an error of its test.
    """
    if result["format"] == CONFORM:
        return conformance_junit.render(result)
    findings: dict[str, list[Mapping[str, Any]]] = {}
    for finding in result["findings"]:
        findings.setdefault(finding["code"], []).append(finding)
    broken = {failure["code"]: failure["message"] for failure in result["failures"]}
    failed = [code for code, found in findings.items() if any(f["severity"] == "error" for f in found)]
    counts = {
        "tests": str(len(result["rules"])),
        "failures": str(len([code for code in failed if code not in broken])),
        "errors": str(len(broken)),
        "time": f"{result.get('seconds', 0.0):.3f}",
    }
    name = f"bittrue check {result['model']}".strip()
    suites = ElementTree.Element("testsuites", {"name": visible(name), **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": visible(name), **counts})
    if result.get("date"):
        suite.set("timestamp", result["date"].removesuffix("+00:00"))
    properties = ElementTree.SubElement(suite, "properties")
    for key in ("sha256", "model_format", "numerics", "version"):
        if result.get(key):
            ElementTree.SubElement(properties, "property", {"name": key, "value": visible(str(result[key]))})
    for rule in result["rules"]:
        _case(suite, rule, findings.get(rule["code"], []), broken.get(rule["code"]))
    if result["notes"]:
        ElementTree.SubElement(suite, "system-out").text = _lines(result["notes"])
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(
    suite: ElementTree.Element, rule: Mapping[str, Any], findings: list[Mapping[str, Any]], broken: str | None
) -> None:
    name = f"{rule['code']} {rule['name']}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": "bittrue.check", "name": name, "time": "0"})
    errors = [finding for finding in findings if finding["severity"] == "error"]
    others = [finding for finding in findings if finding["severity"] != "error"]
    if broken is not None:
        # A test has one outcome; what was found before the end stays readable.
        ElementTree.SubElement(case, "error", {"message": visible(broken), "type": rule["code"]})
        others = findings
    elif errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        message = visible(errors[0]["message"] + more)
        failure = ElementTree.SubElement(case, "failure", {"message": message, "type": rule["code"]})
        failure.text = _lines([*map(_line, errors), "", f"fix: {rule['fix']}"])
    if others:
        ElementTree.SubElement(case, "system-out").text = _lines(map(_line, others))


def _line(finding: Mapping[str, Any]) -> str:
    node = "" if finding["node"] is None else f"node {finding['node']} {finding['source']}".strip()
    parts = (finding["graph"], node, finding["tensor"], finding["place"])
    place = ", ".join(part for part in parts if part)
    advice = f" ({finding['advice']})" if finding["advice"] else ""
    return f"{finding['severity']}: {f'{place}: ' if place else ''}{finding['message']}{advice}"


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(map(visible, texts))
