"""A check as SARIF 2.1.0, which code hosts and editors show beside the files.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html (read)
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..visible import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def render(result: Mapping[str, Any]) -> str:
    """The SARIF file of a check (JSON of format ``bittrue-check-1``): one run, a result per finding."""
    return json.dumps(_shown({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(result)]}), indent=1) + "\n"


def _shown(value: Any) -> Any:
    """The same with every text as it may be shown; code hosts print it."""
    if isinstance(value, str):
        return visible(value, lines=True)
    if isinstance(value, dict):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list | tuple) else value


def _run(result: Mapping[str, Any]) -> dict[str, Any]:
    positions = {rule["code"]: position for position, rule in enumerate(result["rules"])}
    artifact = _artifact(result["model"])
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "bittrue",
                "rules": [_rule(rule) for rule in result["rules"]],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not result["failures"],
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": failure["message"]},
                        "associatedRule": {"id": failure["code"], **_index(positions, failure["code"])},
                    }
                    for failure in result["failures"]
                ]
                + [{"level": "note", "message": {"text": note}} for note in result["notes"]],
            }
        ],
        "results": [_result(finding, positions, artifact) for finding in result["findings"]],
        "properties": {"numerics": result["numerics"], "modelFormat": result["model_format"]},
    }
    if result.get("version"):
        run["tool"]["driver"]["version"] = result["version"]
    if artifact is not None:
        hashes = {"hashes": {"sha-256": result["sha256"]}} if result["sha256"] else {}
        run["artifacts"] = [{"location": dict(artifact), "roles": ["analysisTarget"], **hashes}]
    return run


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    parts = (("Why", rule["why"]), ("Who enforces it", rule["enforced"]), ("How to fix", rule["fix"]))
    help_text = "\n\n".join(f"{title}: {text}" for title, text in (*parts, ("Source", rule["source"])))
    return {
        "id": rule["code"],
        "name": "".join(word.capitalize() for word in rule["name"].split("-")),
        "shortDescription": {"text": rule["name"].replace("-", " ")},
        "fullDescription": {"text": rule["what"]},
        "help": {
            "text": f"{rule['what']}\n\n{help_text}",
            "markdown": f"{_plain(rule['what'])}\n\n"
            + "\n\n".join(f"**{title}.** {_plain(text)}" for title, text in (*parts, ("Source", rule["source"]))),
        },
        "defaultConfiguration": {"level": _LEVELS[rule["severity"]]},
    }


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\*_<>[]|" else letter for letter in text)


def _result(
    finding: Mapping[str, Any], positions: Mapping[str, int], artifact: Mapping[str, str] | None
) -> dict[str, Any]:
    advice = f" What to do: {finding['advice']}." if finding["advice"] else ""
    location: dict[str, Any] = {}
    if artifact is not None:
        # Code hosts show nothing without a line, and a model has none.
        location["physicalLocation"] = {"artifactLocation": {**artifact, "index": 0}, "region": {"startLine": 1}}
    logical = _logical(finding)
    if logical:
        location["logicalLocations"] = logical
    key = "\0".join(str(finding[name]) for name in ("code", "graph", "node", "tensor", "place"))
    return {
        "ruleId": finding["code"],
        **_index(positions, finding["code"], "ruleIndex"),
        "level": _LEVELS[finding["severity"]],
        "message": {"text": f"{finding['message']}.{advice}"},
        **({"locations": [location]} if location else {}),
        "partialFingerprints": {"bittrueFinding/v1": hashlib.sha256(key.encode(errors="replace")).hexdigest()},
        "properties": {name: finding[name] for name in ("expected", "found", "place", "numbers") if finding[name]},
    }


def _index(positions: Mapping[str, int], code: str, name: str = "index") -> dict[str, int]:
    return {name: positions[code]} if code in positions else {}


def _logical(finding: Mapping[str, Any]) -> list[dict[str, str]]:
    """Graph, node and tensor, each within the one before it."""
    found: list[dict[str, str]] = []
    path = ""
    node = "" if finding["node"] is None else f"{finding['node']} {finding['source']}".strip()
    for kind, name in (("module", finding["graph"]), ("function", node), ("variable", finding["tensor"])):
        if name:
            path = f"{path}/{name}" if path else name
            found.append({"name": name, "fullyQualifiedName": path, "kind": kind})
    return found


def _artifact(model: str) -> dict[str, str] | None:
    """Where the model is: an absolute URI for absolute paths, a relative one for others; None for bytes."""
    if not model:
        return None
    path = Path(model)
    return {"uri": path.as_uri() if path.is_absolute() else quote(os.fsencode(path))}
