"""The public API as a user meets it."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.errors import InputError
from support.build import T, chain
from support.differential import assert_same
from support.oracle import oracle


@pytest.fixture(scope="module")
def session() -> bittrue.Session:
    return bittrue.load(bittrue.demo_model()).prepare(numerics="litert")


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)


def test_every_tensor_of_the_demo_equals_the_runtime(session: bittrue.Session) -> None:
    graph = bittrue.load(bittrue.demo_model()).graph
    wanted = [i for node in graph.nodes for i in node.outputs]
    for seed in range(20):
        traced = session.trace(image(seed))
        answer = oracle().run(bittrue.demo_model(), [[image(seed)]], wanted)
        for index in wanted:
            assert_same(graph.tensors[index].name, traced[graph.tensors[index].name], answer.values[index])


def test_demo_accuracy(session: bittrue.Session) -> None:
    images, labels = bittrue.demo_digits()
    port = session.inputs[0]
    q = bittrue.quantize(images.astype(np.float32) / 16, port.scale, port.zero_point, "int8")
    guesses = [int(np.argmax(next(iter(session.run(x[None]).values())))) for x in q]
    assert np.mean(np.array(guesses) == labels) >= 0.97


def test_names_positions_and_signature_names_are_one(session: bittrue.Session) -> None:
    x = image()
    (name,) = (port.name for port in session.inputs)
    expected = session.run(x)
    for outputs in (session.run({name: x}), session.run({"picture": x}), session.run(picture=x)):
        assert list(outputs) == [port.name for port in session.outputs]
        assert all(outputs[key].tobytes() == expected[key].tobytes() for key in expected)


def test_calls_of_several_arrays_go_straight_to_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """By order or by name in any order; what does not fit as it is goes the long way: the same result, or an error."""
    a, b, c = (T("s8", (1, 4), scale, 3) for scale in (0.5, 0.25, 0.125))
    first, second = T("s8", (1, 4), 0.5, 1), T("s8", (1, 4), 0.75, -2)
    nodes = [("ADD", ("AddOptions", {}), [a, b], [first], 2), ("ADD", ("AddOptions", {}), [b, c], [second], 2)]
    model = bittrue.load(chain(nodes))
    session = model.prepare()
    names = [port.name for port in session.inputs]
    arrays = [np.arange(4, dtype=np.int8).reshape(1, 4) * (5 + i) for i in range(3)]
    expected = model.prepare(executor="reference").run(*arrays)
    given = dict(zip(names, arrays, strict=True))
    wide = {**given, names[1]: np.asfortranarray(np.repeat(arrays[1], 2, 0))[::2]}
    for call in ((given,), (dict(reversed(given.items())),), (*arrays,), (wide,)):
        found = session.run(*call)
        assert list(found) == list(expected)
        assert all(found[name].tobytes() == value.tobytes() for name, value in expected.items())
    for arguments in (({names[0]: arrays[0]},), (arrays[0],), (*arrays, arrays[0]), ({**given, "x": arrays[0]},)):
        with pytest.raises(InputError):
            session.run(*arguments)
    for wrong in (arrays[2].astype(np.int16), arrays[2].reshape(4), None):
        with pytest.raises(InputError):
            session.run(*arrays[:2], wrong)
    monkeypatch.setattr(session._executor, "run", None)
    assert list(session.run(given)) == list(session.run(*arrays)) == list(expected)


def test_trace_is_in_execution_order_and_ends_in_the_output(session: bittrue.Session) -> None:
    traced = session.trace(image())
    names = list(traced)
    assert names[0] == session.inputs[0].name
    assert names[-1] == session.outputs[0].name
    assert set(names) >= {session.plan.tensors[i].name for step in session.plan.steps for i in step.outputs}


def test_results_belong_to_the_caller(session: bittrue.Session) -> None:
    x = image()
    first = session.run(x)
    kept = {name: value.copy() for name, value in first.items()}
    for value in first.values():
        value[...] = 0
    again = session.run(x)
    assert all(again[name].tobytes() == kept[name].tobytes() for name in kept)


def test_path_bytes_and_file_objects(tmp_path: Path) -> None:
    content = bittrue.demo_model()
    path = tmp_path / "name_without_meaning.bin"
    path.write_bytes(content)
    for source in (path, str(path), content, bytearray(content), memoryview(content), io.BytesIO(content)):
        assert len(bittrue.load(source).graph.nodes) == 9


def test_model_prints_what_is_inside() -> None:
    text = str(bittrue.load(bittrue.demo_model()))
    assert "CONV_2D" in text
    assert "int8[1, 8, 8, 1]" in text
    assert "0.00390625" in text


def test_floats_are_refused_with_the_way_out(session: bittrue.Session) -> None:
    x = np.zeros((1, 8, 8, 1), np.float32)
    with pytest.raises(bittrue.InputError, match=r"bittrue\.quantize") as caught:
        session.run(x)
    assert "scale=0.00390625" in str(caught.value)
    assert "zero_point=-128" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "named", "code"),
    [
        ((), {}, "BT-INPUT-MISSING"),
        ((np.zeros((1, 8, 8, 1), np.int8), 3), {}, "BT-INPUT-COUNT"),
        (({"nobody": np.zeros((1, 8, 8, 1), np.int8)},), {}, "BT-INPUT-NAME"),
        ((np.zeros((1, 8, 8, 1), np.int8),), {"picture": np.zeros((1, 8, 8, 1), np.int8)}, "BT-INPUT-NAME"),
        ((np.zeros((1, 8, 8, 1), np.uint8),), {}, "BT-INPUT-TYPE"),
        ((np.zeros((1, 8, 8, 1), np.int64),), {}, "BT-INPUT-TYPE"),
        ((np.zeros((8, 8), np.int8),), {}, "BT-INPUT-SHAPE"),
        ((np.zeros((2, 8, 8, 1), np.int8),), {}, "BT-INPUT-SHAPE"),
        (("text",), {}, "BT-INPUT-TYPE"),
        ((None,), {}, "BT-INPUT-TYPE"),
        (([[1, 2], [3]],), {}, "BT-INPUT-TYPE"),
    ],
)
def test_wrong_inputs(session: bittrue.Session, arguments: tuple, named: dict, code: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        session.run(*arguments, **named)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"numerics": "nobody"}, "BT-NUMERICS"),
        ({"executor": "nobody"}, "BT-EXECUTOR"),
        ({"threads": 0}, "BT-THREADS"),
        ({"graph": 7}, "BT-GRAPH"),
        ({"graph": "nobody"}, "BT-GRAPH"),
        ({"shapes": {"nobody": (1, 8, 8, 1)}}, "BT-INPUT-NAME"),
        ({"shapes": {"picture": (1, -8, 8, 1)}}, "BT-INPUT-SHAPE"),
        ({"shapes": {"picture": (1, 8.5, 8, 1)}}, "BT-INPUT-SHAPE"),
        ({"shapes": {"picture": "1,8,8,1"}}, "BT-INPUT-SHAPE"),
    ],
)
def test_wrong_preparations(options: dict, code: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        bittrue.load(bittrue.demo_model()).prepare(**options)
    assert caught.value.code == code


def test_sizes_beyond_the_limit_are_refused_before_any_allocation() -> None:
    model = bittrue.load(bittrue.demo_model())
    with pytest.raises(bittrue.ResourceError) as caught:
        model.prepare(shapes={"picture": (10**9, 8, 8, 1)})
    assert "memory_limit" in str(caught.value)
    with pytest.raises(bittrue.ResourceError):
        model.prepare(memory_limit=100)


def test_graph_by_signature_name() -> None:
    model = bittrue.load(bittrue.demo_model())
    assert str(model.prepare(graph="serving_default").plan) == str(model.prepare(graph=0).plan)


def test_errors_survive_pickling() -> None:
    error = bittrue.InputError("BT-X", "message", place="here", advice="do that")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "[BT-X] here: message (do that)"


def test_import_is_light() -> None:
    """`import bittrue` pulls in no framework, not even NumPy, and everything public is reachable."""
    code = (
        "import sys, bittrue;"
        "heavy = {'numpy', 'ai_edge_litert', 'tensorflow', 'onnxruntime', 'rich', 'click'} & set(sys.modules);"
        "assert not heavy, heavy; [getattr(bittrue, n) for n in bittrue.__all__];"
        "assert 'ai_edge_litert' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_first_result_imports_what_it_needs() -> None:
    """A network of 8-bit layers loads no other arithmetic of its operators, and nothing heavy beside NumPy."""
    code = (
        "import sys, numpy, bittrue; model = bittrue.demo_model(); known = set(sys.modules);"
        "session = bittrue.load(model).prepare();"
        "session.run({p.name: numpy.zeros(p.shape, p.dtype) for p in session.inputs});"
        "loaded = set(sys.modules) - known; print(*loaded)"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    ours = {name.removeprefix("bittrue.operators.") for name in found if name.startswith("bittrue.operators.")}
    assert "layers.conv" in ours
    others = "real_conv real_layers whole_conv whole_numbers hybrid_layers matmul_real".split()
    assert not ours & {f"layers.{name}" for name in others}
    assert not ours & {"elementwise.operand_pairs", "quantization.quantize_operands", "core.granularity"}
    assert not {"threading", "numpy.typing", "copy", "inspect", "dataclasses", "re"}.intersection(found)


def test_first_result_of_a_file_imports_few_modules(tmp_path: Path) -> None:
    """Each module takes 0.1 to 0.3 ms of the time to a first result: who needs one more gives another one up, or has a
    reason to raise the number.
    """
    path = tmp_path / "demo.tflite"
    path.write_bytes(bittrue.demo_model())
    code = (
        "import sys, numpy; known = set(sys.modules); import bittrue; session = bittrue.load(sys.argv[1]).prepare();"
        "session.run({p.name: numpy.zeros(p.shape, p.dtype) for p in session.inputs});"
        "print(*(set(sys.modules) - known))"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
    found = done.stdout.split()
    ours = {name for name in found if name.partition(".")[0] == "bittrue"}
    assert len(ours) <= 117
    assert {*found} - ours <= {"__future__", "_bisect", "atexit", "bisect", "errno", "gc"}


def test_quantize_per_axis() -> None:
    x = np.float32([[1.0, 1.0], [-1.0, -1.0]])
    q = bittrue.quantize(x, [0.5, 0.25], [0, 1], "int8", axis=1)
    assert q.tolist() == [[2, 5], [-2, -3]]
    assert bittrue.dequantize(q, [0.5, 0.25], [0, 1], axis=1).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (([1.0], 0.0), "BT-QUANT-SCALE"),
        (([1.0], float("nan")), "BT-QUANT-SCALE"),
        (([1.0], -1.0), "BT-QUANT-SCALE"),
        (([1.0], 1.0, 200), "BT-QUANT-ZERO-POINT"),
        (([1.0], 1.0, 0.5), "BT-QUANT-ZERO-POINT"),
        (([1.0], [1.0, 2.0]), "BT-QUANT-AXIS"),
        (([1.0], 1.0, 0, "float32"), "BT-DTYPE"),
        (([1.0], 1.0, 0, "nonsense"), "BT-DTYPE"),
    ],
)
def test_wrong_quantization(arguments: tuple, code: str) -> None:
    with pytest.raises(bittrue.InputError) as caught:
        bittrue.quantize(*arguments)
    assert caught.value.code == code


def test_a_part_of_the_model_by_tensor_names() -> None:
    model = bittrue.load(bittrue.demo_model())
    whole = model.prepare().trace(image())
    name = list(whole)[3]
    part = model.prepare(outputs=[name])
    assert len(part.plan.steps) == 3
    assert part.run(image())[name].tobytes() == whole[name].tobytes()
    both = model.prepare(outputs=[name, model.graph.tensors[model.graph.outputs[0]].name])
    assert len(both.run(image())) == 2


@pytest.mark.parametrize(
    ("names", "word"), [(["nobody"], "inspect"), ([], "no tensor"), (["StatefulPartitionedCall_1"], "mean")]
)
def test_wrong_parts(names: list[str], word: str) -> None:
    with pytest.raises(bittrue.InputError, match=word) as caught:
        bittrue.load(bittrue.demo_model()).prepare(outputs=names)
    assert caught.value.code == "BT-OUTPUT-NAME"


def test_a_tensor_that_nothing_computes_is_refused() -> None:
    x, y = T("s8", (1, 4), 0.1, 3), T("s8", (1, 4), 1 / 256, -128)
    lost = T("s8", (1, 4), 0.1, name="lost")
    content = chain([("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [x], [y], 1, [lost])])
    with pytest.raises(bittrue.InvalidModelError, match="nothing computes"):
        bittrue.load(content).prepare(outputs=["lost"])


def test_what_comes_before_an_unknown_operator_runs() -> None:
    x, y, z = T("s8", (1, 4), 0.1, 3), T("s8", (1, 4), 1 / 256, -128, name="scores"), T("f32", (1, 4))
    content = chain([("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), [x], [y]), ("SIN", None, [y], [z])])
    model = bittrue.load(content)
    with pytest.raises(bittrue.UnsupportedError, match=r"prepare\(outputs=\['scores'\]\)"):
        model.prepare()
    assert list(model.prepare(outputs=["scores"]).run(np.int8([[1, 2, 3, 4]]))) == ["scores"]


def test_sizes_that_were_left_open_and_that_nothing_tried_fits() -> None:
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, "H", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((1, 1, 1, 600), np.float32), "w")],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = bittrue.load(content).prepare()
    assert session.run(np.ones((2, 1, 1, 600), np.float32))["y"].tolist() == [[[[600.0]]], [[[600.0]]]]
    for shape in ((1, 1, 1, 1), (1, 1, 2, 2)):
        with pytest.raises(bittrue.BittrueError, match="window"):
            session.run(np.ones(shape, np.float32))
    with pytest.raises(bittrue.InvalidModelError):
        bittrue.load(content).prepare(shapes={"x": (1, 1, 2, 2)})
