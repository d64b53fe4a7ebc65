"""Graphs as no exporter writes them: aliases, odd bytes, empty operands, names that meet; equal or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, Refused, build, check, run_runtime, value_info

_F32, _BOOL = TensorProto.FLOAT, TensorProto.BOOL
_X = np.float32([[1.5, -2, 0], [3, -0.0, 7]])
_NAN = np.array([0x7FC00123, 0xFFC00000], np.uint32).view(np.float32)


def _base() -> ModelProto:
    """x -> Neg -> y -> If t: Relu, else Identity -> z, with a constant c that nobody uses, and truth values t."""

    def branch(op_type: str) -> onnx.GraphProto:
        out = f"{op_type}_out"
        node = helper.make_node(op_type, ["y"], [out])
        return helper.make_graph([node], op_type, [], [helper.make_tensor_value_info(out, _F32, None)])

    nodes = [
        helper.make_node("Neg", ["x"], ["y"]),
        helper.make_node("If", ["t"], ["z"], then_branch=branch("Relu"), else_branch=branch("Identity")),
    ]
    content, _ = build(nodes, {"x": _X}, {"z": _F32}, {"t": np.array(True), "c": _NAN, "i": np.int64([0, 9])})
    return onnx.load_from_string(content)


def _output(*names: str) -> Callable[[ModelProto], None]:
    def edit(model: ModelProto) -> None:
        for name in names:
            kind = _BOOL if name == "t" else TensorProto.INT64 if name == "i" else _F32
            model.graph.output.append(helper.make_tensor_value_info(name, kind, None))

    return edit


def _truth(value: int) -> Callable[[ModelProto], None]:
    def edit(model: ModelProto) -> None:
        (truth,) = (t for t in model.graph.initializer if t.name == "t")
        truth.ClearField("int32_data")
        truth.raw_data = bytes([value])

    return edit


def _empty_with_bad_index(model: ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((0, 3), np.float32), "e"))
    model.graph.node.append(helper.make_node("Gather", ["e", "i"], ["g"], axis=0))
    _output("g")(model)


def _node(op_type: str, inputs: list[str], outputs: list[str]) -> Callable[[ModelProto], None]:
    return lambda model: model.graph.node.append(helper.make_node(op_type, inputs, outputs))


EDITS: dict[str, tuple[Callable[[ModelProto], None], ...]] = {
    "an output is an input": (_output("x"),),
    "an output is a constant with a NaN": (_output("c"),),
    "outputs are an input, a constant and an inner tensor": (_output("x", "c", "y"),),
    "one tensor is an output twice": (_output("z"),),
    "truth is another byte": (_truth(2), _output("t")),
    "truth is byte 128": (_truth(128),),
    "untruth": (_truth(0),),
    "an index beyond an empty tensor": (_empty_with_bad_index,),
    "nobody uses a result": (_node("Relu", ["y"], ["unused"]),),
    "a tensor is written twice": (_node("Relu", ["x"], ["y"]),),
    "a result has the name of a constant": (_node("Relu", ["x"], ["c"]),),
    "a result has the name of an input": (_node("Relu", ["y"], ["x"]),),
    "an operand that nobody makes": (_node("Relu", ["nothing"], ["r"]), _output("r")),
    "a node uses its own result": (_node("Add", ["r", "y"], ["r"]), _output("r")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits(edit: str) -> None:
    model = _base()
    for change in EDITS[edit]:
        change(model)
    content = model.SerializeToString()
    theirs = run_runtime(content, [_X])
    for executor in ("reference", "auto"):
        if isinstance(theirs, Refused):
            with pytest.raises(bittrue.BittrueError):
                bittrue.load(content).prepare(HERE, executor=executor).run(_X)
            continue
        ours = bittrue.load(content).prepare(HERE, executor=executor).run(_X)
        for name, array in theirs.items():
            assert_same(name, ours[name], array)


@pytest.mark.parametrize("ir", [3, 8])
@pytest.mark.parametrize("quantized", [False, True])
def test_initializers_that_stand_among_the_inputs(ir: int, quantized: bool) -> None:
    """As PyTorch wrote them in 2019. Since IR version 4 callers may give other values, so that the optimiser leaves
    alone what reads them: layouts, batch normalizations, shapes, scales.
    """
    rng = np.random.default_rng(ir)

    def real(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    constants = {
        "w": real(16, 3, 3, 3),
        "b": real(16),
        "v": real(32, 16, 1, 1),
        "m": real(32 * 25, 7),
        "n": real(7),
        "scale": real(16),
        "shift": real(16),
        "mean": real(16),
        "variance": np.abs(real(16)),
        "two": np.float32(2),
        "shape": np.int64([1, -1]),
        "s": np.float32(0.05),
        "z": np.uint8(120),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Conv", ["e", "v"], ["f"]),
        helper.make_node("Mul", ["f", "two"], ["g"]),
        helper.make_node("Reshape", ["g", "shape"], ["h"]),
        helper.make_node("MatMul", ["h", "m"], ["i"]),
        helper.make_node("Add", ["i", "n"], ["y"]),
    ]
    if quantized:
        for name in "xemh":
            for node in nodes:
                node.input[:] = [f"{name}_real" if one == name else one for one in node.input]
            nodes += [
                helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"]),
                helper.make_node("DequantizeLinear", [f"{name}_q", "s", "z"], [f"{name}_real"]),
            ]
    x = real(1, 3, 9, 9)
    seen = set()
    for chosen in ((), tuple(constants), *(tuple(name for name in constants if rng.random() < 0.3) for _ in range(8))):
        listed = constants if ir < 4 else chosen
        content, feeds = build(nodes, {"x": x}, {"y": _F32}, constants, opset=13)
        model = onnx.load_from_string(content)
        model.ir_version = ir
        model.graph.input.extend(value_info(name, constants[name]) for name in listed)
        content = model.SerializeToString()
        assert (
            check(content, feeds, expected=lambda content=content, feeds=feeds: run_runtime(content, feeds)) == "equal"
        )
        loaded = bittrue.load(content)
        assert any("stand among its inputs" in note for note in loaded.notes) == (ir > 3 and bool(listed))
        seen.add(loaded.prepare(HERE).run(x)["y"].tobytes())
    assert (len(seen) > 1) == (ir > 3)
