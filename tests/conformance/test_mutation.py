"""Mutants are what they say, the score adds up, claims hold, and the published page is that of this suite."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bittrue import numerics
from bittrue.check.specification import SPECIFICATION
from bittrue.cli import cli
from bittrue.conformance.expected import same_bytes
from bittrue.conformance.mutation import OperatorScore, mutants
from bittrue.conformance.mutation.indistinguishable import CLAIMS, claim_of
from bittrue.conformance.mutation.mutants import Subject
from bittrue.conformance.mutation.score import digest_of, drawn_inputs, score_cases
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.conformance.suite.draft import generator
from bittrue.conformance.suite.tflite import Operand, one_operator

REPOSITORY = Path(__file__).resolve().parents[2]
LITERT = numerics.find("litert")


def case_of(operator: str, content: bytes, inputs: dict[str, np.ndarray], aim: str = "random") -> SuiteCase:
    return SuiteCase(f"{operator}/s8/{aim}/000", "litert", operator, "s8", aim, "tflite", content, inputs)


def convolution() -> SuiteCase:
    drawn = generator("mutation", "convolution")
    weights = drawn.integers(-127, 128, (4, 3, 3, 5)).astype(np.int8)
    scales = np.linspace(0.004, 0.012, 4)
    bias = Operand("s32", (4,), scales * 0.05, 0, data=drawn.integers(-3000, 3000, 4).astype(np.int32), name="bias")
    filters = Operand("s8", weights.shape, scales, np.zeros(4, np.int64), data=weights, name="weights")
    options = {"padding": "SAME", "stride_w": 2, "stride_h": 1, "fused_activation_function": "NONE"}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1}
    x, y = Operand("s8", (1, 7, 6, 5), 0.05, -11), Operand("s8", (1, 7, 3, 4), 0.11, 9)
    content = one_operator("CONV_2D", [x, filters, bias], [y], options, 3)
    return case_of("CONV_2D", content, {"input0": drawn.integers(-128, 128, (1, 7, 6, 5)).astype(np.int8)})


def sum_of(x: np.ndarray, y: np.ndarray) -> SuiteCase:
    one, two = Operand("s8", x.shape, 0.05, -11), Operand("s8", y.shape, 0.07, 20)
    out = Operand("s8", np.broadcast_shapes(x.shape, y.shape), 0.1037, 3)
    content = one_operator("ADD", [one, two], [out], {"fused_activation_function": "NONE"}, 2)
    return case_of("ADD", content, {"input0": x.astype(np.int8), "input1": y.astype(np.int8)})


def test_mutants_of_a_layer_hold_what_the_issue_names() -> None:
    case = convolution()
    names = {mutant.name for mutant in mutants(case, LITERT)}
    assert {
        "rescale=q31_one_step_up",
        "scale_form=binary32",
        "input zero point ignored",
        "windows moved down by one",
        "saturates to [-127, 127]",
        "accumulator saturates at 16 bits",
        "accumulator without its lowest 4 bits",
        "multiplier truncated to 16 bits",
        "multiplier of 31 bits truncated, ties up",
        "binary32 product, ties even",
        "two steps, ties up then ties even",
        "bias dropped",
    } <= names
    assert len(names) == len(mutants(case, LITERT))
    assert len(names) > 400


def test_every_operator_of_the_suite_has_mutants() -> None:
    """No family of faults stumbles over a step that it does not know, such as a transposed convolution."""
    for operator in ("TRANSPOSE_CONV", "BATCH_MATMUL", "DEQUANTIZE"):
        case = next(c for c in find_suite("litert").cases([operator], ["s8"]) if not c.rejects)
        assert len(mutants(case, LITERT)) > 50, operator


def test_no_mutant_is_one_by_name_alone() -> None:
    """Of unsigned values none is below 0, and a table in two dimensions lies backwards when its entries do."""
    case = next(c for c in find_suite("onnx").cases(["QLinearConcat"], ["u8"]) if "one part" in c.note)
    found = {m.name: m for m in mutants(case, numerics.find("onnxruntime"))}
    assert "quantized values below 0 cut to 0" not in found
    outputs = found["tables reversed"].outputs()
    assert outputs is not None
    (value,) = outputs.values()
    every = np.roll(np.arange(256), 77)
    assert np.abs(value.astype(int) - np.clip(np.rint((255 - every - 128) * 0.96) + 129, 0, 255)).max() == 0


def test_a_mutant_answers_as_its_fault_says() -> None:
    """Against plain NumPy: the zero point left out of a sum, and its operands' second one stretched by its first."""
    x, y = np.arange(-60, 60).reshape(2, 3, 20), np.arange(-10, 10).reshape(20)
    case = sum_of(x, y)
    found = {m.name: m for m in mutants(case, LITERT)}

    def right(first: np.ndarray, second: np.ndarray, points: tuple[int, int]) -> np.ndarray:
        scales = np.array([0.05, 0.07, 0.1037], np.float32).astype(np.longdouble)
        real = ((first - points[0]) * scales[0] + (second - points[1]) * scales[1]) / scales[2]
        return np.clip(np.floor(real + 0.5) + 3, -128, 127).astype(np.int8)

    def near(name: str, wanted: np.ndarray) -> None:
        outputs = found[name].outputs()
        assert outputs is not None
        (value,) = outputs.values()
        # Fixed point and the exact sum part at ties alone.
        assert np.abs(value.astype(int) - wanted).max() <= 1
        assert (value == wanted).mean() > 0.9

    near("first input zero point ignored", right(x, y, (0, 20)))
    near("second input zero point doubled", right(x, y, (-11, 40)))
    near("input 2 stretched by its first element", right(x, y[:1], (-11, 20)))
    near("input 1 read backwards", right(x.reshape(-1)[::-1].reshape(x.shape), y, (-11, 20)))


