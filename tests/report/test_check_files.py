"""SARIF and JUnit of a check: the shapes that their readers demand, and nothing lost."""

from __future__ import annotations

import json
import math
from typing import Any
from xml.etree import ElementTree

import pytest

from bittrue.report import junit, sarif

# Of the objects of SARIF 2.1.0 that are written here: what they must have, and what they may have. Source: the schema
# https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json, which allows no others.
SHAPES: dict[str, tuple[set[str], dict[str, str]]] = {
    "sarifLog": ({"version", "runs"}, {"$schema": "uri", "version": "=2.1.0", "runs": "[run]"}),
    "run": (
        {"tool"},
        {
            "tool": "tool",
            "invocations": "[invocation]",
            "artifacts": "[artifact]",
            "results": "[result]",
            "properties": "bag",
        },
    ),
    "tool": ({"driver"}, {"driver": "toolComponent"}),
    "toolComponent": ({"name"}, {"name": "text", "version": "text", "rules": "[reportingDescriptor]"}),
    "reportingDescriptor": (
        {"id"},
        {
            "id": "text",
            "name": "text",
            "shortDescription": "multiformatMessageString",
            "fullDescription": "multiformatMessageString",
            "help": "multiformatMessageString",
            "defaultConfiguration": "reportingConfiguration",
        },
    ),
    "multiformatMessageString": ({"text"}, {"text": "text", "markdown": "text"}),
    "reportingConfiguration": (set(), {"level": "=none|note|warning|error"}),
    "invocation": (
        {"executionSuccessful"},
        {"executionSuccessful": "flag", "toolExecutionNotifications": "[notification]"},
    ),
    "notification": (
        {"message"},
        {"message": "message", "level": "=none|note|warning|error", "associatedRule": "reportingDescriptorReference"},
    ),
    "reportingDescriptorReference": (set(), {"id": "text", "index": "count"}),
    "message": ({"text"}, {"text": "text"}),
    "artifact": (set(), {"location": "artifactLocation", "roles": "[=analysisTarget]", "hashes": "bag"}),
    "artifactLocation": (set(), {"uri": "uri", "index": "count"}),
    "result": (
        {"message"},
        {
            "ruleId": "text",
            "ruleIndex": "count",
            "level": "=none|note|warning|error",
            "message": "message",
            "locations": "[location]",
            "partialFingerprints": "bag",
            "properties": "bag",
        },
    ),
    "location": (set(), {"physicalLocation": "physicalLocation", "logicalLocations": "[logicalLocation]"}),
    "physicalLocation": ({"artifactLocation"}, {"artifactLocation": "artifactLocation", "region": "region"}),
    "region": (set(), {"startLine": "count"}),
    "logicalLocation": (set(), {"name": "text", "fullyQualifiedName": "text", "kind": "=module|function|variable"}),
}


def valid(value: Any, kind: str, place: str) -> None:
    """The value is what SARIF's schema says about this kind."""
    if kind.startswith("["):
        assert isinstance(value, list), place
        for position, item in enumerate(value):
            valid(item, kind[1:-1], f"{place}[{position}]")
    elif kind.startswith("="):
        assert value in kind[1:].split("|"), place
    elif kind in SHAPES:
        needed, allowed = SHAPES[kind]
        assert isinstance(value, dict), place
        assert needed <= set(value) <= set(allowed), f"{place}: {set(value)}"
        for name, item in value.items():
            valid(item, allowed[name], f"{place}.{name}")
    elif kind == "count":
        assert type(value) is int, place
        assert value >= 0, place
    else:
        assert isinstance(value, {"text": str, "uri": str, "flag": bool, "bag": dict}[kind]), place
        assert kind != "uri" or (" " not in value and value.isascii()), place


def rule(code: str, severity: str = "error") -> dict[str, Any]:
    return {
        "code": code,
        "name": "a-rule",
        "severity": severity,
        "formats": [],
        "what": "Weights lie within [-127, 127] and a*b is *not* bold.",
        "why": "Because <b>.",
        "enforced": "Nobody.",
        "fix": "Mend it.",
        "source": "read",
    }


def finding(code: str, severity: str = "error", **changes: Any) -> dict[str, Any]:
    found = {
        "code": code,
        "severity": severity,
        "message": "found 1, expected 2",
        "graph": "main",
        "node": 3,
        "source": "CONV_2D",
        "tensor": "a/b",
        "place": "channel 2",
        "expected": "2",
        "found": "1",
        "advice": "do it",
        "numbers": {"ratio": 0.5, "far": "inf"},
    }
    return {**found, **changes}


