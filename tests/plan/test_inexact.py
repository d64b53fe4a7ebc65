"""What may differ from the runtime in bits is said before anything runs, wherever it is computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from support.onnx_models import single

_X = np.float32([[3, -1, 3], [2, 5, -7]])


def test_steps_folded_and_later() -> None:
    for constants in ((), ("x",)):
        content, _ = single("Cos", {"x": _X}, [1], constants=constants)
        plan = bittrue.load(content).prepare("onnxruntime").plan
        assert plan.inexact == ("Cos",)
        assert "in bits" in str(plan)
    for ordered in (0, 1):
        # How many there are is an input, so that the operator is planned while running.
        content, _ = single("TopK", {"x": _X, "k": np.int64([2])}, [1, 7], {"sorted": ordered})
        plan = bittrue.load(content).prepare("onnxruntime").plan
        assert plan.later is not None
        assert plan.inexact == (() if ordered else ("TopK",))
        assert ("in bits" in str(plan)) != bool(ordered)
    content, _ = single("Neg", {"x": _X}, [1])
    assert bittrue.load(content).prepare("onnxruntime").plan.inexact == ()


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "cos.onnx"
    path.write_bytes(single("Cos", {"x": _X}, [1])[0])
    for command in ("inspect", "plan", "run"):
        done = CliRunner().invoke(cli, [command, str(path)], env={"COLUMNS": "300"})
        assert done.exit_code == 0
        assert "in bits" in " ".join(done.output.split())