def test_mutants_are_the_same_in_every_case_of_an_operator() -> None:
    one, two = sum_of(np.ones((4, 5)), np.zeros((5,))), sum_of(np.ones((4, 5)), np.full((5,), 7))
    assert [m.name for m in mutants(one, LITERT)] == [m.name for m in mutants(two, LITERT)]


def test_score_counts_what_cases_tell() -> None:
    """A case of one saturated element tells little, many quantized values tell much more; nothing is counted twice."""
    drawn = generator("mutation", "score")
    poor = sum_of(np.full((1, 1), 127), np.full((1, 1), 127))
    rich = sum_of(drawn.integers(-128, 128, (9, 31)), drawn.integers(-128, 128, (9, 31)))
    few, many = score_cases([poor], LITERT), score_cases([rich], LITERT)
    assert few is not None
    assert many is not None
    assert len(few.killed) < len(many.killed) <= len(many.distinguishable)
    for found in (few, many):
        names = [m.name for m in found.mutants]
        assert len(set(names)) == len(names)
        assert len(found.killed) + len(found.survivors) == len(found.distinguishable)
        # All cases are random ones here.
        assert {m.name for m in found.killed} == {m.name for m in found.mutants if m.random}
    assert all(m.killed_by == rich.identity for m in many.killed)


CHEAP = (
    ("litert", "SHAPE", "s8"),
    ("litert", "SQUEEZE", "s8"),
    ("litert", "SPACE_TO_DEPTH", "s8"),
    ("litert", "MUL", "s8"),
    ("onnx", "QLinearConcat", "u8"),
    ("onnx", "QLinearGlobalAveragePool", "s8"),
    ("onnx", "DequantizeLinear", "s8"),
    ("onnx", "MatMulInteger", "u8"),
)


@pytest.fixture(scope="module", params=CHEAP, ids=lambda word: "-".join(word))
def scored(request: pytest.FixtureRequest) -> OperatorScore:
    suite, operator, types = request.param
    cases = [c for c in find_suite(suite).cases([operator], [types]) if not c.rejects]
    if operator == "MUL":
        # Some of many: what they leave over are no gaps, but claims have to hold.
        cases = cases[::12]
    found = score_cases(cases, numerics.find(find_suite(suite).numerics))
    assert found is not None
    return found


# Both take the same operators, whose scores are made once.
in_turns = pytest.mark.in_turns(2, by="scored")


@in_turns
def test_nothing_survives(scored: OperatorScore) -> None:
    if scored.operator != "MUL":
        assert [m.name for m in scored.survivors] == []
        assert len(scored.killed) > len([m for m in scored.mutants if m.random])


@in_turns
def test_no_claim_covers_what_a_case_kills(scored: OperatorScore) -> None:
    claimed = [m.name for m in scored.killed if claim_of(scored.operator, m.name, scored.types, scored.numerics)]
    assert claimed == []


