"""Real runtimes beside bittrue's arithmetics: equal digests, versions, errors before the first sample."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.runners.apart import Apart
from bittrue.runners.base import Peer
from bittrue.runners.peers import PEERS
from bittrue.runners.sides import open_side
from support.shared import SHARED, needs_shared

MODELS, DATA = SHARED / "models", SHARED / "data"
BOTH = ["litert:builtin_ref", "litert:xnnpack"]

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


def sided(model: Path, name: str) -> str:
    return f"{name}:{model}" if ":" in name else f"{model}@{name}"


def run(folder: Path, **more: Any) -> dict[str, Any]:
    found = bittrue.evaluate(folder / "model.tflite", folder / "samples.npz", **more)
    del found["seconds"]
    return found


@pytest.mark.skipif(not (DATA / "mlperf_tiny_kws01").exists(), reason="needs ../shared/data/mlperf_tiny_kws01")
def test_keywords() -> None:
    model = MODELS / "tiny_kws_int8.tflite"
    found = bittrue.evaluate(model, DATA / "mlperf_tiny_kws01", numerics=["litert", "xnnpack"], against=BOTH, threads=1)
    assert [found["metrics"][name]["right"] for name in ("litert", *BOTH)] == [901, 901, 902]
    for ours, theirs in zip(("litert", "xnnpack"), BOTH, strict=True):
        assert found["digests"][ours] == found["digests"][theirs]
    assert found["digests"]["litert"] != found["digests"]["xnnpack"]
    assert {tuple(pair["pair"]): pair["count"] for pair in found["flips"]} == {
        ("litert", "xnnpack"): 7,
        ("litert", BOTH[0]): 0,
        ("litert", BOTH[1]): 7,
        ("xnnpack", BOTH[0]): 7,
        ("xnnpack", BOTH[1]): 0,
        tuple(BOTH): 7,
    }
    # What explains a flip takes the runtimes, too.
    for pair in found["flips"]:
        for flip in pair["samples"][:1]:
            sides = shlex.split(flip["command"])[2:4]
            assert [open_side(side).title for side in sides] == [open_side(sided(model, n)).title for n in pair["pair"]]


def test_results_and_versions(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    asked: dict[str, Any] = {"numerics": ["litert"], "against": ["litert"], "limit": 20}
    name = "litert:builtin_ref"
    whole = run(digits, **asked, threads=2, output=tmp_path / "whole")
    assert whole["against"] == {name: f"ai-edge-litert {PEERS['litert'].version()}"}
    assert whole["digests"]["litert"] == whole["digests"][name]
    for row in parquet.read_table(tmp_path / "whole" / "rows").to_pylist():
        for field in ("prediction", "top", "scores", "margin", "digests"):
            assert row[f"litert:{field}"] == row[f"{name}:{field}"]
    for part in (1, 2):
        run(digits, **asked, threads=1, shard=(part, 2), output=tmp_path / str(part))
    merged = bittrue.merge_evaluations([tmp_path / "1", tmp_path / "2"], tmp_path / "all", baseline=tmp_path / "whole")
    assert merged["digests"] == whole["digests"]
    assert merged["digest"] == whole["digest"]
    assert [change["numerics"] for change in merged["baseline"]["changes"]] == ["litert", name]
    assert not any(change["outputs"] for change in merged["baseline"]["changes"])
    monkeypatch.setattr(Peer, "version", lambda self: "0.1")
    with pytest.raises(bittrue.InputError, match="against differ"):
        run(digits, **asked, threads=1, output=tmp_path / "whole", resume=True)
    # Another version, and a result of a bittrue that knew no runtimes.
    place, parts = tmp_path / "whole" / "evaluation.json", [tmp_path / "1", tmp_path / "2"]
    before = json.loads(place.read_text())
    for against, differing, changes in (({name: "0.1"}, [name], ["litert", name]), (None, [], ["litert"])):
        place.write_text(json.dumps({**before, "against": against} if against else before))
        found = bittrue.merge_evaluations(parts, tmp_path / f"all{len(changes)}", baseline=tmp_path / "whole")
        assert found["baseline"]["differs"] == differing
        assert [change["numerics"] for change in found["baseline"]["changes"]] == changes
        before.pop("against", None)


def test_nothing_left_starts_no_runtime(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    asked: dict[str, Any] = {"against": BOTH, "limit": 3, "output": tmp_path / "out", "threads": 2}
    whole = run(digits, **asked)

    def start(self: Apart) -> None:
        raise AssertionError("a runtime is started")

    monkeypatch.setattr(Apart, "start", start)
    assert run(digits, **asked, resume=True) == whole
    with pytest.raises(AssertionError, match="is started"):
        run(digits, **{**asked, "output": None})


def test_command(digits: Path) -> None:
    words = ["evaluate", str(digits / "model.tflite"), "--data", str(digits / "samples.npz"), "--limit", "20"]
    words += ["--against", "litert:builtin_ref", "--threads", "1", "--require", "flips=0"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert "litert and litert:builtin_ref: every output is the same" in result.output
    assert "against litert:builtin_ref (ai-edge-litert " in result.output
    found = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)
    assert len({found["digests"][name] for name in ("litert", "litert:builtin_ref")}) == 1


@pytest.mark.parametrize(
    ("against", "code"),
    [("ort", "BT-PEER-FORMAT"), ("litert:xnpack", "BT-SIDE"), ("litert?repair=1", "BT-SIDE-OPTION")],
)
def test_runtimes_that_cannot_run_it(digits: Path, tmp_path: Path, against: str, code: str) -> None:
    with pytest.raises(bittrue.BittrueError) as caught:
        run(digits, against=[against], output=tmp_path / "out")
    assert caught.value.code == code
    assert not (tmp_path / "out").exists()


def test_a_runtime_that_is_not_installed(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Peer, "version", lambda self: None)
    with pytest.raises(bittrue.UnsupportedError, match="pip install ai-edge-litert"):
        run(digits, against=["litert"])


@needs_shared
def test_a_runtime_that_refuses_the_model(tmp_path: Path) -> None:
    path = MODELS / "tflm_person_detect.tflite"
    (port,) = bittrue.load(path).prepare("litert").inputs
    np.save(tmp_path / "x.npy", np.zeros((2, *port.shape[1:]), port.dtype))
    with pytest.raises(bittrue.BittrueError, match="quantized_dimension") as caught:
        bittrue.evaluate(path, tmp_path / "x.npy", against=["litert"], threads=1, output=tmp_path / "out")
    assert caught.value.code == "BT-RUNNER-REFUSED"
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not (DATA / "mnist_5000.npz").exists(), reason="needs ../shared/data/mnist_5000.npz")
def test_state_goes_on_as_in_a_loop(tmp_path: Path) -> None:
    recipe = tmp_path / "scale.toml"
    recipe.write_text('[[step]]\ndo = "scale"\nfactor = 0.00392156862745098\n')
    found = bittrue.evaluate(
        MODELS / "coral_keras_lstm_mnist_ptq.tflite", DATA / "mnist_5000.npz", recipe=str(recipe), limit=100,
        numerics=["litert"], against=["litert"], reset=False,
    )  # fmt: skip
    assert not found["errors"]
    assert found["digests"]["litert"] == found["digests"]["litert:builtin_ref"]


def test_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from onnx import TensorProto

    from support.onnx_models import HERE, single

    generator = np.random.default_rng(3)
    content, _ = single(
        "MatMulInteger",
        {"x": np.zeros((1, 12), np.uint8), "w": generator.integers(-128, 128, (12, 7), np.int8)},
        [TensorProto.INT32],
        constants=["w"],
    )
    np.savez(tmp_path / "data.npz", x=generator.integers(0, 256, (40, 12), np.uint8), labels=np.arange(40) % 7)
    found = bittrue.evaluate(content, tmp_path / "data.npz", numerics=[HERE], against=["ort"], threads=1)
    assert not found["errors"]
    assert len(set(found["digests"].values())) == 1
    assert len(found["digests"]) == 2


@pytest.mark.skipif(not (DATA / "mlperf_tiny_kws01").exists(), reason="needs ../shared/data/mlperf_tiny_kws01")
def test_flips_of_equal_outputs_are_shown_once() -> None:
    words = ["evaluate", str(MODELS / "tiny_kws_int8.tflite"), "--data", str(DATA / "mlperf_tiny_kws01")]
    words += ["--limit", "150", "--threads", "1", "--numerics", "litert,xnnpack", "--against", "litert:builtin_ref"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    assert result.output.count("answers flip from") == 1
    assert "litert and litert:builtin_ref: every output is the same" in result.output
    assert "xnnpack and litert:builtin_ref: as litert and xnnpack" in result.output