def result(**changes: Any) -> dict[str, Any]:
    plain = {
        "format": "bittrue-check-1",
        "model": "models/a b.tflite",
        "sha256": "00" * 32,
        "model_format": "tflite",
        "numerics": "litert",
        "counts": {"error": 2, "warning": 1, "note": 0},
        "errors": 2,
        "complete": True,
        "findings": [
            finding("BT301"),
            finding("BT301", node=None, source="", tensor="", place=""),
            finding("BT302", "warning", graph="", advice=""),
        ],
        "failures": [],
        "notes": [],
        "rules": [rule("BT301"), rule("BT302", "warning"), rule("BT303")],
        "version": "0.1.0",
        "date": "2026-11-22T03:00:00+00:00",
        "seconds": 0.25,
    }
    return {**plain, **changes}


HOSTILE = 'a\x1b[31m<b>&"\x00\ud800\ufffe]]>é'


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": ""},
        {"model": "/abs/é x.tflite", "sha256": ""},
        {"findings": [], "rules": []},
        {"failures": [{"code": "BT303", "message": "internal error"}], "complete": False, "notes": ["few rules"]},
        {"findings": [finding("BT301", message=HOSTILE, tensor=HOSTILE, graph=HOSTILE)], "notes": [HOSTILE]},
    ],
    ids=["plain", "bytes", "absolute", "empty", "incomplete", "hostile"],
)
def test_shapes(changes: dict[str, Any]) -> None:
    plain = result(**changes)
    log = json.loads(sarif.render(plain))
    valid(log, "sarifLog", "log")
    run = log["runs"][0]
    assert len(run["results"]) == len(plain["findings"])
    ids = [descriptor["id"] for descriptor in run["tool"]["driver"]["rules"]]
    for found in run["results"]:
        assert ids[found["ruleIndex"]] == found["ruleId"]
    assert run["invocations"][0]["executionSuccessful"] == (not plain["failures"])
    text = junit.render(plain)
    text.encode()
    suite = ElementTree.fromstring(text.split("\n", 1)[1])[0]
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", "")) == len(plain["rules"])
    assert len(suite.findall("testcase/failure")) == int(suite.get("failures", ""))
    assert len(suite.findall("testcase/error")) == int(suite.get("errors", "")) == len(plain["failures"])


def test_sarif_says_where() -> None:
    run = json.loads(sarif.render(result()))["runs"][0]
    place = run["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "models/a%20b.tflite", "index": 0}
    assert [(one["kind"], one["name"]) for one in place["logicalLocations"]] == [
        ("module", "main"),
        ("function", "3 CONV_2D"),
        ("variable", "a/b"),
    ]
    assert place["logicalLocations"][-1]["fullyQualifiedName"] == "main/3 CONV_2D/a/b"
    assert run["results"][0]["message"]["text"] == "found 1, expected 2. What to do: do it."
    assert [one["level"] for one in run["results"]] == ["error", "error", "warning"]
    assert run["artifacts"][0]["hashes"]["sha-256"] == "00" * 32
    prints = [one["partialFingerprints"]["bittrueFinding/v1"] for one in run["results"]]
    assert len(set(prints)) == 3
    again = json.loads(sarif.render(result()))["runs"][0]["results"]
    assert [one["partialFingerprints"]["bittrueFinding/v1"] for one in again] == prints
    page = run["tool"]["driver"]["rules"][0]["help"]
    assert "Mend it." in page["text"]
    assert r"a\*b is \*not\* bold" in page["markdown"]
    assert r"\<b\>" in page["markdown"]


def test_junit_fails_rules_with_errors_alone() -> None:
    suite = ElementTree.fromstring(junit.render(result()).split("\n", 1)[1])[0]
    first, second, third = suite.findall("testcase")
    failure = first.find("failure")
    assert failure is not None
    assert failure.get("message") == "found 1, expected 2 (and 1 more)"
    assert "main, node 3 CONV_2D, a/b, channel 2: found 1, expected 2 (do it)" in (failure.text or "")
    assert "fix: Mend it." in (failure.text or "")
    assert second.find("failure") is None
    assert "warning: node 3 CONV_2D, a/b" in (second.findtext("system-out") or "")
    assert list(third) == []
    assert math.isclose(float(suite.get("time", "")), 0.25)
    assert suite.get("timestamp") == "2026-11-22T03:00:00"


def test_junit_keeps_what_a_broken_rule_found() -> None:
    plain = result(failures=[{"code": "BT301", "message": "internal error"}], complete=False)
    suite = ElementTree.fromstring(junit.render(plain).split("\n", 1)[1])[0]
    case = suite.findall("testcase")[0]
    assert case.find("failure") is None
    error = case.find("error")
    assert error is not None
    assert error.get("message") == "internal error"
    assert (case.findtext("system-out") or "").count("found 1, expected 2") == 2
