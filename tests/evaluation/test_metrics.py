"""Metrics and tasks of one's own."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.metrics import Own
from bittrue.evaluation.rows import Row
from bittrue.evaluation.tasks import Answer, Figures, Task
from bittrue.report import markdown


def run(digits: Path, **more: Any) -> dict[str, Any]:
    return bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", **more)


def command(digits: Path, *words: str) -> Result:
    return CliRunner().invoke(
        cli, ["evaluate", str(digits / "model.tflite"), "--data", str(digits / "samples.npz"), *words]
    )


def accuracy(rows: Sequence[dict[str, Any]]) -> float:
    return sum(row["label"] == row["prediction"] for row in rows) / len(rows)


def test_a_metric_sees_every_row(digits: Path) -> None:
    seen = []

    def best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        seen.append(rows)
        return {"best": max(row["scores"][0] for row in rows), "rows": len(rows), "mean": np.float32(1.5)}

    found = run(digits, metric=best, numerics=["litert", "xnnpack"])
    assert [len(rows) for rows in seen] == [100, 100]
    assert {"id", "position", "label", "prediction", "margin", "top", "scores"} == set(seen[0][0])
    figures = found["metrics"]["litert"]
    assert (figures["rows"], figures["mean"]) == (100, 1.5)
    assert "top1" in figures
    json.dumps(found)


def test_metrics_are_required_and_compared(digits: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found = run(digits, metric=accuracy, require={"accuracy": 0.5}, output=tmp_path / "a")
    assert found["unmet"] == []
    assert found["metrics"]["litert"]["accuracy"] == found["metrics"]["litert"]["top1"]

    def wrong(rows: Sequence[dict[str, Any]]) -> float:
        return 1 - accuracy(rows)

    wrong.lower = ["wrong"]  # type: ignore[attr-defined]
    found = run(digits, metric=wrong, require={"wrong": 0}, baseline=tmp_path / "a")
    assert len(found["unmet"]) == 1
    assert "at most 0 is required" in found["unmet"][0]
    (change,) = found["baseline"]["changes"]
    assert change["metrics"]["wrong"][0] == change["metrics"]["wrong"][1]
    for shard in (1, 2):
        run(digits, output=tmp_path / f"shard{shard}", shard=(shard, 2))
    merged = bittrue.merge_evaluations(
        [tmp_path / "shard1", tmp_path / "shard2"], tmp_path / "all", metric=accuracy, require={"accuracy": 0.5}
    )
    assert (merged["unmet"], merged["metrics"]["litert"]["accuracy"]) == ([], merged["metrics"]["litert"]["top1"])


def test_names_are_known_before_the_first_sample(digits: Path, tmp_path: Path) -> None:
    def never(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
        raise AssertionError("it has run")

    asked: dict[str, Any] = {"metric": never, "output": tmp_path / "r"}
    with pytest.raises(bittrue.InputError, match=r"no figure 'nver'.*'never'.*attribute `figures`") as caught:
        run(digits, require={"nver": 1}, **asked)
    assert caught.value.code == "BT-REQUIRE"
    never.figures = ["one"]  # type: ignore[attr-defined]
    with pytest.raises(bittrue.InputError, match="no figure 'never'"):
        run(digits, require={"never": 1}, **asked)
    assert not (tmp_path / "r").exists()
    # What is named and not given is not met.
    never_given = type("Given", (Counted,), {"figures": ["count", "more"]})
    unmet = run(digits, metric=never_given, require={"more": 1, "count": 100}, limit=100)["unmet"]
    assert unmet == ["there is no more, at least 1 is required"]


class Counted:
    """A metric that keeps no row."""

    def __init__(self) -> None:
        self.right = self.count = 0

    def add(self, row: dict[str, Any]) -> None:
        self.right += row["label"] == row["prediction"]
        self.count += 1

    def result(self) -> dict[str, Any]:
        return {"share": self.right / self.count, "count": self.count}


def test_a_class_takes_rows_one_by_one(digits: Path) -> None:
    found = run(digits, metric=Counted, numerics=["litert", "xnnpack"])["metrics"]
    for figures in found.values():
        assert (figures["share"], figures["count"]) == (figures["top1"], 100)
    row = Row(0, "a", 1, answers={"litert": Answer(1, 0.5, {"top": [1], "scores": [0.5]})})
    own = Own(Counted, "litert")
    own.add(row)
    tracemalloc.start()
    for _ in range(2000):
        own.add(row)
    assert tracemalloc.get_traced_memory()[0] < 10_000
    tracemalloc.stop()
    assert own.figures(()) == {"share": 1.0, "count": 2001}


def test_without_labels(digits: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.load(digits / "samples.npz")["images"][:5])
    (tmp_path / "count.py").write_text("def count(rows):\n    return len([r for r in rows if r['label'] is None])\n")
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(tmp_path / "x.npy")]
    done = CliRunner().invoke(cli, [*words, "--metric", f"{tmp_path / 'count.py'}:count"])
    assert done.exit_code == 0, done.output
    assert "no sample has a label" in done.output
    assert "count" in done.output


def test_files_and_modules(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass One:\n    n: int\n"
        "def rows(rows):\n    return One(len(rows)).n\n"
    )
    (tmp_path / "own_counts.py").write_text(code)
    done = command(digits, "--metric", f"{tmp_path / 'own_counts.py'}:rows", "--require", "rows=101", "--json")
    assert (done.exit_code, json.loads(done.output)["metrics"]["litert"]["rows"]) == (1, 100)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert command(digits, "--metric", "own_counts:rows", "--require", "rows=100").exit_code == 0


def test_numbers_that_json_lacks(digits: Path, tmp_path: Path) -> None:
    """They are the same text on standard output and in the summary, and no figure on a page."""
    pytest.importorskip("pyarrow")
    (tmp_path / "own.py").write_text("def own(rows):\n    return {'a': float('nan'), 'b': float('inf'), 'c': 0.25}\n")
    done = command(digits, "--metric", f"{tmp_path / 'own.py'}:own", "--json", "-o", str(tmp_path / "r"))
    printed = json.loads(done.output)
    assert printed == json.loads((tmp_path / "r" / "summary.json").read_text())
    assert [printed["metrics"]["litert"][name] for name in "abc"] == ["nan", "inf", 0.25]
    summary = markdown.render(printed)
    assert "| – | – | 0.2500 |" in summary


@pytest.mark.parametrize(
    ("content", "name", "match"),
    [
        ("", "f", "no function 'f'"),
        ("f = 3\ndef other(rows): pass\n", "f", "there are: other"),
        ("def f(rows):\n    return rows[1000]\n", "f", "own.py, line 2.*IndexError"),
        ("def f(rows):\n    return 'high'\n", "f", "found 'f': 'high'"),
        ("def f(rows):\n    return {'top1': 1}\n", "f", "a figure of the task"),
        ("def f(rows):\n    return {1: 1}\n", "f", "found '1'"),
        ("def f(rows):\n    return 1\nf.lower = 'f'\n", "f", "lower is a list"),
        ("import sys\nsys.exit(3)\n", "f", "own.py, line 2.*SystemExit: 3"),
        ("def f(:\n", "f", "own.py, line 1.*SyntaxError"),
        ("class f:\n    add = print\n", "f", "no result"),
        ("class f:\n    add = result = 3\n", "f", "TypeError"),
        ("class f:\n    def __init__(self, x): pass\n    add = result = 3\n", "f", "TypeError"),
        ("def f(rows):\n    return 1\nf.figures = [1]\n", "f", "figures is a list"),
        ("import nothing_of_the_kind\n", "f", "own.py, line 1.*ModuleNotFoundError"),
    ],
)
def test_what_a_metric_does_wrong(digits: Path, tmp_path: Path, content: str, name: str, match: str) -> None:
    (tmp_path / "own.py").write_text(content)
    done = command(digits, "--metric", f"{tmp_path / 'own.py'}:{name}")
    with pytest.raises(bittrue.InputError, match=match) as caught:
        raise done.exception or AssertionError(done.output)
    assert caught.value.code == "BT-METRIC"


@pytest.mark.parametrize("text", ["f", ":f", "own.py:", "missing.py:f", "no_such_module:f", "json.no_such:f"])
def test_names_that_lead_nowhere(digits: Path, text: str) -> None:
    found = command(digits, "--metric", text).exception
    assert isinstance(found, bittrue.InputError)
    assert found.code == "BT-METRIC"


class Sign(Task):
    """Whether the first value is positive."""

    name, headline = "sign", "share"
    columns = {"prediction": "bool"}  # noqa: RUF012

    def check(self, inputs: Any, outputs: Any) -> None:
        pass

    def answer(self, runs: Any, inputs: Any, outputs: Any) -> Answer:
        return Answer(bool(runs[0][1][0].reshape(-1)[0] > -100), 0.0)

    def right(self, label: Any, answer: Answer) -> bool:
        return bool(label == 0) == bool(answer.prediction)

    def figures(self, classes: Any) -> Figures:
        return Share(self.right)


class Share(Figures):
    def __init__(self, right: Callable[[Any, Answer], bool]) -> None:
        self.right, self.found = right, list[bool]()

    def add(self, label: Any, answer: Answer) -> None:
        self.found.append(self.right(label, answer))

    def to_dict(self) -> dict[str, Any]:
        return {"share": sum(self.found) / len(self.found) if self.found else 0.0}


def test_a_task_of_ones_own(digits: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    found = run(digits, task=Sign(), output=tmp_path / "a", require={"share": 0})
    assert 0.5 < found["metrics"]["litert"]["share"] <= 1
    again = run(digits, task=Sign(), baseline=tmp_path / "a")
    assert again["baseline"]["changes"][0]["answers"]["count"] == 0
    merged = bittrue.merge_evaluations([tmp_path / "a"], tmp_path / "b", task=Sign())
    assert merged["digest"] == found["digest"]
    with pytest.raises(bittrue.InputError, match="no task 'sign'"):
        bittrue.merge_evaluations([tmp_path / "a"], tmp_path / "c")
