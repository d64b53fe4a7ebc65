"""Kernels written from the published reference, without bittrue's own, with one fault each: the class that is given
names the fault, noise stays unexplained, and the kernels without a fault are exact. Beside the list of
`support.planted`: faults that it lacks.
"""

from __future__ import annotations

from functools import cache

import pytest

from bittrue.conformance.causes import Evidence, find_class
from bittrue.conformance.devices.model import DeviceModel
from bittrue.conformance.expected import Outputs, same_bytes
from bittrue.conformance.suite import SuiteCase, find_suite
from support.integer_kernels import run

# So many failing and right cases of each fault are evidence; all of them with --deep.
_FAILING, _RIGHT = 3, 1
# Multipliers that round up to the next exponent: one case in which encoders part.
_ALWAYS = ("CONV_2D/s8/near-ties/004",)

FAULTS = {
    ("CONV_2D", "second_tie_even"): "two steps, ties up then ties even",
    ("CONV_2D", "second_tie_down"): "two steps, ties up then ties down",
    ("CONV_2D", "second_floor"): "two steps, ties up then floor",
    ("CONV_2D", "second_trunc"): "two steps, ties up then trunc",
    ("CONV_2D", "single_even"): "product with a 31-bit multiplier, ties even",
    ("CONV_2D", "binary32_half_added"): "binary32 product, half added away",
    ("CONV_2D", "multiplier_top_15"): "product with a 15-bit truncated multiplier, ties up",
    ("CONV_2D", "multiplier_shifted"): "multipliers shifted by one channel",
    ("CONV_2D", "bias_shifted"): "bias shifted by one channel",
    ("CONV_2D", "bias_16"): "bias wrapped to 16 bits",
    ("CONV_2D", "weights_rotated"): "weights rotated by 180 degrees",
    ("CONV_2D", "padding_other_side"): "padding swapped on both axes",
    ("CONV_2D", "relu_at_code_0"): "clamp at quantized value 0",
    ("CONV_2D", "upper_end_low"): "upper end of the activation one too low",
    ("CONV_2D", "wraps_before_clamp"): "wraps before the clamp",
    ("ADD", "zero_points_swapped"): "first input and second input zero points swapped",
    ("ADD", "scales_swapped"): "first input and second input scales swapped",
    ("ADD", "left_7"): "align=left_7",
}


@cache
def _cases(operator: str) -> list[tuple[SuiteCase, Outputs]]:
    found = [case for case in find_suite("litert").cases([operator], ["s8"]) if not case.rejects]
    return [(case, case.model.prepare("litert").run(dict(case.inputs))) for case in found]


def _evidence(operator: str, fault: str) -> list[Evidence]:
    return [Evidence(c, run(DeviceModel(c), c.inputs, fault), wanted) for c, wanted in _cases(operator)]


@pytest.mark.parametrize("operator", sorted({operator for operator, _ in FAULTS}))
def test_kernels_without_a_fault_are_exact(operator: str) -> None:
    for one in _evidence(operator, ""):
        assert same_bytes(one.outputs, one.wanted), (one.case.identity, one.case.note)


def _few(found: list[Evidence], most: int) -> list[Evidence]:
    kept = found[:: -(-len(found) // most) or 1]
    return kept + [e for e in found if e.case.identity in _ALWAYS and e not in kept]


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("operator", "fault"), FAULTS)
def test_the_class_names_the_fault(operator: str, fault: str, request: pytest.FixtureRequest) -> None:
    evidence = _evidence(operator, fault)
    failing, right = ([e for e in evidence if e.fails == fails] for fails in (True, False))
    assert failing, "the suite does not notice the fault"
    if not request.config.getoption("--deep"):
        failing, right = _few(failing, _FAILING), _few(right, _RIGHT)
    found = find_class([*failing, *right], "litert")
    assert found is not None, "unexplained"
    assert found.name == FAULTS[operator, fault], found


@pytest.mark.parametrize("operator", sorted({operator for operator, _ in FAULTS}))
def test_noise_has_no_class(operator: str) -> None:
    failing = _few([e for e in _evidence(operator, "noise") if e.fails], 4)
    assert len(failing) > 2
    assert find_class(failing, "litert") is None
