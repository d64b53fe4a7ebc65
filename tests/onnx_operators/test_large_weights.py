"""What runs may need: whatever weights a file holds, the limit does not refuse them; large images need little more."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from support.differential import assert_same
from support.onnx_models import HERE, MICROSOFT, build, run_runtime

DEPTH, COLUMNS = 64, 2000


def _product(form: str, rng: np.random.Generator) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Nodes from x to y, and the constants w (of the product) and others."""
    weights = rng.integers(0, 256, (DEPTH, COLUMNS)).astype(np.uint8)
    scale, point = np.float32(0.02), np.uint8(128)
    if form == "real":
        return [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": weights.astype(np.float32)}
    if form.startswith("blocks"):
        bits = int(form.removeprefix("blocks"))
        blocks = DEPTH // 32
        stored = rng.integers(0, 256, (COLUMNS, blocks, 4 * bits)).astype(np.uint8)
        kind: dict[str, Any] = {"K": DEPTH, "N": COLUMNS, "bits": bits, "block_size": 32, "accuracy_level": 4}
        node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain=MICROSOFT, **kind)
        return [node], {"w": stored, "s": np.full((COLUMNS * blocks,), scale, np.float32)}
    constants: dict[str, np.ndarray] = {"w": weights, "s": np.asarray(scale), "z": np.asarray(point)}
    if form == "dynamic":
        return [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "a", "p"]),
            helper.make_node("MatMulInteger", ["q", "w", "p", "z"], ["sums"]),
            helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["a", "s"], ["factor"]),
            helper.make_node("Mul", ["real", "factor"], ["y"]),
        ], constants
    pairs = [
        helper.make_node(op, [given, "s", "z"], [made])
        for op, given, made in (
            ("QuantizeLinear", "x", "q"),
            ("DequantizeLinear", "q", "d"),
            ("DequantizeLinear", "w", "v"),
        )
    ]
    return [
        *pairs,
        helper.make_node("MatMul", ["d", "v"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "t", "z"], ["n"]),
        helper.make_node("DequantizeLinear", ["n", "t", "z"], ["y"]),
    ], {**constants, "t": np.array(0.3, np.float32)}


@pytest.mark.parametrize("form", ["real", "dynamic", "pairs", "blocks4", "blocks8"])
def test_weights_of_a_file_are_no_claims(form: str) -> None:
    rng = np.random.default_rng(0)
    nodes, constants = _product(form, rng)
    x = rng.standard_normal((1, DEPTH)).astype(np.float32)
    limit = 200_000  # less than two bytes per weight
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    theirs = run_runtime(content, feeds)
    assert isinstance(theirs, dict)
    found = bittrue.load(content).prepare(HERE, memory_limit=limit).run(*feeds)
    assert_same("y", found["y"], theirs["y"])
    # The same weights as an input are no part of the file.
    computed = {"x": x, "w": constants.pop("w")}
    content, _ = build(nodes, computed, {"y": TensorProto.FLOAT}, constants)
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        bittrue.load(content).prepare(HERE, memory_limit=limit)


@pytest.mark.parametrize("executor", ["native", "reference"])
@pytest.mark.parametrize("turned", [0, 1])
def test_products_take_what_is_asked_for(executor: str, turned: int) -> None:
    """Weights that are no constants: 4 bytes for each one and 16 to multiply by it, which both executors stay below."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, DEPTH), (DEPTH, COLUMNS)))
    lies = {"w": np.ascontiguousarray(w.T) if turned else w}
    content, feeds = build([helper.make_node("Gemm", ["x", "w"], ["y"], transB=turned)], {"x": x, **lies}, {"y": 1})
    limit = 24 * w.size
    session = bittrue.load(content).prepare(HERE, memory_limit=limit, executor=executor)
    tracemalloc.start()
    session.run(*feeds)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < limit < 2 * session.plan.memory


def test_large_models_may_need_more() -> None:
    """Eight bytes for each one of a constant, in plans that are loaded, too; what a small file claims stays limited."""
    limit, rows = 1 << 20, 160_000
    x = np.zeros((rows, 16), np.float32)
    nodes = [helper.make_node("Add", ["x", "b"], ["s"]), helper.make_node("Exp", ["s"], ["e"])]
    nodes += [helper.make_node("Gather", ["w", "i"], ["g"]), helper.make_node("Add", ["e", "g"], ["y"])]
    constants = {"b": np.ones(16, np.float32), "i": np.array([3]), "w": np.ones((rows, 16), np.float32)}
    content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants)
    assert bittrue.load(content).prepare(HERE, memory_limit=limit).plan.memory > 16 * limit
    content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, {**constants, "w": np.ones((9, 16), np.float32)})
    with pytest.raises(bittrue.ResourceError, match="BT-MEMORY"):
        bittrue.load(content).prepare(HERE, memory_limit=limit)


def test_plans_of_large_models_load(tmp_path: Path) -> None:
    rows = 160_000
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Gather", ["w", "i"], ["g"])]
    nodes.append(helper.make_node("Add", ["e", "g"], ["y"]))
    constants = {"i": np.zeros(rows, np.int64), "w": np.ones((rows, 16), np.float32)}
    content, feeds = build(nodes, {"x": np.zeros((rows, 16), np.float32)}, {"y": TensorProto.FLOAT}, constants)
    session = bittrue.load(content).prepare(HERE, memory_limit=1 << 20)
    session.plan.save(tmp_path / "m.plan")
    loaded = bittrue.load_plan(tmp_path / "m.plan", memory_limit=1 << 20)
    assert_same("y", loaded.run(*feeds)["y"], session.run(*feeds)["y"])
    assert loaded.plan.memory > 16 << 20


@pytest.mark.parametrize(
    ("operator", "attributes", "others"),
    [
        ("BatchNormalization", {}, [(240,)] * 4),
        ("InstanceNormalization", {}, [(240,)] * 2),
        ("LayerNormalization", {"axis": 3}, [(64,)] * 2),
        ("GridSample", {}, [(1, 32, 64, 2)]),
        ("MaxPool", {"kernel_shape": [3, 3]}, []),
        ("Conv", {"pads": [1, 1, 1, 1]}, [(2, 240, 3, 3)]),
        ("Conv", {"pads": [0, 1, 1, 1]}, [(2, 240, 3, 3)]),
        ("Conv", {"group": 24}, [(48, 10, 3, 2), (48,)]),
    ],
)
def test_large_images_need_little_beside_them(
    operator: str, attributes: dict[str, Any], others: list[tuple[int, ...]]
) -> None:
    """The reference works on parts of them, which have the bytes of native kernels, and takes no more than it said."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 240, 32, 64), np.float32)
    constants = {f"c{i}": rng.random(shape, np.float32) for i, shape in enumerate(others)}
    nodes = [helper.make_node(operator, ["x", *constants], ["y"], **attributes)]
    content, feeds = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, constants, opset=20)
    session = bittrue.load(content).prepare("onnxruntime", executor="reference")
    tracemalloc.start()
    (found,) = session.run(*feeds).values()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < session.plan.memory < 18 * x.nbytes
    (native,) = bittrue.load(content).prepare("onnxruntime").run(*feeds).values()
    assert found.tobytes() == native.tobytes()
