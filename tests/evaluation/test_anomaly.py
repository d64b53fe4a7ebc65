"""Anomalies: windows of files, scores against plain loops over the real runtime, areas against counted pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.evaluation.sources import open_source
from bittrue.evaluation.tasks.anomaly import area
from support.shared import SHARED

MODEL = SHARED / "models" / "tiny_ad_int8.tflite"


def counted(scores: list[tuple[float, int]]) -> float:
    pairs = [(one > other) + (one == other) / 2 for one, a in scores if a for other, b in scores if not b]
    return sum(pairs) / len(pairs)


def test_area_is_that_of_counted_pairs() -> None:
    rng = np.random.default_rng(0)
    for values in (2, 5, 1000):
        for _ in range(50):
            size = int(rng.integers(1, 30))
            scores = [
                (int(x) / 4, int(y))
                for x, y in zip(rng.integers(values, size=size), rng.integers(2, size=size), strict=True)
            ]
            if len({label for _, label in scores}) == 2:
                assert area(scores) == counted(scores)
            else:
                assert math.isnan(area(scores))


def test_windows(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(11)))
    (tmp_path / "b.bin").write_bytes(b"123")
    (tmp_path / "y_labels.csv").write_text("a.bin,2,1,4,3\nb.bin,2,0,4,3\nb.bin,2,0\n")
    source = open_source(tmp_path)
    assert source[0].read() == [bytes(range(i, i + 4)) for i in (0, 3, 6)]
    assert source[2].read() == [b"123"]
    with pytest.raises(bittrue.InputError, match="no window of 4 bytes"):
        source[1].read()
    for wrong in ("4", "4,0", "-1,2", "4,3,2", "x,y"):
        (tmp_path / "y_labels.csv").write_text(f"a.bin,2,1,{wrong}\n")
        with pytest.raises(bittrue.InputError) as caught:
            open_source(tmp_path)
        assert caught.value.code == "BT-DATA-LIST"


def test_a_model_that_does_not_repeat_its_input(digits: Path) -> None:
    with pytest.raises(bittrue.InputError, match="does not repeat its input"):
        bittrue.evaluate(digits / "model.tflite", digits / "samples.npz", task="anomaly")


@pytest.mark.skipif(not MODEL.exists(), reason="needs ../shared/models/tiny_ad_int8.tflite")
def test_scores_are_those_of_a_loop_over_the_runtime(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = Interpreter(str(MODEL), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    kernels.allocate_tensors()
    (given,), (gives,) = kernels.get_input_details(), kernels.get_output_details()
    (a, b), (c, d) = given["quantization"], gives["quantization"]
    rng = np.random.default_rng(0)
    lines, scores = [], []
    for i in range(8):
        content = np.clip(rng.normal(60, 10 + 8 * (i % 3), 640 + 128 * 3), -128, 127).astype(np.int8)
        (tmp_path / f"{i}.bin").write_bytes(content.tobytes())
        lines.append(f"{i}.bin,2,{i % 2},640,128\n")
        errors = []
        for at in range(0, 128 * 3 + 1, 128):
            x = content[at : at + 640]
            kernels.set_tensor(given["index"], x[None])
            kernels.invoke()
            y = kernels.get_tensor(gives["index"])[0]
            total = 0.0
            for p, q in zip(x.tolist(), y.tolist(), strict=True):
                difference = float(p - b) * float(a) - float(q - d) * float(c)
                total += difference * difference
            errors.append(total / 640)
        # Newer Pythons' `sum` corrects its rounding.
        scores.append(((errors[0] + errors[1] + errors[2] + errors[3]) / 4, i % 2))
    (tmp_path / "y_labels.csv").write_text("".join(lines))
    seen = bittrue.evaluate(MODEL, tmp_path, task="anomaly", output=tmp_path / "out")
    assert seen["metrics"]["litert"] == {"auc": counted(scores), "normal": 4, "anomalies": 4}
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(tmp_path / "out" / "rows").to_pylist()
    assert [row["litert:prediction"] for row in rows] == [score for score, _ in scores]


@pytest.mark.skipif(not MODEL.exists(), reason="needs ../shared/models/tiny_ad_int8.tflite")
def test_labels(tmp_path: Path) -> None:
    """A label that means nothing is a row with an error; an area that does not exist is "nan" in the summary."""
    pytest.importorskip("pyarrow")
    (port,) = bittrue.load(MODEL).prepare("litert").inputs
    x = np.random.default_rng(0).integers(-128, 128, (3, *port.shape[1:])).astype(port.dtype)
    np.savez(tmp_path / "samples.npz", samples=x, labels=[1, 7, 1])
    found = bittrue.evaluate(
        MODEL, tmp_path / "samples.npz", task="anomaly", numerics=["litert", "xnnpack"], output=tmp_path / "out"
    )
    assert (found["samples"], found["labelled"], found["errors"]) == (3, 2, {"BT-DATA-LABELS": 1})
    assert found["flips"][0]["gained"] is None
    assert math.isnan(found["metrics"]["litert"]["auc"])
    text = (tmp_path / "out" / "summary.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["metrics"]["litert"]["auc"] == "nan"


@pytest.mark.skipif(not MODEL.exists(), reason="needs ../shared/models/tiny_ad_int8.tflite")
def test_windows_of_float32(tmp_path: Path) -> None:
    """Files as MLPerf Tiny has them: float32, windows of 640 values every 128, against numpy and one session."""
    session = bittrue.load(MODEL).prepare("litert")
    (given,), (gives,) = session.inputs, session.outputs
    assert given.scale is not None
    assert gives.scale is not None
    rng = np.random.default_rng(1)
    lines, scores = [], []
    for i in range(6):
        content = rng.normal(0, 2 + i, 640 + 128 * 2 + 5).astype("<f4")
        (tmp_path / f"{i}.bin").write_bytes(content.tobytes())
        lines.append(f"{i}.bin,2,{int(i > 2)},2560,512\n")
        errors = []
        for at in (0, 128, 256):
            x = np.clip(np.round(content[at : at + 640] / np.float32(given.scale)) + given.zero_point, -128, 127)
            (y,) = session.run(x.astype(np.int8)[None]).values()
            reals = (
                (x.astype(float) - given.zero_point) * given.scale,
                (y.astype(float) - gives.zero_point) * gives.scale,
            )
            errors.append(((reals[0] - reals[1][0]) ** 2).mean())
        scores.append((float(np.mean(errors)), int(i > 2)))
    (tmp_path / "y_labels.csv").write_text("".join(lines))
    seen = bittrue.evaluate(
        MODEL, tmp_path, task="anomaly", recipe="float32", metric=lambda rows: rows[4]["prediction"]
    )
    assert seen["metrics"]["litert"]["metric"] == pytest.approx(scores[4][0], rel=1e-12)
    assert seen["metrics"]["litert"]["auc"] == counted(scores)


def test_the_step_values(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "y_labels.csv").write_text("a.bin,10,3\n")
    (tmp_path / "a.bin").write_bytes(np.arange(64, dtype="<f4").tobytes())
    model = digits / "model.tflite"
    assert bittrue.evaluate(model, tmp_path, recipe="float32")["labelled"] == 1
    (tmp_path / "a.bin").write_bytes(b"123")
    found = bittrue.evaluate(model, tmp_path, recipe="float32")
    assert found["errors"] == {"BT-DATA-SIZE": 1}
    with pytest.raises(bittrue.InputError, match="the samples are arrays"):
        bittrue.evaluate(model, digits / "samples.npz", recipe="float32")
    for step in ('{do = "values"}', '{do = "values", type = "float33"}', '{do = "move", axes = [0]}, {do = "values"}'):
        (tmp_path / "own.toml").write_text(f"step = [{step}]")
        with pytest.raises(bittrue.InputError) as caught:
            bittrue.evaluate(model, tmp_path, recipe=str(tmp_path / "own.toml"))
        assert caught.value.code == "BT-RECIPE"
