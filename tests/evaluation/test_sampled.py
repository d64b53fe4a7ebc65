"""One sample again: the command of a flip gives the very input, and names the operator where two arithmetics part."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.evaluation.sampled import inputs_of
from support.flipping import COUNT, values
from support.shared import SHARED

GREY = 'step = [{do = "decode", colours = "grey"}, {do = "resize"}, {do = "scale", factor = 0.00390625}]'
KEYWORDS = SHARED / "data" / "mlperf_tiny_kws01"


def arrays(folder: Path) -> Path:
    np.save(folder / "x.npy", values())
    return folder / "x.npy"


def bytes_in_files(folder: Path) -> Path:
    lines = []
    for i, x in enumerate(values()):
        (folder / f"{i}.bin").write_bytes(x.tobytes())
        lines.append(f"{i}.bin,10,{i % 10}\n")
    (folder / "y_labels.csv").write_text("".join(lines))
    return folder


def images(folder: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    (folder / "grey.toml").write_text(GREY)
    (folder / "images" / "a b").mkdir(parents=True)
    for i, x in enumerate(values()):
        image.fromarray((x[..., 0] ^ -128).view(np.uint8)).save(folder / "images" / "a b" / f"{i:03}.png")
    return folder / "images"


def shards(folder: Path) -> Path:
    with tarfile.open(folder / "x.tar", "w") as tar:
        for i, x in enumerate(values()):
            content = io.BytesIO()
            np.save(content, x)
            member = tarfile.TarInfo(f"{i:03}.npy")
            member.size = content.tell()
            content.seek(0)
            tar.addfile(member, content)
    return folder / "x.tar"


def table(folder: Path) -> Path:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    source = images(folder)
    files = sorted(source.rglob("*.png"))
    content = [{"bytes": path.read_bytes(), "path": path.name} for path in files]
    parquet.write_table(pa.table({"image": content, "label": [0] * len(files)}), folder / "x.parquet", row_group_size=7)
    return folder / "x.parquet"


SOURCES = (arrays, bytes_in_files, images, shards, table)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_the_command_of_a_flip(source: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is printed, for every kind of source."""
    model = tmp_path / "a model.tflite"
    model.write_bytes(bittrue.demo_model())
    monkeypatch.chdir(tmp_path)
    data = source(tmp_path).relative_to(tmp_path)
    recipe = ["--recipe", "grey.toml"] if (tmp_path / "grey.toml").exists() else []
    words = ["evaluate", model.name, "--data", str(data), *recipe, "--numerics", "litert,xnnpack"]
    printed = CliRunner().invoke(cli, words).output.splitlines()
    command = printed[printed.index("what is behind the first one:") + 1]
    assert command.startswith("bittrue compare 'a model.tflite@litert' 'a model.tflite@xnnpack' --data ")
    found = CliRunner().invoke(cli, [*shlex.split(command)[1:], "--no-explain"])
    assert found.exit_code == 1, found.output
    assert "\nfirst: node " in found.output
    # The inputs are those of the rows: a changed bit of any is told.
    flip = json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)["flips"][0]["samples"][0]
    assert flip["command"] == command
    place = command.index("--sha256 ") + len("--sha256 ")
    other = command[:place] + format(int(flip["input"][:16], 16) ^ 1, "016x")
    assert "[BT-SAMPLE-DIGEST]" in str(_error(shlex.split(other)[1:]))


def _error(words: list[str]) -> Any:
    return CliRunner().invoke(cli, words).exception


def test_the_answers_of_the_command_are_those_of_the_flip(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    data = arrays(tmp_path)
    found = bittrue.evaluate(tmp_path / "m.tflite", data, numerics=["litert", "xnnpack"])
    model = bittrue.load(tmp_path / "m.tflite")
    for flip in found["flips"][0]["samples"]:
        (x,) = inputs_of(str(data), flip["position"], "raw", model.prepare().inputs, flip["input"])
        answers = [int(next(iter(model.prepare(name).run(x).values())).argmax()) for name in ("litert", "xnnpack")]
        assert answers == flip["predictions"]


def test_commands_name_files_that_look_like_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = arrays(tmp_path).name
    for name in ("ort:m.tflite", "-m.tflite", "m@xnnpack.tflite", "m'$(x).tflite"):
        Path(name).write_bytes(bittrue.demo_model())
        command = bittrue.evaluate(name, data, numerics=["litert", "xnnpack"])["flips"][0]["samples"][0]["command"]
        found = CliRunner().invoke(cli, [*shlex.split(command)[1:], "--no-explain"])
        assert "\nfirst: node " in found.output, (name, found.output, found.exception)


def test_no_command_where_nothing_could_be_named(tmp_path: Path) -> None:
    data = arrays(tmp_path)
    found = bittrue.evaluate(bittrue.demo_model(), data, numerics=["litert", "xnnpack"])
    assert {flip["command"] for flip in found["flips"][0]["samples"]} == {""}
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    found = bittrue.evaluate(tmp_path / "m.tflite", data, numerics=["litert", "xnnpack"], reset=False)
    assert {flip["command"] for flip in found["flips"][0]["samples"]} == {""}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--sample", "1"], "BT-USAGE"),
        (["--data", "x.npy"], "BT-USAGE"),
        (["--sha256", "00"], "BT-USAGE"),
        (["--data", "x.npy", "--sample", "1", "--seed", "3"], "BT-USAGE"),
        (["--data", "x.npy", "--sample", "1", "-i", "x.npy"], "BT-USAGE"),
        (["--data", "x.npy", "--sample", str(COUNT)], "BT-SAMPLE"),
        (["--data", "x.npy", "--sample", "1", "--recipe", "tf-mobilenet"], "BT-RECIPE"),
        (["--data", "y.npy", "--sample", "1"], "BT-DATA"),
    ],
)
def test_options_that_do_not_fit(words: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arrays(tmp_path)
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    for command in (["compare", "m.tflite", "m.tflite@xnnpack"], ["explain", "m.tflite", "-t", "#0"]):
        error = _error([*command, *words])
        assert isinstance(error, bittrue.InputError), (command, error)
        assert error.code == code


def test_windows_are_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of several runs is compared in all of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.tflite").write_bytes(bittrue.demo_model())
    (tmp_path / "w.bin").write_bytes(values()[:3].tobytes())
    (tmp_path / "y_labels.csv").write_text("w.bin,2,0,64,64\n")
    words = ["--data", ".", "--sample", "0"]
    found = CliRunner().invoke(cli, ["compare", "m.tflite", "m.tflite@xnnpack", "--no-explain", "--json", *words])
    assert json.loads(found.output)["inputs"] == [
        "sample 0 of ., run 1",
        "sample 0 of ., run 2",
        "sample 0 of ., run 3",
    ]
    assert "has 3 runs" in str(_error(["explain", "m.tflite", "-t", "#0", *words]))


@pytest.mark.skipif(not KEYWORDS.exists(), reason="needs ../shared/data/mlperf_tiny_kws01")
def test_keywords() -> None:
    model = SHARED / "models" / "tiny_kws_int8.tflite"
    found = bittrue.evaluate(model, KEYWORDS, numerics=["litert", "xnnpack"])
    (flip, *_) = found["flips"][0]["samples"]
    result = CliRunner().invoke(cli, [*shlex.split(flip["command"])[1:], "--no-explain"])
    assert "first: node 0 CONV_2D" in result.output
