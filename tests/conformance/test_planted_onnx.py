"""QLinearConv and QLinearMatMul with one planted fault each, on kernels that share no code with bittrue."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bittrue.conformance.causes import Evidence, find_class
from bittrue.conformance.expected import Outputs, same_bytes
from bittrue.conformance.suite import SuiteCase, find_suite
from support.planted.onnx_layers import run
from support.planted.rounding import nearest_away

# So many failing and right cases of each fault are evidence; all of them with --deep.
_FAILING, _RIGHT = 4, 2


def _tie(rounding: Any) -> Any:
    return lambda acc, factor: rounding(acc.astype(np.float32) * factor)


def _toward_zero(value: np.ndarray) -> np.ndarray:
    return np.sign(value) * np.ceil(np.abs(value) - np.float32(0.5))


def _wrapped(acc: np.ndarray) -> np.ndarray:
    return (acc + 32768) % 65536 - 32768


FAULTS: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("QLinearConv", ("the same product, ties toward zero",), {"rounding": _tie(_toward_zero)}),
    ("QLinearConv", ("the same product, ties away", "exact product, ties away"), {"rounding": _tie(nearest_away)}),
    ("QLinearConv", ("exact product, trunc", "binary32 product, trunc"), {"rounding": _tie(np.trunc)}),
    ("QLinearConv", ("padding with quantized value 0",), {"pad_code": 0}),
    ("QLinearConv", ("input zero point ignored",), {"no_input_zero": True}),
    ("QLinearConv", ("output zero point ignored",), {"no_output_zero": True}),
    ("QLinearConv", ("padding swapped on both axes",), {"pads_swapped": True}),
    ("QLinearConv", ("accumulator wraps at 16 bits",), {"register": _wrapped}),
    (
        "QLinearConv",
        ("accumulator saturates at 16 bits",),
        {"register": lambda acc: np.clip(acc, -32768, 32767)},
    ),
    ("QLinearConv", ("weights shifted by one output channel",), {"neighbour": True}),
    ("QLinearConv", ("clamp before the zero point",), {"clamp_first": True}),
    ("QLinearConv", ("bias added twice",), {"bias_twice": True}),
    ("QLinearConv", ("exponent one too large",), {"times": 2}),
    ("QLinearMatMul", ("the same product, ties toward zero",), {"rounding": _tie(_toward_zero)}),
    ("QLinearMatMul", ("first input zero point ignored", "input zero point ignored"), {"no_input_zero": True}),
]


@cache
def _cases(operator: str) -> list[tuple[SuiteCase, Outputs]]:
    found = [case for case in find_suite("onnx").cases([operator], ["s8"]) if not case.rejects]
    return [(case, case.model.prepare("onnxruntime").run(dict(case.inputs))) for case in found]


def _answer(case: SuiteCase, wrong: dict[str, Any]) -> Outputs:
    with np.errstate(all="ignore"):
        found = run(case.content, dict(case.inputs), **wrong)
    assert found is not None
    return found


@pytest.mark.parametrize("operator", sorted({operator for operator, _, _ in FAULTS}))
def test_the_kernels_without_a_fault_are_exact(operator: str) -> None:
    for case, wanted in _cases(operator):
        assert same_bytes(_answer(case, {}), wanted), (case.identity, case.note)


@pytest.mark.in_turns(5)
@pytest.mark.parametrize(
    ("operator", "names", "wrong"), FAULTS, ids=[f"{operator}: {names[0]}" for operator, names, _ in FAULTS]
)
def test_the_class_is_what_was_planted(
    operator: str, names: tuple[str, ...], wrong: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    evidence = [Evidence(case, _answer(case, wrong), wanted) for case, wanted in _cases(operator)]
    failing, right = ([e for e in evidence if e.fails == fails] for fails in (True, False))
    assert failing, "the suite does not notice the fault"
    if not request.config.getoption("--deep"):
        failing, right = failing[:: -(-len(failing) // _FAILING)], right[:: -(-len(right) // _RIGHT) or 1]
    found = find_class([*failing, *right], "onnxruntime")
    assert found is not None, "unexplained"
    assert found.name in names, found
