"""The command, and the pages, summaries and tests made of a run; nothing that a device says ends up as markup."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bittrue.cli import cli
from bittrue.conformance.conform import conform
from bittrue.conformance.devices import Answer
from bittrue.report import html, junit, markdown, reading
from support.changed_answers import Planted, above

HOSTILE = '<script>alert("1")</script>|`x`\x1b[31m'


class Hostile(Planted):
    title = HOSTILE

    def answer(self, case: Any) -> Answer:
        if case.aim == "codes":
            return Answer("crashed", text=HOSTILE)
        return super().answer(case)


@pytest.fixture(scope="module")
def result() -> Any:
    found = conform(Hostile(above(1, 7)), operators=("SQUEEZE", "RESHAPE"), demo=False, repeat=1)
    return json.loads(json.dumps(found.to_dict()))


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, ["conform", *words])


def test_pages_escape_what_devices_say(result: Any) -> None:
    page = html.render(result)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "\x1b" not in page
    assert "SQUEEZE/s8/codes/000" in page
    assert "crashed" in page


def test_summaries_are_one_table_without_markup(result: Any) -> None:
    text = markdown.render(result)
    assert "<script>" not in text
    assert "| SQUEEZE | s8 |" in text


def test_junit_counts_every_case(result: Any) -> None:
    root = ElementTree.fromstring(junit.render(result))
    cases = [case for operator in result["operators"] for case in operator["cases"]]
    assert int(root.get("tests") or 0) == len(root.findall(".//testcase")) == len(cases)
    crashed = sum(case["outcome"] == "crashed" for case in cases)
    differing = sum(case["outcome"] in ("differs", "accepts what it must refuse") for case in cases)
    assert (int(root.get("errors") or 0), int(root.get("failures") or 0)) == (crashed, differing)
    assert len(root.findall(".//error")) == crashed > 0


@pytest.mark.parametrize(
    "path", [("operators",), ("claim",), ("operators", 0, "verdict"), ("operators", 0, "cases", 0)]
)
def test_damaged_results_are_named(result: Any, path: tuple[Any, ...]) -> None:
    data = json.loads(json.dumps(result))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = 7
    with pytest.raises(Exception, match="BT-RESULT"):
        reading.checked(data)


def test_command_writes_everything_and_verifies(tmp_path: Path) -> None:
    files = {name: tmp_path / f"r.{name}" for name in ("json", "html", "xml", "md")}
    done = run(
        *("bittrue:xnnpack", "--case", "SQUEEZE/s8/codes/000", "--no-demo", "--repeat", "1", "-o", str(files["json"])),
        *("--html", str(files["html"]), "--junit", str(files["xml"]), "--markdown", str(files["md"])),
    )
    assert done.exit_code == 0, done.output
    assert "level L3" in done.output.replace("\n", " ")
    assert all(file.stat().st_size for file in files.values())
    verified = run("verify", str(files["json"]))
    assert verified.exit_code == 0
    assert "holds: 1 case" in verified.output
    data = json.loads(files["json"].read_text())
    data["operators"][0]["level"] = 2
    files["json"].write_text(json.dumps(data))
    verified = run("verify", str(files["json"]))
    assert verified.exit_code == 1
    assert "does not hold: digest" in verified.output
    again = CliRunner().invoke(cli, ["report", str(files["json"]), "--markdown", "-"])
    assert again.exit_code == 0


def test_command_exit_codes(tmp_path: Path) -> None:
    device = tmp_path / "wrong.py"
    device.write_text("def device(model, inputs):\n    return {'output0': next(iter(inputs.values()))}\n")
    wrong = run(str(device), "--case", "SQUEEZE/s8/codes/000", "--no-demo", "--json")
    assert wrong.exit_code == 1, wrong.output
    data = json.loads(wrong.stdout)
    assert data["operators"][0]["verdict"] == "wrong outputs"
    assert not data["passed"]
    assert run("bittrue", "--json", "--markdown", "-").exception is not None
    assert run("verify", str(device)).exception is not None


def test_merged_parts_from_files(tmp_path: Path) -> None:
    cases = [w for i in range(2) for w in ("--case", f"SQUEEZE/s8/shapes/00{i}")]
    parts = [tmp_path / f"{i}.json" for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        done = run("bittrue", *cases, "--shard", f"{i}/2", "--no-demo", "--repeat", "1", "-o", str(part))
        assert part.exists(), done.output
    merged = run("merge", *map(str, parts), "-o", str(tmp_path / "whole.json"))
    assert merged.exit_code == 0, merged.output
    assert run("verify", str(tmp_path / "whole.json")).exit_code == 0
