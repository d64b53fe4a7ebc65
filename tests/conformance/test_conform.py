"""A run gives the verdict that fits a device: exact, tolerated, wrong with its class, or misbehaved."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.conformance.conform import conform, in_shard
from bittrue.conformance.devices import Answer
from bittrue.conformance.result import (
    ADVISED,
    COMBINED,
    EXACT,
    NO_ADVICE,
    NO_REFUSAL,
    PERMITS,
    REFUSED,
    SKIPPED,
    TOLERATED,
    WRONG,
    ConformResult,
    OperatorResult,
)
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.errors import InputError
from support import faulty_device
from support.changed_answers import Outputs, Planted, above, each, only

SMALL = "SQUEEZE"


def run(device: Any, *operators: str, **more: Any) -> ConformResult:
    aims = () if operators == (SMALL,) or "cases" in more else ("ties", "random")
    return conform(device, operators=operators, **{"demo": False, "repeat": 1, "aims": aims, **more})


def verdict(device: Any, operator: str, **more: Any) -> OperatorResult:
    (found,) = run(device, operator, **more).operators
    return found


def test_exact_operators_name_the_numerics_and_what_decides() -> None:
    found = verdict(Planted(numerics="xnnpack"), "MUL")
    assert (found.verdict, found.level, found.names) == (EXACT, 3, ("xnnpack", "xnnpack-avx2"))
    assert found.matches[0].deciding == ("rescale = binary32_multiply_even",)
    assert "xnnpack, xnnpack-avx2 (rescale = binary32_multiply_even)" in found.text
    assert found.failing is None
    assert found.cause is None


def test_an_operator_without_a_choice_is_that_of_every_numerics() -> None:
    found = verdict(Planted(), SMALL)
    assert found.verdict == EXACT
    assert found.every
    assert {"litert", "xnnpack", "single-rounding"} <= set(found.names)


def test_numerics_that_cannot_be_told_apart_share_a_claim() -> None:
    result = run(Planted(numerics="xnnpack"), "MUL", SMALL)
    assert result.level == 3
    assert result.claimed == ("xnnpack", "xnnpack-avx2")
    assert "conforms to numerics xnnpack (and equally xnnpack-avx2), level L3" in result.claim
    assert "suite version 1" in result.claim
    assert "none skipped" in result.claim


def test_different_numerics_per_operator_are_listed() -> None:
    change = only("MUL", lambda case, outputs: dict(case.model.prepare("xnnpack").run(dict(case.inputs))))
    result = run(Planted(change), "MUL", "ADD")
    assert result.level == 3
    assert result.claimed == ()
    assert "one numerics per operator" in result.claim
    assert "xnnpack: MUL s8" in result.claim


def test_rare_differences_both_ways_are_tolerated_and_unbiased() -> None:
    def change(case: SuiteCase, outputs: Outputs) -> Outputs:
        return dict(above(-1, 101, 50)(case, above(1, 101)(case, outputs)))  # type: ignore[arg-type]

    found = verdict(Planted(change), "MUL")
    assert (found.verdict, found.level) == (TOLERATED, 2)
    assert found.bound is not None
    assert found.deviation.largest == 1 <= found.bound.largest
    assert found.cause is None
    assert "unexplained" in found.text


def test_rare_differences_one_way_are_tolerated_but_biased() -> None:
    found = verdict(Planted(above(1, 101)), "MUL")
    assert (found.verdict, found.level) == (TOLERATED, 1)


def test_frequent_differences_of_one_are_wrong() -> None:
    found = verdict(Planted(above(1, 3)), "MUL")
    assert (found.verdict, found.level) == (WRONG, 0)
    assert found.deviation.largest == 1


def test_no_difference_is_tolerated_where_numerics_agree() -> None:
    found = verdict(Planted(above(1, 200)), SMALL)
    assert (found.verdict, found.level) == (WRONG, 0)
    assert found.bound is not None
    assert found.bound.largest == 0


def _mul(case: SuiteCase, zeros: Any = None, rounding: Any = faulty_device.two_step) -> Outputs:
    """MUL in plain NumPy, of cases without an activation that broadcast as NumPy does."""
    session = case.model.prepare("litert")
    ports = [*session.inputs, *session.outputs]
    scales = [float(port.scale or 0) for port in ports]
    points = [int(port.zero_point or 0) for port in ports]
    values = [case.inputs[port.name] for port in session.inputs]
    found = faulty_device.mul(*values, tuple(scales), tuple(zeros(points) if zeros else points), rounding)
    return {session.outputs[0].name: found}


@cache
def mul_cases() -> tuple[SuiteCase, ...]:
    """Those that the plain device has right: it knows no activations."""
    cases = find_suite("litert").cases(("MUL",), ("s8",), ("ties", "zero points"))
    return tuple(case for case in cases if _same(_mul(case), case))


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("first input zero point ignored", {"zeros": lambda z: (0, z[1], z[2])}),
        ("output zero point one too large", {"zeros": lambda z: (z[0], z[1], z[2] + 1)}),
        ("exact result, floor", {"rounding": faulty_device.floored}),
    ],
)
def test_faults_get_their_class(name: str, ways: dict[str, Any]) -> None:
    right = [case.identity for case in mul_cases()]
    assert len(right) > 5
    change = lambda case, outputs: _mul(case, **ways)  # noqa: E731
    found = verdict(Planted(change), "MUL", cases=right)
    assert found.verdict == WRONG
    assert found.cause is not None, found.text
    assert name in (found.cause.name, *found.cause.also)
    assert found.failing is not None
    assert found.failing.got != found.failing.expected
    assert "accumulator" in found.failing.numbers


def _same(outputs: Outputs, case: SuiteCase) -> bool:
    wanted = case.model.prepare("litert").run(dict(case.inputs))
    return all(outputs[name].tobytes() == value.tobytes() for name, value in wanted.items())


def test_noise_stays_unexplained() -> None:
    def change(case: SuiteCase, outputs: Outputs) -> Outputs:
        rng = np.random.default_rng(len(case.note))
        return {n: np.where(rng.random(v.shape) < 0.2, v ^ 21, v).astype(v.dtype) for n, v in outputs.items()}

    found = verdict(Planted(change), "MUL")
    assert found.verdict == WRONG
    assert found.cause is None
    assert "unexplained" in found.text


def test_a_cause_must_hold_in_every_case() -> None:
    """Half of the cases show one fault, half another: neither is the class."""

    def change(case: SuiteCase, outputs: Outputs) -> Outputs:
        return above(1 if case.identity.endswith(("0", "2", "4")) else -1)(case, outputs)  # type: ignore[return-value]

    found = verdict(Planted(change), SMALL)
    assert found.verdict == WRONG
    assert found.cause is None


def test_the_failing_case_is_small_and_can_be_replayed(tmp_path: Path) -> None:
    def change(case: SuiteCase, outputs: Outputs) -> Outputs:
        return {n: np.where(v > 100, v - 1, v).astype(v.dtype) for n, v in outputs.items()}

    device = Planted(change)
    found = verdict(device, SMALL, save=tmp_path)
    failing = found.failing
    assert failing is not None
    sizes = {c.identity: sum(np.prod(o.shape) for o in c.outputs) for c in found.cases if c.outcome == "differs"}
    assert sizes[failing.identity] == min(sizes.values())
    assert failing.reduced is not None
    assert len(failing.reduced) == 1
    assert failing.reduced_got != failing.reduced_expected
    assert f"--case {failing.identity}" in failing.replay
    (folder,) = tmp_path.iterdir()
    assert {"model.tflite", "input0.npy", "expected0.npy", "case.json"} <= {f.name for f in folder.iterdir()}
    value = np.load(folder / "input0.npy")
    assert np.count_nonzero(value != np.bincount(value.reshape(-1).astype(int) + 128).argmax() - 128) <= 1
    again = verdict(device, SMALL, cases=(failing.identity,))
    assert again.failing is not None
    assert (again.failing.element, again.failing.got) == (failing.element, failing.got)


@pytest.mark.parametrize("status", ["crashed", "timed out", "raised", "unreadable"])
def test_devices_that_do_not_answer(status: str) -> None:
    def change(case: SuiteCase, outputs: Outputs) -> Any:
        return Answer(status, text="signal 11") if case.aim == "codes" else outputs

    result = run(Planted(change), SMALL)
    (found,) = result.operators
    assert found.verdict == status
    assert found.level is None
    assert "signal 11" in found.text
    assert "the others: bit-exact" in found.text
    assert result.level is None
    assert "conforms to nothing" in result.claim
    assert not result.passed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda case, o: {n: v.astype(np.int32) for n, v in o.items()}, "is int32"),
        (lambda case, o: {n: v.reshape(-1)[:-1] for n, v in o.items()}, "expected int8"),
        (lambda case, o: {"strange": next(iter(o.values()))}, "no output"),
        (lambda case, o: {}, "there are none"),
        (lambda case, o: {**o, "more": np.zeros(3)}, "outputs that the model does not have: 'more'"),
    ],
)
def test_outputs_of_another_form(change: Any, said: str) -> None:
    found = verdict(Planted(change), SMALL)
    assert found.verdict == "wrong outputs"
    assert said in found.text


def test_another_answer_to_the_same_question() -> None:
    count = 0

    def change(case: SuiteCase, outputs: Outputs) -> Outputs:
        nonlocal count
        count += 1
        return above(count % 2)(case, outputs)  # type: ignore[return-value]

    found = verdict(Planted(change), SMALL, repeat=2)
    assert found.verdict == "changes its answers"
    assert "answers 1 and 2 differ" in found.text


def test_refused_cases_are_skipped_and_named() -> None:
    refuses = only("MUL", lambda case, outputs: Answer("refused", text="no MUL here"))
    partly = only(SMALL, lambda case, o: Answer("refused", text="rank 4") if case.identity.endswith("/000") else o)

    def change(case: SuiteCase, outputs: Outputs) -> Any:
        return refuses(case, outputs) if case.operator == "MUL" else partly(case, outputs)

    result = run(Planted(change), "MUL", SMALL)
    mul, small = result.operator("MUL"), result.operator(SMALL)
    assert (mul.verdict, mul.level) == (SKIPPED, None)
    assert mul.skipped == {"no MUL here": mul.counts["skipped"]}
    assert small.verdict == EXACT
    assert small.skipped["rank 4"]
    assert result.level == 3
    assert "1 skipped (refused): MUL s8" in result.claim
    assert f"in part: {SMALL} s8" in result.claim


def test_nothing_is_claimed_when_nothing_ran() -> None:
    result = run(Planted(lambda case, outputs: Answer("refused", text="no")), SMALL)
    assert result.level is None
    assert not result.passed
    assert "nothing ran" in result.claim


def test_models_that_must_be_refused() -> None:
    class Eager(Planted):
        def answer(self, case: SuiteCase) -> Answer:
            return Answer("outputs", {"output0": np.zeros(1, np.int8)}) if case.rejects else super().answer(case)

    good, bad = (
        run(device, "MUL", aims=("ties", "rejects")) for device in (Planted(None, "xnnpack"), Eager(None, "xnnpack"))
    )
    assert good.refuses
    assert good.passed
    assert good.operator("MUL").counts["refused as it must"]
    assert bad.operator("MUL").verdict == EXACT
    assert not bad.refuses
    assert not bad.passed
    assert "without L0" in bad.claim
    assert "MUL s8" in bad.claim


def test_what_only_the_specification_forbids_is_held_against_nobody() -> None:
    class Runtime(Planted):
        """Does as LiteRT does: runs what only the specification forbids."""

        def answer(self, case: SuiteCase) -> Answer:
            return Answer("outputs", {"output0": np.zeros(1, np.int8)}) if case.advisory else super().answer(case)

    result = run(Runtime(None, "litert"), "MAXIMUM", aims=("codes", "rejects"))
    counts = result.operator("MAXIMUM").counts
    assert result.refuses
    assert result.passed
    assert result.reaches(0)
    assert counts[PERMITS] >= 3
    assert counts[REFUSED] >= 3
    said = f"runs {counts[PERMITS]} of {counts[PERMITS]} models that"
    assert f"{said} the specification forbids" in result.operators[0].text
    assert said in result.notes[0]

    class Strict(Planted):
        def answer(self, case: SuiteCase) -> Answer:
            return Answer("refused", text="no") if case.rejects else super().answer(case)

    strict = run(Strict(), "MAXIMUM", aims=("codes", "rejects"))
    assert strict.operators[0].counts[ADVISED] == counts[PERMITS]
    assert not strict.notes
    assert "specification forbids" not in strict.operators[0].text


def test_ending_over_a_model_to_refuse_costs_level_0_alone() -> None:
    class Aborting(Planted):
        def answer(self, case: SuiteCase) -> Answer:
            return Answer("crashed", text="SIGABRT") if case.rejects else super().answer(case)

    result = run(Aborting(None, "litert"), "MAXIMUM", aims=("codes", "rejects"))
    counts = result.operators[0].counts
    assert not result.refuses
    assert not result.reaches(0)
    assert result.reaches(3)
    assert counts[NO_REFUSAL] >= 3
    assert counts[NO_ADVICE] >= 3
    assert "without L0" in result.claim
    assert f"ends without an answer over {counts[NO_REFUSAL]} models" in result.claim


def test_sums_that_the_reference_kernel_reads_as_bytes_have_a_name_and_the_recorded_limit() -> None:
    found = verdict("litert:builtin_ref", "SUM")
    assert (found.verdict, found.reference) == (WRONG, "litert")
    assert found.cause is not None
    assert found.cause.name == "quantized values read and stored as unsigned bytes"
    assert "LiteRT issue 4079" in found.known


def test_only_the_numerics_that_is_asked_for() -> None:
    found = verdict(Planted(numerics="xnnpack"), "MUL", numerics="litert")
    assert found.verdict in (COMBINED, TOLERATED)
    assert found.reference == "litert"
    assert found.cause is not None
    assert "binary32_multiply_even" in found.cause.name


def test_the_embedded_model_gives_level_4() -> None:
    result = conform(Planted(numerics="xnnpack"), "litert", types=("s8",), repeat=1, cases=("SQUEEZE/s8/codes/000",))
    assert result.models == ()
    from bittrue.conformance.models import ModelFile

    result = run(Planted(numerics="xnnpack"), SMALL, models=[ModelFile.demo()])
    assert result.level == 4
    assert "xnnpack" in result.models[0].matches
    assert result.claimed == result.models[0].matches or set(result.claimed) <= set(result.models[0].matches)
    assert "1 model end to end on 50 inputs" in result.claim
    wrong = run(Planted(only("model", each(lambda v: v ^ 1)), "xnnpack"), SMALL, models=[ModelFile.demo()])
    assert wrong.level == 3
    assert not wrong.models[0].matches


def test_a_model_that_is_wrong_once_has_no_numerics() -> None:
    from bittrue.conformance.models import ModelFile

    demo = ModelFile.demo()
    first = demo.cases()[0][0].sha256
    wrong = only("model", lambda case, found: each(lambda v: v ^ 1)(case, found) if case.sha256 == first else found)
    (found,) = run(Planted(wrong, "xnnpack"), SMALL, models=[demo]).models
    assert not found.matches
    assert found.counts["differs"] >= 1


def test_processes_give_the_same() -> None:
    one, two = (run("bittrue:xnnpack", "SQUEEZE", "RESHAPE", jobs=jobs) for jobs in (1, 2))
    assert [o.text for o in one.operators] == [o.text for o in two.operators]
    assert one.claim == two.claim


def test_every_case_belongs_to_one_shard() -> None:
    names = [f"A/s8/ties/{i:03d}" for i in range(100)]
    assert all(sum(in_shard(name, f"{k}/3") for k in (1, 2, 3)) == 1 for name in names)
    assert all(any(in_shard(name, f"{k}/3") for name in names) for k in (1, 2, 3))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"shard": "4/3"}, "shard"),
        ({"repeat": 0}, "once"),
        ({"numerics": "nobody"}, "nobody"),
        ({"cases": ("SQUEEZE/s8/ties/999",)}, "999"),
        ({"jobs": 2}, "spec"),
        ({"suite": "onnx"}, "reads tflite"),
        ({"operators": ("NOBODY",)}, "NOBODY"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        conform(Planted(), **{"demo": False, **arguments})


def test_public_name() -> None:
    assert bittrue.conform is conform
