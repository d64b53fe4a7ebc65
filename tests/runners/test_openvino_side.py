"""OpenVINO's recordings, where it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bittrue
from bittrue.errors import UnsupportedError
from bittrue.runners.sides import open_side
from support.float_models import MODELS, forms, quantize


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


def test_outputs(digits: Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    side = open_side(f"openvino:{digits}")
    port = side.inputs[0]
    x = np.random.default_rng(0).integers(-128, 128, port.shape).astype(np.int8)
    recording = side.record({port.name: x})
    ours = open_side(str(digits)).record({port.name: x})
    assert (side.numerics, side.arithmetic) == ("", None)
    assert side.title.startswith("OpenVINO 20")
    assert [t.name for t in recording] == [*ours.inputs, *ours.outputs]
    for name in ours.outputs:
        assert (recording[name].dtype, recording[name].shape) == (ours[name].dtype, ours[name].shape)
    assert any("tensors=all" in note for note in recording.notes)


def test_inner_tensors_on_request(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    path = tmp_path / "m.onnx"
    path.write_bytes(quantize(MODELS["dense"](np.random.default_rng(0)), forms()["pairs_u8s8"], tmp_path))
    side = open_side(f"openvino:{path}?tensors=all")
    x = {p.name: np.random.default_rng(1).standard_normal(p.shape).astype(p.dtype) for p in side.inputs}
    recording = side.record(x)
    ours = open_side(f"{path}@onnx").record(x)
    assert len({t.name for t in recording} & {t.name for t in ours}) > 10
    assert recording.outputs == ours.outputs
    assert any("changes what is fused" in note for note in recording.notes)


def test_a_missing_package_says_what_to_install(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bittrue.runners.base.Peer.version", lambda self: None)
    with pytest.raises(UnsupportedError, match="pip install openvino"):
        open_side(f"openvino:{digits}")
