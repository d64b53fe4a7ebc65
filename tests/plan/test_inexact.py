"""What may differ from the runtime in bits is said before anything runs, wherever it is computed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import helper

import bittrue
from bittrue import numerics
from bittrue.cli import cli
from support.onnx_models import MICROSOFT, build, single
from support.runtime_models import hidden_scores

_X = np.float32([[3, -1, 3], [2, 5, -7]])


def _distances(*constants: str) -> bytes:
    """Of which `onnxruntime@aarch64` does not know the last bit."""
    return single("CDist", {"x": _X, "z": _X}, [1], domain=MICROSOFT, constants=constants)[0]


def test_steps_folded_and_later() -> None:
    for constants in ((), ("x", "z")):
        plan = bittrue.load(_distances(*constants)).prepare("onnxruntime@aarch64").plan
        assert set(plan.inexact) == {"CDist"}
        assert "in bits" in str(plan)
    # The size is an input, so that what follows is planned while running.
    plan = bittrue.load(hidden_scores(size_later=True)).prepare("onnxruntime").plan
    assert plan.later is not None
    assert plan.inexact == ("Softmax",)
    assert "in bits" in str(plan)
    content, _ = single("Neg", {"x": _X}, [1])
    assert bittrue.load(content).prepare("onnxruntime").plan.inexact == ()


def test_kernels_for_binary16_on_aarch64() -> None:
    """What replaces such nodes, where no cast is left to say so, and what reads them; no other node."""
    half = {name: np.full((2, 2), value, np.float16) for name, value in (("x", 0.5), ("b", 0.25))}
    nodes = [
        helper.make_node("Neg", ["x"], ["negative"]),
        helper.make_node("LeakyRelu", ["negative"], ["curved"], alpha=-0.5),
        helper.make_node("Add", ["curved", "b"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["wide"], to=1),
        helper.make_node("Sigmoid", ["wide"], ["y"]),
    ]
    model = bittrue.load(build(nodes, {"x": half["x"]}, {"y": 1}, {"b": half["b"]})[0])
    plan = model.prepare("onnxruntime@aarch64").plan
    unsure = {step.source for step in plan.steps if step.inexact}
    assert {"Sigmoid", "LeakyRelu", "Add"} <= unsure
    assert not any(step.inexact for step in plan.steps if step.source == "Neg")
    assert any("what 1 of this graph's nodes and those behind them give may differ" in note for note in plan.notes)
    assert model.prepare("onnxruntime").plan.inexact == ()
    other, _ = single("Sigmoid", {"x": _X}, [1])
    plan = bittrue.load(other).prepare("onnxruntime@aarch64").plan
    assert plan.notes == (numerics.find("onnxruntime").limit,)


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "attention.onnx"
    path.write_bytes(hidden_scores())
    for command in ("plan", "run"):
        done = CliRunner().invoke(cli, [command, str(path)], env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        assert "in bits" in " ".join(done.output.split())


def test_warning() -> None:
    with pytest.warns(bittrue.InexactWarning, match="1 Softmax under numerics 'onnxruntime'") as said:
        bittrue.load(hidden_scores()).prepare("onnxruntime")
    assert [one.filename for one in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bittrue.load(single("Neg", {"x": _X}, [1])[0]).prepare("onnxruntime")


def test_evaluate_says_it_first(tmp_path: Path) -> None:
    (tmp_path / "top.onnx").write_bytes(hidden_scores())
    np.savez(tmp_path / "data.npz", x=_X[:, None], y=np.int64([0, 1]))
    command = ["evaluate", str(tmp_path / "top.onnx"), "--data", str(tmp_path / "data.npz")]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(
        "note: results may differ from the runtime's in bits: 1 Softmax under numerics 'onnxruntime'"
    )


@pytest.mark.parametrize(("operator", "said"), [("Sigmoid", True), ("Transpose", False)])
def test_plans_say_what_all_rows_on_real_numbers_may_do(operator: str, said: bool) -> None:
    model = bittrue.load(single(operator, {"x": _X}, [1])[0])
    limit = numerics.find("onnxruntime").limit
    assert (limit in model.prepare("onnxruntime").plan.notes) == said
    assert ("NaN: the sign" in str(model.prepare("onnxruntime").plan)) == said
    assert "NaN: the sign" not in str(model.prepare("onnx").plan)
    assert "NaN: the sign" in CliRunner().invoke(cli, ["numerics", "show", "onnxruntime", "--operator", "erf"]).output