SEARCHED = (
    *(("litert", operator) for operator in ("MUL", "CONV_2D", "MAX_POOL_2D", "LOGISTIC", "RESHAPE", "QUANTIZE")),
    ("onnx", "QLinearConv"),
    ("onnx", "QLinearSigmoid"),
    ("onnx", "QLinearAveragePool"),
    ("onnx", "QDQ MaxPool"),
)


# Making an operator's cases is dear: tests of cases take the same operators in their turns.
@pytest.mark.in_turns(3, by="operator")
@pytest.mark.parametrize(("suite", "operator"), SEARCHED)
def test_search_finds_no_counter_example_to_a_claim(suite: str, operator: str) -> None:
    """Thousands of further random elements, and the aimed ones of the suite."""
    right = numerics.find(find_suite(suite).numerics)
    cases = [c for c in find_suite(suite).cases([operator], ["s8"]) if not c.rejects]
    small = [c for c in cases if sum(v.size for v in c.inputs.values()) <= 6000][:: max(1, len(cases) // 5)]
    elements = 0
    for case in small:
        for draw in range(2):
            subject = Subject(case, right, drawn_inputs(case, "claims", draw) if draw else None)
            elements += sum(value.size for value in subject.expected.values())
            for mutant in subject.mutants():
                if claim_of(operator, mutant.name, case.types, right.name) is None:
                    continue
                found = mutant.outputs()
                assert found is None or same_bytes(found, subject.expected), (case.identity, mutant.name)
    assert elements > 500


# Operators whose cases are made in no time.
DIGESTED = {
    "litert": ("RESHAPE", "PAD", "GATHER", "TRANSPOSE", "CONCATENATION", "SLICE", "MAX_POOL_2D", "SHAPE", "SQUEEZE"),
    "onnx": ("QLinearConcat", "QLinearSigmoid", "QLinearAveragePool", "QDQ Relu", "MatMulInteger", "QuantizeLinear"),
}


def test_page_is_that_of_this_suite() -> None:
    sys.path.insert(0, str(REPOSITORY / "tools"))
    try:
        import make_mutation_page as tool
    finally:
        sys.path.pop(0)
    text = tool.TARGET.read_text(encoding="utf-8")
    assert text.startswith(tool.HEAD), "run: python tools/make_mutation_page.py"
    for suite, types, title in tool.TABLES:
        table = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        rows = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines() if line.startswith("| ")}
        operators = list(rows)[1:-1]
        generators = find_suite(suite).generators()
        wanted = list(SPECIFICATION) if suite == "litert" else [o for o, g in generators.items() if types in g.types]
        assert operators == wanted
        for operator in DIGESTED[suite]:
            if operator in rows:
                cases = [c for c in find_suite(suite).cases([operator], [types]) if not c.rejects]
                assert digest_of(cases) in rows[operator], f"{operator}: run: python tools/make_mutation_page.py"
        assert "| 0 |" not in rows["**all**"]
    told = text.partition("## Mutants that no input tells apart")[2].partition("## What random")[0]
    covered = {*SPECIFICATION, *find_suite("onnx").generators()}
    needed = [
        claim
        for claim in CLAIMS
        if (not claim.operators or set(claim.operators) & covered)
        and (not claim.numerics or set(claim.numerics) & {"litert", "onnxruntime"})
        and (not claim.types or set(claim.types) & {"s8", "u8"})
    ]
    assert [claim.reason for claim in needed if claim.reason not in told] == [], "a claim that nothing needs"
    for operator in ("SHAPE", "SQUEEZE"):
        found = score_cases([c for c in find_suite("litert").cases([operator], ["s8"]) if not c.rejects], LITERT)
        assert found is not None
        assert tool.row_of(found.to_dict()) in text, "run: python tools/make_mutation_page.py"


def test_command_line_prints_scores_and_reports_survivors() -> None:
    run = CliRunner().invoke(cli, ["vectors", "score", "SHAPE", "--json"])
    assert run.exit_code == 0, run.output
    read = json.loads(run.output)
    (shape,) = read["operators"]
    assert read["format"] == "bittrue-mutation-1"
    assert shape["killed"] == shape["distinguishable"] == len(shape["mutants"]) >= 20
    assert shape["killed_by_random"] < shape["killed"]
    table = CliRunner().invoke(cli, ["vectors", "score", "SQUEEZE", "--mutants"])
    assert table.exit_code == 0
    assert "input passed through" in table.output
    assert CliRunner().invoke(cli, ["vectors", "score", "NO_SUCH"]).exit_code != 0
