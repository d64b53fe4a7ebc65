"""The command line: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from onnx import helper

import bittrue
from bittrue.cli import _COMMANDS, cli
from support.build import T, single
from support.command import run
from support.shared import SHARED, needs_shared


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


def test_demo_shows_predictions_and_one_rounding() -> None:
    out = run("demo").stdout
    for word in ("prediction", "held-out digits right", "accumulator", "first rounding", "another bit"):
        assert word in out, word


def test_version_and_help() -> None:
    assert bittrue.__version__ in run("--version").stdout
    for command in ("run", "inspect", "plan", "demo"):
        assert command in run("--help").stdout
        assert "Usage" in run(command, "--help").stdout


def test_run_with_arrays(demo: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x)
    expected = bittrue.load(demo).prepare().run(x)
    for source in ("x.npy", "x.npz"):
        run("run", demo, "-i", tmp_path / source, "-o", tmp_path / "y.npz")
        with np.load(tmp_path / "y.npz") as archive:
            assert all(archive[name].tobytes() == value.tobytes() for name, value in expected.items())


def test_run_random_is_seeded(demo: Path) -> None:
    one, same, other = (json.loads(run("run", demo, "--seed", s, "--json").stdout) for s in (1, 1, 2))
    assert one == same
    assert one["inputs"] != other["inputs"]


def test_trace_folder_has_every_tensor(demo: Path, tmp_path: Path) -> None:
    run("run", demo, "--trace", tmp_path / "trace", "--seed", 3)
    index = json.loads((tmp_path / "trace" / "trace.json").read_text())
    session = bittrue.load(demo).prepare()
    first = np.load(tmp_path / "trace" / index["tensors"][0]["file"])
    expected = session.trace(first)
    assert [t["name"] for t in index["tensors"]] == list(expected)
    for entry in index["tensors"]:
        assert np.load(tmp_path / "trace" / entry["file"]).tobytes() == expected[entry["name"]].tobytes()


def test_inspect(demo: Path) -> None:
    out = run("inspect", demo, "--tensors", "--nodes").stdout
    assert "CONV_2D" in out
    assert "litert" in out
    described = json.loads(run("inspect", demo, "--json").stdout)
    assert len(described["graphs"][0]["nodes"]) == 9


def _save(path: Path, node: onnx.NodeProto, **shapes: Sequence[int | str] | None) -> Path:
    """A model of one node, whose tensors' declared shapes come in the order of inputs and outputs."""
    values = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    graph = helper.make_graph([node], "g", values[: len(node.input)], values[len(node.input) :])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


@pytest.mark.parametrize(("shape", "shown"), [(None, "?"), ([], "[]"), (["n", 2], "[n, 2]")])
def test_inspect_says_which_shapes_a_file_leaves_open(
    shape: Sequence[int | str] | None, shown: str, tmp_path: Path
) -> None:
    path = _save(tmp_path / "m.onnx", helper.make_node("Relu", ["x"], ["y"]), x=["n", 2], y=shape)
    output = next(line for line in run("inspect", path).stdout.splitlines() if line.startswith("output "))
    assert output.split(maxsplit=3)[3].strip() == shown


def test_inspect_says_what_depends_on_threads(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    path = _save(tmp_path / "m.onnx", node, x=[8, 600], w=[600, 2000], y=[8, 2000])
    told, *others = json.loads(run("inspect", path, "--json").stdout)["notes"]
    assert any(note.startswith("NaN: ") for note in others)
    assert "sessions of several threads" in told
    assert told.endswith(
        "products by weights that are no constants, that add up more than 128 products each (nodes: 1)"
    )
    assert "sessions of several threads" in run("inspect", path).stdout


def test_inspect_joins_variants_that_are_all_there(tmp_path: Path) -> None:
    """Erf is an operator that TVM's QNN does not have; Add is one of all its variants."""
    path = _save(tmp_path / "m.onnx", helper.make_node("Add", ["x", "y"], ["z"]), x=[2], y=[2], z=[2])
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("Erf", ["z"], ["w"]))
    onnx.save(model, path)
    out = run("inspect", path).stdout
    assert "tvm-qnn*" in out
    assert "tvm-qnn-" not in out
    assert "name*: with all variants of it" in out


def test_plan_file_runs(demo: Path, tmp_path: Path) -> None:
    out = run("plan", demo, "-o", tmp_path / "digits.plan").stdout
    assert "rescale=q31_two_step_up_away" in out
    one = json.loads(run("run", demo, "--json").stdout)
    two = json.loads(run("run", tmp_path / "digits.plan", "--json").stdout)
    assert one["outputs"] == two["outputs"]


