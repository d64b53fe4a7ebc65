"""Every rule has a page, a file of its name, models that trip it and models that do not."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import bittrue
from bittrue.check import SEVERITIES, choose_rules
from bittrue.check.rules import all_rules, find
from support.shared import REPOSITORY

FOLDER = Path(__file__).parent
RULES = REPOSITORY / "src" / "bittrue" / "check" / "rules"


def fixtures() -> dict[str, tuple[list[Callable[[], bytes]], list[Callable[[], bytes]]]]:
    """What all files of fixtures hold; each rule's are in one of them."""
    found: dict[str, tuple[list[Callable[[], bytes]], list[Callable[[], bytes]]]] = {}
    sys.path.insert(0, str(FOLDER))
    try:
        for path in sorted(FOLDER.glob("fixtures_*.py")):
            for code, lists in importlib.import_module(path.stem).FIXTURES.items():
                assert code not in found, f"{code} is in two files of fixtures"
                trips, passes = (
                    [model if callable(model) else partial(bytes, model) for model in some] for some in lists
                )
                found[code] = trips, passes
    finally:
        sys.path.remove(str(FOLDER))
    return found


FIXTURES = fixtures()


def cases(which: int) -> list[object]:
    return [
        pytest.param(code, make, id=f"{code}-{position}")
        for code, lists in sorted(FIXTURES.items())
        for position, make in enumerate(lists[which])
    ]


def test_every_rule_is_a_file_and_has_a_page() -> None:
    files = {path.stem for path in RULES.glob("bt*.py")}
    assert {path.stem for path in RULES.glob("*.py")} - files == {"__init__"}
    assert len(all_rules()) == len(files) == len({rule.code for rule in all_rules()})
    for rule in all_rules():
        stem = f"{rule.code.lower()}_{rule.name.replace('-', '_')}"
        assert stem in files, f"{rule.code} {rule.name} is not in a file of its name"
        assert rule.severity in SEVERITIES
        for field in ("what", "why", "enforced", "fix", "source"):
            text = getattr(rule, field)
            assert len(text) > 10, f"{rule.code} says nothing about {field}"
            assert text == text.strip()
            assert "  " not in text
        assert find(rule.code) is find(rule.name) is rule
    assert [rule.code for rule in all_rules()] == sorted(rule.code for rule in all_rules())


def test_every_rule_has_fixtures() -> None:
    for rule in all_rules():
        assert rule.code in FIXTURES, f"no fixtures for {rule.code}"
        trips, passes = FIXTURES[rule.code]
        assert trips, f"nothing trips {rule.code}"
        assert passes, f"nothing shows where {rule.code} is quiet"
    assert set(FIXTURES) <= {rule.code for rule in all_rules()}


@pytest.mark.parametrize(("code", "make"), cases(0))
def test_trips(code: str, make: Callable[[], bytes]) -> None:
    result = bittrue.check_model(make(), select=[code])
    assert not result.failures
    assert result.findings
    for finding in result.findings:
        assert finding.code == code
        assert finding.severity in SEVERITIES
        assert finding.message
    again = bittrue.check_model(make(), select=[code])
    assert again.findings == result.findings


@pytest.mark.parametrize(("code", "make"), cases(1))
def test_passes(code: str, make: Callable[[], bytes]) -> None:
    result = bittrue.check_model(make(), select=[code])
    assert not result.failures
    assert not result.findings, result.findings


@pytest.mark.parametrize(("code", "make"), cases(0) + cases(1))
def test_no_other_rule_fails_on_a_fixture(code: str, make: Callable[[], bytes]) -> None:
    result = bittrue.check_model(make())
    assert not result.failures, result.failures


def test_rules_are_chosen_by_code_beginning_and_name() -> None:
    codes = {rule.code for rule in all_rules()}
    assert {rule.code for rule in choose_rules([], [])} == codes
    assert [rule.code for rule in choose_rules(["bt204", "weight-range"], [])] == ["BT204"]
    assert {rule.code for rule in choose_rules(["BT2"], ["BT20"])} == {c for c in codes if c[:3] == "BT2"} - {
        c for c in codes if c[:4] == "BT20"
    }
    assert {rule.code for rule in choose_rules([], ["bias-scale"])} == codes - {"BT301"}
    for wrong in ("BT9", "", "scale", "BT2044"):
        with pytest.raises(bittrue.InputError, match="BT-RULE"):
            choose_rules([wrong], [])
        with pytest.raises(bittrue.InputError, match="BT-RULE"):
            choose_rules([], [wrong])


def test_pages_are_what_the_rules_say() -> None:
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / "make_check_pages.py", "--check"])
    assert done.returncode == 0, "run: python tools/make_check_pages.py"
