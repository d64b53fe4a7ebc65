"""Cases of element-wise, activation and movement operators: LiteRT runs each of them with the bytes that we expect."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from bittrue import BittrueError
from bittrue.check.specification import SPECIFICATION
from bittrue.conformance.suite import SuiteCase, find_suite
from bittrue.conformance.suite.choosing import answers, at_ends, nearest_ties, separating
from bittrue.conformance.suite.litert import rejects
from bittrue.conformance.suite.litert.small_models import small_model
from bittrue.conformance.suite.tflite import one_operator
from support.oracle import oracle
from support.runtimes import here

# Operators of one generator, of which one stands for the others where that is enough.
_QUICK = (
    ("ADD", "s16"),
    ("SUB", "u8"),
    ("MUL", "s16"),
    ("EQUAL", "s16"),
    ("LOGISTIC", "s16"),
    ("TANH", "u8"),
    ("SOFTMAX", "s16"),
    ("LOG_SOFTMAX", "u8"),
    ("MAXIMUM", "s16"),
    ("CONCATENATION", "u8"),
    ("RESIZE_BILINEAR", "s16"),
    ("SPACE_TO_BATCH_ND", "s16"),
    ("PADV2", "u8"),
    ("GATHER", "s16"),
    ("TRANSPOSE", "s16"),
    ("SLICE", "u8"),
    ("ARG_MAX", "u8"),
)
_OWN = (
    "ADD SUB MUL MAXIMUM MINIMUM LESS NOT_EQUAL LOGISTIC TANH SOFTMAX LOG_SOFTMAX CONCATENATION RESHAPE SQUEEZE "
    "RESIZE_BILINEAR SPACE_TO_DEPTH PAD PADV2 GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE SLICE ARG_MAX "
    "SHAPE"
).split()
_RESOLVERS = {
    "litert": "BUILTIN_REF",
    "litert-optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "xnnpack": "BUILTIN",
}


@cache
def _cases(operator: str, types: str) -> tuple[SuiteCase, ...]:
    return tuple(find_suite("litert").cases((operator,), (types,)))


def _check(case: SuiteCase, numerics: str) -> None:
    graph = case.model.graph
    feeds = [case.inputs[graph.tensors[i].name] for i in graph.inputs]
    answer = oracle(_RESOLVERS[numerics]).run(case.content, [feeds], list(graph.outputs))
    try:
        expected = case.model.prepare(here(numerics)).run(dict(case.inputs))
    except BittrueError:
        assert numerics != "litert", case.identity
        return
    assert answer.ran, (case.identity, numerics, answer)
    for index, value in zip(graph.outputs, expected.values(), strict=True):
        found = answer.values[index]
        assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes()), (
            case.identity,
            numerics,
        )


@pytest.mark.in_turns(3, by="operator")
@pytest.mark.parametrize("operator", _OWN)
def test_all_resolvers_give_the_expected_bytes(operator: str) -> None:
    cases = [case for case in _cases(operator, "s8") if not case.rejects]
    for case in cases:
        for numerics in _RESOLVERS:
            _check(case, numerics)
    aims = {case.aim for case in cases}
    assert "random" in aims
    assert len(aims) >= 2


@pytest.mark.in_turns(3)
@pytest.mark.parametrize(("operator", "types"), _QUICK)
def test_other_types_give_the_expected_bytes(operator: str, types: str) -> None:
    cases = _cases(operator, types)
    assert cases
    for case in cases:
        _check(case, "litert")


@pytest.mark.parametrize("operator", SPECIFICATION)
def test_small_models_run_before_they_are_spoilt(operator: str) -> None:
    parts = small_model(operator)
    content = one_operator(operator, parts.inputs, parts.outputs, parts.options, parts.version)
    answer = oracle().run(content, [list(rejects._feeds(parts).values())], [])
    assert answer.ran, answer


@pytest.mark.parametrize("operator", SPECIFICATION)
def test_litert_refuses_what_is_said_to_be_refused(operator: str) -> None:
    drafts = list(rejects.rejects(operator, "s8"))
    assert len({draft.note for draft in drafts}) == len(drafts)
    for draft in drafts:
        who, _, why = draft.rejects.partition(": ")
        if (operator, why) == ("LOG_SOFTMAX", "the input has rank 0"):
            # It reads a size in front of the shape, which ends the process nearly always.
            continue
        answer = oracle().run(draft.content, [list(draft.inputs.values())], [])
        assert (who == "LiteRT refuses") == (not answer.ran), (draft.rejects, answer)


def test_every_operator_of_the_specification_has_something_to_refuse() -> None:
    for operator in SPECIFICATION:
        said = [draft.rejects for draft in rejects.rejects(operator, "s8")]
        assert sum(text.startswith("LiteRT refuses") for text in said) >= 3, operator


def test_other_reasons_to_refuse_are_in_the_specification() -> None:
    """Nothing that LiteRT runs is refused without one of the specification's words."""
    words = ("zero point", "per axis", "scale", "along another axis")
    for operator in SPECIFICATION:
        for draft in rejects.rejects(operator, "s8"):
            if draft.rejects.startswith("specification"):
                assert any(word in draft.note for word in words), draft.rejects


@pytest.mark.usefixtures("made_anew")
def test_cases_are_the_same_every_time() -> None:
    suite = find_suite("litert")
    for operator in ("MUL", "SOFTMAX"):
        again = [case.sha256 for case in suite.cases((operator,))]
        assert again == [case.sha256 for case in _cases(operator, "s8")]


def test_two_arithmetics_that_differ_anywhere_differ_among_the_chosen() -> None:
    draw = np.random.default_rng(5)
    columns = [draw.integers(0, 3, 500) for _ in range(4)]
    rare = columns[0].copy()
    rare[[17, 400]] += 1
    chosen = separating([*columns, rare, columns[1]], each=2)
    assert chosen.size < 30
    assert {17, 400} <= set(chosen.tolist())
    for one in (*columns, rare):
        for two in (*columns, rare):
            differing = int((one != two).sum())
            assert int((one[chosen] != two[chosen]).sum()) >= min(2, differing)


def test_ties_and_ends_are_found_on_both_sides() -> None:
    real = np.array([-3.5, -2.4999, -2.3, -0.1, 0.2, 1.5, 1.5, 1.5, 1.501, 7.4, 8.6])
    assert nearest_ties(real, -4, 4, 6).tolist() == [0, 1, 2, 5, 6, 8]
    assert {0, 10} <= set(at_ends(real, -3, 8, 8).tolist())


def test_the_right_answer_comes_first() -> None:
    case = next(case for case in _cases("ADD", "s8") if case.aim == "ties")
    said = answers(case.content, case.inputs)
    (expected,) = case.model.prepare("litert").run(dict(case.inputs)).values()
    assert said[0].tolist() == expected.reshape(-1).tolist()
    assert len(said) > 2
