"""Devices with one planted fault each: what is said of them is what was planted, and never anything else."""

from __future__ import annotations

from functools import cache

import pytest

from bittrue.conformance.causes import Evidence, find_class
from bittrue.conformance.conform import conform
from bittrue.conformance.expected import Outputs, same_bytes
from bittrue.conformance.suite import SuiteCase, find_suite
from support.planted import PLANTED, RIGHT, Planted, PlantedDevice
from support.planted.devices import KERNELS

# Without --deep so many cases of each sort are evidence: failing ones, and right ones.
_FAILING, _RIGHT = 4, 2


@cache
def _cases(operator: str) -> list[tuple[SuiteCase, Outputs]]:
    suite = find_suite("litert")
    if operator not in suite.generators():
        return []
    found = [case for case in suite.cases([operator]) if not case.rejects]
    return [(case, case.model.prepare("litert").run(dict(case.inputs))) for case in found]


# Making an operator's cases is dear: tests of cases take the same operators in their turns.
@pytest.mark.in_turns(4, by="operator")
@pytest.mark.parametrize("operator", KERNELS)
def test_the_device_without_a_fault_is_right(operator: str) -> None:
    cases = _cases(operator)
    if not cases:
        pytest.skip(f"the suite has no cases of {operator}")
    for case, wanted in cases:
        answer = RIGHT.answer(case)
        assert same_bytes(answer.outputs, wanted), (case.identity, case.note)


def test_there_are_enough_of_them() -> None:
    assert len(PLANTED) >= 40
    assert len({planted.title for planted in PLANTED}) == len(PLANTED)
    assert len({planted.operator for planted in PLANTED}) >= 12


@pytest.mark.in_turns(2, by="operator")
@pytest.mark.in_turns(3)
@pytest.mark.parametrize(
    ("operator", "planted"),
    [(planted.operator, planted) for planted in PLANTED],
    ids=[planted.title for planted in PLANTED],
)
def test_the_class_is_what_was_planted(operator: str, planted: Planted, request: pytest.FixtureRequest) -> None:
    cases = _cases(operator)
    if not cases:
        pytest.skip(f"the suite has no cases of {operator}")
    device = PlantedDevice(planted)
    evidence = [Evidence(case, device.answer(case).outputs, wanted) for case, wanted in cases]
    failing, right = ([e for e in evidence if e.fails == wanted] for wanted in (True, False))
    assert failing, "the suite does not notice the fault"
    if not request.config.getoption("--deep"):
        failing, right = failing[:: -(-len(failing) // _FAILING)], right[:: -(-len(right) // _RIGHT) or 1]
    found = find_class([*failing, *right], "litert")
    assert found is not None, "unexplained"
    assert found.name in planted.names, found


@pytest.mark.parametrize(
    "planted",
    [p for p in PLANTED if p.operator in ("PAD", "MAXIMUM", "LESS")],
    ids=lambda planted: planted.title,
)
def test_a_conformance_run_says_so(planted: Planted) -> None:
    result = conform(PlantedDevice(planted), "litert", operators=[planted.operator])
    (verdict,) = result.operators
    assert verdict.verdict == "wrong"
    assert verdict.cause is not None
    assert verdict.cause.name in planted.names
