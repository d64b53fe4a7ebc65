"""`bittrue reduce`: what it prints, what it writes, and how it exits."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from support.build import T, single
from support.command import run as command_line


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A layer with many ties: its multiplier is 2^-4."""
    rng = np.random.default_rng(1)
    x = T("s8", [32, 8], 0.5, 3, name="[x]")
    w = T("s8", [6, 8], 2.0**-4, 0, data=rng.integers(-7, 8, (6, 8), np.int8))
    b = T("s32", [6], 2.0**-5, 0, data=rng.integers(-99, 99, 6, np.int32))
    y = T("s8", [32, 6], 0.5, -5)
    path = tmp_path / "m.tflite"
    path.write_bytes(single("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [x, w, b], [y], version=4))
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["reduce", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_text(model: Path, tmp_path: Path) -> None:
    small = tmp_path / "out" / "small.tflite"
    small.parent.mkdir()
    code, text = run(model, f"{model}@xnnpack", "-o", small, "--runs", 3)
    assert code == 1, text
    assert "FULLY_CONNECTED" in text
    # Brackets in names are no markup.
    assert "[x] [1, " in text
    assert sorted(p.name for p in small.parent.iterdir()) == ["small.a.npz", "small.b.npz", "small.npz", "small.tflite"]
    command = text.splitlines()[-1]
    assert command.startswith("bittrue compare ")
    assert "DIFFERENT" in command_line(*shlex.split(command)[1:], check=1).stdout


def test_json(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(-128, 128, (32, 8), np.int8))
    options = ["-i", tmp_path / "x.npy", "-o", tmp_path / "small.tflite", "--json"]
    code, text = run(model, model, *options)
    assert (code, json.loads(text)) == (0, {"format": "bittrue-reduce-1", "equal": True})
    assert not (tmp_path / "small.tflite").exists()
    code, text = run(model, f"{model}@xnnpack", *options)
    found = json.loads(text)
    assert (code, found["equal"]) == (1, False)
    assert found["operators"] == ["FULLY_CONNECTED"]
    assert found["inputs"]["[x]"][0] == 1
    assert (found["of_a"] - found["of_b"]) ** 2 == 1


def test_wrong_usage(model: Path, tmp_path: Path) -> None:
    with pytest.raises(bittrue.InputError, match="takes two sides"):
        run(model, "-o", tmp_path / "small.tflite")
    with pytest.raises(bittrue.InputError, match="written over"):
        run(model, f"{model}@xnnpack", "-o", model)
    with pytest.raises(bittrue.InputError, match=r"is a \.tflite file like the whole one"):
        run(model, f"{model}@xnnpack", "-o", tmp_path / "small.onnx")
    code, text = run(model, f"{model}@xnnpack")
    assert code == 2
    assert "--output" in text


def test_sides_are_named_as_they_were_typed(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sides = ["./m.tflite", f"./{model.name}@xnnpack"]
    code, text = run(*sides, "-o", tmp_path / "small.tflite", "--runs", 3, "--json")
    found = json.loads(text)
    assert (code, found["a"], found["b"]) == (1, f"{tmp_path}/small.tflite", f"{tmp_path}/small.tflite@xnnpack")
