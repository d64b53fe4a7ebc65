"""A model against an edited copy: what the files have otherwise is found, proven and named; the first tensor, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from ai_edge_litert import schema_py_generated as schema
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.compare.result import CompareResult
from bittrue.runners.ours import Ours
from support.build import T, single
from support.faulty_network import Network

NUMPY = {schema.TensorType.INT8: np.int8, schema.TensorType.INT32: np.int32}
NETWORK = Network()


class Copy:
    """A .tflite file that can be edited, by tensor names."""

    def __init__(self, content: bytes) -> None:
        self.model = schema.ModelT.InitFromPackedBuf(content, 0)
        self.graph = self.model.subgraphs[0]

    def tensor(self, name: str) -> Any:
        return next(t for t in self.graph.tensors if t.name.decode() == name)

    def node(self, output: str) -> Any:
        return next(n for n in self.graph.operators if self.graph.tensors[n.outputs[0]].name.decode() == output)

    def constant(self, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
        tensor = self.tensor(name)
        old = np.frombuffer(bytes(self.model.buffers[tensor.buffer].data), NUMPY[tensor.type]).reshape(tensor.shape)
        new = np.ascontiguousarray(change(old.copy())).astype(old.dtype)
        self.model.buffers[tensor.buffer].data = np.frombuffer(new.tobytes(), np.uint8)

    def zero_point(self, name: str, by: int) -> None:
        quantization = self.tensor(name).quantization
        quantization.zeroPoint = np.array(quantization.zeroPoint) + by

    def scale(self, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
        quantization = self.tensor(name).quantization
        quantization.scale = change(np.array(quantization.scale, np.float32)).astype(np.float32)

    def option(self, output: str, **values: int) -> None:
        for key, value in values.items():
            assert hasattr(self.node(output).builtinOptions, key)
            setattr(self.node(output).builtinOptions, key, value)

    def operator(self, output: str, code: int, options: int, table: Any) -> None:
        made = schema.OperatorCodeT()
        made.builtinCode = made.deprecatedBuiltinCode = code
        made.version = 2
        self.model.operatorCodes.append(made)
        node = self.node(output)
        node.opcodeIndex, node.builtinOptionsType, node.builtinOptions = (
            len(self.model.operatorCodes) - 1,
            options,
            table,
        )

    def renamed(self) -> None:
        for position, tensor in enumerate(self.graph.tensors):
            tensor.name = f"tensor_{position}"

    def write(self, path: Path) -> Path:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        path.write_bytes(bytes(builder.Output()))
        return path


def _at(index: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(old: np.ndarray) -> np.ndarray:
        old.reshape(-1)[index] = value
        return old

    return change


def _subtracts(copy: Copy) -> None:
    copy.operator("s", schema.BuiltinOperator.SUB, schema.BuiltinOptions.SubOptions, schema.SubOptionsT())


# what is edited, the first differing tensor, the name of the cause there, what its text must say
EDITS: list[tuple[Callable[[Copy], Any], str, str, str]] = [
    (lambda m: m.zero_point("c", 3), "c", "output zero point 3 too large", "is -125 in B's file, -128 in A's"),
    (lambda m: m.zero_point("d", -7), "d", "output zero point ignored", "is 0 in B's file, 7 in A's"),
    (lambda m: m.zero_point("x", 1), "c", "input zero point one too large", "zero point of 'x' is -2 in B's file"),
    (
        lambda m: m.scale("d", lambda s: s * 2),
        "d",
        "output scale 2 times as large",
        "scale of 'd' is 0.165999994 in B's",
    ),
    (lambda m: m.scale("s", lambda s: s * np.float32(1.01)), "s", "output scale 1.01 times as large", "scale of 's'"),
    (lambda m: m.scale("cw", lambda s: s[::-1]), "c", "weight scales in another order", "(6 channels differ)"),
    (
        lambda m: m.scale("dw", lambda s: s * np.float32([1, 1, 2, 1, 1, 1])),
        "d",
        "weight scale of channel 2 changed",
        "of channel 2",
    ),
    (lambda m: m.constant("cb", lambda b: b * 0), "c", "bias dropped", "in 6 of 6 values"),
    (lambda m: m.constant("cb", lambda b: -b), "c", "bias negated", "the bias is subtracted"),
    (lambda m: m.constant("cb", lambda b: b * 2), "c", "bias added twice", "'cb'"),
    (lambda m: m.constant("db", lambda b: np.roll(b, 1)), "d", "bias shifted by one channel", "'db'"),
    (lambda m: m.constant("cb", _at(4, 9999)), "c", "bias changed in channel 4", "[4] is 9999 in B's"),
    (lambda m: m.constant("cb", _at(4, 0)), "c", "bias dropped in channel 4", "[4] is 0 in B's"),
    (lambda m: m.constant("yb", lambda b: b * 0), "y", "bias dropped", "'yb'"),
    (lambda m: m.constant("cw", lambda w: w.swapaxes(1, 2)), "c", "weights transposed in height and width", "'cw'"),
    (lambda m: m.constant("cw", lambda w: w[:, ::-1, ::-1]), "c", "weights rotated by 180 degrees", "'cw'"),
    (lambda m: m.constant("cw", lambda w: w[:, ::-1]), "c", "weights flipped top to bottom", "'cw'"),
    (lambda m: m.constant("cw", lambda w: w[[0, 2, 1, 3, 4, 5]]), "c", "weights permuted along axis 0", "'cw'"),
    (lambda m: m.constant("cw", lambda w: -w), "c", "weights negated", "'cw'"),
    (lambda m: m.constant("cw", lambda w: w * 0), "c", "weights all zero", "'cw'"),
    (lambda m: m.constant("cw", _at(40, 77)), "c", "one weight changed", "in 1 of 162 values: [1,1,1,1] is 77 in B's"),
    (
        lambda m: m.constant("dw", lambda w: np.where(w > 100, w - 1, w)),
        "d",
        "weights changed",
        "of 54 weights are others",
    ),
    (lambda m: m.constant("dw", lambda w: w[..., ::-1]), "d", "output channels of weights reversed", "'dw'"),
    (lambda m: m.constant("yw", lambda w: w.T.copy().reshape(w.shape)), "y", "weights stored transposed", "'yw'"),
    (
        lambda m: m.option("c", fusedActivationFunction=3),
        "c",
        "activation relu6 instead of relu",
        "at node 0 (CONV_2D), A's relu",
    ),
    (lambda m: m.option("d", fusedActivationFunction=1), "d", "activation relu instead of none", "A's none"),
    (
        lambda m: m.option("d", dilationHFactor=2, dilationWFactor=2),
        "d",
        "dilations [2, 2] instead of [1, 1]",
        "A's [1, 1]",
    ),
    (
        lambda m: m.option("p", filterHeight=2),
        "p",
        "kernel [2, 3] instead of [3, 3]",
        "B's file has kernel [2, 3] at node 3 (AVERAGE_POOL_2D), A's [3, 3]",
    ),
    (_subtracts, "s", "SUB instead of ADD", "node 2 (ADD) of A's file is SUB in B's"),
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("copied") / "good.tflite"
    path.write_bytes(NETWORK.model())
    return path


def _judged(result: CompareResult) -> dict[str, list[str]]:
    """Tensor of A to the names of its causes, of what differs by itself; every bit must be accounted for."""
    found = {}
    for pair in result.pairs:
        if pair.verdict is not None and pair.verdict.differing:
            assert pair.verdict.exact, pair.verdict.text
            found[pair.a] = [cause.name for cause in pair.verdict.causes]
    return found


@pytest.mark.in_turns(4)
@pytest.mark.parametrize("renamed", [False, True], ids=["same names", "renamed"])
@pytest.mark.parametrize(("edit", "tensor", "name", "says"), EDITS, ids=[f"{t}-{n}" for _, t, n, _ in EDITS])
def test_edited_copies(
    good: Path, tmp_path: Path, edit: Callable[[Copy], Any], tensor: str, name: str, says: str, renamed: bool
) -> None:
    copy = Copy(good.read_bytes())
    edit(copy)
    if renamed:
        copy.renamed()
    result = bittrue.compare_models(good, copy.write(tmp_path / "bad.tflite"))
    assert result.first is not None
    assert result.first.a == tensor
    verdict = result.first.verdict
    assert verdict is not None
    assert _judged(result)[tensor] == [name], verdict.text
    assert not verdict.benign
    if not renamed:
        assert says in verdict.text
    assert any(note.startswith("the files differ: ") for note in result.notes)


def test_a_copy_under_another_arithmetic(good: Path, tmp_path: Path) -> None:
    """B rounds otherwise and its file has another bias: both are said."""
    copy = Copy(good.read_bytes())
    copy.constant("cb", lambda b: b * 0)
    bad = copy.write(tmp_path / "bad.tflite")
    result = bittrue.compare_models(good, f"{bad}@xnnpack", seeds=range(4))
    names = _judged(result)["c"]
    assert "bias dropped" in names
    assert len(names) <= 2


def test_two_edits_of_one_layer_and_one_of_another(good: Path, tmp_path: Path) -> None:
    copy = Copy(good.read_bytes())
    copy.constant("cb", lambda b: b * 0)
    copy.constant("cw", lambda w: w[:, ::-1])
    copy.constant("yw", lambda w: -w)
    found = _judged(bittrue.compare_models(good, copy.write(tmp_path / "bad.tflite")))
    assert {tensor: set(names) for tensor, names in found.items()} == {
        "c": {"bias dropped", "weights flipped top to bottom"},
        "y": {"weights negated"},
    }


def test_an_edit_that_these_inputs_do_not_show_is_noted(good: Path, tmp_path: Path) -> None:
    copy = Copy(good.read_bytes())
    copy.node("s").inputs = list(reversed(copy.node("s").inputs))
    result = bittrue.compare_models(good, copy.write(tmp_path / "bad.tflite"))
    assert result.equal
    assert any("node 2 (ADD) reads 'c' and 'd' in A's file, 'd' and 'c' in B's" in note for note in result.notes)


@pytest.mark.parametrize("renamed", [False, True])
def test_other_shapes_are_a_difference(good: Path, tmp_path: Path, renamed: bool) -> None:
    x, y = (T("s8", shape, 0.05, -11, name=n) for n, shape in (("x", (1, 9, 8, 5)), ("y", (1, 5, 4, 5))))
    window = {"padding": 0, "strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}
    one = tmp_path / "one.tflite"
    one.write_bytes(single("MAX_POOL_2D", ("Pool2DOptions", {**window, "fusedActivationFunction": 0}), [x], [y]))
    copy = Copy(one.read_bytes())
    copy.option("y", padding=1)
    copy.tensor("y").shape = [1, 4, 3, 5]
    if renamed:
        copy.renamed()
    result = bittrue.compare_models(one, copy.write(tmp_path / "bad.tflite"))
    assert not result.equal
    assert result.first is not None
    assert result.first.a == "y"
    assert "another shape: [1, 5, 4, 5] in A, [1, 4, 3, 5] in B" in result.first.note
    assert any("B's file has padding valid at node 0 (MAX_POOL_2D), A's same" in note for note in result.notes)
    if not renamed:
        assert _judged(result) == {"y": ["padding valid instead of same"]}


def test_operands_of_a_difference_swapped(tmp_path: Path) -> None:
    a, b, y = (T("s8", (2, 5, 7), s, z, name=n) for n, s, z in (("a", 0.05, -11), ("b", 0.03, 23), ("y", 0.08, 5)))
    good = tmp_path / "good.tflite"
    good.write_bytes(single("SUB", ("SubOptions", {"fusedActivationFunction": 0}), [a, b], [y], version=2))
    copy = Copy(good.read_bytes())
    copy.node("y").inputs = list(reversed(copy.node("y").inputs))
    assert _judged(bittrue.compare_models(good, copy.write(tmp_path / "bad.tflite"))) == {"y": ["operands swapped"]}


def test_a_runner_object_with_an_edited_model(good: Path, tmp_path: Path) -> None:
    copy = Copy(good.read_bytes())
    copy.constant("db", lambda b: b * 0)
    bad = copy.write(tmp_path / "bad.tflite")
    runner = Ours(str(bad), bad, bittrue.load(bad), "litert")
    assert _judged(bittrue.compare_models(good, runner)) == {"d": ["bias dropped"]}


def _onnx_model() -> onnx.ModelProto:
    """QLinearConv, 3 channels to 4, 3 x 3."""
    rng = np.random.default_rng(3)
    constants = {
        "x_scale": np.float32(0.04),
        "x_zero": np.uint8(120),
        "w": rng.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8),
        "w_scale": rng.uniform(0.004, 0.01, 4).astype(np.float32),
        "w_zero": np.zeros(4, np.int8),
        "y_scale": np.float32(0.09),
        "y_zero": np.uint8(100),
        "b": rng.integers(-900, 900, 4).astype(np.int32),
    }
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], pads=[1, 1, 1, 1])
    ports = [helper.make_tensor_value_info(n, TensorProto.UINT8, [1, c, 7, 6]) for n, c in (("x", 3), ("y", 4))]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def _put(model: onnx.ModelProto, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    for tensor in model.graph.initializer:
        if tensor.name == name:
            old = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(change(old.copy()), old.dtype).reshape(old.shape), name))


def _pads(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute[0].ints[:] = [0, 0, 2, 2]


ONNX: list[tuple[Callable[[onnx.ModelProto], None], str]] = [
    (lambda m: _put(m, "y_zero", lambda z: z + 3), "output zero point 3 too large"),
    (lambda m: _put(m, "x_zero", lambda z: z + 1), "input zero point one too large"),
    (lambda m: _put(m, "w_zero", lambda z: z + 1), "weight zero point one too large"),
    (lambda m: _put(m, "x_scale", lambda s: s * 2), "input scale 2 times as large"),
    (lambda m: _put(m, "w_scale", lambda s: s[::-1]), "weight scales in another order"),
    (lambda m: _put(m, "w", lambda w: w.swapaxes(2, 3)), "weights transposed in height and width"),
    (lambda m: _put(m, "w", lambda w: w[:, [0, 2, 1]]), "weights permuted along axis 1"),
    (lambda m: _put(m, "b", lambda b: b * 0), "bias dropped"),
    (_pads, "pads [0, 0, 2, 2] instead of [1, 1, 1, 1]"),
]


@pytest.mark.parametrize(("edit", "name"), ONNX, ids=[name for _, name in ONNX])
def test_edited_onnx_copies(tmp_path: Path, edit: Callable[[onnx.ModelProto], None], name: str) -> None:
    model, paths = _onnx_model(), [tmp_path / "good.onnx", tmp_path / "bad.onnx"]
    onnx.save(model, paths[0])
    edit(model)
    onnx.save(model, paths[1])
    assert _judged(bittrue.compare_models(*paths)) == {"y": [name]}


POOL: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"ceil_mode": 1}, "window count rounding ceil instead of floor"),
    ({}, {"pads": [1, 1, 1, 1]}, "pads [1, 1, 1, 1] instead of [0, 0, 0, 0]"),
    ({"auto_pad": "SAME_UPPER"}, {}, "padding valid instead of same_upper"),
    ({"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, "padding same_lower instead of same_upper"),
    ({"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 1]}, "padding [1, 1, 1, 1] instead of same_upper"),
    (
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 1, 1, 1], "count_include_pad": 1},
        "average with padding instead of without padding",
    ),
]


@pytest.mark.parametrize(("a", "b", "name"), POOL, ids=[name for *_, name in POOL])
def test_windows_of_edited_onnx_pools(tmp_path: Path, a: dict[str, Any], b: dict[str, Any], name: str) -> None:
    """One edit of the file is one cause, in the file's words, whatever rules of ours it changes."""
    paths = [tmp_path / "good.onnx", tmp_path / "bad.onnx"]
    for path, given in zip(paths, (a, b), strict=True):
        kind = "AveragePool" if "count_include_pad" in b else "MaxPool"
        node = helper.make_node(kind, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], **given)
        dtype = TensorProto.FLOAT if kind == "AveragePool" else TensorProto.INT8
        ports = [helper.make_tensor_value_info("x", dtype, [1, 3, 7, 5])]
        made = helper.make_tensor_value_info("y", dtype, ["n", "c", "h", "w"])
        graph = helper.make_graph([node], "g", ports, [made])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    result = bittrue.compare_models(*paths)
    assert result.first is not None
    assert _judged(result) == {"y": [name]}
    assert len(result.notes) == 1
