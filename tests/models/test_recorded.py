"""Vectors recorded from runtimes that cannot be installed beside the tests' own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import bittrue
from bittrue import numerics
from bittrue.numerics import processors
from bittrue.numerics.table import Numerics, Row
from support import differential, elsewhere, recorded

FILES = sorted(recorded.FOLDER.glob("*.npz"))
# Answers of a runtime that is installed, on another processor.
_ELSEWHERE = ("@aarch64", "-avx2")


HERE = [path for path in FILES if not path.stem.endswith(_ELSEWHERE)]
ELSEWHERE = [path for path in FILES if path not in HERE]


@pytest.mark.parametrize("path", HERE, ids=[path.stem for path in HERE])
def test_recorded_answers(path: recorded.Path, record_property: Callable[[str, object], None]) -> None:
    replayed(path, record_property)


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("path", ELSEWHERE, ids=[path.stem for path in ELSEWHERE])
def test_answers_of_another_processor(path: recorded.Path, record_property: Callable[[str, object], None]) -> None:
    replayed(path, record_property)


def replayed(path: recorded.Path, record_property: Callable[[str, object], None]) -> None:
    """Every case is equal, or refused by one or both."""
    outcomes = {"equal": 0, "refused": 0}
    values = 0
    runtime = elsewhere.base_of(path.stem)
    name = path.stem if path.stem in numerics.names() else runtime
    for case in recorded.read(path):
        try:
            ours = differential.compute(case.content, case.feeds, name, sampled=True)
            outcomes[differential.judge(ours, case.answer, runtime, case.may_refuse)] += 1
        except pytest.skip.Exception:
            # A row that refuses: a test of its own would be skipped.
            outcomes["refused"] += 1
        except AssertionError as error:
            raise AssertionError(f"a case of {case.test}: {error}") from None
        values += sum(value.size for value in case.answer.values.values())
    assert outcomes["equal"] > 100
    record_property(
        "compared",
        f"{path.stem}: {outcomes['equal']} recorded models, {values} values equal; "
        f"{outcomes['refused']} models refused by one or both",
    )


def test_every_numerics_without_an_installed_runtime_is_recorded() -> None:
    known = (name for name in bittrue.numerics_names() if name in differential.RUNTIMES)
    needed = {name for name in known if differential.RUNTIMES[name].recorded}
    assert needed == {path.stem for path in HERE}


def test_what_was_run_on_aarch64_are_rows_of_today() -> None:
    for name, found in processors.on_aarch64().items():
        rows = {processors.identity(row) for row in numerics.find(name).rows}
        assert set(found) <= rows, f"{name}: run the changed rows again, or take them out of aarch64.json"
    row = numerics.find("litert").find("add", ("s8", "s8"), ("s8",))
    assert row is not None
    assert re.fullmatch(r"aarch64: \d+ models equal", processors.elsewhere("litert", row))
    assert processors.elsewhere("mxnet", row) == ""


def _rules(rows: Iterable[Row]) -> set[tuple[str, str]]:
    return {choice for row in rows for choice in row.rules.items()}


def test_rows_for_aarch64_claim_no_run_that_was_not() -> None:
    """A row that says that it was run there has models that were."""
    table, counts = numerics.find("onnxruntime@aarch64"), processors.on_aarch64()["onnxruntime@aarch64"]
    claimed = [row for row in table.rows if row.evidence.startswith("run on aarch64")]
    assert claimed
    assert {processors.identity(row) for row in claimed} <= set(counts)


def test_rules_of_other_processors_are_told_from_the_usual_ones() -> None:
    """For each rule that a table has for its processor alone there is an answer that the usual table does not give."""
    own, told = set[tuple[str, str]](), set[tuple[str, str]]()
    for name in (path.stem for path in ELSEWHERE if path.stem in numerics.names()):
        table, base = numerics.find(name), numerics.find(elsewhere.base_of(name))
        here = _rules(table.rows) - _rules(base.rows)
        own |= here
        for case in recorded.read(recorded.FOLDER / f"{name}.npz"):
            if not case.answer.ran:
                continue
            rows, outcome = elsewhere.outcome(table, case)
            taken = _rules(rows) & here - told
            if taken and outcome == "equal" and elsewhere.outcome(base, case)[1] in ("differ", "nan"):
                told |= taken
    assert own
    assert own <= told


@pytest.mark.parametrize("name", [n for n, runtime in differential.RUNTIMES.items() if not runtime.resolver])
def test_every_row_that_no_runtime_answers_for_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, taken = numerics.find(name), set[int]()
    choose = Numerics.candidates

    def candidates(self: Numerics, *node: Any) -> tuple[Row, ...]:
        rows = choose(self, *node)
        taken.update(map(id, rows))
        return rows

    monkeypatch.setattr(Numerics, "candidates", candidates)
    for case in recorded.read(recorded.FOLDER / f"{name}.npz"):
        if case.answer.ran:
            model = bittrue.load(case.content)
            names = (model.graph.tensors[i].name for i in model.graph.inputs)
            shapes = {key: value.shape for key, value in zip(names, case.feeds[0], strict=True)}
            with contextlib.suppress(bittrue.BittrueError):
                model.prepare(name, executor="reference", shapes=shapes)
    assert [row for row in table.rows if id(row) not in taken and not row.refuses] == []
