"""The published results are of the suites as they are now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bittrue.conformance.suite import SUITE_VERSION, SUITES, digest_of_cases, find_suite

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance_results.md"
sys.path.insert(0, str(ROOT / "tools"))


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("name", SUITES)
def test_the_page_is_of_these_cases(name: str) -> None:
    from make_conformance_page import digest_line

    cases = [(case.identity, case.sha256) for case in find_suite(name).cases()]
    line = digest_line(name, SUITE_VERSION, len(cases), digest_of_cases(cases))
    assert line in PAGE.read_text("utf-8"), (
        "run `bittrue conform` on the page's devices, tools/make_conformance_page.py"
    )
