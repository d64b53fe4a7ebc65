"""`--require`: what a result must reach."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.requirements import unmet_requirements


def command(digits: Path, *words: str) -> Result:
    return CliRunner().invoke(
        cli, ["evaluate", str(digits / "model.tflite"), "--data", str(digits / "samples.npz"), *words]
    )


def test_exit_codes(digits: Path) -> None:
    top1 = bittrue.evaluate(digits / "model.tflite", digits / "samples.npz")["metrics"]["litert"]["top1"]
    assert command(digits, "--require", f"top1={top1!r}").exit_code == 0
    found = command(digits, "--require", f"top1={math.nextafter(top1, 1)!r}", "--require", "top5=0.1")
    assert found.exit_code == 1
    assert "top1 of litert is" in found.output
    assert "top5 of litert is" not in found.output


def test_flips_are_those_of_any_pair(digits: Path) -> None:
    words = ["--numerics", "litert,xnnpack", "--json"]
    count = json.loads(command(digits, *words).output)["flips"][0]["count"]
    assert command(digits, *words, "--require", f"flips={count}").exit_code == 0
    pair = {"pair": ["a", "b"], "count": 3}
    found = {"numerics": ["a", "b", "c"], "metrics": {}, "flips": [{"pair": ["a", "c"], "count": 2}, pair]}
    assert unmet_requirements(found, {"flips": 3}) == []
    assert unmet_requirements(found, {"flips": 2}) == ["3 answers flip from a to b, at most 2 may"]
    assert len(unmet_requirements(found, {"flips": 0})) == 2


@pytest.mark.parametrize("metrics", [{}, {"a": {"top1": math.nan}}])
def test_a_figure_that_there_is_not_is_unmet(metrics: dict[str, Any]) -> None:
    found = {"numerics": ["a"], "metrics": metrics, "flips": []}
    assert len(unmet_requirements(found, {"top1": 0})) == 1


@pytest.mark.parametrize(
    ("require", "match"),
    [
        ({"top2": 0.5}, "or 'top1'"),
        ({"confusion": 1}, "no figure 'confusion'"),
        ({"top1": math.nan}, "from 0 on"),
        ({"top1": -1}, "from 0 on"),
        ({"flips": 0}, "there is one"),
    ],
)
def test_what_cannot_be_asked_for_is_an_error_before_the_run(
    digits: Path, tmp_path: Path, require: dict[str, float], match: str
) -> None:
    with pytest.raises(bittrue.InputError, match=match) as caught:
        bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", require=require, output=tmp_path / "out")
    assert caught.value.code == "BT-REQUIRE"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["top1"], ["top1=x"], ["top1=0.5", "top1=0.6"]])
def test_words_that_do_not_fit(digits: Path, words: list[str]) -> None:
    found = command(digits, *(piece for word in words for piece in ("--require", word)))
    assert isinstance(found.exception, bittrue.InputError)
    assert found.exception.code == "BT-REQUIRE"
