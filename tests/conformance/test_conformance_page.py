"""The published results are of the suites as they are now."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bittrue.conformance.suite import SUITE_VERSION, SUITES, digest_of_cases, find_suite

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance_results.md"
ADVICE = "run `bittrue conform` on the page's devices, tools/make_conformance_page.py"
ROWS = [
    (name, operator, types)
    for name, suite in SUITES.items()
    for operator, made in suite.generators().items()
    for types in made.types
    if types in suite.types
]
sys.path.insert(0, str(ROOT / "tools"))


# Making an operator's cases is dear: tests of cases take the same operators in their turns.
@pytest.mark.in_turns(4, by="operator")
@pytest.mark.parametrize(("name", "operator", "types"), ROWS)
def test_a_row_is_of_these_cases(name: str, operator: str, types: str) -> None:
    from make_conformance_page import row_start

    cases = [(case.identity, case.sha256) for case in find_suite(name).cases((operator,), (types,))]
    assert f"\n{row_start(operator, types, cases)} " in PAGE.read_text("utf-8"), ADVICE


def test_the_page_has_every_row() -> None:
    rows = re.findall(r"^\| (\S.*?) \| \d+ `[0-9a-f]{12}` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(f"{operator} {types}" for _, operator, types in ROWS), ADVICE


@pytest.mark.deep
@pytest.mark.parametrize("name", SUITES)
def test_the_page_is_of_these_cases(name: str) -> None:
    from make_conformance_page import digest_line

    cases = [(case.identity, case.sha256) for case in find_suite(name).cases()]
    line = digest_line(name, SUITE_VERSION, len(cases), digest_of_cases(cases))
    assert line in PAGE.read_text("utf-8"), ADVICE
