"""Operators, rules and numerics fit together: every name in a table exists, every operator has its row and its test."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bittrue import numerics
from bittrue.operators import find, registry
from bittrue.operators.admission.conditions import CONDITIONS
from bittrue.operators.admission.requirements import REQUIREMENTS
from bittrue.rules import rules, slots
from support.shared import REPOSITORY


@pytest.mark.parametrize("name", numerics.names())
def test_rows_name_what_exists(name: str) -> None:
    for row in numerics.find(name).rows:
        if row.refuses:
            assert len(row.refuses) > 20
            continue
        operator = registry().get(row.operator)
        assert operator is not None, f"no operator '{row.operator}'"
        assert row.evidence, f"{row.operator} {row.types} has no evidence"
        assert not row.inexact or len(row.limit) > 20, f"{row.operator} {row.types} does not say how it differs"
        for slot, rule in row.rules.items():
            assert slot in operator.slots, f"{row.operator} has no slot '{slot}'"
            assert rule in rules(slot), f"slot '{slot}' has no rule '{rule}'"
        for requirement, *_ in row.requires:
            assert requirement in REQUIREMENTS
        for condition, *_ in row.when:
            assert condition in CONDITIONS


def test_conditions_are_named_as_their_functions() -> None:
    assert [function.__name__ for function in CONDITIONS.values()] == list(CONDITIONS)


def test_every_operator_has_a_row_and_a_test() -> None:
    names = ("operators", "onnx_operators", "systems")
    folders = [REPOSITORY / "tests" / name for name in names]
    tests = "\n".join(path.read_text() for folder in folders for path in folder.glob("test_*.py"))
    tabled = set().union(*(numerics.find(name).operators() for name in numerics.names()))
    for stem, operator in registry().items():
        assert stem in tabled, f"no numerics has a row for '{stem}'"
        assert stem in tests or stem.upper() in tests, f"no test names '{stem}'"
        assert operator.summary
        assert all(slot in slots() for slot in operator.slots)


def test_traits_name_what_exists() -> None:
    for stem, operator in registry().items():
        assert set(operator.mistaken_for) <= registry().keys() - {stem}
        assert operator.moves >= operator.keeps_order
        assert bool(operator.weights) <= operator.multiplies


def test_every_rule_is_documented() -> None:
    for slot in slots():
        for name, rule in rules(slot).items():
            assert getattr(rule, "formula", "") or (rule.__doc__ or "").strip(), f"{slot}={name} says nothing"


@pytest.mark.parametrize(
    "tool",
    ["make_operator_table.py", "make_snps_caffe_table.py", "make_specification_page.py", "make_aarch64_table.py"],
)
def test_pages_are_what_the_tables_say(tool: str) -> None:
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / tool, "--check"])
    assert done.returncode == 0, f"run: python tools/{tool}"


def test_every_operator_is_found_without_importing_the_others() -> None:
    for stem, operator in registry().items():
        assert find(stem) is operator
    assert find("no_such_operator") is None
    assert find("base") is None
    assert find("../graph") is None