def test_until_option(demo: Path) -> None:
    name = list(bittrue.load(demo).prepare().trace(np.zeros((1, 8, 8, 1), np.int8)))[2]
    described = json.loads(run("run", demo, "--json", "--until", name).stdout)
    assert [output["name"] for output in described["outputs"]] == [name]
    assert "BT-OUTPUT-NAME" in run("plan", demo, "--until", "nobody", check=2).stderr


def test_shape_option(tmp_path: Path) -> None:
    path = tmp_path / "softmax.tflite"
    tensors = [T("s8", (1, 10), 0.1, 3, name="x")], [T("s8", (1, 10), 1 / 256, -128)]
    path.write_bytes(single("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), *tensors))
    described = json.loads(run("run", path, "--json", "--shape", "x=3,10").stdout)
    assert described["inputs"][0]["shape"] == described["outputs"][0]["shape"] == [3, 10]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nonsense"], 2),
        (["run", "no_such_file.tflite"], 2),
        (["run", "{demo}", "--numerics", "nobody"], 2),
        (["run", "{demo}", "-i", "no_such_file.npy"], 2),
        (["run", "{demo}", "-i", "nobody={demo}"], 2),
        (["run", "{demo}", "--shape", "picture=a,b"], 2),
        (["run", "{demo}", "-i", "{text}"], 2),
        (["run", "{text}"], 3),
        (["inspect", "{text}"], 3),
        (["plan", "{text}"], 3),
        (["run", "{demo}", "--memory-limit", "1", "--shape", "picture=9000,8,8,1"], 3),
    ],
)
def test_exit_codes(demo: Path, tmp_path: Path, arguments: list[str], code: int) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("just text")
    done = run(*(a.format(demo=demo, text=text) for a in arguments), check=code)
    assert done.stderr.strip()


@needs_shared
def test_a_macaw_is_named() -> None:
    done = run(
        "run", SHARED / "models" / "coral_tf2_mobilenet_v2_1.0_224_ptq.tflite",
        "--input", SHARED / "images" / "parrot.jpg",
        "--labels", SHARED / "images" / "imagenet_labels.txt", "--json",
    )  # fmt: skip
    best = json.loads(done.stdout)["top"][0]
    assert "macaw" in best["label"]
    # 238 with Pillow 13; decoding and resizing differ a little between its versions.
    assert 220 <= best["raw"] <= 250


@needs_shared
def test_too_few_labels_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("one\n")
    model = SHARED / "models" / "tiny_kws_int8.tflite"
    assert "BT-LABELS" in run("run", model, "--labels", tmp_path / "labels.txt", check=2).stderr


def test_numerics_are_listed_shown_and_compared() -> None:
    out = run("numerics").stdout
    for name in bittrue.numerics_names():
        assert name in out
    assert "q31_two_step_up_away" in run("numerics", "show", "litert", "--operator", "conv").stdout
    run("numerics", "show", "litert", "--operator", "no_such_operator", check=2)
    for name, rule in (("xnnpack", "binary32_multiply_even"), ("xnnpack@aarch64", "q31_one_step_up")):
        shown = run("numerics", "show", name, "--operator", "mul").stdout
        assert rule in shown
        assert "aarch64: " in shown
    assert "aarch64: " not in run("numerics", "show", "mxnet", "--operator", "conv").stdout
    out = run("numerics", "diff", "litert", "litert@1.2", "--operator", "fully_connected", check=1).stdout
    assert "binary64_multiply_away" in out
    assert "accumulator" in out
    run("numerics", "diff", "litert", "litert")


def test_differences_of_numerics_as_json() -> None:
    found = json.loads(
        run("numerics", "diff", "litert", "single-rounding", "--operator", "conv", "--json", check=1).stdout
    )
    shown = found["examples"][0]
    assert (shown["slot"], shown["rules"]) == ("rescale", ["q31_two_step_up_away", "q31_one_step_up"])
    assert found["differences"][0]["operator"] == "conv"


def test_help_imports_no_command_and_says_what_each_one_says() -> None:
    code = "import sys; from bittrue.cli import main\n"
    code += "try: main(['--help'])\nexcept SystemExit: print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    for name, sentence in _COMMANDS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.get_short_help_str(limit=90) == sentence
        assert name in done.stdout
