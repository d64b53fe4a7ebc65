"""Cut models load, in bittrue and in the real runtime, and give the bytes that the tensor has in the whole model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.compare.surgery import Document, open_document
from bittrue.runners.inputs import input_sets
from bittrue.runners.sides import open_side
from support.build import G, T, chain, several
from support.shared import SHARED, needs_shared

SMALL = ("tiny_resnet8_int8", "tiny_kws_int8", "coral_mobilenet_v1_0.25_128_quant")


def opened(path: Path) -> Document:
    return open_document(path, bittrue.load(path))


def whole_trace(path: Path, seed: int = 0) -> dict[str, np.ndarray]:
    """Every tensor of the model under our arithmetic."""
    side = open_side(str(path))
    values = input_sets(side.inputs, (), (seed,))[0].values
    return {tensor.name: np.array(tensor.load()) for tensor in side.record(values)}


def in_litert(content: bytes, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for port in interpreter.get_input_details():
        interpreter.set_tensor(port["index"], values[port["name"]])
    interpreter.invoke()
    return {port["name"]: interpreter.get_tensor(port["index"]) for port in interpreter.get_output_details()}


def in_onnxruntime(content: bytes, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    given = {port.name: values[port.name] for port in session.get_inputs()}
    return dict(zip([port.name for port in session.get_outputs()], session.run(None, given), strict=True))


RUNTIMES = {"tflite": in_litert, "onnx": in_onnxruntime}


def cuts(document: Document, known: dict[str, np.ndarray]) -> Iterator[Document]:
    """Every operator alone, and every pair of neighbours."""
    for operator in document.operators:
        if all(name in known for name in operator.inputs):
            yield document.cut(operator.inputs, operator.outputs, known)
        producers = [p for name in operator.inputs if (p := document.producer(name)) is not None]
        inputs = [name for producer in producers for name in producer.inputs]
        if producers and all(name in known for name in inputs):
            yield document.cut(inputs, operator.outputs, known)


def assert_cuts_are_faithful(path: Path) -> int:
    document, known = opened(path), whole_trace(path)
    count = 0
    for cut in cuts(document, known):
        content = cut.content()
        ours = bittrue.load(content).prepare().run({name: known[name] for name in cut.inputs})
        theirs = RUNTIMES[path.suffix[1:]](content, known)
        assert list(ours) == list(cut.outputs)
        for name in cut.outputs:
            if name in known:
                assert ours[name].tobytes() == theirs[name].tobytes() == known[name].tobytes(), name
                count += 1
        assert len(content) < path.stat().st_size
    return count


def write(folder: Path, content: bytes, name: str = "m.tflite") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_demo_model(tmp_path: Path) -> None:
    assert assert_cuts_are_faithful(write(tmp_path, bittrue.demo_model())) >= 15


@needs_shared
@pytest.mark.parametrize("name", SMALL)
def test_shared_models(name: str) -> None:
    assert assert_cuts_are_faithful(SHARED / "models" / f"{name}.tflite") >= 20


def layers(rng: np.random.Generator, spread: int = 1) -> bytes:
    """A convolution, a depthwise one and a sum with a constant, all per channel."""
    channels = 6 * spread
    x = T("s8", [2, 8, 7, 1 if spread > 1 else 5], 0.05, 3, name="x")
    nodes = []
    h = x
    if spread == 1:
        scales = rng.uniform(0.001, 0.01, 6).astype(np.float32)
        w = T("s8", [6, 3, 2, 5], scales.tolist(), [0] * 6, data=rng.integers(-127, 128, (6, 3, 2, 5), np.int8))
        b = T("s32", [6], (scales * np.float32(0.05)).tolist(), [0] * 6, data=rng.integers(-999, 999, 6, np.int32))
        h = T("s8", [2, 4, 4, 6], 0.04, -5, name="h")
        nodes.append(("CONV_2D", ("Conv2DOptions", {"strideH": 2, "strideW": 2}), [x, w, b], [h], 3))
    scales = rng.uniform(0.001, 0.01, channels).astype(np.float32)
    w = T(
        "s8",
        [1, 3, 3, channels],
        scales.tolist(),
        [0] * channels,
        3,
        rng.integers(-127, 128, (1, 3, 3, channels), np.int8),
    )
    b = T(
        "s32",
        [channels],
        (scales * np.float32(h.scale)).tolist(),
        [0] * channels,
        data=np.arange(channels, dtype=np.int32),
    )
    shape = [*h.shape[:3], channels]
    d = T("s8", shape, 0.06, 4, name="d")
    options = {"strideH": 1, "strideW": 1, "depthMultiplier": spread * (6 if spread > 1 else 1)}
    nodes.append(("DEPTHWISE_CONV_2D", ("DepthwiseConv2DOptions", options), [h, w, b], [d], 3))
    c = T("s8", [1, 1, 1, channels], 0.03, 0, data=rng.integers(-127, 128, (1, 1, 1, channels), np.int8))
    y = T("s8", shape, 0.09, 1, name="y")
    nodes.append(("ADD", ("AddOptions", {}), [d, c], [y], 2))
    return chain(nodes)


def taken(array: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(np.moveaxis(array, axis, 0)[low:high], 0, axis))


def assert_crops_are_runnable(path: Path, exact: dict[str, tuple[int, int]]) -> list[str]:
    """Every dimension cropped: ours and the runtime agree; `exact` names outputs that are slices of the whole ones."""
    document, known = opened(path), whole_trace(path)
    titles = []
    for dimension in document.dimensions():
        low, high = dimension.size // 3, dimension.size // 3 + max(1, dimension.size // 2)
        smaller = document.cropped(dimension, low, high)
        values = {name: known[name] for name in document.inputs}
        for name, axis in dimension.axes:
            if name in values:
                values[name] = taken(values[name], axis, low, high)
        content = smaller.content()
        ours = bittrue.load(content).prepare().run(values)
        theirs = RUNTIMES[path.suffix[1:]](content, values)
        for name, value in ours.items():
            assert value.tobytes() == theirs[name].tobytes(), dimension.title
            if (name, exact.get(name, (-1,))[0]) in dimension.axes:
                axis = exact[name][0]
                assert value.tobytes() == taken(known[name], axis, low, high).tobytes(), dimension.title
        titles.append(dimension.title)
    return titles


def test_tflite_dimensions(tmp_path: Path) -> None:
    path = write(tmp_path, layers(np.random.default_rng(0)))
    # Channels of the depthwise layer, its neighbours and the constant go together: a slice of them gives one of y.
    titles = assert_crops_are_runnable(path, {"y": (3, 0)})
    inputs = {f"axis {axis} of 'x'" for axis in range(4)}
    kernels = {f"axis {axis} of '{name}'" for name, axis in (("t1", 1), ("t1", 2), ("t4", 1), ("t4", 2))}
    assert {*titles} == {*inputs, *kernels, "axis 3 of 'h'"}
    together = next(d for d in opened(path).dimensions() if d.title == "axis 3 of 'h'")
    assert {("h", 3), ("d", 3), ("y", 3)} < set(together.axes)
    assert len(together.axes) == 8


def test_depthwise_layer_of_one_channel(tmp_path: Path) -> None:
    titles = assert_crops_are_runnable(write(tmp_path, layers(np.random.default_rng(1), spread=2)), {"y": (3, 0)})
    assert "axis 3 of 'd'" in titles


def quantized_onnx(rng: np.random.Generator, group: int = 1) -> bytes:
    """QuantizeLinear, DequantizeLinear around a convolution, a matrix product behind a transpose."""
    f32 = np.float32
    constants: dict[str, Any] = {
        "s": f32(0.02),
        "z": np.uint8(120),
        "w": rng.integers(-127, 128, (6, 4 // group if group == 1 else 1, 3, 3), np.int8),
        "ws": rng.uniform(0.001, 0.01, 6).astype(f32),
        "wz": np.zeros(6, np.int8),
        "bias": rng.standard_normal(6).astype(f32),
        "ys": f32(0.05),
        "yz": np.uint8(3),
        "m": rng.standard_normal((6, 5)).astype(f32),
    }
    channels = 4 if group == 1 else 6
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bias"], ["c"], pads=[1, 1, 1, 1], group=group),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "ys", "yz"], ["rd"]),
        helper.make_node("Transpose", ["rd"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "m"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, channels, 6, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 6, 5, 5])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("group", [1, 6])
def test_onnx(tmp_path: Path, group: int) -> None:
    path = write(tmp_path, quantized_onnx(np.random.default_rng(2), group), "m.onnx")
    document, known = opened(path), {}
    side = open_side(f"{path}@onnx")
    values = input_sets(side.inputs, (), (0,))[0].values
    known = {tensor.name: np.array(tensor.load()) for tensor in side.record(values)}
    # What only dequantizes weights goes along with whoever reads them.
    assert [operator.source for operator in document.operators].count("DequantizeLinear") == 2
    count = 0
    for cut in cuts(document, known):
        content = cut.content()
        ours = bittrue.load(content).prepare("onnx").run({name: known[name] for name in cut.inputs})
        theirs = in_onnxruntime(content, known)
        for name in cut.outputs:
            assert ours[name].tobytes() == known[name].tobytes(), name
            assert theirs[name].shape == known[name].shape
            count += 1
    assert count == 15
    # With the shapes of this run.
    document = document.cut((), ["y"], known)
    dimensions = document.dimensions()
    for dimension in dimensions:
        smaller = document.cropped(dimension, 1, dimension.size)
        cropped = dict(values)
        for name, axis in dimension.axes:
            if name in cropped:
                cropped[name] = taken(cropped[name], axis, 1, dimension.size)
        y = in_onnxruntime(smaller.content(), cropped)["y"]
        assert y.shape == bittrue.load(smaller.content()).prepare("onnx").run(cropped)["y"].shape
        if ("y", 3) in dimension.axes:
            assert y.shape == (2, 6, 5, dimension.size - 1)
    kernels = {f"axis {axis} of 'wd'" for axis in (2, 3)}
    inputs = {f"axis {axis} of 'x'" for axis in range(4)}
    columns = {"axis 3 of 'y'"}
    channels = {"axis 0 of 'wd'"} if group == 1 else set()
    assert {dimension.title for dimension in dimensions} == kernels | inputs | columns | channels


def test_called_graphs_go_along(tmp_path: Path) -> None:
    """IF and its two branches, cut out from between two other operators."""

    def x(name: str) -> T:
        return T("f32", [3], name=name)

    before, chosen, doubled, after = x("before"), x("chosen"), x("doubled"), x("after")
    condition = T("bool", [1], name="condition")
    branches = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    inner = [(x("a"), x("b")), (x("c"), x("d"))]
    path = write(
        tmp_path,
        several(
            G(
                [
                    ("NEG", None, [before], [doubled]),
                    (
                        "IF",
                        ("IfOptions", branches),
                        [condition, doubled],
                        [chosen],
                    ),
                    ("ABS", None, [chosen], [after]),
                ]
            ),
            G([("EXP", None, [inner[0][0]], [inner[0][1]])], [inner[0][0]], [inner[0][1]]),
            G([("SQUARE", None, [inner[1][0]], [inner[1][1]])], [inner[1][0]], [inner[1][1]]),
        ),
    )
    document = opened(path)
    assert [operator.source for operator in document.operators] == ["NEG", "IF", "ABS"]
    for truth in (True, False):
        known = {"condition": np.array([truth]), "doubled": np.float32([1, 2, -3])}
        cut = document.cut(["doubled"], ["chosen"], known)
        ours = bittrue.load(cut.content()).prepare().run({name: known[name] for name in cut.inputs})
        theirs = in_litert(cut.content(), known)
        want = np.exp(known["doubled"]) if truth else known["doubled"] ** 2
        np.testing.assert_array_max_ulp(ours["chosen"], want, 1)
        assert ours["chosen"].tobytes() == theirs["chosen"].tobytes()
    # Nobody calls the branches from here.
    assert len(bittrue.load(document.cut(["before"], ["doubled"], known).content()).graphs) == 1


def test_names_that_no_operator_writes(tmp_path: Path) -> None:
    document = opened(write(tmp_path, bittrue.demo_model()))
    with pytest.raises(bittrue.InputError, match="BT-SURGERY-TENSOR"):
        document.cut(document.inputs, ["nothing"], {})


def test_other_formats_are_refused(tmp_path: Path) -> None:
    class Caffe:
        format = "caffe"

    with pytest.raises(bittrue.UnsupportedError, match=r"only \.tflite and \.onnx"):
        open_document(tmp_path / "net.prototxt", Caffe())
