"""Batches of models whose file fixes the batch: sample after sample, each with the bytes of its own run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bittrue
from support.build import T, chain, single
from support.movement import runs_in_runtime
from support.onnx_models import build
from support.shared import SHARED, needs_shared


def flattened() -> bytes:
    """RESHAPE to [1, 12], then a sum per sample."""
    x, flat = T("f32", (1, 3, 4)), T("f32", (1, 12))
    axis = T("s32", (1,), data=np.array([1]))
    total = ("SUM", ("ReducerOptions", {"keepDims": True}), [flat, axis], [T("f32", (1, 1), name="y")])
    return chain([("RESHAPE", None, [x, T("s32", (2,), data=np.array([1, 12]))], [flat]), total])


def attention_like() -> bytes:
    """Heads are split and joined by constant shapes, as exporters of transformers write them."""
    x = np.zeros((1, 6, 8), np.float32)
    nodes = [
        helper.make_node("Reshape", ["x", "heads"], ["split"]),
        helper.make_node("Transpose", ["split"], ["moved"], perm=[0, 2, 1, 3]),
        helper.make_node("Transpose", ["moved"], ["transposed"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["moved", "transposed"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
        helper.make_node("Reshape", ["weights", "rows"], ["y"]),
    ]
    shapes = {"heads": np.array([1, 6, 2, 4]), "rows": np.array([1, 72])}
    content, _ = build(nodes, {"x": x}, {"y": TensorProto.FLOAT}, shapes)
    return content


def each(session: bittrue.Session, batch: np.ndarray) -> None:
    joined = session.run_each(batch)
    apart = [session.run(sample[None]) for sample in batch]
    for name, value in joined.items():
        assert value.tobytes() == b"".join(result[name].tobytes() for result in apart)
        assert value.shape == (len(batch), *apart[0][name].shape[1:])


@pytest.mark.parametrize("make", [flattened, attention_like])
def test_samples_have_the_bytes_of_their_own_runs(make: object) -> None:
    model = bittrue.load(make())  # type: ignore[operator]
    session = model.prepare()
    shape = session.inputs[0].shape
    batch = np.random.default_rng(0).standard_normal((4, *shape[1:])).astype(np.float32)
    each(session, batch)
    with pytest.raises(bittrue.InputError, match="run_each"):
        session.run(batch)
    with pytest.raises(bittrue.InvalidModelError, match="run_each"):
        model.prepare(shapes={session.inputs[0].name: batch.shape})


def test_the_runtime_refuses_the_batch_too() -> None:
    assert not runs_in_runtime(flattened(), [np.zeros((4, 3, 4), np.float32)])


@needs_shared
@pytest.mark.parametrize("name", ["coral_tf2_mobilenet_v2_1.0_224_ptq", "tflm_person_detect"])
def test_real_models(name: str) -> None:
    session = bittrue.load(SHARED / "models" / f"{name}.tflite").prepare()
    port = session.inputs[0]
    info = np.iinfo(port.dtype)
    shape = (3, *port.shape[1:])
    each(session, np.random.default_rng(0).integers(info.min, info.max, shape, port.dtype, endpoint=True))


def test_scalars_are_joined_and_several_inputs_keep_step() -> None:
    one, two = np.float32([[1], [2], [3]]), np.float32([[10], [20], [30]])
    content = single("ADD", ("AddOptions", {}), [T("f32", (1,)), T("f32", (1,))], [T("f32", (1,), name="y")])
    session = bittrue.load(content).prepare()
    assert session.run_each(one[:, 0], two[:, 0])["y"].tolist() == [11, 22, 33]
    for wrong in ((one[:, 0], two[:2, 0]), (one[:0, 0], two[:0, 0]), (one, two)):
        with pytest.raises(bittrue.InputError, match="BT-INPUT-SHAPE"):
            session.run_each(*wrong)


def test_results_of_several_shapes_are_not_joined() -> None:
    size = numpy_helper.from_array(np.array([1.0], np.float32), "value")
    nodes = [helper.make_node("ConstantOfShape", ["x"], ["y"], value=size)]
    content, _ = build(nodes, {"x": np.array([1, 2], np.int64)}, {"y": TensorProto.FLOAT})
    session = bittrue.load(content).prepare()
    assert session.run_each(np.array([1, 2, 3, 2]))["y"].shape == (4, 2)
    with pytest.raises(bittrue.InputError, match="BT-OUTPUT-SHAPE"):
        session.run_each(np.array([1, 2, 1, 3]))
