"""Peers: the real ones that are installed here, and made-up ones for everything that can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bittrue
from bittrue.errors import UnsupportedError
from bittrue.graph import Quantization
from bittrue.measure import Contender, compare, environment
from bittrue.measure.machine import processor
from bittrue.ports import Port
from bittrue.runners.base import Opened, Peer, fitting
from bittrue.runners.peers import PEERS
from support.build import T, single
from support.shared import SHARED, needs_shared


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


def port_of(name: str, value: np.ndarray, scale: float | None = None) -> Port:
    return Port(
        name, value.dtype, value.shape, None if scale is None else Quantization(np.float32([scale]), np.int64([0]))
    )


def run_once(opened: Opened, *values: np.ndarray) -> list[np.ndarray]:
    return opened.run(opened.fit(values))


def fake(run: Any = None, error: Exception | None = None, reads: Sequence[str] = ("tflite",)) -> Peer:
    def prepare(module: ModuleType, path: Path, ports: Sequence[Port], threads: int) -> Opened:
        if error is not None:
            raise error
        return Opened(list, lambda _: run(), ("y",))

    return Peer("fake", "A fake", "bittrue-has-no-such-peer", "math", tuple(reads), prepare)


def against(peer: Peer, files: dict[str, Path] | None = None, **options: Any):
    ours = Contender(lambda: None, {"y": np.int8([1, 2, 3])})
    known = {"tflite": Path("x.tflite")} if files is None else files
    comparison = compare(ours, [peer], known, [], [], threads=1, rounds=6, seconds=0.01, **options)
    return comparison, comparison.results[1]


def test_different_bytes_are_counted_and_timed_all_the_same() -> None:
    comparison, result = against(fake(lambda: [np.int8([1, 7, 3])]))
    assert result.verdict == "1 of 3 bytes differ, values by at most 5"
    assert result.timing is not None
    assert comparison.best_peer is result
    assert result.to_dict()["equal"] is False


def test_equal_bytes() -> None:
    assert against(fake(lambda: [np.int8([1, 2, 3])]))[1].verdict == "equal"


def test_floats_have_no_verdict() -> None:
    result = against(fake(lambda: [np.float32([1, 2, 3])]))[1]
    assert result.verdict == "no verdict: float32 where ours is int8"
    assert result.to_dict()["equal"] is False


def test_other_numbers_of_outputs_are_a_row() -> None:
    odd = Peer("fake", "A fake", "x", "math", ("tflite",), lambda *_: Opened(list, list, ("a", "b")))
    assert "2 outputs, ours 1" in against(odd)[1].problem


def test_a_missing_package_says_what_to_install() -> None:
    peer = Peer("nobody", "Nobody", "bittrue-nobody", "bittrue_nobody", ("tflite",), lambda *_: pytest.fail("opened"))
    comparison, result = against(peer)
    assert result.problem == "not installed: pip install bittrue-nobody"
    assert result.version == ""
    assert result.timing is None
    assert comparison.best_peer is None
    assert comparison.conclusion == "no peer ran: nothing to compare with"


@pytest.mark.parametrize("error", [RuntimeError("cannot\n  read this"), ValueError("cannot read this"), Exception()])
def test_a_peer_that_fails_is_a_row(error: Exception) -> None:
    result = against(fake(error=error))[1]
    assert type(error).__name__ in result.problem
    assert "\n" not in result.problem
    assert ("cannot read this" in result.problem) == bool(error.args)


def test_a_peer_that_fails_in_its_first_run_is_a_row() -> None:
    assert "ZeroDivisionError" in against(fake(lambda: 1 // 0))[1].problem


def test_formats() -> None:
    assert "--onnx" in against(fake(reads=("onnx",)))[1].problem
    assert "not plans" in against(fake(), files={})[1].problem
    assert against(fake(), refuse="only a part")[1].problem == "only a part"


def test_a_peers_own_model_may_take_floats_and_channels_first() -> None:
    seen = []

    def prepare(module: ModuleType, path: Path, ports: Sequence[Port], threads: int) -> Opened:
        fit, remarks = fitting(ports, [(np.float32, (1, 3, None, 2))])

        def run(values: Sequence[np.ndarray]) -> list[np.ndarray]:
            seen.extend(values)
            return [np.int8([1, 2, 3])]

        return Opened(fit, run, ("y",), remarks)

    peer = Peer("fake", "A fake", "x", "math", ("tflite",), prepare)
    value = np.arange(24).reshape(1, 4, 2, 3).astype(np.int8)
    ours = Contender(lambda: None, {"y": np.int8([1, 2, 3])})
    for given, scale, problem in (
        (value, 0.5, ""),
        (value, None, "takes float32 for input 'x', the model takes int8"),
        (value[..., :2], 0.5, "takes shape"),
    ):
        result = compare(
            ours, [peer], {"tflite": Path("x")}, [port_of("x", given, scale)], [given],
            threads=1, rounds=1, seconds=0.001,
        ).results[1]  # fmt: skip
        assert problem in result.problem
        assert bool(problem) == bool(result.problem)
        assert len(result.remarks) == (0 if problem else 2)
    assert np.array_equal(seen[0], value.transpose(0, 3, 1, 2) / 2)
    assert seen[0].dtype == np.float32


@pytest.mark.parametrize("name", ["litert", "xnnpack", "openvino"])
def test_real_peers_on_the_demo(name: str, demo: Path) -> None:
    peer = PEERS[name]
    pytest.importorskip(peer.module, reason=f"{peer.package} is not installed")
    for threads in (1, 2):
        session = bittrue.load(demo).prepare()
        value = np.random.default_rng(0).integers(0, 127, session.inputs[0].shape).astype(session.inputs[0].dtype)
        comparison = compare(
            Contender(lambda: None, session.run(value)), [peer], {"tflite": demo}, session.inputs, [value],
            threads=threads, rounds=2, seconds=0.05,
        )  # fmt: skip
        result = comparison.results[1]
        assert not result.problem
        assert result.timing is not None
        assert result.differences[0].bytes == 10
        if name == "litert":
            assert result.verdict == "equal"


@pytest.mark.parametrize("name", ["litert", "openvino"])
def test_other_shapes_reach_the_peer(name: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    pytest.importorskip(peer.module, reason=f"{peer.package} is not installed")
    path = tmp_path / "softmax.tflite"
    tensors = [T("s8", (1, 10), 0.1, 3, name="x")], [T("s8", (1, 10), 1 / 256, -128)]
    path.write_bytes(single("SOFTMAX", ("SoftmaxOptions", {"beta": 1.0}), *tensors))
    session = bittrue.load(path).prepare(shapes={"x": (3, 10)})
    value = np.random.default_rng(1).integers(-128, 128, (3, 10)).astype(np.int8)
    (theirs,) = run_once(peer.open({"tflite": path}, session.inputs, 1), value)
    assert theirs.shape == (3, 10)
    if name == "litert":
        assert theirs.tobytes() == next(iter(session.run(value).values())).tobytes()


class FakeOpenVino:
    """What of OpenVINO's Python API opening a model uses: one input [?, 3], and a plugin that may want a hint."""

    def __init__(self, compiles: Callable[[Mapping[str, str]], bool]) -> None:
        self.compiles = compiles
        self.tried: list[dict[str, str]] = []
        self.shapes = [[-1, 3]]
        self.inputs = self.outputs = [self]

    def Core(self) -> FakeOpenVino:
        return self

    def read_model(self, path: str) -> FakeOpenVino:
        return self

    def reshape(self, shapes: Mapping[object, list[int]]) -> None:
        self.shapes += shapes.values()

    def get_names(self) -> set[str]:
        return {"x"}

    def get_partial_shape(self) -> list[Any]:
        return [SimpleNamespace(is_dynamic=size < 0, get_length=lambda size=size: size) for size in self.shapes[-1]]

    def get_element_type(self) -> Any:
        return SimpleNamespace(to_dtype=lambda: np.int8)

    def compile_model(self, model: object, device: str, options: Mapping[str, str]) -> FakeOpenVino:
        self.tried.append(dict(options))
        if not self.compiles(options):
            raise RuntimeError(f"refused {len(self.tried)}")
        return self

    def create_infer_request(self) -> FakeOpenVino:
        return self

    def reset_state(self) -> None:
        pass


