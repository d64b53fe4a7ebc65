"""`bittrue identify`: the arithmetic of a device is found by its answers, and never told."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue import numerics
from bittrue.cli import cli
from bittrue.conformance.devices import Answer, Device
from bittrue.conformance.identification import Finding, identify
from bittrue.conformance.identification.candidates import Answers, Candidate, key_of
from bittrue.conformance.identification.questions import Inquiry
from bittrue.conformance.identification.variations import variations
from bittrue.conformance.suite import Suite, SuiteCase, find_suite
from bittrue.errors import BittrueError
from bittrue.numerics import Numerics
from support.onnx_models import HERE
from support.planted import PLANTED, PlantedDevice

# Enough to tell every arithmetic apart, few enough to be quick.
QUESTIONS = 14
module = import_module("bittrue.conformance.identification.identify")


Grouped = dict[tuple[str, str], list[SuiteCase]]


# Plans and outputs of all numerics for the suite's cases are those of every test.
_KNOWN = Answers()


@pytest.fixture(autouse=True)
def cases_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making and planning them costs more than asking them."""
    monkeypatch.setattr(module, "Inquiry", partial(Inquiry, known=_KNOWN))
    monkeypatch.setattr(
        module, "_grouped", lambda suite, operators, types: _made_once(suite, *map(tuple, (operators, types)))
    )


_make = module._grouped


@cache
def _made_once(
    suite: Suite, operators: tuple[str, ...], types: tuple[str, ...]
) -> dict[tuple[str, str], list[SuiteCase]]:
    found: dict[tuple[str, str], list[SuiteCase]] = {}
    for operator in operators:
        found.update(_make(suite, [operator], types) if len(operators) == 1 else _made_once(suite, (operator,), types))
    return found


class Computing(Device):
    """Answers with one of our tables, and says something else of itself."""

    def __init__(self, table: Numerics, change: Callable[[SuiteCase, np.ndarray], np.ndarray] | None = None) -> None:
        self.spec, self.title, self.numerics = "black box", "xnnpack litert onnxruntime", "caffe2"
        self.table, self.change, self.asked = table, change, 0

    def answer(self, case: SuiteCase) -> Answer:
        self.asked += 1
        try:
            found = case.model.prepare(self.table).run(dict(case.inputs))
        except BittrueError as error:
            return Answer("refused", text=str(error))
        if self.change is not None:
            found = {name: self.change(case, value.copy()) for name, value in found.items()}
        return Answer("outputs", found)


def _same(one: str, two: str, case: SuiteCase) -> bool:
    try:
        outputs = [case.model.prepare(name).run(dict(case.inputs)) for name in (one, two)]
    except BittrueError:
        return False
    return key_of(outputs[0]) == key_of(outputs[1])


@pytest.mark.in_turns(3)
@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("litert", ("MUL",)),
        ("xnnpack", ("ADD",)),
        ("single-rounding", ("FULLY_CONNECTED",)),
        ("litert@1.2", ("FULLY_CONNECTED",)),
        ("tvm-qnn-float32-tonearest", ("MUL",)),
        ("onnx", ("QLinearMatMul",)),
    ],
)
def test_our_own_numerics_are_found(name: str, operators: tuple[str, ...]) -> None:
    suite = find_suite("litert" if operators[0].isupper() else "onnx")
    device = Computing(numerics.find(name))
    result = identify(device, suite.name, operators=operators, questions=QUESTIONS)
    assert result.explained, result.summary
    assert result.questions == device.asked == sum(finding.asked for finding in result.findings)
    assert result.named[0].numerics in result.consistent
    assert name in result.consistent
    for finding in result.findings:
        assert name in finding.numerics
        # Whoever is named beside it gives the same outputs.
        for other in finding.numerics:
            cases = _made_once(suite, (finding.operator,), ())[finding.operator, finding.types]
            for case in cases[::7]:
                assert _same(name, other, case), (other, case.identity)


@pytest.mark.in_turns(4)
@pytest.mark.parametrize(
    ("spec", "suite", "operators", "name"),
    [
        ("litert:builtin_ref", "litert", ("FULLY_CONNECTED", "ADD", "MUL"), "litert"),
        ("litert:optimized", "litert", ("FULLY_CONNECTED", "ADD", "MUL"), "litert-optimized"),
        ("litert:xnnpack", "litert", ("FULLY_CONNECTED", "ADD", "MUL"), "xnnpack"),
        ("onnxruntime", "onnx", ("QLinearMatMul", "QLinearMul", "QLinearSigmoid"), HERE),
    ],
)
def test_real_runtimes_are_found(spec: str, suite: str, operators: tuple[str, ...], name: str) -> None:
    result = bittrue.identify(spec, suite, operators=operators, questions=QUESTIONS)
    assert result.explained, result.summary
    assert name in result.consistent
    assert len(result.named) == 1
    assert result.summary == (f"all operators ({len(result.findings)}): {result.named[0].numerics}",)


