"""`bittrue check` and `bittrue rule`: tables, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bittrue
from bittrue.check.rules import all_rules
from support.build import T, chain
from support.command import run


def unwrapped(table: str) -> str:
    """The last column of a table as one line, and the lines around it."""
    cells = (line.split("│")[-2] if line.endswith("│") else line for line in table.splitlines())
    return " ".join(" ".join(cells).split())


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Six layers in a row, each with a weight of -128 and a bias scale that is 1 % off."""
    nodes, x = [], T("s8", [1, 2], 0.5, name="x")
    for layer in range(6):
        w = T("s8", [2, 2], 0.5, data=np.array([[1, -128], [3, 4]]), name=f"w{layer}")
        b = T("s32", [2], 0.2525, data=np.array([5, 6]), name=f"b{layer}")
        y = T("s8", [1, 2], 0.5, name=f"y{layer}\x1b[31m")
        nodes.append(("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [x, w, b], [y], 4))
        x = y
    path = tmp_path / "a bad one.tflite"
    path.write_bytes(chain(nodes))
    return path


def test_a_good_model(good: Path) -> None:
    out = run("check", good).stdout
    assert "0 errors" in out
    assert "numerics 'litert'" in out


def test_a_bad_model_is_folded_and_ends_with_1(bad: Path) -> None:
    out = unwrapped(run("check", bad, "--select", "BT204,bias-scale", check=1).stdout)
    assert "12 errors, 0 warnings, 0 notes" in out
    assert out.count("and 4 more like it") == 2
    assert "1.01 times as large" in out
    assert "the first one is [0, 1], in output channel 0" in out
    assert out.count("what to do") == 2
    everything = unwrapped(run("check", bad, "--select", "BT204,bias-scale", "--all", check=1).stdout)
    assert "more like it" not in everything
    assert everything.count("-128 in 1 of 4 weights") == 6


def test_severity_hides_and_does_not_forget(bad: Path) -> None:
    out = run("check", bad, "--severity", "error", "--select", "BT209,BT204", check=1).stdout
    assert "BT209" not in out
    assert "(6 not shown)" in out
    assert "6 errors, 0 warnings, 6 notes" in out
    plain = json.loads(run("check", bad, "--severity", "error", "--select", "BT209", "--json").stdout)
    assert len(plain["findings"]) == 6


def test_ignored_rules_do_not_fail_the_check(bad: Path) -> None:
    run("check", bad, "--select", "BT2", "--select", "BT3", "--ignore", "BT204", "--ignore", "bias-scale")


def test_names_of_files_cannot_write_on_the_terminal(bad: Path) -> None:
    done = run("check", bad, check=1)
    assert "\x1b" not in done.stdout
    assert "\x1b" not in done.stderr


def test_json_and_files(bad: Path, tmp_path: Path) -> None:
    sarif, junit = tmp_path / "f.sarif", tmp_path / "f.xml"
    plain = json.loads(run("check", bad, "--json", "--sarif", sarif, "--junit", junit, check=1).stdout)
    assert plain["format"] == "bittrue-check-1"
    assert plain["model"] == str(bad)
    results = json.loads(sarif.read_text())["runs"][0]["results"]
    assert len(results) == len(plain["findings"])
    suite = ElementTree.parse(junit).getroot()[0]
    failed = {finding["code"] for finding in plain["findings"] if finding["severity"] == "error"}
    assert {case.get("name", "")[:5] for case in suite.iter("testcase") if case.find("failure") is not None} == failed


def test_markdown_and_html(bad: Path, tmp_path: Path) -> None:
    html, markdown = tmp_path / "f.html", tmp_path / "f.md"
    run("check", bad, "--html", html, "--markdown", markdown, check=1)
    assert "BT204" in html.read_text()
    printed = run("check", bad, "--markdown", "-", check=1).stdout
    assert "BT204" in printed
    # Nothing but the summary.
    assert "┏" not in printed
    assert "both print" in run("check", bad, "--json", "--markdown", "-", check=2).stderr


def test_what_cannot_be_checked(good: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(bittrue.demo_model()[:200])
    assert "BT-FILE" in run("check", damaged, check=3).stderr
    run("check", tmp_path / "absent.tflite", check=2)
    assert "no rule is called 'BT9'" in run("check", good, "--select", "BT9", check=2).stderr
    run("check", good, "--numerics", "nobody", check=2)
    run("check", good, "--severity", "fatal", check=2)


def test_rule_explains(good: Path) -> None:
    for name in ("BT204", "bt204", "weight-range"):
        out = run("rule", name).stdout
        for part in ("BT204 weight-range", "[-127, 127]", "why", "who enforces it", "how to fix", "source"):
            assert part in out
    assert json.loads(run("rule", "BT204", "--json").stdout)["name"] == "weight-range"
    listed = run("rule").stdout
    assert all(rule.code in listed for rule in all_rules())
    assert [page["code"] for page in json.loads(run("rule", "--json").stdout)] == [rule.code for rule in all_rules()]
    assert "no rule 'BT000'" in run("rule", "BT000", check=2).stderr


def test_long_names_are_short_unless_all_is_asked_for(tmp_path: Path) -> None:
    name = "StatefulPartitionedCall/Net/conv_1/Relu6;" * 9 + "Net/conv_1/Conv2D"
    w = T("s8", [2, 2], 0.5, data=np.array([[1, -128], [3, 4]]), name=name)
    b = T("s32", [2], 0.25, data=np.array([5, 6]), name="b")
    nodes = [
        ("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [T("s8", [1, 2], 0.5), w, b], [T("s8", [1, 2], 0.5)], 4)
    ]
    path = tmp_path / "names.tflite"
    path.write_bytes(chain(nodes))

    def names(*options: str) -> str:
        return "".join(line.strip() for line in run("check", path, *options, check=1).stdout.splitlines())

    assert "'StatefulPartitionedCall…/Relu6;Net/conv_1/Conv2D'" in names()
    assert name not in names()
    assert name in names("--all")
    findings = json.loads(run("check", path, "--json", check=1).stdout)["findings"]
    assert name in {finding["tensor"] for finding in findings}


def test_a_rule_that_is_nearly_named() -> None:
    assert "BT301 bias-scale" in run("rule", "bias", check=2).stderr
    assert "lists them" in run("rule", "BT999", check=2).stderr
