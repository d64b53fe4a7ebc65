"""MatMulNBits: random one-node models against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.onnx_models import MICROSOFT, Checks, natively, needs_measured, scale, single


def _make_odd(rng: np.random.Generator, rows: np.ndarray | None) -> None:
    """A tenth have numbers that are not finite, or too small for an inverse."""
    if rows is None or not rows.size or rng.random() < 0.9:
        return
    if rng.random() < 0.3:
        rows *= np.float32(1e-39)
    rows.reshape(-1)[rng.integers(0, rows.size, rng.integers(1, 9))] = rng.choice(
        np.float32([np.nan, -np.nan, np.inf, -np.inf, 3e38, 1e-45, -0.0])
    )


def model(rng: np.random.Generator, level: int, bits: int) -> tuple[bytes, list[np.ndarray]]:
    block = int(rng.choice([16, 32, 64, 128, 256, 512], p=[0.3, 0.3, 0.2, 0.1, 0.09, 0.01]))
    k, n = int(rng.integers(1, 300)), int(rng.integers(1, 70))
    batch = tuple(int(v) for v in rng.integers(1, 4, rng.integers(3)))
    rows = 1 if rng.random() < 0.4 else int(rng.integers(0 if rng.random() < 0.05 else 1, 20))
    if rows == 1 and rng.random() < 0.7:
        batch = (1,) * len(batch)
    blocks = -(-k // block)
    attributes: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": block}
    if level:
        attributes["accuracy_level"] = level
    quantized = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = scale(rng, (n, blocks))
    points: np.ndarray | None = None
    drawn = rng.random()
    if drawn < 0.4:
        points = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
    elif drawn < 0.5 and bits == 4:
        points = rng.uniform(0, 15, (n, blocks)).astype(np.float32)
    flat = rng.random() < 0.2
    operands: dict[str, np.ndarray | None] = {
        "a": rng.standard_normal((*batch, rows, k)).astype(np.float32),
        "values": quantized,
        "scales": scales.reshape(-1) if flat else scales,
        "points": points.reshape(-1) if flat and points is not None else points,
        "order": None,
        "bias": rng.standard_normal(n).astype(np.float32) if rng.random() < 0.4 else None,
    }
    constants = ["values", "scales", "points", "bias"] if rng.random() < 0.8 else []
    constants = [name for name in constants if operands[name] is not None and rng.random() < 0.97]
    if level == 4 and "values" in constants:
        _make_odd(rng, operands["a"])
    if rng.random() < 0.15:
        with np.errstate(over="ignore"):
            operands = {
                n: x.astype(np.float16) if x is not None and x.dtype.kind == "f" else x for n, x in operands.items()
            }
    assert operands["a"] is not None
    kind = TensorProto.FLOAT if operands["a"].dtype == np.float32 else TensorProto.FLOAT16
    return single("MatMulNBits", operands, [kind], attributes, domain=MICROSOFT, constants=constants)


@needs_measured
def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request)
    for rng in checks:
        level, bits = int(rng.choice([0, 1, 2, 3, 4, 4, 4, 4])), int(rng.choice([2, 4, 4, 4, 8]))
        # With scales that are computed, the runtime reads memory that it never wrote.
        checks.add(*model(rng, level, bits), may_refuse={"BT-UNDEFINED"} if level == 4 else ())
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


@pytest.mark.parametrize("points", [None, np.float32, np.uint8])
@pytest.mark.parametrize("rows", [1, 3])
def test_products_of_another_processor_are_native(rows: int, points: type | None) -> None:
    """Single rows are blocks of products there, and real zero points are fused with their scales."""
    rng = np.random.default_rng(5)
    operands: dict[str, np.ndarray | None] = {
        "a": rng.standard_normal((rows, 200)).astype(np.float32),
        "values": rng.integers(0, 256, (9, 7, 32)).astype(np.uint8),
        "scales": scale(rng, (9, 7)),
        "points": None if points is None else (rng.random((9, 7)) * 255).astype(points),
    }
    attributes = {"K": 200, "N": 9, "bits": 8, "block_size": 32}
    constants = [name for name in operands if name != "a" and operands[name] is not None]
    model = single("MatMulNBits", operands, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=constants)
    natively(*model, "onnxruntime@aarch64")


def by_table(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """MatMulBnb4: weights that are numbers of a table, in blocks through the whole matrix."""
    k, n = int(rng.integers(1, 200)), int(rng.integers(1, 70))
    block = int(rng.choice([16, 32, 64, 128, 256, 8], p=[0.2, 0.2, 0.2, 0.2, 0.19, 0.01]))
    operands = {
        "a": rng.standard_normal((*rng.integers(1, 4, rng.integers(3)), int(rng.integers(1, 9)), k)).astype(np.float32),
        "values": rng.integers(0, 256, -(-n * k // 2)).astype(np.uint8),
        "largest": rng.uniform(0.1, 2, -(-n * k // block)).astype(np.float32),
    }
    attributes = {"K": k, "N": n, "block_size": block, "quant_type": int(rng.integers(2))}
    constants = [name for name in ("values", "largest") if rng.random() < 0.7]
    return single("MatMulBnb4", operands, [TensorProto.FLOAT], attributes, domain=MICROSOFT, constants=constants)


def in_another_order(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """MatMulNBits with g_idx, f32 and 4 bits."""
    while True:
        content, feeds = model(rng, int(rng.choice([0, 4])), 4)
        proto = onnx.load_from_string(content)
        node, numbers = proto.graph.node[0], {a.name: a.i for a in proto.graph.node[0].attribute}
        if len(feeds) == 1 and feeds[0].dtype == np.float32 and numbers["block_size"] <= 256:
            break
    blocks = -(-numbers["K"] // numbers["block_size"])
    count = numbers["K"] if rng.random() < 0.5 else blocks * numbers["block_size"]
    order = numpy_helper.from_array(rng.integers(0, blocks, count).astype(np.int32), "order")
    proto.graph.initializer.append(order)
    node.input.extend([""] * (5 - len(node.input)))
    node.input[4] = "order"
    return proto.SerializeToString(), feeds


@needs_measured
@pytest.mark.parametrize("draw", [by_table, in_another_order])
def test_weights_without_kernel(
    request: pytest.FixtureRequest, draw: Callable[[np.random.Generator], tuple[bytes, list[np.ndarray]]]
) -> None:
    checks = Checks(request, usual=20)
    for rng in checks:
        checks.add(*draw(rng), may_refuse={"BT-NODE-INPUT"})
    assert checks.outcomes.count("equal") > 0.8 * len(checks.outcomes)


def with_sum(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """A vector, or something else, is added to the product; what follows may take the sum in."""
    content, feeds = model(rng, int(rng.choice([0, 4, 4])), 4)
    proto = onnx.load_from_string(content)
    graph, columns = proto.graph, helper.get_node_attr_value(proto.graph.node[0], "N")
    kind, shape = graph.output[0].type.tensor_type.elem_type, (columns,) if rng.random() < 0.8 else (1, columns)
    addend = rng.standard_normal(shape).astype(feeds[0].dtype)
    if rng.random() < 0.7:
        graph.initializer.append(numpy_helper.from_array(addend, "addend"))
    else:
        graph.input.append(helper.make_tensor_value_info("addend", kind, shape))
        feeds = [*feeds, addend]
    graph.node.append(helper.make_node("Add", ["y0", "addend"] if rng.random() < 0.6 else ["addend", "y0"], ["sum"]))
    operator, domain = (("Relu", ""), ("Gelu", MICROSOFT), ("Identity", ""))[int(rng.integers(3))]
    graph.node.append(helper.make_node(operator, ["sum"], ["y"], domain=domain))
    del graph.output[:]
    names = ["y", "y0"] if rng.random() < 0.1 else ["y"]
    graph.output.extend(helper.make_tensor_value_info(name, kind, None) for name in names)
    return proto.SerializeToString(), feeds


@needs_measured
def test_sums_become_biases(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=25)
    for rng in checks:
        content, feeds = with_sum(rng)
        if feeds[0].dtype == np.float32:
            checks.add(content, feeds, may_refuse={"BT-UNDEFINED"})
    assert checks.outcomes.count("equal") > 0.7 * len(checks.outcomes)


def test_blocks_of_another_column_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    content, _ = model(rng, 0, 4)
    proto = onnx.load_from_string(content)
    quantized = next(tensor for tensor in proto.graph.initializer if tensor.name == "values")
    quantized.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(quantized), 1, 0), "values"))
    paths = [tmp_path / name for name in ("a.onnx", "b.onnx")]
    for path, one in zip(paths, (content, proto.SerializeToString()), strict=True):
        path.write_bytes(one)
    result: Any = bittrue.compare_models(*map(str, paths), seeds=range(1))
    (pair,) = (p for p in result.pairs if p.a == "y0")
    assert [cause.name for cause in pair.verdict.causes] == ["weights shifted by one along axis 0"]