def _with_rule(name: str, operator: str, **rules: str) -> Numerics:
    table = numerics.find(name)
    rows = [
        replace(row, rules={**row.rules, **rules})
        if row.operator == operator and rules.keys() <= row.rules.keys()
        else row
        for row in table.rows
    ]
    return replace(table, rows=tuple(rows))


def test_one_rule_that_no_numerics_has_there() -> None:
    device = Computing(_with_rule("litert", "mul", rescale="q31_one_step_away"))
    result = identify(device, operators=["MUL", "ADD"])
    mul, add = sorted(result.findings, key=lambda finding: finding.operator, reverse=True)
    assert add.verdict == "named"
    assert mul.verdict == "other rules"
    assert mul.numerics == ("litert",)
    assert mul.changes[0] == "rescale = q31_one_step_away instead of q31_two_step_up_away"
    assert not result.explained
    assert any(line.startswith("MUL s8: litert with rescale = q31_one_step_away") for line in result.summary)


def test_a_fault_is_no_numerics() -> None:
    planted = next(p for p in PLANTED if p.names[0] == "second input zero point ignored")
    (finding,) = identify(PlantedDevice(planted), operators=["ADD"]).findings
    assert finding.verdict == "unknown"
    assert finding.nearest is not None
    assert finding.nearest.cause == "second input zero point ignored"
    first = finding.nearest.first
    assert first is not None
    case = next(c for c in find_suite("litert").cases(["ADD"]) if c.identity == first.case)
    expected = case.model.prepare(finding.nearest.name).run(dict(case.inputs))[first.output][first.element]
    got = PlantedDevice(planted).answer(case).outputs[first.output][first.element]
    assert (str(expected), str(got)) == (first.expected, first.got)
    assert expected != got


def test_one_wrong_element_in_one_case_is_enough() -> None:
    """What is left is named only when no other case contradicts it."""

    def change(case: SuiteCase, value: np.ndarray) -> np.ndarray:
        if case.identity == "ADD/s8/random/001":
            value.reshape(-1)[-1] ^= 1
        return value

    (finding,) = identify(Computing(numerics.find("litert"), change), operators=["ADD"]).findings
    assert finding.verdict == "unknown"
    assert finding.nearest is not None
    assert (finding.nearest.differing, finding.nearest.cause) == (1, "")
    assert finding.nearest.first is not None
    assert finding.nearest.first.case == "ADD/s8/random/001"


def test_a_device_that_changes_its_answers() -> None:
    random = np.random.default_rng(0)

    def change(case: SuiteCase, value: np.ndarray) -> np.ndarray:
        return value + random.integers(0, 2, value.shape).astype(value.dtype)

    result = identify(Computing(numerics.find("litert"), change), operators=["MUL"], questions=QUESTIONS)
    assert [finding.verdict for finding in result.findings] == ["unstable"]
    assert result.summary == ("1 of 1 operators: answers change between runs (MUL s8)",)


class Sealed(Device):
    """Whoever looks at what it says of itself fails; its spec may be read when nothing is left to ask."""

    def __init__(self, table: str) -> None:
        self.inner, self.looked = Computing(numerics.find(table)), False

    @property
    def title(self) -> str:  # type: ignore[override]
        raise AssertionError("the title was read")

    numerics = reads = title  # type: ignore[assignment]

    @property
    def spec(self) -> str:  # type: ignore[override]
        self.looked = True
        return "black box"

    def answer(self, case: SuiteCase) -> Answer:
        assert not self.looked
        return self.inner.answer(case)


def test_nothing_that_a_device_says_of_itself_is_read() -> None:
    device = Sealed("xnnpack")
    with pytest.raises(AssertionError, match="title"):
        _ = device.numerics
    result = identify(device, "litert", operators=["ADD", "MUL"], questions=8)
    assert result.summary == ("all operators (2): xnnpack",)


class Mixed(Device):
    """Each case as one of our numerics computes it."""

    spec = title = "mixed"

    def __init__(self, choose: Callable[[SuiteCase], str]) -> None:
        self.choose, self.asked = choose, 0

    def answer(self, case: SuiteCase) -> Answer:
        self.asked += 1
        name = self.choose(case)
        return Computing(numerics.find(name)).answer(case) if name else Answer("refused", text="cannot")