HINT = "INFERENCE_PRECISION_HINT"


def test_openvino_compiles_closed_sizes() -> None:
    fake = FakeOpenVino(lambda options: True)
    opened = PEERS["openvino"].prepare(fake, Path("x.tflite"), [port_of("x", np.zeros((2, 3), np.int8))], 2)
    assert fake.shapes[1:] == [[2, 3]]
    assert [HINT in options for options in fake.tried] == [False]
    assert opened.remarks == ()


def test_openvino_keeps_sizes_open_that_runs_change() -> None:
    fake = FakeOpenVino(lambda options: True)
    port = Port("x", np.dtype(np.int8), (2, 3), None, frozenset({0}))
    PEERS["openvino"].prepare(fake, Path("x.tflite"), [port], 1)
    assert fake.shapes == [[-1, 3]]


def test_openvino_is_given_the_hint_where_it_does_not_compile_without() -> None:
    fake = FakeOpenVino(lambda options: options.get(HINT) == "f32")
    opened = PEERS["openvino"].prepare(fake, Path("x.tflite"), [port_of("x", np.zeros((2, 3), np.int8))], 1)
    without, with_hint = fake.tried
    assert with_hint == {**without, HINT: "f32"}
    assert [HINT in remark for remark in opened.remarks] == [True]


