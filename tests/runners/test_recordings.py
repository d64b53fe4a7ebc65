"""What live runners record: every tensor, in execution order, with the bytes of the numerics that stands for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.errors import InputError, InvalidModelError, RunError
from bittrue.runners import litert
from bittrue.runners.litert import RESOLVERS, LiteRT
from bittrue.runners.ours import Ours
from bittrue.runners.recording import Recording
from bittrue.runners.sides import open_side
from support.build import G, T, chain, several, single
from support.differential import random_values
from support.shared import SHARED, needs_shared, shared_models

# The runtime's int8 SVDF kernel reads and writes past its buffers here.
_ABORTS = "tflm_keyword_scrambled_8bit"
# The runtime refuses its quantized dimensions.
_MENDED = "tflm_person_detect"


def inputs(path: Path, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    ports = open_side(str(path)).inputs
    return {port.name: random_values(rng, port.dtype, port.shape) for port in ports}


def bytes_of(recording: Recording) -> dict[str, bytes]:
    return {tensor.name: tensor.load().tobytes() for tensor in recording}


def assert_consistent(recording: Recording) -> None:
    for tensor in recording:
        value = tensor.load()
        assert (value.shape, value.nbytes) == (tensor.shape, tensor.bytes)
        assert bittrue.graph.data_type(tensor.dtype).numpy == value.dtype
    assert set(recording.inputs) | set(recording.outputs) <= {tensor.name for tensor in recording}
    assert [tensor.name for tensor in recording][: len(recording.inputs)] == list(recording.inputs)


@pytest.mark.in_turns(6)
@needs_shared
@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("path", [p for p in shared_models() if p.stem != _ABORTS], ids=lambda p: p.stem)
def test_litert_and_its_numerics_record_the_same(
    path: Path, resolver: str, record_property: Callable[[str, object], None]
) -> None:
    repair = "?repair=1" if path.stem == _MENDED else ""
    theirs = open_side(f"litert:{resolver} {path}{repair}")
    ours = open_side(f"{path}@{theirs.numerics}")
    one, two = ours.record(inputs(path)), theirs.record(inputs(path))
    theirs.close()
    assert [t.name for t in one] == [t.name for t in two]
    assert (one.inputs, one.outputs) == (two.inputs, two.outputs)
    assert bytes_of(one) == bytes_of(two)
    for recording in (one, two):
        assert_consistent(recording)
    for a, b in zip(one, two, strict=True):
        assert (a.dtype, a.shape, str(a.quantization)) == (b.dtype, b.shape, str(b.quantization))
    assert not [note for note in two.notes if "other bytes" in note]
    record_property("compared", f"{path.stem}, {resolver}: {len(two.tensors)} recorded tensors, 0 differ")


def test_kernels_of_another_processor_have_its_numerics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "relu.tflite"
    path.write_bytes(single("RELU", None, [T("f32", (3,))], [T("f32", (3,))]))
    for machine, ending in (("x86_64", ""), ("aarch64", "@aarch64"), ("arm64", "@aarch64")):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        side = open_side(f"litert:xnnpack {path}")
        assert side.numerics.removesuffix("-avx2") == f"xnnpack{ending}"
        side.close()


@needs_shared
def test_what_the_interpreter_refuses_names_the_way_out() -> None:
    path = SHARED / "models" / f"{_MENDED}.tflite"
    with pytest.raises(InvalidModelError, match=r"quantized_dimension must be in range.*repair=1") as caught:
        open_side(f"litert:{path}").record(inputs(path))
    assert caught.value.code == "BT-RUNNER-REFUSED"
    assert len(str(caught.value)) < 800
    notes = open_side(f"litert:{path}?repair=1").record(inputs(path)).notes
    assert any("tensors of one axis have quantized dimension 0" in note for note in notes)


@needs_shared
def test_an_interpreter_that_aborts_is_a_typed_error() -> None:
    path = SHARED / "models" / f"{_ABORTS}.tflite"
    side = open_side(f"litert:builtin_ref {path}")
    with pytest.raises(RunError, match="died of SIG") as caught:
        side.record(inputs_of(side))
    assert caught.value.code == "BT-RUNNER-ABORT"
    # The next model runs all the same.
    other = SHARED / "models" / "tiny_ad_int8.tflite"
    assert side.with_model(other).record(inputs(other)).outputs == ("Identity",)
    side.close()


def inputs_of(side: object) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {port.name: random_values(rng, port.dtype, port.shape) for port in side.inputs}  # type: ignore[attr-defined]


def two_names() -> bytes:
    tensors = [T("s8", (1, 4), 0.1, 3, name="x"), T("s8", (1, 4), 0.1, 3, name="x")]
    return single("RELU", None, tensors[:1], tensors[1:])


def test_constants_that_the_delegate_unpacks_are_not_shown(tmp_path: Path) -> None:
    """Nothing writes their memory."""
    weights, made = T("f16", (3, 4), data=np.ones((3, 4))), T("f32", (3, 4), name="unpacked")
    nodes = [
        ("DEQUANTIZE", None, [weights], [made], 3),
        ("FULLY_CONNECTED", ("FullyConnectedOptions", {}), [T("f32", (2, 4)), made, None], [T("f32", (2, 3))], 2),
    ]
    path = tmp_path / "model.tflite"
    path.write_bytes(chain(nodes))
    for resolver, shown in (("builtin_ref", True), ("xnnpack", False)):
        side = open_side(f"litert:{resolver} {path}")
        recording = side.record(inputs(path))
        side.close()
        assert ("unpacked" in {tensor.name for tensor in recording}) == shown
        assert any("'unpacked'" in note for note in recording.notes) != shown


def test_names_that_repeat_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(two_names())
    for text in (str(path), f"litert:{path}"):
        recording = open_side(text).record({"x": np.int8([[1, 2, 3, 4]])})
        assert [tensor.name for tensor in recording] == ["x", "x:1"]
        assert recording["x:1"].load().tolist() == [[3, 3, 3, 4]]
        assert "x:2" not in recording


def test_other_shapes(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(single("RELU", None, [T("s8", (1, 4), 0.1, 3, name="x")], [T("s8", (1, 4), 0.1, 3)]))
    value = np.random.default_rng(0).integers(-128, 128, (3, 4)).astype(np.int8)
    one, two = (open_side(text).record({"x": value}) for text in (str(path), f"litert:{path}"))
    assert bytes_of(one) == bytes_of(two)
    assert one[one.outputs[0]].shape == (3, 4)


def test_state_starts_anew_with_every_recording(tmp_path: Path) -> None:
    path = SHARED / "models" / "coral_keras_lstm_mnist_ptq.tflite"
    if not path.exists():
        pytest.skip(f"the shared models are not at {SHARED}")
    for text in (str(path), f"litert:{path}"):
        side = open_side(text)
        first, second = (side.record(inputs(path)) for _ in range(2))
        assert bytes_of(first) == bytes_of(second)
        side.close()


def test_wrong_inputs_are_typed_errors(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(single("RELU", None, [T("s8", (1, 4), 0.1, 3, name="x")], [T("s8", (1, 4), 0.1, 3)]))
    value = np.zeros((1, 4), np.int8)
    for text in (str(path), f"litert:{path}"):
        side = open_side(text)
        for given, code in (
            ({}, "BT-INPUT-MISSING"),
            ({"x": value, "y": value}, "BT-INPUT-NAME"),
            ({"x": value.astype(np.float32)}, "BT-INPUT-TYPE"),
        ):
            with pytest.raises(InputError) as caught:
                side.record(given)
            assert caught.value.code == code


def test_called_graphs(tmp_path: Path) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(counting())
    ours = open_side(str(path)).record({"n": np.int32([5])})
    inner = [tensor.name for tensor in ours if "::" in tensor.name]
    assert inner
    assert_consistent(ours)
    theirs = open_side(f"litert:{path}").record({"n": np.int32([5])})
    assert any("called graphs are not shown" in note for note in theirs.notes)
    assert bytes_of(theirs) == {name: value for name, value in bytes_of(ours).items() if "::" not in name}


def counting() -> bytes:
    """Adds one while a number is below ten."""
    number = lambda name, data=None: T("s32", (1,), name=name, data=data)  # noqa: E731
    return several(
        G(
            [
                (
                    "WHILE",
                    ("WhileOptions", {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}),
                    [number("n")],
                    [number("m")],
                )
            ]
        ),
        G([("LESS", None, [number("i"), number("ten", np.int32([10]))], [T("bool", (1,), name="go")])]),
        G([("ADD", ("AddOptions", {}), [number("i"), number("one", np.int32([1]))], [number("j")])]),
    )


def test_values_beyond_the_limit_go_to_files_that_go_away(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(bittrue.demo_model())
    value = {
        port.name: random_values(np.random.default_rng(0), port.dtype, port.shape)
        for port in open_side(str(path)).inputs
    }
    whole = open_side(str(path)).record(value)
    spooled = Ours("", path, bittrue.load(path), "litert", memory=100).record(value)
    assert bytes_of(whole) == bytes_of(spooled)
    loads = [tensor.load for tensor in spooled]
    bases = [load().base for load in loads]
    assert any(isinstance(base, np.ndarray) for base in bases)
    with pytest.raises(ValueError, match="read-only"):
        next(load() for load, tensor in zip(loads, spooled, strict=True) if tensor.bytes > 100)[...] = 0


def test_progress(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(bittrue.demo_model())
    for text in (str(path), f"litert:{path}"):
        side, seen = open_side(text), list[tuple[int, int]]()
        side.record(inputs(path), lambda done, total, to=seen: to.append((done, total)))
        assert seen[-1][0] == seen[-1][1] > 0
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_plain_run_with_other_bytes_is_noted() -> None:
    model = bittrue.load(bittrue.demo_model())
    index = model.graph.outputs[0]
    name = model.graph.tensors[index].name
    found = litert._notes(model, {"repaired": 0, "unread": [], "different": [index]}, [])
    assert found == [f"a run that keeps every tensor gives other bytes than a plain run for output '{name}'"]


def test_a_damaged_model_does_not_end_the_caller(tmp_path: Path) -> None:
    content = bittrue.demo_model()
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(12):
        damaged = bytearray(content)
        for place in rng.integers(8, len(damaged), 12):
            damaged[place] = rng.integers(0, 256)
        path = tmp_path / "damaged.tflite"
        path.write_bytes(damaged)
        try:
            side = LiteRT("", path, bittrue.load(path), "builtin_ref", timeout=20)
            side.record(inputs_of(side))
        except bittrue.BittrueError:
            refused += 1
    assert refused
