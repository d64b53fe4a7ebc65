"""Cases of operators with accumulators: run by the runtime, aimed at what they claim, strong enough to tell rules."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from bittrue import numerics
from bittrue.api import Session
from bittrue.compare.hypotheses.rows import place_of
from bittrue.conformance.expected import Expected
from bittrue.conformance.suite import SuiteCase, aiming, find_suite
from bittrue.errors import BittrueError
from bittrue.graph import data_type
from bittrue.plan import make_plan
from bittrue.rules import rescale
from support.oracle import oracle
from support.runtimes import here

LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
OPERATORS = (
    *LAYERS,
    "TRANSPOSE_CONV",
    "BATCH_MATMUL",
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    "MEAN",
    "SUM",
    "QUANTIZE",
    "DEQUANTIZE",
    "L2_NORMALIZATION",
)
in_turns = pytest.mark.in_turns(3, by="operator")
RESOLVERS = {
    "litert": "BUILTIN_REF",
    "litert-optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "xnnpack": "BUILTIN",
}


@cache
def suite_cases(operator: str, types: str = "s8") -> tuple[SuiteCase, ...]:
    return tuple(find_suite("litert").cases((operator,), (types,)))


# Types that differ in more than their limits; making the cases of all takes minutes.
OTHERS = (
    ("CONV_2D", "u8"),
    ("CONV_2D", "s16"),
    ("FULLY_CONNECTED", "s16-s32"),
    ("TRANSPOSE_CONV", "u8"),
    ("BATCH_MATMUL", "s16"),
    ("AVERAGE_POOL_2D", "s16"),
    ("SUM", "u8"),
    ("QUANTIZE", "s8-s16"),
    ("DEQUANTIZE", "u8"),
    ("L2_NORMALIZATION", "u8"),
)


def differing(cases: tuple[SuiteCase, ...], name: str) -> list[str]:
    """Cases that the runtime computes otherwise than the numerics says; such as the numerics refuses are left out."""
    found = []
    for case in cases:
        if case.rejects:
            continue
        try:
            wanted = next(iter(Expected(case, (here(name),)).outputs(here(name)).values()))
        except BittrueError:
            assert name != "litert", case.identity
            continue
        output = case.model.graph.outputs[0]
        answer = oracle(RESOLVERS[name]).run(case.content, [list(case.inputs.values())], [output])
        if not answer.ran or answer.values[output].tobytes() != wanted.tobytes():
            found.append(f"{case.identity} ({case.note}) {answer.refused}")
    return found


# Making an operator's cases is dear: tests of cases take the same operators in their turns.
@in_turns
@pytest.mark.parametrize("name", RESOLVERS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_runtime_gives_the_expected_bytes(operator: str, name: str) -> None:
    if (operator, name) == ("SUM", "litert"):
        # The reference kernel reads s8 as unsigned; the table says so, and the test of u8 covers the formula.
        assert differing(suite_cases(operator), name)
        return
    assert differing(suite_cases(operator), name) == []


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(("operator", "types"), OTHERS)
def test_the_runtime_gives_the_expected_bytes_of_other_types(operator: str, types: str) -> None:
    assert differing(suite_cases(operator, types)[::3], "litert") == []


@in_turns
@pytest.mark.parametrize("operator", OPERATORS)
def test_what_must_be_refused_is(operator: str) -> None:
    # What the specification alone forbids, the runtime computes; test_suite_elementwise says so of each of them.
    refused = [case for case in suite_cases(operator) if case.rejects and not case.rejects.startswith("specification")]
    assert refused
    for case in refused:
        with pytest.raises(BittrueError):
            case.model.prepare("litert")
        answer = oracle("BUILTIN_REF").run(case.content, [list(case.inputs.values())], [])
        assert answer.refused, case.identity


@in_turns
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_budget_holds(operator: str) -> None:
    cases = [case for case in suite_cases(operator) if not case.rejects]
    elements = sum(int(np.prod(case.model.graph.tensors[case.model.graph.outputs[0]].shape)) for case in cases)
    assert elements < 60_000
    assert len(cases) < 100
    assert sum(case.aim == "random" for case in cases) * 8 > len(cases)
    assert len({case.sha256 for case in cases}) == len(cases)


def ruled(case: SuiteCase, rule: str) -> bytes | None:
    """The case's answer with another rule of slot `rescale`; None where the rule does not take its multipliers."""
    base = numerics.find("litert")
    node = case.model.graph.nodes[0]
    place = place_of(case.model.graph, node)
    rows = tuple(
        replace(row, rules={**row.rules, "rescale": rule}, requires=())
        for row in base.rows
        if row.operator == node.operator and not row.refuses and row.matches(place.inputs, place.outputs)
    )
    try:
        plan = make_plan(case.model.graph, replace(base, rows=rows))
    except BittrueError:
        return None
    return next(iter(Session(plan, executor="reference").run(dict(case.inputs)).values())).tobytes()


