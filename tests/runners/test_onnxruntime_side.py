"""ONNX Runtime's recordings at every level: its outputs, and the bytes of the numerics that stands for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bittrue
from bittrue.errors import InvalidModelError, RunError
from bittrue.runners import onnxruntime as runner
from bittrue.runners.layouts import as_before
from bittrue.runners.onnxruntime import LEVELS, OnnxRuntime, Settings
from bittrue.runners.processor import onnxruntime_here
from bittrue.runners.recording import Recording
from bittrue.runners.sides import open_side
from support.float_models import MODELS, forms, quantize
from support.onnx_models import HERE, Refused, build, needs_measured, run_runtime, value_info

_FORMS = ("pairs_u8s8", "pairs_s8s8_per_channel", "operators_u8s8_per_channel", "pairs_real_bias")
# Levels that fuse.
_FUSED = ("extended", "layout", "all")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    found = {}
    for name in ("branches", "dense", "inverted", "attention"):
        for form in _FORMS:
            folder = tmp_path_factory.mktemp("onnx")
            content = quantize(MODELS[name](np.random.default_rng(0)), forms()[form], folder)
            found[name, form] = folder / "quantized.onnx"
            found[name, form].write_bytes(content)
    return found


def inputs(path: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {p.name: rng.standard_normal(p.shape).astype(p.dtype) for p in open_side(str(path)).inputs}


def record(path: Path, **settings: object) -> Recording:
    return OnnxRuntime("", path, bittrue.load(path), Settings(**settings)).record(inputs(path))  # type: ignore[arg-type]


@pytest.mark.in_turns(2)
@needs_measured
@pytest.mark.parametrize("name", ["branches", "dense", "inverted", "attention"])
@pytest.mark.parametrize("form", _FORMS)
def test_levels(
    name: str,
    form: str,
    models: dict[tuple[str, str], Path],
    record_property: Callable[[str, object], None],
) -> None:
    path = models[name, form]
    ours = open_side(f"{path}@{HERE}").record(inputs(path))
    quantized = {t.name for t in ours if t.dtype in ("u8", "s8")}
    for level in LEVELS:
        recording = record(path, level=level)
        key = {"disable": "DISABLE_ALL"}.get(level, f"ENABLE_{level.upper()}")
        plain = run_at(path, f"ORT_{key}")
        assert {n: recording[n].load().tobytes() for n in recording.outputs} == plain
        assert recording.inputs == ours.inputs
        assert not any("other bytes" in note for note in recording.notes)
        for tensor in recording:
            value = tensor.load()
            assert (value.shape, bittrue.graph.data_type(tensor.dtype).numpy) == (tensor.shape, value.dtype)
        if level not in _FUSED:
            continue
        shared = quantized & {t.name for t in recording}
        # In the model's own layout and under its names, whatever the runtime does to images.
        assert len(shared) >= len(quantized) - 1
        for tensor in shared:
            assert recording[tensor].shape == ours[tensor].shape
            assert recording[tensor].load().tobytes() == ours[tensor].load().tobytes(), (level, tensor)
        record_property(
            "compared",
            f"{name} {form} {level}: {len(shared)} of {len(quantized)} tensors of quantized values, 0 differ",
        )


def run_at(path: Path, level: str) -> dict[str, bytes]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    results = session.run(None, inputs(path))
    return {port.name: np.asarray(v).tobytes() for port, v in zip(session.get_outputs(), results, strict=True)}


@needs_measured
@pytest.mark.in_turns(2)
@pytest.mark.parametrize("level", ["disable", "basic"])
@pytest.mark.parametrize("name", ["branches", "dense", "inverted", "attention"])
@pytest.mark.parametrize("form", ["real", *_FORMS])
def test_unfused_levels_have_an_arithmetic_of_their_own(
    level: str,
    name: str,
    form: str,
    models: dict[tuple[str, str], Path],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """Every tensor that both show, real ones too: pairs stay around operators on real numbers."""
    path = tmp_path / "real.onnx"
    if form == "real":
        path.write_bytes(MODELS[name](np.random.default_rng(0)).SerializeToString())
    else:
        path = models[name, form]
    side = open_side(f"ort:{path}?level={level}")
    theirs = side.record(inputs(path))
    assert side.arithmetic is not None
    assert "fuse_quantized" not in side.arithmetic.rewrites
    plan = bittrue.plan.make_plan(bittrue.load(path).graph, side.arithmetic)
    ours = bittrue.Session(plan).trace(inputs(path))
    shared = [tensor for tensor in ours if tensor in theirs]
    assert len(shared) >= 0.6 * len(ours)
    different = [tensor for tensor in shared if theirs[tensor].load().tobytes() != ours[tensor].tobytes()]
    assert not different
    record_property("compared", f"{name} {form} {level}: {len(shared)} of {len(ours)} tensors, 0 differ")


def test_optimisers_are_left_out(models: dict[tuple[str, str], Path]) -> None:
    path = models["branches", "pairs_u8s8"]
    fused, apart = (record(path, disable=off) for off in ((), ("QDQSelectorActionTransformer",)))
    assert len(apart.tensors) > 2 * len(fused.tensors)
    assert not any("no difference" in note for note in apart.notes)
    odd = record(path, disable=("NoSuchThing", "QDQSelectorActionTransformer"))
    assert len(odd.tensors) == len(apart.tensors)
    assert [note for note in odd.notes if "no difference" in note] == [
        "leaving out NoSuchThing makes no difference: it does nothing to this model, or there is no such optimiser"
    ]


def test_groups_that_fit_into_memory(models: dict[tuple[str, str], Path]) -> None:
    path = models["branches", "pairs_u8s8"]
    model, seen = bittrue.load(path), list[tuple[int, int]]()
    small = OnnxRuntime("", path, model, Settings(), memory=3000)
    recording = small.record(inputs(path), lambda done, total: seen.append((done, total)))
    whole = record(path)
    assert len(seen) > 3
    assert seen[-1][0] == seen[-1][1]
    assert [t.name for t in recording] == [t.name for t in whole]
    assert all(recording[t.name].load().tobytes() == t.load().tobytes() for t in whole)


def test_an_optimised_model_that_differs_shows_its_ends_only(
    models: dict[tuple[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_same", lambda one, two: False)
    recording = record(models["dense", "pairs_u8s8"])
    assert {t.name for t in recording} == {*recording.inputs, *recording.outputs}
    assert any("inner tensors are not shown" in note and "'y'" in note for note in recording.notes)


def test_the_setting_of_s8_has_its_numerics(models: dict[tuple[str, str], Path]) -> None:
    path = models["branches", "pairs_s8s8_per_channel"]
    on, off = (OnnxRuntime("", path, bittrue.load(path), Settings(integers=given)) for given in (True, False))
    assert [on.arithmetic.name, off.arithmetic.name] == [HERE, onnxruntime_here().with_options(False)]
    assert off.arithmetic.name != HERE or HERE.endswith("@aarch64")
    for side, told in ((on, on.arithmetic.name != off.arithmetic.name), (off, False)):
        session = bittrue.load(path).prepare(side.arithmetic.name)
        assert any("-defaults" in note for note in session.plan.notes) == told
        feeds = inputs(path)
        theirs = {t.name: t.load() for t in side.record(feeds)}
        assert all(value.tobytes() == theirs[name].tobytes() for name, value in session.run(feeds).items())
    assert {t.dtype for t in record(path)} != {t.dtype for t in record(path, integers=False)}


def test_constants_in_files_of_their_own(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["m"])
    last = helper.make_node("Relu", ["m"], ["y"])
    content, _ = build([node, last], {"x": np.zeros((2, 300), np.float32)}, {"y": TensorProto.FLOAT}, {"w": weights})
    path = tmp_path / "m.onnx"
    onnx.save(onnx.load_from_string(content), path, save_as_external_data=True, location="m.data", size_threshold=0)
    x = np.random.default_rng(1).standard_normal((2, 300)).astype(np.float32)
    for level in LEVELS:
        recording = open_side(f"ort:{path}?level={level}").record({"x": x})
        assert {t.name for t in recording} >= {"x", "y"}
        assert np.array_equal(recording["y"].load(), np.maximum(recording["y"].load(), 0))
    (tmp_path / "m.data").unlink()
    with pytest.raises(bittrue.BittrueError):
        open_side(f"ort:{path}")


def test_odd_outputs(tmp_path: Path) -> None:
    """Outputs that are inputs or constants, that no array can hold, and tensors of called graphs."""
    x = np.float32([[1, 2]])
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["same"]),
            helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.BFLOAT16),
            helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.FLOAT),
        ],
        "g",
        [value_info("x", x)],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in ("same", "y", "c")],
        [helper.make_tensor("c", TensorProto.FLOAT, [1, 2], [3.0, 4.0])],
    )
    path = tmp_path / "m.onnx"
    imports = [helper.make_opsetid("", 21)]
    path.write_bytes(helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString())
    recording = open_side(f"ort:{path}?level=disable").record({"x": x})
    assert recording.outputs == ("same", "y", "c")
    assert [recording[n].load().tolist() for n in recording.outputs] == [[[1, 2]], [[1, 2]], [[3, 4]]]
    assert "narrow" not in recording
    assert any("'narrow'" in note for note in recording.notes)


def test_free_sizes(tmp_path: Path) -> None:
    node, last = helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["r"], ["y"])
    content, _ = build([node, last], {"x": np.zeros((1, 4), np.float32)}, {"y": TensorProto.FLOAT})
    model = onnx.load_from_string(content)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    for text in (f"ort:{path}", str(path)):
        recording = open_side(text).record({"x": x})
        assert recording["r"].load().tobytes() == np.maximum(x, 0).tobytes()
        assert recording["r"].shape == (5, 4)


def test_errors_of_the_runtime_are_typed(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    feeds = {"x": np.zeros((2, 3), np.float32), "s": np.int64([5])}
    path = tmp_path / "m.onnx"
    path.write_bytes(build([node], feeds, {"y": TensorProto.FLOAT})[0])
    with pytest.raises(RunError, match="ONNX Runtime") as caught:
        open_side(f"ort:{path}").record(feeds)
    assert caught.value.code == "BT-RUNNER-RUN"
    assert "\n" not in str(caught.value)
    odd = helper.make_node("Relu", ["x"], ["y"], domain="com.microsoft")
    path.write_bytes(build([odd], {"x": feeds["x"]}, {"y": TensorProto.FLOAT})[0])
    with pytest.raises(InvalidModelError, match="refuses this model") as refused:
        open_side(f"ort:{path}").record({"x": feeds["x"]})
    assert refused.value.code == "BT-RUNNER-REFUSED"


def test_layouts_are_told_by_values_or_by_shapes() -> None:
    before = np.arange(24).reshape(1, 2, 3, 4)
    turned = before.transpose(0, 2, 3, 1)
    for value in (before, turned):
        found = as_before(np.ascontiguousarray(value), before)
        assert found is not None
        assert found.tobytes() == before.tobytes()
    changed = np.ascontiguousarray(turned) + 1
    found = as_before(changed, before)
    assert found is not None
    assert np.array_equal(found, before + 1)
    cube = np.arange(8).reshape(1, 2, 2, 2)
    assert np.array_equal(as_before(np.ascontiguousarray(cube.transpose(0, 2, 3, 1)), cube), cube)
    # Nobody can tell.
    assert as_before(cube + 1, cube) is None
    assert as_before(before.astype(np.int8), before) is None
    assert as_before(np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)) is None


def test_quiet_outputs_match_the_support_of_other_tests(models: dict[tuple[str, str], Path]) -> None:
    path = models["dense", "operators_u8s8_per_channel"]
    theirs = run_runtime(path.read_bytes(), [*inputs(path).values()])
    assert not isinstance(theirs, Refused)
    recording = OnnxRuntime("", path, bittrue.load(path), replace(Settings(), threads=2)).record(inputs(path))
    assert {n: recording[n].load().tobytes() for n in recording.outputs} == {n: v.tobytes() for n, v in theirs.items()}