def test_every_operator_has_its_own_name() -> None:
    chosen = {"FULLY_CONNECTED": "xnnpack", "ADD": "litert", "MUL": "litert-optimized"}
    result = identify(Mixed(lambda case: chosen[case.operator]), operators=list(chosen), questions=QUESTIONS)
    assert result.explained, result.summary
    assert result.consistent == ()
    for finding in result.findings:
        assert chosen[finding.operator] in finding.numerics
    assert {operators for one in result.named for operators in one.operators} == {f"{name} s8" for name in chosen}


def _per_channel(case: SuiteCase) -> bool:
    return any(t.is_constant and t.quantization and t.quantization.scales.size > 1 for t in case.model.graph.tensors)


def test_two_numerics_in_one_operator() -> None:
    device = Mixed(lambda case: "xnnpack" if _per_channel(case) else "litert")
    (finding,) = identify(device, operators=["FULLY_CONNECTED"]).findings
    assert finding.verdict == "several numerics"
    found = {part.where: part.numerics for part in finding.parts}
    assert found.keys() == {"weights per channel", "weights per tensor"}
    assert "xnnpack" in found["weights per channel"]
    assert "litert" in found["weights per tensor"]


def test_two_rules_of_others_at_once() -> None:
    changes = {"rescale": "binary32_multiply_even", "activation_range": "binary32_sum_even"}
    device = Computing(_with_rule("tvm-qnn", "mul", **changes))
    result = identify(device, operators=["MUL"], questions=32)
    (finding,) = result.findings
    assert finding.verdict != "unknown"
    assert not (finding.verdict == "named" and "tvm-qnn" in finding.numerics)


def test_recorded_answers_are_found_out() -> None:
    """Right on every case of the suite, and something else elsewhere."""
    own = {case.sha256 for case in _made_once(find_suite("litert"), ("MUL",), ())["MUL", "s8"]}

    def change(case: SuiteCase, value: np.ndarray) -> np.ndarray:
        return value if case.sha256 in own else value ^ value.dtype.type(1)

    for questions in (4, 8):
        device = Computing(numerics.find("litert"), change)
        (finding,) = identify(device, operators=["MUL"], questions=questions).findings
        assert device.asked <= questions
        assert finding.verdict == "unknown", questions
    assert "answers to cases of the suite and misses" in finding.remark

    refusing = Mixed(lambda case: "litert" if case.sha256 in own else "")
    (finding,) = identify(refusing, operators=["MUL"], questions=QUESTIONS).findings
    assert finding.verdict == "named"
    assert "only cases of the suite were answered" in finding.remark


def test_a_device_that_refuses_half_of_the_cases() -> None:
    device = Mixed(lambda case: "litert" if int(case.sha256, 16) % 2 else "")
    (finding,) = identify(device, operators=["MUL"], questions=QUESTIONS).findings
    assert finding.verdict == "named"
    assert "litert" in finding.numerics
    assert "refused: cannot" in finding.remark


def test_few_questions_leave_more_names() -> None:
    for questions in (1, 4, 8):
        device = Computing(numerics.find("xnnpack"))
        (finding,) = identify(device, operators=["MUL"], questions=questions).findings
        assert device.asked <= questions
        assert "xnnpack" in finding.numerics


def test_the_summary_has_as_few_names_as_there_can_be() -> None:
    """The name of most operators is not always one of the fewest."""
    findings = [
        _named("A", "litert", "xnnpack"),
        _named("B", "litert", "xnnpack"),
        _named("C", "litert", "single-rounding"),
        _named("D", "litert", "single-rounding"),
        _named("E", "xnnpack"),
        _named("F", "single-rounding"),
    ]
    named = module._fewest(find_suite("litert"), findings, ())
    assert {one.numerics for one in named} == {"xnnpack", "single-rounding"}
    assert sorted(label for one in named for label in one.operators) == [f"{f.operator} s8" for f in findings]


class Silent(Device):
    spec = title = "silent"

    def answer(self, case: SuiteCase) -> Answer:
        return Answer("crashed", text="signal 11\nand more")


def test_a_device_that_runs_nothing() -> None:
    result = identify(Silent(), operators=["MUL"])
    (finding,) = result.findings
    assert finding.verdict == "not run"
    assert finding.remark == f"{finding.asked} crashed: signal 11"
    assert finding.asked < 20
    assert not result.explained