# Rules of one arithmetic where accumulators have 32 bits and are not followed by more.
_ALIKE = (
    ("q31_one_step_up_wrap", "q31_one_step_up"),
    ("q31_one_step_up_shift_wraps", "q31_one_step_up"),
    ("binary32_multiply_even_overflow_lowest", "binary32_multiply_even"),
    ("binary32_add_multiply_even", "binary32_multiply_even"),
    ("binary32_add_multiply_twice_even", "binary32_multiply_even"),
    ("binary32_multiply_even_wide", "binary32_multiply_even"),
)


@in_turns
@pytest.mark.parametrize("operator", LAYERS)
def test_every_two_rescaling_rules_are_told_apart(operator: str) -> None:
    aimed = [case for case in suite_cases(operator) if case.aim in ("ties", "near ties")]
    rules = [
        name
        for name, rule in rescale.RULES.items()
        if rule.integral and not rule.signed and name not in {alike for alike, _ in _ALIKE}
    ]
    answers = {name: [ruled(case, name) for case in aimed] for name in rules}
    for one, two in combinations(rules, 2):
        both = [(a, b) for a, b in zip(answers[one], answers[two], strict=True) if a is not None and b is not None]
        assert any(a != b for a, b in both), f"{one} and {two} of {len(both)} cases"


@in_turns
@pytest.mark.parametrize("operator", [o for o in OPERATORS if o not in ("AVERAGE_POOL_2D", "DEQUANTIZE")])
def test_arithmetics_of_numerics_are_told_apart(operator: str) -> None:
    """The reference's arithmetic is told from every other one that some case is computed with."""
    met: set[str] = set()
    told: set[str] = set()
    for case in suite_cases(operator):
        if case.rejects or case.aim == "random":
            continue
        expected = Expected(case, ("litert", "litert-optimized", "xnnpack", "single-rounding"))
        wanted = next(iter(expected.outputs("litert").values())).tobytes()
        for one in expected.arithmetics:
            if "litert" not in one.names:
                met.update(one.names)
                if next(iter(expected.outputs(one).values())).tobytes() != wanted:
                    told.update(one.names)
    assert met
    assert met == told


def products(operator: str) -> list[tuple[int, Fraction]]:
    """Every accumulator of the aimed cases, worked out apart from bittrue, and its exact product."""
    found = []
    for case in suite_cases(operator):
        if case.aim not in ("ties", "near ties") or "accumulators from" not in case.seeks:
            continue
        graph = case.model.graph
        node = graph.nodes[0]
        x, weights, bias = (graph.tensors[i] for i in node.inputs)  # type: ignore[index]
        output = graph.tensors[node.outputs[0]]
        centred = case.inputs["input0"].astype(np.int64) - int(x.quantization.zero_points[0])
        flat = weights.values().astype(np.int64).reshape(-1)
        columns = centred.reshape(-1, len(flat)) if operator == "DEPTHWISE_CONV_2D" else centred.reshape(-1, 1)
        acc = columns * flat + bias.values().astype(np.int64)
        assert (acc[0] - np.array(case.seeks["accumulators from"]) <= 8).all()
        scales = np.broadcast_to(weights.quantization.scales, flat.shape)
        first, last = Fraction(float(x.quantization.scales[0])), Fraction(float(output.quantization.scales[0]))
        for channel in range(len(flat)):
            real = first * Fraction(float(scales[channel])) / last
            found.extend((int(a), int(a) * real) for a in acc[:, channel])
    return found


