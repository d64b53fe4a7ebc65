"""gather, gather_nd, scatter_nd, arg_max, arg_min, topk_v2, where, one_hot, eye, triangle,
unique, non_max_suppression, compress, reverse_sequence and tensor_scatter against ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import bittrue
from support.onnx_models import MICROSOFT, Checks, check, single
from support.onnx_operands import Case, bits, kind, numbers, one_type, shape

I64 = np.int64
S64 = TensorProto.INT64
Builder = Callable[[np.random.Generator], Case]


def positions(rng: np.random.Generator, size: Any, dimension: int, dtype: Any = I64, wrong: float = 0.02) -> np.ndarray:
    """Positions from either end, now and then one outside."""
    found = np.asarray(rng.integers(-dimension, dimension, size) if dimension else np.zeros(size, I64))
    if rng.random() < wrong:
        found = np.where(rng.random(size) < 0.3, dimension, found)
    return np.asarray(found, dtype)


def gather(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    axis = int(rng.integers(-x.ndim, x.ndim))
    index = positions(rng, shape(rng, 0, 3), x.shape[axis], one_type(rng, "i4 i8"))
    opset = int(rng.integers(8, 25))
    return "Gather", {"x": x, "i": index}, [kind(x.dtype)], {"axis": abs(axis) if opset < 11 else axis}, opset


def within(rng: np.random.Generator, x: np.ndarray, axis: int) -> list[int]:
    sizes = [int(rng.integers(1, e + 1)) if e else 0 for e in x.shape]
    sizes[axis] = int(rng.integers(0, 6)) if x.shape[axis] else 0
    if rng.random() < 0.03:
        sizes[0] = 9
    return sizes


def gather_elements(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    axis = int(rng.integers(-x.ndim, x.ndim))
    index = positions(rng, within(rng, x, axis), x.shape[axis], one_type(rng, "i4 i8"))
    return "GatherElements", {"x": x, "i": index}, [kind(x.dtype)], {"axis": axis}, int(rng.integers(11, 25))


def gather_nd(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    opset = int(rng.integers(11, 25))
    batch = int(rng.integers(0, x.ndim)) if opset >= 12 and rng.random() < 0.5 else 0
    depth = int(rng.integers(1, x.ndim - batch + 1))
    rows = (*x.shape[:batch], *shape(rng, 0, 2))
    columns = [positions(rng, rows, x.shape[batch + axis]) for axis in range(depth)]
    attributes = {"batch_dims": batch} if opset >= 12 else {}
    return "GatherND", {"x": x, "i": np.stack(columns, -1)}, [kind(x.dtype)], attributes, opset


def reduction(rng: np.random.Generator, dtype: np.dtype, opset: int) -> dict[str, str]:
    if opset < 16 or dtype == np.bool_ or rng.random() < 0.4:
        return {}
    return {"reduction": str(rng.choice(["none", "add", "mul", *(["max", "min"] if opset >= 18 else [])]))}


def scatter_elements(rng: np.random.Generator) -> Case:
    dtype = one_type(rng, "f4 f8 u1 i1 u2 i2 u4 i4 u8 i8 ?")
    x = numbers(rng, shape(rng, 1, 4), dtype)
    axis = int(rng.integers(-x.ndim, x.ndim))
    index = positions(rng, within(rng, x, axis), x.shape[axis], one_type(rng, "i4 i8"))
    opset = int(rng.integers(11, 25))
    inputs = {"x": x, "i": index, "u": numbers(rng, index.shape, dtype)}
    attributes = {"axis": axis, **reduction(rng, dtype, opset)}
    return "ScatterElements", dict(inputs), [kind(dtype)], attributes, opset


def scatter_nd(rng: np.random.Generator) -> Case:
    dtype = one_type(rng, "f4 f8 u1 i1 u2 i2 u4 i4 u8 i8 ?")
    x = numbers(rng, shape(rng, 1, 4), dtype)
    depth = int(rng.integers(1, x.ndim + 1))
    rows = shape(rng, 0, 2)
    columns = [positions(rng, rows, x.shape[axis]) for axis in range(depth)]
    opset = int(rng.integers(11, 25))
    inputs = {"x": x, "i": np.stack(columns, -1), "u": numbers(rng, (*rows, *x.shape[depth:]), dtype)}
    return "ScatterND", dict(inputs), [kind(dtype)], reduction(rng, dtype, opset), opset


def arg(rng: np.random.Generator) -> Case:
    x = numbers(rng, shape(rng, 1, 4), one_type(rng, "f4 f8 u1 i1 i4 i8"))
    if x.dtype.kind == "f" and rng.random() < 0.5:
        x = np.where(rng.random(x.shape) < rng.random(), np.nan, x).astype(x.dtype)
    attributes = {"axis": int(rng.integers(-x.ndim, x.ndim)), "keepdims": int(rng.integers(2))}
    opset = int(rng.integers(13, 25))
    if rng.random() < 0.5:
        attributes["select_last_index"] = int(rng.integers(2))
    return str(rng.choice(["ArgMax", "ArgMin"])), {"x": x}, [S64], attributes, opset


def top(rng: np.random.Generator) -> Case:
    # Some with enough rows side by side to be looked at together.
    size = tuple(int(v) for v in rng.integers(1, 24, 3)) if rng.random() < 0.3 else shape(rng, 1, 4)
    x = numbers(rng, size, one_type(rng, "f4 f8 u1 i1 i2 i4 i8"))
    axis = int(rng.integers(-x.ndim, x.ndim))
    count = int(rng.integers(0, x.shape[axis] + 1)) + (1 if rng.random() < 0.03 else 0)
    attributes = {"axis": axis, "largest": int(rng.integers(2)), "sorted": 1}
    opset = 24 if x.dtype.itemsize < 4 else int(rng.integers(11, 24))
    return "TopK", {"x": x, "k": np.array([count], I64)}, [kind(x.dtype), S64], attributes, opset


def non_zero(rng: np.random.Generator) -> Case:
    x = numbers(rng, shape(rng, 0, 4), one_type(rng, "f4 u1 i4 i8 ?"))
    return "NonZero", {"x": x}, [S64], {}, int(rng.integers(9, 25))


def one_hot(rng: np.random.Generator) -> Case:
    triples = "i4 i4 f4, i8 i4 f4, i8 i8 f4, i8 i8 i8, i8 f4 i4, i8 f4 f4, i4 f4 f4, f4 f4 f4, f4 i8 i8".split(", ")
    index, depth, value = triples[rng.integers(len(triples))].split()
    count = int(rng.integers(1, 6))
    indices = rng.integers(-count - 2, count + 2, shape(rng, 1, 3)).astype(index)
    inputs = {
        "i": indices,
        "depth": np.array(count if rng.random() < 0.5 else [count], depth),
        "values": numbers(rng, (2,), value),
    }
    attributes = {"axis": int(rng.integers(-indices.ndim - 1, indices.ndim + 1))} if rng.random() < 0.8 else {}
    return "OneHot", dict(inputs), [kind(value)], attributes, int(rng.integers(11, 25))


def best_boxes(rng: np.random.Generator) -> Case:
    images, classes, count = (int(v) for v in (rng.integers(1, 3), rng.integers(1, 3), rng.integers(0, 14)))
    whole = rng.random() < 0.5
    boxes = rng.integers(0, 6, (images, count, 4)) if whole else rng.random((images, count, 4)) * 3
    scores = numbers(rng, (images, classes, count), "f4")
    inputs: dict[str, np.ndarray | None] = {"boxes": boxes.astype(np.float32), "scores": scores}
    if rng.random() < 0.95:
        inputs["most"] = np.array([rng.integers(0, 8)], I64)
    if len(inputs) == 3 and rng.random() < 0.8:
        inputs["overlap"] = np.array([rng.choice([0, 0.3, 0.5, 0.25, 1, 1.5])], np.float32)
        if rng.random() < 0.7:
            inputs["least"] = np.array([rng.choice([-1, 0, 0.5])], np.float32)
    return "NonMaxSuppression", inputs, [S64], {"center_point_box": int(rng.integers(2))}, int(rng.integers(10, 25))


def compress(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 1, 4), one_type(rng))
    attributes, size = {}, x.size
    if rng.random() < 0.7:
        axis = int(rng.integers(-x.ndim, x.ndim))
        attributes, size = {"axis": axis}, x.shape[axis]
    condition = rng.random(int(rng.integers(0, size + 1))) < 0.5
    return "Compress", {"x": x, "c": condition}, [kind(x.dtype)], attributes, int(rng.integers(11, 25))


def reverse_sequence(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 2, 4, 0), one_type(rng))
    batch = int(rng.integers(2))
    lengths = rng.integers(1, x.shape[1 - batch] + 1, x.shape[batch])
    attributes = {"batch_axis": batch, "time_axis": 1 - batch}
    return "ReverseSequence", {"x": x, "n": lengths}, [kind(x.dtype)], attributes, int(rng.integers(10, 25))


def tensor_scatter(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 2, 4), one_type(rng))
    axis = int(rng.integers(0 if rng.random() < 0.03 else 1, x.ndim))
    sizes = list(x.shape)
    sizes[axis] = int(rng.integers(0, sizes[axis] + (1 if rng.random() < 0.95 else 3)))
    last = x.shape[axis] - sizes[axis]
    mode = str(rng.choice(["linear", "circular"]))
    most = 2 * x.shape[axis] if mode == "circular" else max(0, last)
    starts = rng.integers(-1 if rng.random() < 0.05 else 0, most + (1 if rng.random() < 0.95 else 3), x.shape[0])
    attributes: dict[str, Any] = {"mode": mode, "axis": axis - x.ndim if rng.random() < 0.5 else axis}
    inputs = {"x": x, "u": bits(rng, sizes, x.dtype), "i": starts}
    if rng.random() < 0.1:
        del inputs["i"]
    return "TensorScatter", inputs, [kind(x.dtype)], attributes, 24


def eye_like(rng: np.random.Generator) -> Case:
    x = bits(rng, rng.integers(0, 5, 2).tolist(), one_type(rng, "f4 f8 i4 i8"))
    attributes: dict[str, Any] = {"k": int(rng.integers(-6, 7))} if rng.random() < 0.7 else {}
    result = kind(x.dtype)
    if rng.random() < 0.5:
        result = attributes["dtype"] = kind(one_type(rng, "f4 f8 i4 i8"))
    return "EyeLike", {"x": x}, [result], attributes, int(rng.integers(9, 22))


def trilu(rng: np.random.Generator) -> Case:
    x = bits(rng, shape(rng, 2, 4), one_type(rng, "f4 f8 i4 i8 ?"))
    inputs: dict[str, np.ndarray | None] = {"x": x}
    if rng.random() < 0.7:
        inputs["k"] = np.array(rng.integers(-7, 8), I64)
    return "Trilu", inputs, [kind(x.dtype)], {"upper": int(rng.integers(2))}, int(rng.integers(14, 25))


def unique(rng: np.random.Generator) -> Case:
    x = np.asarray(numbers(rng, shape(rng, 1, 3, 0), one_type(rng, "f4 f8 i1 i8")))
    x = np.asarray(x + x.dtype.type(0)) if x.dtype.kind == "f" else x
    attributes = {"sorted": int(rng.integers(2))}
    if rng.random() < 0.6:
        attributes["axis"] = int(rng.integers(-x.ndim, x.ndim))
    return "Unique", {"x": x}, [kind(x.dtype), S64, S64, S64][: int(rng.integers(1, 5))], attributes, 11


BUILDERS: tuple[Builder, ...] = (
    gather, gather_elements, gather_nd, scatter_elements, scatter_nd, arg, top, non_zero, one_hot, eye_like, trilu,
    unique, best_boxes, compress, reverse_sequence, tensor_scatter,
)  # fmt: skip


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_random_models(request: pytest.FixtureRequest, build: Builder) -> None:
    """Operands are constants, or inputs: those that decide shapes make a later stage then."""
    checks = Checks(request)
    for rng in checks:
        op_type, inputs, outputs, attributes, opset = build(rng)
        names = list(inputs)
        constants = names if rng.random() < 0.1 else [name for name in names[1:] if rng.random() < 0.6]
        content, feeds = single(op_type, inputs, outputs, attributes, opset=opset, constants=constants)
        checks.add(content, feeds, may_refuse=["BT-ARG-EMPTY", "BT-SHAPE-EMPTY"])
    assert "equal" in checks.outcomes


@pytest.mark.parametrize("sizes", [(3, 0), (0, 0), (0, 3), (0, 3, 0), (0,)])
def test_positions_of_nothing(sizes: tuple[int, ...]) -> None:
    """GatherND meets positions only when it reads something, Gather always."""
    x, positions = np.zeros(sizes, np.float32), np.array([[7]], I64)
    found = {op: check(*single(op, {"x": x, "i": positions}, [kind("f4")], opset=13)) for op in ("GatherND", "Gather")}
    assert found == {"GatherND": "equal" if 0 in sizes[1:] else "refused", "Gather": "refused"}


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("least", [None, 0.25])
def test_best_boxes_are_chosen_natively(centred: int, least: float | None) -> None:
    """Equal scores, boxes without area and numbers that are none: as the reference does, as many rows as it gives."""
    rng = np.random.default_rng(centred)
    images, classes, count = 2, 3, 150
    boxes = rng.integers(0, 12, (images, count, 4)).astype(np.float32) * np.float32(0.37)
    scores = (rng.integers(0, 9, (images, classes, count)) / 8).astype(np.float32)
    boxes[0, ::17, rng.integers(4)], boxes[1, 5], scores[1, 2, ::13] = np.nan, np.inf, np.nan
    limits = {
        "most": np.array([70]),
        "overlap": np.float32([0.1]),
        "least": None if least is None else np.float32([least]),
    }
    inputs = {"boxes": boxes, "scores": scores, **limits}
    content, _ = single(
        "NonMaxSuppression", inputs, [S64], {"center_point_box": centred}, opset=13, constants=[*limits]
    )
    model, given = bittrue.load(content), {"boxes": boxes, "scores": scores}
    (expected,) = model.prepare("onnxruntime", executor="reference").run(given).values()
    assert 50 < len(expected) < 6 * 70
    for threads in (1, 2):
        session = model.prepare("onnxruntime", threads=threads)
        assert any("rooms made" in line for line in session.plan.execution)
        assert not any("runs on the reference" in line for line in session.plan.execution)
        (found,) = session.run(given).values()
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes()
    (plain,) = model.prepare("onnxruntime", passes=[]).run(given).values()
    assert plain.tobytes() == expected.tobytes()


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles_of_the_runtimes_own_operator(upper: int) -> None:
    x = np.arange(30, dtype=np.float32).reshape(2, 3, 5)
    for k in (None, np.array(-1), np.array(2)):
        content, feeds = single(
            "Trilu", {"x": x, "k": k}, [TensorProto.FLOAT], {"upper": upper}, domain=MICROSOFT, constants=["k"]
        )
        assert check(content, feeds) == "equal"


def test_one_hot_is_native() -> None:
    """Also where negative indices count from the end, and those beyond the axis are on nowhere."""
    inputs = {
        "indices": np.array([[0, -1, 4], [5, -5, -6]], I64),
        "depth": np.array(5),
        "values": np.float32([-0.5, 2.0]),
    }
    model = single("OneHot", inputs, [TensorProto.FLOAT], {"axis": 1}, constants=["depth"])
    assert check(*model) == "equal"
    session = bittrue.load(model[0]).prepare(executor="native")
    assert "1 steps native" in str(session.plan)
