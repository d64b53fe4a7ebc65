"""Models that lie: a check ends with a complete result or a typed error, whatever they say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from support.build import T, single
from support.runtimes import not_emulated
from support.shared import shared_models

sys.path.insert(0, str(Path(__file__).parent))  # spawned workers import it by name, too
from hostile import attempt, change_model, changes, seeds
from test_rules import fixtures

from bittrue.check import runner
from bittrue.check.rule import Rule, Subject


def test_mutations(
    tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    contents = [bittrue.demo_model()]
    contents += [path.read_bytes() for path in shared_models() if path.stat().st_size < 400_000]
    tried = seeds(request, 144, 20_000, 16)
    result = changes(change_model, attempt, contents, tried, tmp_path, 15)
    record_property("mutated", f"{len(tried)} files: {result['counts']}, slowest {result['slowest']:.2f} s")
    assert result["counts"]["found"] > len(tried) // 10
    assert result["counts"]["result"] > len(tried) // 20


def test_mutations_of_the_fixtures(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    contents = [make() for lists in fixtures().values() for make in lists[0]]
    assert len({content[4:8] == b"TFL3" for content in contents}) == 2, "models of both formats"
    tried = seeds(request, 2 * len(contents), 100 * len(contents), 16)
    counts = changes(change_model, attempt, contents, tried, tmp_path, 15)["counts"]
    assert counts["found"] > len(tried) // 5


@not_emulated
@pytest.mark.parametrize("kind", ["differing", "int16"])
def test_many_inputs_take_no_quadratic_time(kind: str) -> None:
    count = 20_000
    dtype, scale = ("s8", 0.25) if kind == "differing" else ("s16", 0.5)
    inputs = [T(dtype, [1], scale, 1, name=f"x{i}") for i in range(count)]
    output = T(dtype, [count], 0.5, name="y")
    content = single("CONCATENATION", ("ConcatenationOptions", {"axis": 0}), inputs, [output], version=2)
    # Laying out that many tensors that live at once takes the planner long, which is none of these rules' doing.
    result = bittrue.check_model(content, select=["BT103", "BT104", "BT2", "BT3"])
    assert result.seconds < 10
    assert not result.failures
    assert len([f for f in result.findings if f.code == ("BT305" if kind == "differing" else "BT203")]) == 10_000
    assert any("only the first 10,000 findings" in note for note in result.notes)


def broken(error: Exception) -> Rule:
    def find(subject: Subject):  # type: ignore[no-untyped-def]
        yield rule.finding("found before the end")
        raise error

    text = "a rule that comes to no end"
    rule = Rule("BT999", "broken", "warning", text, text, text, text, find, text)
    return rule


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "internal error: ZeroDivisionError: division by zero"),
        (bittrue.ResourceError("BT-LIMIT", "too large"), "[BT-LIMIT] too large"),
    ],
)
def test_a_rule_that_raises_is_told_and_the_others_run(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = (*runner.all_rules(), broken(error))
    monkeypatch.setattr(runner, "all_rules", lambda: rules)
    w = np.array([-128, 1])
    content = single(
        "FULLY_CONNECTED",
        ("FullyConnectedOptions", {}),
        [T("s8", [1, 2], 0.5), T("s8", [1, 2], 0.5, data=w), T("s32", [1], 0.25, data=np.ones(1))],
        [T("s8", [1, 1], 0.5)],
        version=4,
    )
    result = bittrue.check_model(content)
    assert [failure.code for failure in result.failures] == ["BT999"]
    assert said in result.failures[0].message
    assert {"BT204", "BT999"} <= {finding.code for finding in result.findings}
    assert result.to_dict()["complete"] is False
    assert result.errors == 1


def test_models_that_cannot_be_read_are_typed_errors(tmp_path: Path) -> None:
    for content in (b"", b"TFL3", bittrue.demo_model()[:1000], b"\0" * 64):
        with pytest.raises(bittrue.ModelFormatError):
            bittrue.check_model(content)
    with pytest.raises(bittrue.InputError):
        bittrue.check_model(tmp_path / "absent.tflite")
    with pytest.raises(bittrue.InputError):
        bittrue.check_model(bittrue.demo_model(), numerics="nobody")