@in_turns
@pytest.mark.parametrize("operator", LAYERS)
def test_accumulators_are_where_rounding_shows(operator: str) -> None:
    found = products(operator)
    half = Fraction(1, 2)
    ties = [p for _, p in found if (p - half).denominator == 1]
    assert sum(p > 0 for p in ties) > 100
    assert sum(p < 0 for p in ties) > 100
    # Of even and odd numbers, so that ties to even go both ways.
    assert {(p - half).numerator % 2 for p in ties} == {0, 1}
    beside = [p for _, p in found if 0 < abs(p - half - round(p - half)) < Fraction(1, 1 << 20)]
    assert sum(p > 0 for p in beside) > 50
    assert sum(p < 0 for p in beside) > 50
    assert sum(abs(a) > 1 << 24 for a, _ in found) > 200
    assert min(a for a, _ in found) < -(1 << 29)
    assert max(a for a, _ in found) > 1 << 29
    # No accumulator overflows, whatever order its summands have.
    assert all(abs(a) < (1 << 31) - 256 for a, _ in found)


def test_cases_are_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from bittrue.conformance.suite import find_suite; h = hashlib.sha256();"
        "[h.update(c.sha256.encode()) for o in ('FULLY_CONNECTED', 'MAX_POOL_2D')"
        " for c in find_suite('litert').cases((o,))]; print(h.hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    wanted = hashlib.sha256()
    for operator in ("FULLY_CONNECTED", "MAX_POOL_2D"):
        for case in suite_cases(operator):
            wanted.update(case.sha256.encode())
    assert printed.stdout.strip() == wanted.hexdigest()


def test_division_by_powers_of_two_of_every_tie() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate([np.arange(-70, 71), random.integers(-(2**61), 2**61, 400)])
    for right in (-3, 0, 1, 2, 5, 31, 60):
        for tie in aiming.TIES:
            shifted = np.array(right, np.int64)
            given = values if right >= 0 else values[:141]
            for value, got in zip(given, aiming.divide(given, shifted, tie), strict=True):
                assert int(got) == _exactly(Fraction(int(value)) / Fraction(2) ** right, tie), (value, right, tie)


def _exactly(value: Fraction, tie: str) -> int:
    floor = value.numerator // value.denominator
    part = value - floor
    if part == 0:
        return floor
    up = {
        "even": part > Fraction(1, 2) or (part == Fraction(1, 2) and floor % 2 == 1),
        "away": part > Fraction(1, 2) or (part == Fraction(1, 2) and value > 0),
        "up": part >= Fraction(1, 2),
        "down": part > Fraction(1, 2),
        "trunc": value < 0,
        "floor": False,
        "ceiling": True,
    }
    return floor + up[tie]


def test_choices_part_what_candidates_can() -> None:
    """Of candidates of which one alone tells a pair of ways apart, that one is taken."""
    found = np.zeros((3, 5, 2, 1), np.int64)
    found[1, 3, 0] = 1
    found[2, 4, 1] = 1
    assert aiming.pick(found).tolist() == [3, 4]
    assert sorted(aiming.cover(found[:, :, 0], 5)) == [3]
    assert aiming.uncommon(np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 2, 2, 0]])).tolist() == [1, 2]


@pytest.mark.parametrize("types", ["s8", "u8", "s16"])
def test_every_code_is_quantized(types: str) -> None:
    cases = [case for case in suite_cases("DEQUANTIZE", types) if case.aim == "codes"]
    kind = data_type(types)
    for case in cases:
        quantized = {int(v) for v in case.inputs["input0"].reshape(-1)}
        assert {kind.minimum, kind.maximum} <= quantized
        assert types == "s16" or len(quantized) == 256
