"""resize_nearest, resize_linear, resize_cubic and resize_antialiased (Resize and Upsample of all versions) against ONNX
Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.onnx_models import HERE, Checks, check, natively, single, value_info
from support.onnx_operands import bits, kind, numbers, one_type

NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
_OPSETS = {"cubic": [11, 13, 18, 19, 21, 24], "antialias": [18, 19, 21, 24]}
PLACES = ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners", "tf_crop_and_resize"]
_RANKS = {"nearest": [1, 2, 3, 4, 5], "linear": [2, 3, 4, 4, 5]}
_TYPES = {"linear": "f4 u1 i1 i4", "nearest": "f4 u1 i1 i4", "cubic": "f4 f4 f4 u1 i1", "antialias": "f4 u1 i1"}


def draw(rng: np.random.Generator, mode: str) -> tuple[bytes, list[np.ndarray]]:
    linear = mode != "nearest"
    rank = int(rng.choice(_RANKS.get(mode, [2, 4])))
    dtype = one_type(rng, _TYPES[mode])
    shape = [int(v) for v in rng.integers(1, 12, rank)]
    if rank >= 4:
        shape[:2] = (int(v) for v in rng.integers(1, 4, 2))
    x = numbers(rng, shape, dtype) if linear else bits(rng, shape, dtype)
    if linear and dtype.kind == "f":
        x = np.where(np.isinf(x), np.float32(3), x)
    opset = int(rng.choice(_OPSETS.get(mode, [9, 10, 11, 13, 18, 19, 21, 24])))
    last = mode != "nearest" and rank == 4 and rng.random() < 0.3
    moved = (
        [1, 2]
        if last
        else list(range(rank))[-2 - rank % 2 :]
        if linear
        else [a for a in range(rank) if rng.random() < 0.6]
    )
    factors = np.ones(rank, np.float32)
    for axis in moved:
        low = 1 if opset == 9 else 1.01 / shape[axis]
        factors[axis] = rng.choice([2, 3, 1.5, max(0.5, low), rng.uniform(low, 4), 1])
    op_type = "Upsample" if opset == 9 else "Resize"
    attributes: dict[str, Any] = {"mode": mode}
    if opset <= 10:
        inputs: dict[str, np.ndarray | None] = {"x": x, "scales": factors}
        return single(op_type, inputs, [kind(dtype)], attributes, opset=opset, constants=["scales"])
    places = [*PLACES, "half_pixel_symmetric"] if opset >= 19 else PLACES
    places = [*places, "tf_half_pixel_for_nn"] if opset < 13 else places
    if rng.random() < 0.85:
        attributes["coordinate_transformation_mode"] = str(rng.choice(places))
    if not linear and rng.random() < 0.8:
        attributes["nearest_mode"] = str(rng.choice(NEAREST))
    if mode == "antialias":
        attributes |= {"mode": str(rng.choice(["linear", "cubic"])), "antialias": 1}
    if attributes["mode"] == "cubic":
        attributes |= {"exclude_outside": int(rng.integers(2)), "cubic_coeff_a": float(rng.choice([-0.75, -0.5, -0.6]))}
    inputs = {"x": x, "roi": np.zeros(0, np.float32) if opset < 13 else None}
    sized = rng.random() < 0.5
    sizes = np.array([max(1, int(np.float32(e) * f)) for e, f in zip(shape, factors, strict=True)], np.int64)
    if opset >= 18 and not linear and rng.random() < 0.4:
        axes = [int(a) for a in rng.permutation(rank)[: int(rng.integers(1, rank + 1))]]
        attributes["axes"] = axes
        factors, sizes = factors[axes], sizes[axes]
        if sized and rng.random() < 0.5:
            attributes["keep_aspect_ratio_policy"] = str(rng.choice(["not_larger", "not_smaller", "stretch"]))
    if sized:
        inputs |= {"scales": np.zeros(0, np.float32) if opset < 13 else None, "sizes": sizes}
    else:
        inputs["scales"] = factors
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        inputs["roi"] = region(rng, len(attributes.get("axes", shape)))
        if rng.random() < 0.8:
            attributes["extrapolation_value"] = float(
                rng.choice([0.0, -0.0, 7.75, 100.0, -3.5 if dtype.kind != "u" else 1.5])
            )
    given = [name for name, array in inputs.items() if array is not None and name != "x"]
    late = rng.random() < 0.15
    return single(op_type, inputs, [kind(dtype)], attributes, opset=opset, constants=["roi"] if late else given)


def region(rng: np.random.Generator, axes: int) -> np.ndarray:
    """Beginnings and ends in lengths of axes: inside, beyond, backwards."""
    begin = rng.choice([0, 0.25, rng.uniform(-0.5, 1.2)], axes)
    end = rng.choice([1, 0.75, rng.uniform(-0.5, 1.5)], axes)
    return np.concatenate([begin, end]).astype(np.float32)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic", "antialias"])
def test_random_models(request: pytest.FixtureRequest, mode: str) -> None:
    checks = Checks(request)
    for rng in checks:
        content, feeds = draw(rng, mode)
        # Images whose channels lie last are not filled where they should be with antialiasing.
        checks.add(content, feeds, may_refuse=("BT-RESIZE-REGION",) if mode in ("cubic", "antialias") else ())
    assert "equal" in checks.outcomes


def test_ties_of_nearest(request: pytest.FixtureRequest) -> None:
    """Places at, and a few units beside, the middle between two elements."""
    checks = Checks(request)
    for rng in checks:
        size, middle = 64, int(rng.integers(0, 40)) + 0.5
        factor = np.float32(1 / middle)
        for _ in range(int(rng.integers(0, 6))):
            factor = np.nextafter(factor, np.float32(rng.choice([0, 9])))
        x = np.arange(size, dtype=np.float32)
        attributes = {"nearest_mode": str(rng.choice(NEAREST)), "coordinate_transformation_mode": "asymmetric"}
        inputs = {"x": x, "roi": None, "scales": np.array([factor])}
        content, feeds = single("Resize", inputs, [kind("f4")], attributes, opset=19, constants=["scales"])
        checks.add(content, feeds)


def test_regions_that_are_no_numbers() -> None:
    x, region = np.ones((4, 4), np.float32), np.array([0, np.nan, 1, 1], np.float32)
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    inputs = {"x": x, "roi": region, "scales": np.array([2, 2], np.float32)}
    content, feeds = single("Resize", inputs, [kind("f4")], attributes, opset=19, constants=["roi", "scales"])
    assert check(content, feeds, may_refuse=("BT-RESIZE-REGION",)) == "refused"


@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i4"])
@pytest.mark.parametrize("factors", [(1, 2, 3, 1), (1, 1, 1.5, 0.5), (1, 1.5, 2), (1, 1, 2, 0.5, 3)])
def test_linear_kernels(dtype: str, factors: tuple[float, ...]) -> None:
    """Channels last, channels first, sequences and volumes, with values outside."""
    rng = np.random.default_rng(len(factors))
    x = numbers(rng, (2, 3, 4, 5, 2)[-len(factors) :], np.dtype(dtype))
    x = np.where(np.isinf(x), 3, x).astype(dtype) if x.dtype.kind == "f" else x
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.5}
    inputs = {"x": x, "roi": region(rng, len(factors)), "scales": np.array(factors, np.float32)}
    content, feeds = single("Resize", inputs, [kind(dtype)], attributes, opset=19, constants=["roi", "scales"])
    assert check(content, feeds) == "equal"
    natively(content, feeds)


@pytest.mark.parametrize("mode", ["linear", "cubic", "antialias"])
def test_constant_sizes_of_a_free_batch(mode: str) -> None:
    """They fit what a run gives and not what stands in for the free size until then."""
    attributes = {"mode": "linear", "antialias": 1} if mode == "antialias" else {"mode": mode}
    inputs = {"x": numbers(np.random.default_rng(3), (2, 3, 4, 5), np.dtype("f4")), "roi": None, "scales": None}
    sizes = np.array([2, 3, 7, 9], np.int64)
    content, feeds = single(
        "Resize", inputs | {"sizes": sizes}, [kind("f4")], attributes, opset=19, constants=["sizes"]
    )
    model = onnx.load_from_string(content)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    bittrue.load(model.SerializeToString()).prepare(HERE)
    assert check(model.SerializeToString(), feeds) == "equal"


_CUT: dict[str, Any] = {
    "mode": "linear",
    "coordinate_transformation_mode": "tf_crop_and_resize",
    "extrapolation_value": 5.0,
}


@pytest.mark.parametrize("known", [["roi"], ["sizes"], []])
def test_regions_that_running_tells(known: list[str]) -> None:
    x = np.arange(84, dtype=np.float32).reshape(1, 2, 6, 7)
    region = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2], np.float32)
    inputs = {"x": x, "roi": region, "scales": None, "sizes": np.array([1, 2, 4, 4], np.int64)}
    assert check(*single("Resize", inputs, [kind("f4")], _CUT, opset=13, constants=known)) == "equal"


def test_every_region_of_a_scan() -> None:
    """As detectors cut boxes out of an image, one after the other."""
    x, rng = np.arange(84, dtype=np.float32).reshape(1, 2, 6, 7), np.random.default_rng(2)
    constants: dict[str, np.ndarray] = {
        "zero": np.zeros(2, np.float32),
        "one": np.ones(2, np.float32),
        "none": np.zeros(0, np.float32),
        "sizes": np.array([1, 2, 4, 4], np.int64),
    }
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["zero", "begin", "one", "end"], ["region"], axis=0),
            helper.make_node("Resize", ["image", "region", "none", "sizes"], ["cut"], **_CUT),
            helper.make_node("Squeeze", ["cut"], ["result"], axes=[0]),
        ],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("begin", "end")],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    begin, end = (rng.uniform(low, low + 0.7, (3, 2)).astype(np.float32) for low in (-0.2, 0.5))
    graph = helper.make_graph(
        [helper.make_node("Scan", ["begins", "ends"], ["y"], body=body, num_scan_inputs=2)],
        "graph",
        [value_info(name, array) for name, array in (("image", x), ("begins", begin), ("ends", end))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    assert check(model.SerializeToString(), [x, begin, end]) == "equal"
