"""A reduced model still differs, for the reason for which the whole one did, and is small."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from ai_edge_litert import schema_py_generated as schema
from onnx import TensorProto, helper, numpy_helper

import bittrue
from bittrue.compare.reduce import Reduction, _Search, check_output, reduce_model
from bittrue.runners.base import Runner
from bittrue.runners.inputs import input_sets
from bittrue.runners.recording import Recording
from bittrue.runners.sides import open_side
from support.build import T, chain
from support.onnx_models import value_info
from support.shared import SHARED, needs_shared

RNG = np.random.default_rng


def reduced(a: str | Runner, b: str | Runner, output: Path, seeds: int = 1, trials: int = 400) -> Reduction | None:
    sides = [side if isinstance(side, Runner) else open_side(side) for side in (a, b)]
    values = [one.values for one in input_sets(sides[0].inputs, (), range(seeds))]
    found = reduce_model(sides[0], sides[1], values, output, trials)
    for side in sides:
        side.close()
    return found


def elements(found: Reduction) -> int:
    return sum(math.prod(shape) for shape in found.inputs.values())


def shown_again(found: Reduction) -> tuple[Recording, Recording]:
    """Both sides opened from what the result says, on the inputs that were written."""
    with np.load(next(f for f in found.files if f.endswith(".npz") and f[-6:-4] not in (".a", ".b"))) as archive:
        values = {name: archive[name] for name in archive.files}
    sides = open_side(found.a), open_side(found.b)
    recordings = sides[0].record(values), sides[1].record(values)
    for side, recording, label in zip(sides, recordings, "ab", strict=True):
        side.close()
        with np.load(next(f for f in found.files if f.endswith(f".{label}.npz"))) as archive:
            for name in archive.files:
                assert archive[name].tobytes() == recording[name].load().tobytes()
    return recordings


def network(change: Callable[[dict[str, np.ndarray]], None] | None = None) -> bytes:
    """Convolution, pool, sum with the pool's input, fully connected; `change` alters its constants.

    The convolution's multiplier is 2^-4, so that many of its results are ties.
    """
    rng = RNG(7)
    constants = {
        "w": rng.integers(-7, 8, (8, 3, 3, 4), np.int8),
        "b": rng.integers(-200, 200, 8, np.int32),
        "v": rng.integers(-127, 128, (5, 6 * 6 * 8), np.int8),
        "c": rng.integers(-2000, 2000, 5, np.int32),
    }
    if change is not None:
        change(constants)
    scales = [2.0**-4] * 8
    x = T("s8", [3, 6, 6, 4], 0.5, 3, name="x")
    w = T("s8", [8, 3, 3, 4], scales, [0] * 8, data=constants["w"], name="w")
    b = T("s32", [8], [2.0**-5] * 8, [0] * 8, data=constants["b"], name="b")
    h = T("s8", [3, 6, 6, 8], 0.5, -5, name="h")
    p = T("s8", [3, 6, 6, 8], 0.5, -5, name="p")
    s = T("s8", [3, 6, 6, 8], 0.8, 2, name="s")
    shape = T("s32", [2], data=np.array([-1, 288], np.int32), name="shape")
    f = T("s8", [3, 288], 0.8, 2, name="f")
    v = T("s8", [5, 288], 0.01, 0, data=constants["v"], name="v")
    c = T("s32", [5], 0.008, 0, data=constants["c"], name="c")
    y = T("s8", [3, 5], 3.0, 0, name="y")
    pool = {"filterHeight": 3, "filterWidth": 3, "strideH": 1, "strideW": 1}
    return chain(
        [
            ("CONV_2D", ("Conv2DOptions", {"strideH": 1, "strideW": 1}), [x, w, b], [h], 3),
            ("MAX_POOL_2D", ("Pool2DOptions", pool), [h], [p], 2),
            ("ADD", ("AddOptions", {}), [h, p], [s], 2),
            ("RESHAPE", ("ReshapeOptions", {"newShape": [-1, 288]}), [s, shape], [f]),
            ("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [f, v, c], [y], 4),
        ]
    )


def write(folder: Path, content: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("sides", ["{0}|{0}@xnnpack", "litert:builtin_ref {0}|litert:xnnpack {0}"])
def test_another_rounding(tmp_path: Path, sides: str) -> None:
    path = write(tmp_path, network(), "m.tflite")
    a, b = sides.format(path).split("|")
    found = reduced(a, b, tmp_path / "small.tflite")
    assert found is not None
    assert (found.operators, found.tensor) == (("CONV_2D",), "h")
    # One tie of one output element: one image, one output channel, no more rows than the kernel has.
    assert found.differing == 1
    assert found.inputs["x"][0] == 1
    assert elements(found) <= 2 * 2 * 4
    assert found.of_a is not None
    assert found.of_b is not None
    assert abs(found.of_a - found.of_b) == 1
    assert found.complete
    one, two = shown_again(found)
    assert one["h"].load()[found.element] == found.of_a
    assert two["h"].load()[found.element] == found.of_b
    assert f"-i {tmp_path}/small.npz" in found.command


def test_two_files_with_other_constants(tmp_path: Path) -> None:
    def change(constants: dict[str, np.ndarray]) -> None:
        constants["v"][3, 100] ^= 64

    one, two = write(tmp_path, network(), "one.tflite"), write(tmp_path, network(change), "two.tflite")
    found = reduced(str(one), str(two), tmp_path / "small.tflite", seeds=3)
    assert found is not None
    assert found.operators == ("FULLY_CONNECTED",)
    # The one weight that differs, and few around it.
    assert found.inputs["f"][0] == 1
    assert found.inputs["f"][1] <= 8
    weights = [next(t for t in bittrue.load(path).graph.tensors if t.name == "v").values() for path in found.files[:2]]
    assert weights[0].shape == weights[1].shape == (1, found.inputs["f"][1])
    assert (weights[0] ^ weights[1]).max() == 64
    assert (weights[0] != weights[1]).sum() == 1
    assert found.files[1].endswith("small.b.tflite")
    shown_again(found)


def test_equal_sides_write_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, network(), "m.tflite")
    assert reduced(str(path), f"{path}@litert", tmp_path / "small.tflite", seeds=2) is None
    assert [p.name for p in tmp_path.iterdir()] == ["m.tflite"]


def test_trials_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, network(), "m.tflite")
    found = reduced(str(path), f"{path}@xnnpack", tmp_path / "small.tflite", trials=3)
    assert found is not None
    assert (found.trials, found.complete) == (3, False)
    shown_again(found)


class Fusing(Runner):
    """Our arithmetic, but for ADD right behind MAX_POOL_2D: there the runtime does something of its own."""

    def __init__(self, inner: Runner) -> None:
        self.inner = inner
        self.spec, self.path, self.model, self.format = inner.spec, inner.path, inner.model, inner.format
        self.inputs, self.title, self.arithmetic = inner.inputs, "fusing", inner.arithmetic

    def with_model(self, path: Path) -> Runner:
        return Fusing(self.inner.with_model(path))

    def record(self, inputs: Mapping[str, np.ndarray], progress: Any = None) -> Recording:
        recording = self.inner.record(inputs, progress)
        assert self.model is not None
        if "MAX_POOL_2D" not in [node.source for node in self.model.graph.nodes] or "s" not in recording:
            return recording
        changed = np.array(recording["s"].load())
        changed[..., 5:6] ^= 1
        tensors = [replace(t, load=lambda: changed) if t.name == "s" else t for t in recording]
        return Recording(tuple(tensors), recording.inputs, recording.outputs)


def test_operators_that_differ_only_together(tmp_path: Path) -> None:
    path = write(tmp_path, network(), "m.tflite")
    found = reduced(str(path), Fusing(open_side(str(path))), tmp_path / "small.tflite")
    assert found is not None
    assert (found.operators, found.tensor) == (("MAX_POOL_2D", "ADD"), "s")
    # The wrapped side changes channel 5 and later ones: six are needed.
    assert found.inputs["h"][0] == 1
    assert found.inputs["h"][3] == 6
    assert found.steps[0] == "2 of 5 operators, around 's'"


def test_another_difference_does_not_take_its_place(tmp_path: Path) -> None:
    """A part of the model that differs for another reason is not what is asked for."""

    class Twofold(Fusing):
        def with_model(self, path: Path) -> Runner:
            return Twofold(self.inner.with_model(path))

        def record(self, inputs: Mapping[str, np.ndarray], progress: Any = None) -> Recording:
            recording = self.inner.record(inputs, progress)
            assert self.model is not None
            alone = len(self.model.graph.nodes) == 1
            changed = {t.name: np.array(t.load()) for t in recording}
            # In the whole model by 1, where an operator is alone by 3.
            if "s" in changed:
                changed["s"] ^= 3 if alone else 1
            tensors = [replace(t, load=lambda name=t.name: changed[name]) for t in recording]
            return Recording(tuple(tensors), recording.inputs, recording.outputs)

    path = write(tmp_path, network(), "m.tflite")
    found = reduced(str(path), Twofold(open_side(str(path))), tmp_path / "small.tflite")
    assert found is not None
    assert len(found.operators) == 2
    assert found.of_a is not None
    assert int(found.of_a) ^ int(found.of_b or 0) == 1


@needs_shared
def test_shared_model_in_litert(tmp_path: Path) -> None:
    path = SHARED / "models" / "tiny_resnet8_int8.tflite"
    found = reduced(f"litert:builtin_ref {path}", f"litert:xnnpack {path}", tmp_path / "small.tflite")
    assert found is not None
    assert found.operators == ("CONV_2D",)
    assert elements(found) <= 27
    assert Path(found.files[0]).stat().st_size < 4000
    one, two = shown_again(found)
    assert one[found.tensor].load().tobytes() != two[found.tensor].load().tobytes()


def test_names_of_arguments(tmp_path: Path) -> None:
    """An input called "file" is an argument of numpy.savez."""
    content = network()
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    for tensor in model.subgraphs[0].tensors:
        tensor.name = "file" if tensor.name == b"x" else tensor.name.decode()
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path = write(tmp_path, bytes(builder.Output()), "m.tflite")
    found = reduced(str(path), f"{path}@xnnpack", tmp_path / "small.tflite")
    assert found is not None
    assert [*found.inputs] == ["file"]
    shown_again(found)


def test_what_cannot_be_reduced(tmp_path: Path) -> None:
    path = write(tmp_path, network(), "m.tflite")
    other = write(tmp_path, bittrue.demo_model(), "other.tflite")
    with pytest.raises(bittrue.UnsupportedError, match="different operators"):
        reduced(str(path), str(other), tmp_path / "small.tflite")
    trace = open_side(str(path))
    trace.model = None
    with pytest.raises(bittrue.UnsupportedError, match="no model to cut behind a trace"):
        reduced(trace, str(path), tmp_path / "small.tflite")
    with pytest.raises(bittrue.InputError, match="written over"):
        check_output(path, path)
    with pytest.raises(bittrue.InputError, match="no folder"):
        check_output(tmp_path / "nowhere" / "m.tflite", path)


@pytest.mark.skipif(platform.machine() == "aarch64", reason="no blocks of channels, in which the tensor would get lost")
def test_a_target_that_the_whole_model_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no part differs by itself, the runtime may have joined it: a tensor that differs, too, takes its place.

    The weights are an input, too, as some exporters write them.
    """
    rng = RNG(3)
    x, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 64, 8, 8), (4, 64, 3, 3)))
    nodes = [("Conv", ["x", "w"], ["sums"]), ("Relu", ["sums"], ["joined"]), ("Tanh", ["joined"], ["y"])]
    graph = helper.make_graph(
        [helper.make_node(*node) for node in nodes],
        "g",
        [value_info("x", x), value_info("w", weights)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    monkeypatch.setattr(_Search, "_find_part", lambda *_: False)
    found = reduced(f"{path}@onnx", f"ort:{path}", tmp_path / "small.onnx")
    assert found is not None
    assert found.steps[0].endswith("no part of them around 'joined' differs")
    assert found.tensor == "y"
    one, two = (recording["y"].load() for recording in shown_again(found))
    assert one.tobytes() != two.tobytes()
