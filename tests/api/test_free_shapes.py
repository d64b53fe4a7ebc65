"""Sessions of models that leave sizes of their inputs open: every run may have others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.cli import cli
from bittrue.plan import first_plan
from support.build import T, chain

onnxruntime = pytest.importorskip("onnxruntime")


def _model(
    nodes: list[tuple[str, list[str], list[str]]], inputs: dict[str, list[int | str]], outputs: list[str]
) -> bytes:
    weights = np.random.default_rng(0).standard_normal((2, 1, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node(operator, given, made) for operator, given, made in nodes],
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(weights, "w")],
    )
    graph.node[0].attribute.extend([helper.make_attribute("axis", 1)] if graph.node[0].op_type == "Concat" else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


_CONVOLUTION = _model([("Conv", ["x", "w"], ["y"]), ("Relu", ["y"], ["z"])], {"x": ["N", 1, "H", "W"]}, ["z"])
_CACHE = _model(
    [("Concat", ["past", "x"], ["all"]), ("Relu", ["all"], ["y"])],
    {"past": ["N", "T", 2], "x": ["N", 1, 2]},
    ["all", "y"],
)


def _images(*shapes: tuple[int, int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((n, 1, h, w)).astype(np.float32) for n, h, w in shapes]


@pytest.mark.parametrize("executor", ["native", "reference"])
def test_every_run_may_have_other_sizes(executor: str) -> None:
    session = bittrue.load(_CONVOLUTION).prepare(executor=executor)
    assert session.inputs[0].free == {0, 2, 3}
    assert repr(session.inputs[0]) == "Port('x', float32[?, 1, ?, ?])"
    runtime = onnxruntime.InferenceSession(_CONVOLUTION)
    for x in _images((1, 5, 7), (3, 4, 9), (1, 8, 8), (1, 5, 7), (2, 3, 3)):
        (expected,) = runtime.run(None, {"x": x})
        assert session.run(x)["z"].tobytes() == expected.tobytes()
        assert session.run(x=x)["z"].shape == expected.shape
        assert session.trace(x)["z"].tobytes() == expected.tobytes()
        assert session.profile(x, rounds=1).steps


def test_sizes_by_the_names_of_free_dimensions() -> None:
    session = bittrue.load(_CONVOLUTION).prepare(shapes={"H": 6, "W": (9,)})
    assert [session.plan.tensors[i].shape for i in session.plan.inputs] == [(1, 1, 6, 9)]
    for x in _images((1, 6, 9), (2, 5, 7)):
        (expected,) = onnxruntime.InferenceSession(_CONVOLUTION).run(None, {"x": x})
        assert session.run(x)["z"].tobytes() == expected.tobytes()
    session = bittrue.load(_CACHE).prepare(shapes={"x": (4, 1, 2), "N": 4, "T": 3})
    assert [session.plan.tensors[i].shape for i in session.plan.inputs] == [(4, 3, 2), (4, 1, 2)]
    assert bittrue.load(_CONVOLUTION).prepare(shapes={"x": (1, 1, 5, 5), "H": 9}).inputs[0].shape == (1, 1, 9, 5)
    # What no name is given for is as small as fits.
    assert bittrue.load(_CONVOLUTION).prepare(shapes={"H": 9}).inputs[0].shape == (1, 1, 9, 3)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is tried after the sizes of the file."""
    tried: list[object] = []
    inner = first_plan.plan_for
    monkeypatch.setattr(first_plan, "plan_for", lambda plan, shapes: tried.append(shapes) or inner(plan, shapes))
    return tried


_FORMULA = _model(
    [("Concat", ["past", "x"], ["all"]), ("MatMul", ["mask", "all"], ["y"])],
    {"past": ["N", "T", 2], "x": ["N", "S", 2], "mask": ["N", 1, "T + S"]},
    ["y"],
)


