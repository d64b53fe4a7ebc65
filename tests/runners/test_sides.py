"""What users type becomes the right runner, or an error that says what to type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.errors import BittrueError, InputError, UnsupportedError
from bittrue.runners.litert import LiteRT
from bittrue.runners.onnxruntime import OnnxRuntime, Settings
from bittrue.runners.ours import Ours
from bittrue.runners.processor import numerics_here
from bittrue.runners.sides import join_words, open_side
from bittrue.runners.trace import Trace
from support.build import T, single
from support.onnx_models import HERE
from support.onnx_models import single as single_onnx


def relu(path: Path) -> Path:
    path.write_bytes(single("RELU", None, [T("s8", (1, 4), 0.1, 3, name="x")], [T("s8", (1, 4), 0.1, 3)]))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return relu(tmp_path / "relu.tflite")


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    path = tmp_path / "relu.onnx"
    path.write_bytes(single_onnx("Relu", {"x": np.float32([[1, -2]])}, [1])[0])
    return path


def test_ours(model: Path, onnx_model: Path) -> None:
    side = open_side(str(model))
    assert isinstance(side, Ours)
    assert (side.numerics, side.format, side.path, side.spec) == ("litert", "tflite", model, str(model))
    assert [(port.name, port.shape, port.zero_point) for port in side.inputs] == [("x", (1, 4), 3)]
    assert open_side(f"{model}@xnnpack").numerics == "xnnpack"
    assert open_side(f"{model}@litert@1.2").numerics == "litert@1.2"
    assert open_side(f"{model}@xnnpack@aarch64").numerics == "xnnpack@aarch64"
    assert open_side(str(onnx_model)).numerics == "onnxruntime"
    assert side.arithmetic is not None
    assert side.arithmetic.reproduces in side.title


def test_names_of_files_may_look_like_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a@xnnpack", "b@1.tflite", "litert:c"):
        relu(tmp_path / name)
    assert open_side("a@xnnpack").numerics == "litert"
    assert open_side("a@xnnpack@xnnpack").numerics == "xnnpack"
    assert open_side("b@1.tflite@litert-optimized").numerics == "litert-optimized"
    assert isinstance(open_side("./litert:c"), Ours)


@pytest.mark.parametrize(
    ("text", "numerics"),
    [
        ("litert:builtin_ref {}", "litert"),
        ("litert:{}", "litert"),
        ("litert: {}", "litert"),
        ("litert:optimized {}", "litert-optimized"),
        ("litert:optimized:{}", "litert-optimized"),
        ("litert:xnnpack   {}", "xnnpack"),
        ("litert:{}?resolver=xnnpack&threads=2", "xnnpack"),
    ],
)
def test_litert(text: str, numerics: str, model: Path) -> None:
    side = open_side(text.format(model))
    assert isinstance(side, LiteRT)
    assert (side.numerics, side.path) == (numerics_here(numerics), model)
    assert side.title.startswith("LiteRT 2.")


def test_onnxruntime(onnx_model: Path) -> None:
    side = open_side(f"ort:{onnx_model}")
    assert isinstance(side, OnnxRuntime)
    assert side.settings == Settings()
    assert side.arithmetic is not None
    assert side.arithmetic.rewrites
    plain = open_side(f"ort:{onnx_model}?level=disable&disable=A,B&threads=2&integers=0")
    assert isinstance(plain, OnnxRuntime)
    assert plain.settings == Settings("disable", ("A", "B"), 2, False)
    assert plain.numerics == HERE
    assert plain.arithmetic is not None
    assert "fuse_quantized" not in plain.arithmetic.rewrites


def test_trace(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.int8([1, 2]))
    side = open_side(f"trace:{tmp_path}")
    assert isinstance(side, Trace)
    assert (side.numerics, side.arithmetic, side.model, side.inputs) == ("", None, None, [])
    with pytest.raises(InputError, match="runs no model"):
        side.with_model(tmp_path)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("{model}@nonsense", "BT-NUMERICS", "litert-optimized"),
        ("{model}@", "BT-NUMERICS", "litert-optimized"),
        ("missing.tflite", "BT-FILE-PATH", "check the path"),
        ("missing.tflite@xnnpack", "BT-FILE-PATH", "missing.tflite:"),
        ("litert:missing.tflite", "BT-FILE-PATH", "check the path"),
        ("litert:xnnpack", "BT-SIDE", "builtin_ref|optimized|xnnpack"),
        ("litert:", "BT-SIDE", "MODEL"),
        ("trace:", "BT-SIDE", "DIR"),
        ("lite:{model}", "BT-SIDE", "litert:"),
        ("tensorrt:{model}", "BT-SIDE", "trace:DIR"),
        ("litert:{model}?resolver=fast", "BT-SIDE-OPTION", "builtin_ref, optimized, xnnpack"),
        ("litert:{model}?level=all", "BT-SIDE-OPTION", "resolver, threads, timeout"),
        ("litert:{model}?threads", "BT-SIDE-OPTION", "resolver, threads, timeout"),
        ("litert:{model}?threads=0", "BT-SIDE-OPTION", "from 1"),
        ("litert:{model}?threads=" + "9" * 5000, "BT-SIDE-OPTION", "from 1"),
        ("litert:xnnpack {model}?resolver=xnnpack", "BT-SIDE-OPTION", "twice"),
        ("ort:{onnx}?level=3", "BT-SIDE-OPTION", "disable, basic, extended, layout, all"),
        ("trace:missing-folder", "BT-TRACE", "no such folder"),
        ("trace:{model}?threads=1", "BT-SIDE-OPTION", "none"),
    ],
)
def test_errors_say_what_to_type(text: str, code: str, says: str, model: Path, onnx_model: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_side(text.format(model=model, onnx=onnx_model))
    assert caught.value.code == code
    assert says in str(caught.value)


def test_wrong_formats(model: Path, onnx_model: Path) -> None:
    for text, says in ((f"ort:{model}", "reads .onnx"), (f"litert:{onnx_model}", "reads .tflite")):
        with pytest.raises(UnsupportedError, match=says) as caught:
            open_side(text)
        assert caught.value.code == "BT-PEER-FORMAT"


def test_a_missing_package_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittrue.runners.base.Peer.version", lambda self: None)
    with pytest.raises(UnsupportedError, match="pip install ai-edge-litert") as caught:
        open_side(f"litert:{model}")
    assert caught.value.code == "BT-PEER-MISSING"


def test_damaged_models_are_typed_errors(tmp_path: Path) -> None:
    for name, content in (("a.tflite", b"\x1c\0\0\0TFL3" + bytes(20)), ("b.onnx", b"\x08\x08:\x01"), ("c", b"")):
        path = tmp_path / name
        path.write_bytes(content)
        for text in (str(path), f"litert:{path}", f"ort:{path}"):
            with pytest.raises(BittrueError):
                open_side(text)


def test_words_of_a_command_line() -> None:
    words = ["litert:builtin_ref", "a.tflite", "b.onnx@onnx", "ort:", "c.onnx", "litert:d", "trace:e"]
    assert join_words(words) == ["litert:builtin_ref a.tflite", "b.onnx@onnx", "ort: c.onnx", "litert:d", "trace:e"]
    assert join_words([]) == []
    # A runner alone has the file of another side.
    alone = {
        ("b.tflite@xnnpack", "litert:xnnpack"): ["b.tflite@xnnpack", "litert:xnnpack b.tflite"],
        ("litert:", "litert:xnnpack", "b.tflite"): ["litert: b.tflite", "litert:xnnpack b.tflite"],
        ("litert:optimized", "litert:xnnpack:b.tflite?threads=2"): [
            "litert:optimized b.tflite",
            "litert:xnnpack:b.tflite?threads=2",
        ],
        ("ort:", "ort:b.onnx?level=basic"): ["ort: b.onnx", "ort:b.onnx?level=basic"],
        ("litert:builtin_ref", "litert:xnnpack"): ["litert:builtin_ref", "litert:xnnpack"],
    }
    for given, expected in alone.items():
        assert join_words(given) == expected
    with pytest.raises(InputError, match="no file is named"):
        open_side("litert:builtin_ref")
    # A misspelt resolver takes its file along, so that the error is about the resolver.
    assert join_words(["a.tflite", "litert:xnpack", "b.tflite"]) == ["a.tflite", "litert:xnpack b.tflite"]
    with pytest.raises(InputError, match=r"'xnpack' is neither a file nor a resolver.*did you mean 'xnnpack'"):
        open_side("litert:xnpack b.tflite")


def test_other_models_in_the_same_runtime(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(single("RELU", None, [T("s8", (1, 3), 0.1, 3, name="z")], [T("s8", (1, 3), 0.1, 3)]))
    value = np.int8([[-5, 0, 7]])
    expected = next(iter(bittrue.load(other).prepare().run(value).values()))
    for text in (f"{model}@litert-optimized", f"litert:optimized {model}"):
        side = open_side(text)
        side.record({"x": np.zeros((1, 4), np.int8)})
        again = side.with_model(other)
        assert again.spec == text.replace(str(model), str(other))
        assert again.numerics == side.numerics
        recording = again.record({"z": value})
        assert recording[recording.outputs[0]].load().tobytes() == expected.tobytes()
        side.close()
        assert again.record({"z": value}).outputs == recording.outputs
        again.close()
