"""`--baseline`: what changed against an earlier result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli

pytest.importorskip("pyarrow")


def run(model: Path, data: Path, **more: Any) -> dict[str, Any]:
    return bittrue.evaluate(model, data, **more)


@pytest.fixture
def changed(digits: Path, tmp_path: Path) -> Path:
    """The same samples but for three, whose images are those of others."""
    stored = dict(np.load(digits / "samples.npz"))
    stored["images"][[3, 5, 8]] = stored["images"][[4, 6, 9]]
    np.savez(tmp_path / "changed.npz", **stored)
    return tmp_path / "changed.npz"


def test_nothing_changed(digits: Path, tmp_path: Path) -> None:
    model, data = digits / "model.tflite", digits / "samples.npz"
    first = run(model, data, output=tmp_path / "first", numerics=["litert", "xnnpack"])
    found = run(model, data, baseline=tmp_path / "first")["baseline"]
    assert (found["digest"], found["differs"], found["sources"], found["errors"]) == (first["digest"], [], 0, 0)
    (change,) = found["changes"]
    assert (change["numerics"], change["outputs"], change["answers"]["count"]) == ("litert", 0, 0)
    assert change["metrics"]["top1"] == [first["metrics"]["litert"]["top1"]] * 2


def test_changes_are_those_of_a_loop(digits: Path, changed: Path, tmp_path: Path) -> None:
    model = digits / "model.tflite"
    before = run(model, digits / "samples.npz", output=tmp_path / "first")
    session = bittrue.load(model).prepare("litert")
    stored = [np.load(path)["images"] for path in (digits / "samples.npz", changed)]
    outputs = [[next(iter(session.run(x[None]).values())) for x in images] for images in stored]
    was, now = ([int(np.argmax(values)) for values in one] for one in outputs)
    bits = sum(one.tobytes() != two.tobytes() for one, two in zip(*outputs, strict=True))
    expected = {i: [was[i], now[i]] for i in range(len(was)) if was[i] != now[i]}
    assert expected
    # Resumed rows are compared as well.
    for more in ({}, {"resume": True}):
        found = run(model, changed, baseline=tmp_path / "first", output=tmp_path / "second", **more)
        (change,) = found["baseline"]["changes"]
        answers = change["answers"]
        assert {one["position"]: one["predictions"] for one in answers["samples"]} == expected
        assert (answers["count"], change["outputs"], found["baseline"]["sources"]) == (len(expected), bits, 3)
        right = [before["metrics"]["litert"]["right"], found["metrics"]["litert"]["right"]]
        assert change["metrics"]["right"] == right
        assert answers["gained"] - answers["lost"] == right[1] - right[0]
    assert json.loads((tmp_path / "second" / "summary.json").read_text())["baseline"] == found["baseline"]


def test_merged_shards_have_a_baseline_as_one_run_has(digits: Path, changed: Path, tmp_path: Path) -> None:
    model, shards = digits / "model.tflite", [tmp_path / "one", tmp_path / "two"]
    run(model, digits / "samples.npz", output=tmp_path / "first")
    for index, path in enumerate(shards, 1):
        run(model, changed, output=path, shard=(index, 2))
    merged = bittrue.merge_evaluations(shards, tmp_path / "merged", baseline=tmp_path / "first")
    assert merged["baseline"] == run(model, changed, baseline=tmp_path / "first")["baseline"]
    assert merged["baseline"]["sources"] == 3


def test_what_cannot_be_compared(digits: Path, tmp_path: Path) -> None:
    model, data = digits / "model.tflite", digits / "samples.npz"
    run(model, data, output=tmp_path / "first")
    for more, match in (({"limit": 5}, "limit differ"), ({"numerics": ["xnnpack"]}, "none of xnnpack")):
        with pytest.raises(bittrue.InputError, match=match) as caught:
            run(model, data, baseline=tmp_path / "first", **more)
        assert caught.value.code == "BT-EVALUATE-BASELINE"
    (tmp_path / "first" / "rows" / "part-000000000.parquet").unlink()
    with pytest.raises(bittrue.InputError, match="has 0 of its 100 samples"):
        run(model, data, baseline=tmp_path / "first")
    with pytest.raises(bittrue.ModelFormatError, match="no evaluation"):
        run(model, data, baseline=digits)


def test_command(digits: Path, changed: Path, tmp_path: Path) -> None:
    model = digits / "model.tflite"
    run(model, digits / "samples.npz", output=tmp_path / "first")
    words = ["evaluate", str(model), "--data", str(changed), "--baseline", str(tmp_path / "first")]
    found = CliRunner().invoke(cli, words)
    assert found.exit_code == 0, found.output
    assert "3 samples have other bytes than before" in found.output
    assert "from before to now" in found.output