def test_names_that_are_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters name a dimension by those that it follows from."""
    tried, model = _counted(monkeypatch), bittrue.load(_FORMULA)
    for shapes, sizes in (({}, (1, 1, 2)), ({"T": 3, "S": 4}, (3, 4, 7)), ({"S": 4}, (1, 4, 5))):
        plan = model.prepare(shapes=shapes).plan
        assert [plan.tensors[index].shape for index in plan.inputs] == [
            (1, sizes[0], 2),
            (1, sizes[1], 2),
            (1, 1, sizes[2]),
        ]
    assert len(tried) == 2
    with pytest.raises(bittrue.InvalidModelError):
        model.prepare(shapes={"T": 3, "S": 4, "T + S": 5})


@pytest.mark.parametrize(
    ("names", "most"), [(["T"] * 4, 21), (["T", "S", "T", "S"], 63), (["T - S", "T", "S", "T"], 64)]
)
def test_one_size_for_one_name(names: list[str], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs whose axes have one name are not tried apart, though no sizes fit."""
    tried = _counted(monkeypatch)
    inputs: dict[str, list[int | str]] = {f"x{k}": [3, name] for k, name in enumerate(names)}
    nodes = [("Relu", [name], [f"{name} relu"]) for name in inputs]
    nodes += [("Reshape", ["x0", "target"], ["r"]), ("Add", ["r", "x1"], ["y"])]
    model = onnx.load_from_string(_model(nodes, inputs, ["y"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([5, 7]), "target"))
    assert bittrue.load(model.SerializeToString()).prepare().plan.later is not None
    assert 0 < len(tried) <= most


def test_sizes_that_no_dimension_can_have() -> None:
    model = bittrue.load(_CONVOLUTION)
    with pytest.raises(bittrue.InputError, match=r"'K' is no input and no free dimension.*x, N, H, W"):
        model.prepare(shapes={"K": 3})
    with pytest.raises(bittrue.InputError, match=r"dimension 'H': .*\[3, 4\] is not one size"):
        model.prepare(shapes={"H": (3, 4)})
    with pytest.raises(bittrue.InputError, match=r"dimension 'H': .*negative"):
        model.prepare(shapes={"H": -3})
    with pytest.raises(bittrue.InputError, match="input 'x': 3 is no list of integers"):
        model.prepare(shapes={"x": 3})
    # No other sizes are tried in place of those that were asked for.
    with pytest.raises(bittrue.InvalidModelError):
        model.prepare(shapes={"H": 2})


def test_sizes_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(_CONVOLUTION)
    command = ["run", str(tmp_path / "model.onnx"), "--shape", "H=6", "--shape", "W=9", "--json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert [port["shape"] for port in json.loads(done.output)["inputs"]] == [[1, 1, 6, 9]]


def test_random_values_of_a_comparison_have_the_sizes_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_CONVOLUTION)
    done = CliRunner().invoke(
        cli, ["compare", f"ort:{path}", str(path), "--shape", "H=6", "--shape", "x=2,1,5,9", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert [pair["shape"] for pair in json.loads(done.output)["pairs"]] == [[2, 1, 6, 9], [2, 2, 4, 7]]
    done = CliRunner().invoke(cli, ["compare", f"ort:{path}", str(path), "--shape", "K=6"])
    assert "'K' is no input and no free dimension of either side" in str(done.exception)
    result = bittrue.compare_models(f"{path}@onnx", str(path), seeds=(3, 4), shapes={"H": 8, "W": 7, "N": 2})
    assert [pair.shape for pair in result.pairs] == [(2, 1, 8, 7), (2, 2, 6, 5), (2, 2, 6, 5)]


def test_samples_of_many_sizes() -> None:
    session = bittrue.load(_CONVOLUTION).prepare()
    samples = _images(*[(1 + i % 2, 3 + i % 5, 8) for i in range(40)])
    expected = [session.run(x)["z"] for x in samples]
    for threads in (1, 2):
        found = [result["z"] for result in session.map(samples, threads=threads)]
        assert [(x.shape, x.tobytes()) for x in found] == [(x.shape, x.tobytes()) for x in expected]


def test_a_cache_that_grows() -> None:
    session, past = bittrue.load(_CACHE).prepare(), np.zeros((1, 0, 2), np.float32)
    for step in range(40):
        x = np.full((1, 1, 2), step, np.float32)
        past = session.run({"past": past, "x": x})["all"]
    assert past[0, :, 0].tolist() == [*range(40)]


def test_what_does_not_fit() -> None:
    session = bittrue.load(_CONVOLUTION).prepare()
    with pytest.raises(bittrue.InputError, match=r"expected shape \[\?, 1, \?, \?\], found \[1, 2, 5, 5\]"):
        session.run(np.zeros((1, 2, 5, 5), np.float32))
    with pytest.raises(bittrue.InputError, match="expected float32, found float64"):
        session.run(np.zeros((1, 1, 9, 9)))
    with pytest.raises(bittrue.InvalidModelError):
        session.run(np.zeros((1, 1, 2, 2), np.float32))
    # Given shapes are for one plan.
    with pytest.raises(bittrue.InputError, match="expected shape"):
        bittrue.load(_CONVOLUTION).prepare(shapes={"x": (1, 1, 5, 5)}).run(np.zeros((1, 1, 6, 6), np.float32))
    with pytest.raises(bittrue.BittrueError):
        bittrue.load(_CACHE).prepare().run(
            {"past": np.zeros((2, 3, 2), np.float32), "x": np.zeros((1, 1, 2), np.float32)}
        )


def _states(length: int) -> bytes:
    """One step of a network with a state, [2, batch, 3], on `length` numbers per sample; symbols name the batch."""
    rng = np.random.default_rng(length)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Add", ["h", "state"], ["next"]),
            helper.make_node("Concat", ["next", "state"], ["y"], axis=1),
        ],
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "n"]),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [2, "batch", 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(rng.standard_normal((length, 3)).astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("length", [64, 600])
def test_sizes_that_only_runs_know(length: int, tmp_path: Path) -> None:
    """The batch stays 1 wherever its name stands; a plan that fits no size tried ends, and runs are planned anew."""
    content, rng = _states(length), np.random.default_rng(1)
    session, runtime = bittrue.load(content).prepare(), onnxruntime.InferenceSession(content)
    assert [port.shape for port in session.inputs] == [(1, 64 if length == 64 else 1), (2, 1, 3)]
    assert (session.plan.later is None) == (length == 64)
    for batch in (1, 3):
        feeds = {
            "x": rng.standard_normal((batch, length)).astype(np.float32),
            "state": rng.standard_normal((2, batch, 3)).astype(np.float32),
        }
        (expected,) = runtime.run(None, feeds)
        assert session.run(feeds)["y"].tobytes() == expected.tobytes()
        assert next(session.map([feeds]))["y"].tobytes() == expected.tobytes()
    for size in (1, 7):
        with pytest.raises(bittrue.BittrueError, match="MatMul"):
            session.run({"x": np.zeros((1, size), np.float32), "state": np.zeros((2, 1, 3), np.float32)})
    if length == 600:
        (tmp_path / "model.onnx").write_bytes(content)
        done = CliRunner().invoke(cli, ["plan", str(tmp_path / "model.onnx")], catch_exceptions=False)
        assert done.exit_code == 0
        assert "planned while running, because" in " ".join(done.output.split())
        session.plan.save(tmp_path / "model.plan")
        assert str(bittrue.load_plan(tmp_path / "model.plan").plan) == str(session.plan)


@pytest.mark.parametrize("batch", [8, 21])
def test_a_batch_that_the_exporter_kept(batch: int) -> None:
    """A Reshape fits the number of samples that the exporter saw, tried (8) or not, though the file leaves it open."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array([batch, 2, 3]), "shape"),
            numpy_helper.from_array(np.array([[1, -2], [0.5, 3], [-1, 0.25]], np.float32), "w"),
        ],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    x = np.random.default_rng(batch).standard_normal((batch, 6)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(content).run(None, {"x": x})
    session = bittrue.load(content).prepare()
    assert session.inputs[0].shape == (8 if batch == 8 else 1, 6)
    assert session.run(x)["y"].tobytes() == expected.tobytes()
    with pytest.raises(bittrue.InvalidModelError, match="Reshape"):
        session.run(x[1:])


def test_positions_that_sizes_decide() -> None:
    """A tensor of sizes alone whose positions lie outside of it but for long inputs (Funnel by TorchScript)."""
    graph = helper.make_graph(
        [
            helper.make_node("Shape", ["x"], ["sizes"]),
            helper.make_node("Gather", ["sizes", "one"], ["length"]),
            helper.make_node("Range", ["zero", "length", "one"], ["places"]),
            helper.make_node("GatherElements", ["places", "seven"], ["found"]),
            helper.make_node("Cast", ["found"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["x", "real"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.int64(n), name) for n, name in ((0, "zero"), (1, "one"))]
        + [numpy_helper.from_array(np.int64([700]), "seven")],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = bittrue.load(content).prepare()
    x = np.ones((2, 701), np.float32)
    (expected,) = onnxruntime.InferenceSession(content).run(None, {"x": x})
    assert session.run(x)["y"].tobytes() == expected.tobytes()
    with pytest.raises(bittrue.RunError, match="position 700 must lie in"):
        session.run(x[:, 1:])


def test_commands_take_sizes_that_fit(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_states(64))
    for command, said in (
        (["inspect", str(path)], "[2, batch, 3]"),
        (["inspect", str(path)], "numerics that run it: single-rounding, onnx, onnxruntime"),
        (["check", str(path)], "0 errors, 0 warnings, 1 note"),
        (["compare", str(path), f"ort:{path}"], "EQUAL: 5 tensors"),
        (["run", str(path)], "[2, 1, 3]"),
    ):
        done = CliRunner().invoke(cli, command, env={"COLUMNS": "200"}, catch_exceptions=False)
        assert done.exit_code == 0
        assert said in done.output


def test_faults_that_no_sizes_cure() -> None:
    content = _model(
        [("MatMul", ["x", "w"], ["y"]), ("MatMul", ["w", "v"], ["z"])], {"x": ["N", 3], "v": [5, 5]}, ["z"]
    )
    with pytest.raises(bittrue.InvalidModelError):
        bittrue.load(content).prepare()


def test_files_of_other_sizes(tmp_path: Path) -> None:
    (x,) = _images((2, 6, 7))
    (tmp_path / "model.onnx").write_bytes(_CONVOLUTION)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out.npz"
    command = ["run", str(tmp_path / "model.onnx"), "-i", str(tmp_path / "x.npy"), "-o", str(out)]
    assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    (expected,) = onnxruntime.InferenceSession(_CONVOLUTION).run(None, {"x": x})
    assert np.load(out)["z"].tobytes() == expected.tobytes()


def test_commands_take_inputs_of_any_size(tmp_path: Path) -> None:
    """They speak of what runs, not of the plan for small sizes."""
    model, array = tmp_path / "m.onnx", tmp_path / "x.npy"
    model.write_bytes(_CONVOLUTION)
    (x,) = _images((1, 9, 11))
    np.save(array, x)

    def run(*arguments: object) -> tuple[int, str]:
        done = CliRunner().invoke(cli, [*map(str, arguments), "-i", str(array)])
        return done.exit_code, done.output

    code, text = run("explain", model, "--tensor", "z", "--element", "0,1,6,8")
    assert (code, "'z' [0, 1, 6, 8]" in text) == (0, True), text
    code, text = run("compare", model, f"ort:{model}?level=disable")
    assert (code, "EQUAL" in text) == (0, True), text
    code, text = run("reduce", model, f"ort:{model}", "-o", tmp_path / "small.onnx")
    assert (code, "nothing to reduce" in text) == (0, True), text


def test_what_only_some_sizes_make_inexact_is_said_of_these(tmp_path: Path) -> None:
    """Sums of so many terms are known for single rows."""
    rng = np.random.default_rng(0)
    x, y = T("f32", (1, 700), signature=(-1, 700)), T("f32", (1, 4), signature=(-1, 4))
    weights, bias = (T("f32", shape, data=rng.standard_normal(shape)) for shape in ((4, 700), (4,)))
    options = ("FullyConnectedOptions", {})
    model = tmp_path / "m.tflite"
    model.write_bytes(chain([("FULLY_CONNECTED", options, [x, weights, bias], [y], 3)]))
    session = bittrue.load(model).prepare("litert-optimized")
    one, several = (rng.standard_normal((rows, 700)).astype(np.float32) for rows in (1, 3))
    name = session.inputs[0].name
    assert session.fitting({name: one}).plan.inexact == ()
    with pytest.warns(bittrue.InexactWarning, match="1 FULLY_CONNECTED"):
        fitted = session.fitting({name: several})
    assert (fitted.plan.inexact, fitted.inputs[0].shape) == (("FULLY_CONNECTED",), several.shape)
    for rows, said in ((one, False), (several, True)):
        np.save(tmp_path / "x.npy", rows)
        text = (
            CliRunner()
            .invoke(cli, ["run", str(model), "--numerics", "litert-optimized", "-i", str(tmp_path / "x.npy")])
            .output
        )
        assert ("may differ from the runtime in bits" in text) == said, text