def test_what_openvino_refuses_either_way_is_its_first_error() -> None:
    fake = FakeOpenVino(lambda options: False)
    with pytest.raises(RuntimeError, match="refused 1"):
        PEERS["openvino"].prepare(fake, Path("x.tflite"), [port_of("x", np.zeros((2, 3), np.int8))], 1)


def test_a_file_that_a_real_peer_cannot_read_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    path.write_text("no model")
    assert against(PEERS["litert"], files={"tflite": path})[1].problem


def _field(number: int, content: bytes | int | str) -> bytes:
    """One protobuf field; lengths and numbers below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def onnx_relu(name: str, element_type: int) -> bytes:
    """An ONNX model, encoded by hand: one Relu over [1, 4] of an element type (1: float32, 3: int8)."""
    shape = b"".join(_field(1, _field(1, size)) for size in (1, 4))
    kind = _field(1, _field(1, element_type) + _field(2, shape))
    node = _field(1, name) + _field(2, "y") + _field(4, "Relu")
    graph = (
        _field(1, node)
        + _field(2, "g")
        + b"".join(_field(field, _field(1, port) + _field(2, kind)) for field, port in ((11, name), (12, "y")))
    )
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 14))


@pytest.mark.parametrize(("element_type", "dtype"), [(1, "float32"), (3, "int8")])
def test_onnx_files(element_type: int, dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path = tmp_path / "relu.onnx"
    path.write_bytes(onnx_relu("x", element_type))
    value = np.int8([[-3, 0, 2, 127]])
    result = compare(
        Contender(lambda: None, {"z": np.maximum(value, 0)}), [PEERS["onnxruntime"]], {"tflite": path, "onnx": path},
        [port_of("other name", value, 0.25)], [value], threads=2, rounds=1, seconds=0.01,
    ).results[1]  # fmt: skip
    assert not result.problem
    assert result.verdict == ("equal" if dtype == "int8" else "no verdict: float32 where ours is int8")
    assert bool(result.remarks) == (dtype == "float32")


def test_open_raises_typed_errors(demo: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        PEERS["litert"].open({"onnx": demo}, [], 1)
    assert caught.value.code == "BT-PEER-FORMAT"


@needs_shared
def test_recurrent_state_starts_fresh_in_the_peer() -> None:
    path = SHARED / "models" / "coral_keras_lstm_mnist_ptq.tflite"
    session = bittrue.load(path).prepare()
    value = np.random.default_rng(5).integers(0, 256, session.inputs[0].shape).astype(np.uint8)
    outputs = session.run(value)
    result = compare(
        Contender(lambda: session.run(value), outputs), [PEERS["litert"]], {"tflite": path},
        session.inputs, [value], threads=1, rounds=1, seconds=0.01,
    ).results[1]  # fmt: skip
    assert result.verdict == "equal"


@needs_shared
@pytest.mark.parametrize("name", ["litert", "xnnpack"])
def test_one_opened_peer_runs_many_inputs_and_begins_anew(name: str) -> None:
    path = SHARED / "models" / "coral_keras_lstm_mnist_ptq.tflite"
    pytest.importorskip(PEERS[name].module)
    session = bittrue.load(path).prepare(name)
    opened = PEERS[name].open({"tflite": path}, session.inputs, 1)
    generator = np.random.default_rng(5)
    for reset in (False, False, True, False, True):
        if reset:
            opened.reset()
            session.reset()
        value = generator.integers(0, 256, session.inputs[0].shape).astype(np.uint8)
        (theirs,) = run_once(opened, value)
        (ours,) = session.run(value).values()
        assert ours.tobytes() == theirs.tobytes()


def test_environment() -> None:
    found = environment(bittrue.__version__, PEERS.values())
    assert found["versions"]["bittrue"] == bittrue.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert found["cores"] >= found["usable_cores"] >= 1
    assert found["cpu"]


def test_processor_of_an_arm_machine() -> None:
    name, flags = processor("processor\t: 0\nFeatures\t: fp asimd asimddp i8mm\n")
    assert name
    assert flags == ["asimd", "asimddp", "i8mm"]
