"""Operator versions: the table's oldest and newest are the runtime's own."""

from __future__ import annotations

import pytest

import bittrue
from bittrue import numerics
from bittrue.importers import tflite_schema
from bittrue.numerics import Numerics
from bittrue.operators import registry
from support.build import T, single
from support.oracle import oracle
from support.runtimes import RUNTIMES

# The schema's name of every operator, and what it is here.
OPERATORS = {name: tflite_schema.operator(number) for number, name in enumerate(tflite_schema.ENUMS["BuiltinOperator"])}
UNKNOWN = "Didn't find op"
# The numerics of the interpreter that the tests run in; older ones and microcontrollers have their own versions.
NAMES = ["litert", "litert-optimized", "xnnpack"]


def has_row(table: Numerics, source: str) -> bool:
    """Whether a row may be for this operator of the schema, by the values that it wants attributes to have."""
    found = OPERATORS[source]
    asked = ([c[1:] for c in row.when if c[0] == "attribute_is"] for row in table.rows if row.operator == found.stem)
    return any(all(found.attributes.get(str(name), values[0]) in values for name, *values in row) for row in asked)


def runtime_knows(source: str, version: int, resolver: str) -> bool:
    content = single(source, None, [T("f32", (1,)), T("f32", (1,))], [T("f32", (1,))], version=version)
    return UNKNOWN not in oracle(resolver).run(content, [[]], []).refused


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", sorted(source for source, one in OPERATORS.items() if one.stem in registry()))
def test_versions_are_those_of_the_runtime(source: str, name: str) -> None:
    table = numerics.find(name)
    if not has_row(table, source):
        pytest.skip("the numerics has no row")
    oldest, newest = table.versions.get(source, (1, 1))
    known = [version for version in range(1, newest + 3) if runtime_knows(source, version, RUNTIMES[name].resolver)]
    assert known == list(range(oldest, newest + 1))


def test_a_newer_version_is_refused_by_name() -> None:
    content = single("SQUEEZE", None, [T("s8", (1, 2), 0.5)], [T("s8", (2,), 0.5)], version=2)
    assert UNKNOWN in oracle().run(content, [[]], []).refused
    with pytest.raises(bittrue.UnsupportedError, match="version 2") as caught:
        bittrue.load(content).prepare()
    assert caught.value.code == "BT-OPERATOR-VERSION"
