"""The numerics of ONNX Runtime on processors that this machine is not: what is chosen, and what users are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.runners import processor
from bittrue.runners.ours import Ours
from bittrue.runners.sides import open_sides
from support.build import T
from support.onnx_models import single
from support.unary import unary

_SETS = {
    "onnxruntime": ("avx512vnni", "avxvnni", "avx2", "portable"),
    "onnxruntime-avx2": ("avx2", "portable"),
    "onnxruntime@aarch64": ("neon-dotprod", "portable"),
}


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    content, _ = single("Softmax", {"x": np.zeros((2, 40), np.float32)}, [1])
    path = tmp_path / "softmax.onnx"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("numerics", _SETS)
def test_sides(numerics: str, softmax: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "isas", lambda: _SETS[numerics])
    ours, theirs = open_sides([str(softmax), f"ort:{softmax}"])
    assert ours.numerics == theirs.numerics == numerics
    assert isinstance(ours, Ours)
    assert bool(ours.note) == (numerics != "onnxruntime")
    if numerics != "onnxruntime@aarch64":
        for side in open_sides([str(softmax), f"ort:{softmax}?integers=0"]):
            assert side.numerics == f"{numerics}-defaults"
    # What is named stays, and so does what no runtime of this processor is compared with.
    named, _ = open_sides([f"{softmax}@onnxruntime", f"ort:{softmax}"])
    alone, other = open_sides([str(softmax), f"{softmax}@onnx"])
    assert (named.numerics, alone.numerics, other.numerics) == ("onnxruntime", "onnxruntime", "onnx")
    assert bittrue.load(softmax).prepare().plan.numerics == "onnxruntime"


@pytest.mark.parametrize("command", ["inspect", "plan", "run"])
def test_users_are_told(command: str, softmax: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sets, told in (
        (_SETS["onnxruntime"], ""),
        (_SETS["onnxruntime-avx2"], "has the bits of numerics 'onnxruntime-avx2'"),
        (("avxvnni", "avx2", "portable"), "was not measured on this processor (avxvnni)"),
        (("portable",), "was not measured on this processor (portable)"),
        ((), "was not measured on this processor (unknown)"),
    ):
        monkeypatch.setattr(processor, "isas", lambda sets=sets: sets)
        done = CliRunner().invoke(cli, [command, str(softmax)], env={"COLUMNS": "400"})
        assert done.exit_code == 0, done.output
        output = " ".join(done.output.split())
        assert told in output
        assert ("this processor" in output) == bool(told)


_TWO = ("xnnpack", "xnnpack-avx2")


@pytest.fixture
def logistic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    path = tmp_path / "logistic.tflite"
    path.write_bytes(unary("LOGISTIC", T("f32", (4,)), T("f32", (4,))))
    return path


@pytest.mark.parametrize("command", ["plan", "run"])
def test_users_of_the_delegate_are_told(command: str, logistic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bits of real numbers are those of AVX-512; the plan says for which operators, whatever the processor."""
    path = logistic
    for sets, own, unsure in (
        (_SETS["onnxruntime"], "xnnpack", ""),
        (_SETS["onnxruntime-avx2"], "xnnpack-avx2", ""),
        (("avxvnni", "avx2", "portable"), "xnnpack-avx2", "was not measured on this processor (avxvnni)"),
        (("portable",), "xnnpack", "was not measured on this processor (portable)"),
    ):
        monkeypatch.setattr(processor, "isas", lambda sets=sets: sets)
        for name in _TWO:
            done = CliRunner().invoke(cli, [command, str(path), "--numerics", name], env={"COLUMNS": "400"})
            assert done.exit_code == 0, done.output
            output = " ".join(done.output.split())
            assert (f"has the bits of '{own}', which differ from '{name}'" in output) == (own != name)
            assert ("was not measured" in output) == (own == name and bool(unsure))
            assert own != name or unsure in output
    (note,) = bittrue.load(path).prepare("xnnpack").plan.notes
    assert "without AVX-512" in note
    assert "LOGISTIC" in note
    assert not bittrue.load(path).prepare("xnnpack@aarch64").plan.notes


@pytest.mark.parametrize("numerics", _TWO)
def test_sides_of_the_delegate(numerics: str, logistic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime has this processor's numerics; who names the other one keeps it, and is told."""
    monkeypatch.setattr(processor, "isas", lambda: _SETS[numerics.replace("xnnpack", "onnxruntime")])
    texts = [f"litert:xnnpack {logistic}", *(f"{logistic}@{name}" for name in _TWO), str(logistic)]
    theirs, *ours, usual = open_sides(texts)
    theirs.close()
    assert [side.numerics for side in (theirs, *ours, usual)] == [numerics, *_TWO, "litert"]
    for side in (*ours, usual):
        assert isinstance(side, Ours)
        assert bool(side.note) == (side.numerics not in (numerics, "litert"))
    assert processor.numerics_here("litert") == "litert"


def test_default_sessions_have_numerics_where_their_bits_are_others() -> None:
    for name in ("onnxruntime", "onnxruntime-avx2"):
        assert processor.Here(name).with_options(integers=False) == f"{name}-defaults"
    # On Arm default sessions are those that `onnxruntime@aarch64` means.
    assert processor.Here("onnxruntime@aarch64").with_options(integers=False) == "onnxruntime@aarch64"
