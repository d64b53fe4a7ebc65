"""GatherBlockQuantized: random one-node models against ONNX Runtime."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support.onnx_models import MICROSOFT, Checks, odd_scale

FLOATS = {
    "f8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "f8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "f8e5m2": TensorProto.FLOAT8E5M2,
    "f8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "f4e2m1": TensorProto.FLOAT4E2M1,
}
# u8 data holds packed numbers.
KINDS = {"u8": TensorProto.UINT8, "u4": TensorProto.UINT4, "s4": TensorProto.INT4}
ENDS = {"u8": (0, 255), "u4": (0, 15), "s4": (-8, 7)}


def constant(rng: np.random.Generator, name: str, kind: str, shape: list[int]) -> onnx.TensorProto:
    low, high = ENDS[kind]
    return helper.make_tensor(name, KINDS[kind], shape, rng.integers(low, high + 1, math.prod(shape)).tolist())


def floats(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    """Floats of 8 and 4 bits, whose scales may stand for whole axes."""
    kind, rank = str(rng.choice(list(FLOATS))), int(rng.integers(1, 4))
    block, axis, along = int(rng.choice([0, 16, 32])), int(rng.integers(rank)), int(rng.integers(rank))
    shape = [int(v) for v in rng.integers(1, 6, rank)]
    shape[along] = int(rng.integers(1, 80))
    blocks = -(-shape[along] // block) if block else 1
    scales = [blocks if i == along else 1 if rng.random() < 0.3 else size for i, size in enumerate(shape)]
    real = np.float32 if rng.random() < 0.6 else np.float16
    data = helper.make_tensor("data", FLOATS[kind], shape, (rng.standard_normal(math.prod(shape)) * 3).tolist())
    constants = [data, numpy_helper.from_array(rng.uniform(-2, 2, scales).astype(real), "scales")]
    size = shape[axis]
    positions = rng.integers(-size - (rng.random() < 0.1), size, rng.integers(0, 4, int(rng.integers(3))))
    positions = np.asarray(positions, np.int32 if rng.random() < 0.5 else np.int64)
    attributes = {"gather_axis": axis, "quantize_axis": along, "block_size": block}
    names = ["data", "positions", "scales"]
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain=MICROSOFT, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("positions", helper.np_dtype_to_tensor_dtype(positions.dtype), positions.shape)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(real)), None)],
        constants,
    )
    imports = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11).SerializeToString(), [positions]


def model(rng: np.random.Generator) -> tuple[bytes, list[np.ndarray]]:
    kind, rank, block = (
        str(rng.choice(list(KINDS))),
        int(rng.choice([1, *[2, 3] * 9])),
        int(rng.choice([16, 32, 64, 128])),
    )
    bits = int(rng.choice([2, 4, 8])) if kind == "u8" else 4
    each = 8 // bits if kind == "u8" else 1
    axis, along = (0, rank - 1) if kind == "u8" and rng.random() < 0.95 else (int(v) for v in rng.integers(0, rank, 2))
    shape = [int(v) for v in rng.integers(1, 6, rank)]
    shape[along] = int(rng.integers(1, 150)) // each + 1
    scales = [-(-size * each // block) if i == along else size for i, size in enumerate(shape)]
    points = [-(-size // each) if i == along else size for i, size in enumerate(scales)]
    if rng.random() < 0.05:
        scales[int(rng.integers(rank))] += 1
    real = np.float32 if rng.random() < 0.6 else np.float16
    constants = [constant(rng, "data", kind, shape)]
    values = odd_scale(rng, rng.uniform(-2, 2, scales).astype(np.float32))
    with np.errstate(over="ignore"):
        constants.append(numpy_helper.from_array(values.astype(real), "scales"))
    names = ["data", "positions", "scales"]
    if rng.random() < 0.6:
        constants.append(constant(rng, "points", kind, points))
        names.append("points")
    size = shape[axis]
    positions = rng.integers(-size - (rng.random() < 0.1), size, rng.integers(0, 4, int(rng.integers(3))))
    positions = np.asarray(positions, np.int32 if rng.random() < 0.5 else np.int64)
    attributes = {"gather_axis": axis, "quantize_axis": along - rank * int(rng.integers(2)), "block_size": block}
    if rng.random() < 0.03:
        attributes["block_size"] = int(rng.choice([0, 8, 24]))
    if bits != 4 or rng.random() < 0.5:
        attributes["bits"] = bits
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain=MICROSOFT, **attributes)
    result = TensorProto.FLOAT if real is np.float32 else TensorProto.FLOAT16
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("positions", helper.np_dtype_to_tensor_dtype(positions.dtype), positions.shape)],
        [helper.make_tensor_value_info("y", result, None)],
        constants,
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString(), [positions]


def test_random_models(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=40)
    for rng in checks:
        checks.add(*model(rng))
    assert checks.outcomes.count("equal") > 0.7 * len(checks.outcomes)
    assert "refused" in checks.outcomes


def test_floats(request: pytest.FixtureRequest) -> None:
    checks = Checks(request, usual=20)
    for rng in checks:
        checks.add(*floats(rng))
    assert checks.outcomes.count("equal") > 0.5 * len(checks.outcomes)
