"""`bittrue.compat.InferenceSession` beside ONNX Runtime's: equal descriptions, results and refusals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue import compat as ours
from support.build import T
from support.build import single as single_tflite
from support.onnx_models import options as their_options

X = np.random.default_rng(0).integers(0, 256, (2, 3), dtype=np.uint8)
W = np.uint8([[1, 2, 3, 4], [50, 60, 70, 80], [200, 210, 220, 255]])


def model(
    x: Any = ("N", 3), y: Any = ("N", 4), *, listed: bool = False, ir: int = 10, opset: int = 21, turned: bool = True
) -> bytes:
    """QLinearMatMul of x and constants, and its transpose."""
    constants = {
        "xs": np.float32(0.5),
        "xz": np.uint8(7),
        "w": W,
        "ws": np.float32(0.25),
        "wz": np.uint8(100),
        "ys": np.float32(20),
        "yz": np.uint8(128),
    }
    nodes = [helper.make_node("QLinearMatMul", ["x", *constants], ["y"], "product")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, y)]
    if turned:
        nodes.append(helper.make_node("Transpose", ["y"], ["z"], "turn", perm=[1, 0]))
        outputs.insert(0, helper.make_tensor_value_info("z", TensorProto.UINT8, None))
    inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, x)]
    if listed:
        inputs += [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype), array.shape)
            for name, array in constants.items()
        ]
    graph = helper.make_graph(
        nodes,
        "the graph",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        doc_string="about the graph",
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir,
        producer_name="tests",
        producer_version="1",
        domain="somewhere",
        model_version=7,
        doc_string="about the model",
    )
    helper.set_model_props(made, {"key": "value"})
    return made.SerializeToString()


def both(content: bytes, **sizes: int) -> tuple[ours.InferenceSession, onnxruntime.InferenceSession]:
    chosen = [ours.SessionOptions(), their_options()]
    for options in chosen:
        for name, size in sizes.items():
            options.add_free_dimension_override_by_name(name, size)
    mine = ours.InferenceSession(content, chosen[0], providers=["CPUExecutionProvider"])
    return mine, onnxruntime.InferenceSession(content, chosen[1], providers=["CPUExecutionProvider"])


def described(session: Any) -> list[Any]:
    kinds = (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    return [[(a.name, a.type, a.shape, str(a)) for a in arguments] for arguments in kinds]


def same(mine: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    assert type(mine) is type(theirs) is list
    for one, other in zip(mine, theirs, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (("N", 3), ("N", 4)),
        ((None, 3), (None, 4)),
        ((2, 3), (2, 4)),
        ((2, 3), None),
        (("N", 3), None),
        (("N", "K"), None),
        (("N", 3), (None, None)),
        (None, None),
    ],
)
def test_descriptions_and_results(x: Any, y: Any) -> None:
    mine, theirs = both(model(x, y, turned=x is not None))
    # Without a shape of the input, ONNX Runtime infers nothing.
    assert described(mine) == described(theirs)
    rows = [X] if x and x[0] == 2 else [X, X[:1], np.tile(X, (9, 1)), X[:0]]
    for value in rows:
        same(mine.run(None, {"x": value}), theirs.run(None, {"x": value}))
        same(mine.run(["y", "y"], {"x": value}), theirs.run(["y", "y"], {"x": value}))
        same(mine.run([], {"x": value}, None), theirs.run([], {"x": value}, None))
    value = np.asfortranarray(X)
    same(mine.run(None, {"x": value}), theirs.run(None, {"x": value}))
    same(mine.run(None, {"x": X.tolist()}), theirs.run(None, {"x": X.tolist()}))


def test_free_dimensions_can_be_fixed() -> None:
    mine, theirs = both(model(), N=2)
    assert described(mine) == described(theirs)
    same(mine.run(None, {"x": X}), theirs.run(None, {"x": X}))
    for session in (mine, theirs):
        with pytest.raises(Exception, match="dimensions"):
            session.run(None, {"x": X[:1]})


@pytest.mark.parametrize(("listed", "ir"), [(True, 3), (True, 4), (True, 10), (False, 4)])
def test_initializers_as_inputs(listed: bool, ir: int) -> None:
    content = model(listed=listed, ir=ir, opset=10 if ir == 3 else 21)
    mine, theirs = both(content)
    assert described(mine) == described(theirs)
    same(mine.run(None, {"x": X}), theirs.run(None, {"x": X}))
    feeds = {"x": X, "w": W[::-1].copy(), "yz": np.array(3, np.uint8)}
    if listed and ir > 3:
        same(mine.run(None, feeds), theirs.run(None, feeds))
        same(mine.run(None, {"x": X}), theirs.run(None, {"x": X}))
        with pytest.raises(ValueError, match="BT-INPUT-SHAPE"):
            mine.run(None, {"x": X, "w": W[:, :2]})
    else:
        for session in (mine, theirs):
            with pytest.raises(Exception, match=r"\b(w|yz)\b"):
                session.run(None, feeds)


def test_modelmeta() -> None:
    mine, theirs = (session.get_modelmeta() for session in both(model()))
    for name in dir(theirs):
        if not name.startswith("_"):
            assert getattr(mine, name) == getattr(theirs, name), name


def test_what_programs_ask() -> None:
    mine, theirs = both(model())
    assert mine.get_providers() == theirs.get_providers()
    assert mine.get_provider_options() == theirs.get_provider_options()
    assert ours.get_device() == onnxruntime.get_device()
    assert set(ours.get_available_providers()) <= set(onnxruntime.get_available_providers())
    mine.set_providers(["CPUExecutionProvider"])
    mine.disable_fallback()
    mine.enable_fallback()
    assert isinstance(mine.get_session_options(), ours.SessionOptions)


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions"])
def test_options(name: str) -> None:
    mine, theirs = getattr(ours, name)(), getattr(onnxruntime, name)()
    for attribute in dir(theirs):
        value = getattr(theirs, attribute)
        if not attribute.startswith("_") and not callable(value):
            found = getattr(mine, attribute)
            if hasattr(value, "__members__"):
                # Enumerations of C++ are no integers in Python.
                kind = type(found)
                assert {k: int(v) for k, v in kind.__members__.items()} == {
                    k: int(v) for k, v in type(value).__members__.items()
                }
                value = int(value)
            assert found == value, attribute
    entries = ["add_session_config_entry", "get_session_config_entry"]
    add, get = entries if name == "SessionOptions" else [entry.replace("session", "run") for entry in entries]
    getattr(mine, add)("key", "1")
    assert getattr(mine, get)("key") == "1"
    with pytest.raises(bittrue.InputError, match="BT-OPTION"):
        getattr(mine, get)("none")


def test_their_options_are_taken() -> None:
    options = their_options()
    options.intra_op_num_threads = 2
    mine = ours.InferenceSession(model(), options)
    same(mine.run(None, {"x": X}, onnxruntime.RunOptions()), both(model())[1].run(None, {"x": X}))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.run(None, {}),
        lambda s: s.run(None, {"q": X}),
        lambda s: s.run(None, {"x": X, "q": X}),
        lambda s: s.run(None, {"x": X, "w": W}),
        lambda s: s.run(["q"], {"x": X}),
        lambda s: s.run(None, {"x": X.astype(np.int8)}),
        lambda s: s.run(None, {"x": X.astype(np.float32)}),
        lambda s: s.run(None, {"x": X[0]}),
        lambda s: s.run(None, {"x": X[:, :2]}),
        lambda s: s.run(None, {"x": X[None]}),
        lambda s: s.run(None, {"x": "text"}),
        lambda s: s.run("y", {"x": X}),
    ],
)
def test_bad_calls(call: Callable[[Any], Any]) -> None:
    mine, theirs = both(model())
    with pytest.raises((ValueError, TypeError)) as caught:
        call(mine)
    assert isinstance(caught.value, bittrue.InputError | TypeError)
    # Theirs have no common base.
    with pytest.raises(Exception, match=r"\w"):
        call(theirs)


def test_bad_sources(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="Unable to load from type"):
        ours.InferenceSession(3)
    with pytest.raises(bittrue.InputError, match="BT-FILE-PATH"):
        ours.InferenceSession(str(tmp_path / "none.onnx"))
    with pytest.raises(bittrue.ModelFormatError):
        ours.InferenceSession(b"abc")


def test_what_cannot_run_is_refused_at_once() -> None:
    graph = helper.make_graph(
        [helper.make_node("StringNormalizer", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    with pytest.raises(bittrue.UnsupportedError, match="BT-OPERATOR"):
        ours.InferenceSession(content)


def test_paths_and_numerics(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model())
    expected = both(model())[1].run(None, {"x": X})
    for source in (path, str(path), path.read_bytes()):
        session = ours.InferenceSession(source)
        assert session.numerics == "onnxruntime"
        same(session.run(None, {"x": X}), expected)
        assert session.get_inputs()[0].shape == ["N", 3]
    assert ours.InferenceSession(path, numerics="onnx").numerics == "onnx"
    with pytest.raises(bittrue.InputError, match="BT-NUMERICS"):
        ours.InferenceSession(path, numerics="none")


def test_external_data(tmp_path: Path) -> None:
    made = onnx.load_from_string(model())
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    same(ours.InferenceSession(tmp_path / "m.onnx").run(None, {"x": X}), both(model())[1].run(None, {"x": X}))


def test_narrow_integers() -> None:
    """Through DequantizeLinear and QuantizeLinear: numbers of 4 bits in and out."""
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["x", "s"], ["r"]),
            helper.make_node("QuantizeLinear", ["r", "t", "z"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT4, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.INT4, None)],
        [
            numpy_helper.from_array(np.float32(2), "s"),
            numpy_helper.from_array(np.float32(4), "t"),
            numpy_helper.from_array(np.array(1, ml_dtypes.int4), "z"),
        ],
    )
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    session = ours.InferenceSession(content, numerics="onnx")
    assert session.get_inputs()[0].type == "tensor(int4)"
    values = np.int8([[-8, 7, 0], [1, 2, 3]])
    for value in (values, values.astype(ml_dtypes.int4)):
        (y,) = session.run(None, {"x": value})
        assert y.dtype == ml_dtypes.int4
        assert y.astype(np.int8).tolist() == [[-3, 5, 1], [1, 2, 3]]
    with pytest.raises(ValueError, match="are no int4"):
        session.run(None, {"x": values + np.int8(8)})


def test_a_tflite_file_runs_too() -> None:
    content = single_tflite("ABS", None, [T("f32", (1, 3), name="x", signature=(-1, 3))], [T("f32", (1, 3), name="y")])
    session = ours.InferenceSession(content)
    assert session.numerics == "litert"
    assert session.get_inputs()[0].shape == [None, 3]
    assert session.run(None, {"x": np.float32([[1, -2, 3], [4, 5, -6]])})[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert session.get_overridable_initializers() == []
    with pytest.raises(bittrue.InputError, match="BT-COMPAT-FORMAT"):
        session.get_modelmeta()


def test_the_same_arguments() -> None:
    for method in ("run", "get_inputs", "get_outputs", "get_modelmeta", "get_providers", "set_providers"):
        mine = inspect.signature(getattr(ours.InferenceSession, method))
        theirs = inspect.signature(getattr(onnxruntime.InferenceSession, method))
        assert list(mine.parameters) == list(theirs.parameters), method
    mine, theirs = (
        list(inspect.signature(c).parameters) for c in (ours.InferenceSession, onnxruntime.InferenceSession)
    )
    assert mine[:4] == theirs[:4]
