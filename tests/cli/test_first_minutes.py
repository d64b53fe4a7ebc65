"""What a new user meets in the first minutes: labels, images, inputs of dumps, numbers of nodes, misspelt names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.api import Port
from bittrue.cli import cli
from bittrue.errors import BittrueError
from bittrue.names import by_number, distinct
from bittrue.runners.inputs import read_image


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "digits.tflite").write_bytes(bittrue.demo_model())
    np.save(tmp_path / "x.npy", np.arange(-32, 32, dtype=np.int8).reshape(1, 8, 8, 1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(words: str) -> str:
    """What an error says; a success has no error."""
    found = CliRunner().invoke(cli, words.split(), prog_name="bittrue")
    assert found.exit_code in (2, 3) or found.exception is not None, found.output
    return str(found.exception) if isinstance(found.exception, BittrueError) else found.output


def printed(words: str) -> str:
    found = CliRunner().invoke(cli, words.split(), catch_exceptions=False)
    assert found.exit_code in (0, 1), found.output
    return found.output


@pytest.mark.parametrize(("count", "advice"), [(11, "--labels-offset 1"), (9, "--labels-offset -1"), (14, "one name")])
def test_labels_that_do_not_fit_are_an_error(folder: Path, count: int, advice: str) -> None:
    (folder / "labels.txt").write_text("".join(f"name {i}\n" for i in range(count)))
    text = said("run digits.tflite --labels labels.txt")
    assert f"{count} lines for 10 values" in text
    assert advice in text
    if abs(count - 10) == 1:
        found = json.loads(printed(f"run digits.tflite --labels labels.txt --labels-offset {count - 10} --json"))
        for entry in found["top"]:
            line = entry["index"] + count - 10
            assert entry["label"] == (f"name {line}" if line >= 0 else "(class 0)")


def test_blank_lines_at_the_end_are_no_labels(folder: Path) -> None:
    (folder / "labels.txt").write_text("\ufeff" + "".join(f"name {i}\n" for i in range(10)) + "\n\n", encoding="utf-8")
    found = json.loads(printed("run digits.tflite --labels labels.txt --json"))
    assert all(entry["label"] == f"name {entry['index']}" for entry in found["top"])


def test_images_of_every_mode_are_scaled_or_refused(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    port = Port("x", np.dtype(np.uint8), (1, 4, 4, 1), None)
    path = tmp_path / "x.png"
    for value in (0, 1000, 20000, 32768, 65535):
        image.fromarray(np.full((4, 4), value, np.uint16)).save(path)
        array, remark = read_image(path, port, None)
        assert (array == (value * 255 + 32767) // 65535).all()
        assert "0..65535" in remark
    image.fromarray(np.full((4, 4), 200, np.uint8)).convert("P").save(path)
    assert (read_image(path, port, None)[0] == 200).all()
    image.fromarray(np.eye(4, dtype=bool)).save(path)
    assert (read_image(path, port, None)[0][0, ..., 0] == 255 * np.eye(4)).all()
    colour = Port("x", np.dtype(np.uint8), (1, 4, 4, 3), None)
    image.new("CMYK", (4, 4), (0, 255, 255, 0)).save(tmp_path / "x.tif")
    assert (read_image(tmp_path / "x.tif", colour, None)[0] == (255, 0, 0)).all()
    image.new("RGBA", (4, 4), (10, 20, 30, 255)).save(path)
    assert (read_image(path, colour, None)[0] == (10, 20, 30)).all()
    image.new("RGBA", (4, 4), (10, 20, 30, 128)).save(path)
    with pytest.raises(bittrue.InputError, match="transparent"):
        read_image(path, colour, None)
    for mode in ("I", "F"):
        image.new(mode, (4, 4), 1).save(tmp_path / "x.tif")
        with pytest.raises(bittrue.InputError, match="black and white"):
            read_image(tmp_path / "x.tif", port, None)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("run digits.tflite -i x.npy --seed 1", "--seed"),
        ("run digits.tflite --image-range 0 1", "--image-range"),
        ("compare digits.tflite digits.tflite@xnnpack -i x.npy --runs 3", "--runs"),
        ("compare digits.tflite digits.tflite@xnnpack -i x.npy --seed 3", "--seed"),
        ("conform litert:xnnpack --runs 3", "--runs"),
        ("run digits.tflite --labels-offset 1", "--labels-offset"),
    ],
)
def test_options_without_effect_are_errors(folder: Path, words: str, place: str) -> None:
    assert f"{place}: has no effect" in said(words)


def test_a_dump_and_the_input_that_is_given(folder: Path) -> None:
    printed("run digits.tflite --numerics xnnpack -i x.npy --trace dump")
    assert "DIFFERENT" in printed("compare digits.tflite trace:dump -i x.npy")
    np.save("y.npy", np.load("x.npy") ^ np.int8(1))
    assert "64 of 64 elements differ" in said("compare digits.tflite trace:dump -i y.npy")
    assert "--seed: has no effect" in said("compare digits.tflite trace:dump --seed 1")
    # The same without the input: it is asked for, stands in, and the first layer is explained.
    index = json.loads(Path("dump/trace.json").read_text())
    name = index["tensors"][0]["name"]
    index |= {"tensors": index["tensors"][1:], "inputs": []}
    Path("dump/trace.json").write_text(json.dumps(index))
    assert "does not hold input" in said("compare digits.tflite trace:dump")
    result = bittrue.compare_models("digits.tflite", "trace:dump", {name: np.load("x.npy")})
    assert result.first is not None
    assert (result.first.node, result.first.isolated is not None) == (0, True)
    assert result.first.verdict is not None
    assert result.first.verdict.exact
    with pytest.raises(bittrue.InputError, match="have no effect"):
        bittrue.compare_models("digits.tflite", "trace:dump", seeds=[1])


def test_nodes_by_number(folder: Path) -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    names = [session.plan.tensors[step.outputs[0]].name for step in session.plan.steps]
    found = json.loads(printed("explain digits.tflite -t 3 -e 0,0,0,0 --json"))
    assert found["explanation"]["tensor"] == names[3]
    found = json.loads(printed("run digits.tflite --until #2 --json"))
    assert found["outputs"][0]["name"] == names[2]
    assert "0 to 8" in said("explain digits.tflite -t 9")
    assert "amplified" in printed("compare digits.tflite digits.tflite@xnnpack --amplify 2 --no-explain --runs 3")
    # A name wins over a number, `#` says that a number is meant.
    nodes = {0: ["1"], 1: ["b", "c"]}
    assert [by_number(text, ["1", "b"], nodes.get, 2) for text in ("1", "#1", "#1:1", "0")] == ["1", "b", "c", "1"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("runn digits.tflite", "bittrue run"),
        ("numerics sho", "bittrue numerics show"),
        ("run digits.tflite --numerics xnpack", "xnnpack"),
        ("run digits.tflite --sed 1", "--seed"),
        ("run digits.tflite --passes paddin", "padding"),
        ("run digits.tflite --graph mian", "main"),
        ("run digits.tflite --until residul_1", "residual_1"),
        ("run digits.tflite --shape serving_default_pictur:0=1,8,8,1", "serving_default_picture:0"),
        ("explain digits.tflite -t flaten_1", "flatten_1"),
        ("numerics show litert --operator conv2", "conv"),
        ("rule bias-scael", "bias-scale"),
        ("check digits.tflite --select bias-scael", "bias-scale"),
        ("conform litert:xnpack", "xnnpack"),
        ("conform litert:xnnpack --operator softmx", "SOFTMAX"),
        ("compare digits.tflite@xnpack digits.tflite", "xnnpack"),
        ("bench digits.tflite --against xnpack", "xnnpack"),
        ("vectors conv2d --format dsc -o v", "desc"),
    ],
)
def test_misspelt_names_are_answered_with_near_ones(folder: Path, words: str, meant: str) -> None:
    text = said(words)
    assert "id you mean" in text
    assert meant in text.partition("id you mean")[2]


def test_files_that_are_no_models_say_what_they_are(tmp_path: Path) -> None:
    bitmap = b"BM" + (70).to_bytes(4, "little") + bytes(64)
    kinds = {
        "a BMP image": bitmap,
        "an HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(64),
        "a PyTorch file": b"PK\x03\x04" + bytes(30) + b"archive/data.pkl",
        "a plan that bittrue saved": b"PK\x03\x04" + bytes(30) + b"plan.json",
        "plain text": b"one two three\n",
    }
    for kind, content in kinds.items():
        with pytest.raises(BittrueError) as caught:
            bittrue.load(content)
        assert kind in str(caught.value)
        assert caught.value.advice


def test_axes_that_look_transposed() -> None:
    session = bittrue.load(bittrue.demo_model()).prepare()
    with pytest.raises(bittrue.InputError, match=r"array\.transpose\(0, 2, 3, 1\)"):
        session.run(np.zeros((1, 1, 8, 8), np.int8))
    with pytest.raises(bittrue.InputError, match=r"array\[None\]"):
        session.run(np.zeros((8, 8, 1), np.int8))


@pytest.mark.parametrize(
    "words",
    [
        "run digits.tflite -o no/y.npz",
        "plan digits.tflite -o no/m.plan",
        "check digits.tflite --sarif no/a.sarif",
        "compare digits.tflite digits.tflite@xnnpack -o no/r.json",
        "reduce digits.tflite digits.tflite@xnnpack -o no/s.tflite",
        "bench digits.tflite --against none --chart no/b.svg",
        "conform litert:xnnpack -o no/r.json",
    ],
)
def test_missing_folders_are_said_before_the_work(folder: Path, words: str) -> None:
    text = said(words)
    assert "there is no folder 'no'" in text
    assert "mkdir -p no" in text


def test_names_keep_what_tells_them_apart() -> None:
    names = [f"MobilenetV1/Conv2d_{i}_{kind}/BatchNorm_Fold/bias" for i in range(13) for kind in ("depth", "point")]
    for width in (12, 16, 24, 40):
        shown = distinct(names, width)
        assert len(set(shown)) == len(names)
        assert max(map(len, shown)) <= width
    assert distinct(names, 80) == names


def test_equal_sides_take_few_lines(folder: Path) -> None:
    lines = printed("compare digits.tflite digits.tflite").splitlines()
    assert any(line.startswith("EQUAL: 10 tensors") for line in lines)
    assert len(lines) < 10
    assert "differ" in printed("compare digits.tflite digits.tflite --tensors")


def test_advice_of_check_names_the_model(folder: Path) -> None:
    found = bittrue.check_model("digits.tflite", select=["BT505"])
    assert [f for f in found.findings if "`bittrue compare digits.tflite digits.tflite@" in f.advice]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_shell_completion() -> None:
    words = {"_BITTRUE_COMPLETE": "bash_complete", "COMP_WORDS": "bittrue com", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "from bittrue.cli import cli; cli(prog_name='bittrue')"]
    found = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, timeout=60)
    assert "compare" in found.stdout
