"""Regression: figures against numpy over all samples at once, and what a flip is there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.requirements import unmet_requirements
from bittrue.evaluation.tasks import Answer, find_task


@pytest.fixture(scope="module")
def quantities(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits with ten quantities per sample as labels."""
    images = np.load(digits / "samples.npz")["images"]
    folder = tmp_path_factory.mktemp("quantities")
    labels = np.random.default_rng(0).normal(size=(len(images), 10))
    labels[:, 3] = 0.25
    np.savez(folder / "samples.npz", x=images, y=labels)
    return folder


def predictions(model: Path, data: Path, numerics: str) -> np.ndarray:
    session = bittrue.load(model).prepare(numerics)
    (port,) = session.outputs
    assert port.scale is not None
    values = np.stack([next(iter(session.run(x[None]).values()))[0] for x in np.load(data)["x"]])
    return (values.astype(np.float64) - (port.zero_point or 0)) * port.scale


def test_figures_and_flips_are_those_of_numpy(digits: Path, quantities: Path) -> None:
    model, data = digits / "model.tflite", quantities / "samples.npz"
    found = bittrue.evaluate(model, data, task="regression", numerics=["litert", "xnnpack"])
    values = {name: predictions(model, data, name) for name in ("litert", "xnnpack")}
    y = np.load(data)["y"]
    for name, x in values.items():
        figures = found["metrics"][name]
        error = np.abs(x - y)
        with np.errstate(divide="ignore"):
            each = 1 - (error**2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        each[3] = 0  # scikit-learn's answer for a label that is always the same
        assert figures["mae"] == pytest.approx(error.mean(), rel=1e-12)
        assert figures["rmse"] == pytest.approx(math.sqrt((error**2).mean()), rel=1e-12)
        assert figures["r2"] == pytest.approx(each.mean(), rel=1e-9)
        assert figures["max_error"] == error.max()
        for one, column, determined in zip(figures["per_output"], error.T, each, strict=True):
            assert one["mae"] == pytest.approx(column.mean(), rel=1e-12)
            assert one["rmse"] == pytest.approx(math.sqrt((column**2).mean()), rel=1e-12)
            assert (one["r2"], one["max_error"]) == (pytest.approx(determined, rel=1e-9), column.max())
    largest = np.abs(values["litert"] - values["xnnpack"]).max(axis=1)
    (flips,) = found["flips"]
    assert flips["count"] == np.count_nonzero(largest) > 0
    assert flips["gained"] is None
    order = sorted(np.flatnonzero(largest).tolist(), key=lambda i: (-largest[i], i))
    assert [(one["position"], one["margin"]) for one in flips["samples"]] == [(i, largest[i]) for i in order]


def test_one_output() -> None:
    task = find_task("regression")
    figures = task.figures(())
    pairs = [(3.0, 2.5), (-0.5, 0.0), (2.0, 2.0), (7.0, 8.0)]
    for label, prediction in pairs:
        figures.add(label, Answer([prediction], 0.0))
    # scikit-learn 1.9's mean_absolute_error, root_mean_squared_error, r2_score and max_error of these four.
    assert figures.to_dict() == {
        "mae": 0.5,
        "rmse": pytest.approx(0.6123724356957945, rel=1e-15),
        "r2": pytest.approx(0.9486081370449679, rel=1e-15),
        "max_error": 1.0,
    }
    nothing = task.figures(()).to_dict()
    assert set(nothing) == {"mae", "rmse", "r2", "max_error"}
    assert all(math.isnan(value) for value in nothing.values())


def test_a_csv_file_of_quantities(digits: Path, tmp_path: Path) -> None:
    from bittrue.evaluation.sources import open_source

    (tmp_path / "list.csv").write_text("path,label\na.png,0.5\nb.png,-1e-3\nc.png,2\n")
    source = open_source(tmp_path / "list.csv")
    assert [source[i].label for i in range(3)] == [0.5, -0.001, 2.0]
    assert source.classes == ()


def test_labels_that_do_not_fit_are_rows_with_errors(digits: Path, tmp_path: Path) -> None:
    images = np.load(digits / "samples.npz")["images"][:3]
    for labels in (np.zeros((3, 4)), np.full(3, np.nan), np.array(["a", "b", "c"])):
        np.savez(tmp_path / "samples.npz", x=images, y=labels)
        found = bittrue.evaluate(digits / "model.tflite", tmp_path / "samples.npz", task="regression")
        assert (found["errors"], found["metrics"]) == ({"BT-DATA-LABELS": 3}, {})
    np.savez(tmp_path / "samples.npz", x=images, y=np.zeros((3, 10)))
    assert bittrue.evaluate(digits / "model.tflite", tmp_path / "samples.npz")["errors"] == {"BT-DATA-LABELS": 3}


def test_errors_are_required_from_above(digits: Path, quantities: Path) -> None:
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(quantities / "samples.npz")]
    words += ["--task", "regression", "--require"]
    assert CliRunner().invoke(cli, [*words, "mae=100"]).exit_code == 0
    done = CliRunner().invoke(cli, [*words, "mae=0.01"])
    assert done.exit_code == 1
    assert "at most 0.01 is required" in done.output
    found = {"numerics": ["a"], "metrics": {"a": {"rmse": math.nan}}, "flips": []}
    assert len(unmet_requirements(found, {"rmse": 1}, {"rmse"})) == 1