def test_another_shape_is_nobodys() -> None:
    device = Computing(numerics.find("litert"), lambda case, value: value.reshape(-1)[:-1])
    (finding,) = identify(device, operators=["MUL"], questions=QUESTIONS).findings
    assert finding.verdict == "unknown"
    nearest = finding.nearest
    assert nearest is not None
    assert (nearest.differing, nearest.cases) == (nearest.elements, 0)
    assert nearest.first is not None
    assert nearest.first.expected.startswith("int8 [")


def test_questions_are_made_where_the_suite_has_none() -> None:
    """One case that does not tell the rounding: others are made of it until one does."""
    case = next(c for c in find_suite("litert").cases(["MUL"], aims=["random"]))
    tame = replace(case, inputs={name: np.zeros_like(value) for name, value in case.inputs.items()})
    for name in ("litert", "single-rounding", "xnnpack"):
        inquiry = Inquiry(Computing(numerics.find(name)).answer, [tame], ("litert",), 32)
        inquiry.run()
        names = [candidate.name for candidate in inquiry.left]
        assert name in names
        assert any(one.made for one in inquiry.asked)
        others = {"litert", "single-rounding", "xnnpack"} - {name}
        assert not others & set(names), names


def test_made_questions_are_the_same_everywhere() -> None:
    for suite, operator in (("litert", "FULLY_CONNECTED"), ("onnx", "QLinearMatMul")):
        case = next(c for c in find_suite(suite).cases([operator], aims=["random"]))
        one, two = (list(islice(variations(case), 8)) for _ in range(2))
        assert [c.sha256 for c in one] == [c.sha256 for c in two]
        assert len({c.sha256 for c in one}) == 8
        assert len({c.content for c in one}) > 2
        runs = 0
        for made in one:
            try:
                made.model.prepare(find_suite(suite).numerics).run(dict(made.inputs))
                runs += 1
            except BittrueError:
                continue
        assert runs > 4


def _named(operator: str, *names: str) -> Finding:
    return Finding(operator, "s8", "named", names)


def test_the_summary_prefers_one_numerics_for_all() -> None:
    suite = find_suite("litert")
    findings = [_named("A", "litert", "xnnpack"), _named("B", "xnnpack"), _named("C", "litert", "xnnpack")]
    named = module._fewest(suite, findings, ("xnnpack",))
    assert [one.numerics for one in named] == ["xnnpack"]
    assert module._summary(findings, named) == ["all operators (3): xnnpack"]
    findings.append(_named("D", "litert", "litert@1.2"))
    named = module._fewest(suite, findings, ())
    assert [(one.numerics, one.operators) for one in named] == [
        ("litert", ("A s8", "C s8", "D s8")),
        ("xnnpack", ("B s8",)),
    ]


def test_candidates_say_what_they_change() -> None:
    assert str(Candidate("litert")) == "litert"


def test_the_command(tmp_path) -> None:  # type: ignore[no-untyped-def]
    runner = CliRunner()
    file = tmp_path / "found.json"
    words = ["identify", "bittrue:xnnpack", "--operator", "MUL", "--questions", "6"]
    shown = runner.invoke(cli, [*words, "-o", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "all operators (1): xnnpack" in shown.output
    assert "rescale = binary32_multiply_even" in shown.output
    data = json.loads(runner.invoke(cli, [*words, "--json"]).stdout)
    assert data == json.loads(file.read_text())
    assert data["format"] == "bittrue-identify-1"
    assert data["named"] == [{"numerics": "xnnpack", "operators": ["MUL s8"]}]
    ruled_out = {name: one["example"] for one in data["findings"][0]["ruled_out"] for name in one["numerics"]}
    assert ruled_out["litert"]["case"].startswith("MUL/s8/")
    assert ruled_out["litert"]["expected"] != ruled_out["litert"]["got"]
    told = runner.invoke(cli, [*words, "-v"]).output
    assert "MUL s8: not litert" in told

    device = tmp_path / "first.py"
    device.write_text("def run(model, inputs):\n    return {'output0': inputs['input0']}\n")
    other = runner.invoke(cli, ["identify", f"{device}:run", "--operator", "MUL", "--questions", "6"])
    assert other.exit_code == 1, other.output
    assert "no numerics gives the answers" in other.output


def test_wrong_words_are_refused() -> None:
    with pytest.raises(bittrue.InputError, match="BT-SUITE-OPERATOR"):
        identify(Silent(), operators=["NOTHING"])
    with pytest.raises(bittrue.InputError, match="BT-SUITE-TYPE"):
        identify(Silent(), operators=["MUL"], types=["s3"])
