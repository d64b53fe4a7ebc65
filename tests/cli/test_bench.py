"""`bittrue bench`: tables, JSON, charts, and what it says about peers that are not there."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bittrue
from bittrue.runtime import profile
from support.command import run
from support.shared import REPOSITORY

QUICK = ("--seconds", "0.05", "--rounds", "2")


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed."""
    for name in [package, *sys.modules]:
        if name.partition(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    path = tmp_path / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


def test_against_the_real_runtime(demo: Path) -> None:
    out = run("bench", demo, *QUICK, "--threads", "1,2").stdout
    for word in (
        "bittrue",
        "LiteRT reference kernels",
        "LiteRT with XNNPACK",
        "equal",
        "2 threads",
        "the fastest peer",
    ):
        assert word in out, word


def test_json(demo: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    np.save(tmp_path / "x.npy", x)
    out = run("bench", demo, *QUICK, "--threads", "1,2", "-i", tmp_path / "x.npy", "--profile", "--json").stdout
    found = json.loads(out)
    assert found["format"] == "bittrue-bench-1"
    assert found["model"]["bytes"] == len(bittrue.demo_model())
    assert found["environment"]["versions"]["ai-edge-litert"]
    assert [c["threads"] for c in found["comparisons"]] == [1, 2]
    for comparison in found["comparisons"]:
        ours, reference, fast = comparison["results"]
        assert ours["ratio"] is None
        assert reference["equal"] is True
        for result in (ours, reference, fast):
            assert 0 < result["minimum"] <= result["median"]
            assert result["calls"] >= len(result["rounds"]) == comparison["rounds"] == 2
        ratios = [a / b for a, b in zip(reference["rounds"], ours["rounds"], strict=True)]
        assert reference["ratio"]["low"] == min(ratios)
        assert reference["ratio"]["high"] == max(ratios)
    assert len(found["profiles"]) == 2
    # Passes may remove steps.
    assert 0 < len(found["profiles"][0]["steps"]) <= len(bittrue.load(demo).prepare().plan.steps)


def test_nobody_to_compare_with_but_a_profile(demo: Path) -> None:
    out = run("bench", demo, *QUICK, "--against", "none", "--profile").stdout
    assert "GMAC/s" in out
    assert "#0" in out
    assert "XNNPACK" not in out


def test_missing_packages_are_rows(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide("openvino", monkeypatch)
    hide("ai_edge_litert", monkeypatch)
    found = json.loads(run("bench", demo, *QUICK, "--against", "openvino,xnnpack", "--json").stdout)
    ours, *peers = found["comparisons"][0]["results"]
    assert ours["median"]
    for peer, package in zip(peers, ("openvino", "ai-edge-litert"), strict=True):
        assert peer["median"] is None
        assert f"pip install {package}" in peer["problem"]
    assert found["comparisons"][0]["best_peer"] is None


def test_what_peers_cannot_run_is_said(demo: Path, tmp_path: Path) -> None:
    run("plan", demo, "-o", tmp_path / "digits.plan")
    found = json.loads(run("bench", tmp_path / "digits.plan", *QUICK, "--json").stdout)
    assert all("not plans" in result["problem"] for result in found["comparisons"][0]["results"][1:])
    name = bittrue.load(demo).prepare().plan.tensors[bittrue.load(demo).prepare().plan.steps[1].outputs[0]].name
    found = json.loads(run("bench", demo, *QUICK, "--until", name, "--json").stdout)
    assert all("--until" in result["problem"] for result in found["comparisons"][0]["results"][1:])


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_chart(demo: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / f"bars{suffix}"
    assert str(path) in run("bench", demo, *QUICK, "--threads", "1,2", "--chart", path).stdout.replace("\n", "")
    content = path.read_bytes()
    assert (b"<svg" in content) if suffix == ".svg" else content.startswith(b"\x89PNG")


def test_a_chart_that_cannot_be_written_fails_before_anything_is_measured(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide("matplotlib", monkeypatch)
    done = run("bench", demo, "--seconds", "1000", "--chart", tmp_path / "x.svg", check=2)
    assert 'pip install "bittrue[plot]"' in done.stderr
    assert "BT-CHART" in run("bench", demo, "--seconds", "1000", "--chart", tmp_path / "x.gif", check=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--threads", "0"],
        ["--threads", "one"],
        ["--against", "nobody"],
        ["--against", ""],
        ["--rounds", "0"],
        ["--seconds", "0"],
        ["--isa", "avx2", "--executor", "reference"],
        ["--onnx", "no_such_file.onnx"],
    ],
)
def test_wrong_usage(demo: Path, arguments: list[str]) -> None:
    assert run("bench", demo, *arguments, check=2).stderr.strip()


@pytest.mark.parametrize("command", ["bench", "run"])
def test_examples_in_the_help_keep_their_lines(command: str) -> None:
    out = run(command, "--help").stdout
    assert "\\b" not in out
    assert f"\n  bittrue {command} model.tflite " in out


def test_bench_script(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.tflite").write_text("no model")
    done = subprocess.run(
        [
            sys.executable, REPOSITORY / "bench" / "models.py", tmp_path, *QUICK, "--threads", "1",
            "--against", "xnnpack,litert,onnxruntime", "--output", tmp_path / "results" / "native",
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results" / "native.md").read_text()
    assert "Geometric mean" in page
    assert "| digits |" in page
    assert "broken.tflite: bittrue: error" in page
    assert len(json.loads((tmp_path / "results" / "native.json").read_text())) == 2


def test_bench_page_marks_what_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "bench")
    judgement = runpy.run_path(str(REPOSITORY / "bench" / "models.py"))["judgement"]
    assert judgement({"median": 0.5, "low": 0.4, "high": 0.6}) == "**slower**"
    assert judgement({"median": 0.9, "low": 0.8, "high": 1.1}) == "**slower**, not in every round"
    assert judgement({"median": 1.2, "low": 0.9, "high": 1.3}) == "faster, not in every round"
    assert judgement({"median": 1.2, "low": 1.1, "high": 1.3}) == "faster"


def test_a_measured_peak_is_shown(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "native_module", lambda: SimpleNamespace(peak_multiply_adds=lambda isa: 123.4e9))
    out = " ".join(run("bench", demo, *QUICK, "--against", "none", "--profile").stdout.split())
    assert "123.4 GMAC/s a core" in out
    assert "measured peak of one core 123.40 GMAC/s" in out
