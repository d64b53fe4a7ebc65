"""Every command on models, folders and devices whose names hold markup, escapes, line ends, surrogates and 64 KiB."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bittrue.cli import _COMMANDS, cli, endings
from bittrue.cli.terminal import Terminal
from bittrue.samples import demo_model
from support.build import G, T, several
from support.caffe2_nets import argument, new
from support.mxnet_models import Network

FORGED = "FORGED: all is well"
NAMES = (
    "[/x]",
    "[red]a[/red][bold",
    "\x1b[31mred\x1b]0;title\x07\x1b[2J",
    "c1\x9b31m\x9d0;t\x9c\x85",
    "nul\0\x08\x7f",
    f"one\n{FORGED}\r{FORGED}",
    f"a\u2028{FORGED}\u2029\u202egnp.\u2066\u200b\ufeff\U000e0041",
    "</script><script>alert(1)</script>]]>&amp;<![CDATA[",
    "`|*_~[a](javascript:x)|\t\\",
    "\x1b[7m" + "n" * 65_500 + "\x1b[0m",
)
# What Python cannot print to a terminal, and only some formats can say.
SURROGATE = "lone\ud800\udcff"
FILE = "m[red][bold\x1b[31m\n" + FORGED + "\u202e\udcfe"


def chained(length: int) -> tuple[list[str], list[tuple[str, str]]]:
    """Names of a chain of operators, each other than the last, and from which to which one goes."""
    names = [NAMES[i % len(NAMES)] + (str(i) if i >= len(NAMES) else "") for i in range(length)]
    return names, list(itertools.pairwise(names))


def tflite(folder: Path, stem: str) -> Path:
    names, _ = chained(len(NAMES) + 1)
    tensors = [T("s8", [1, 4], 0.1, 3, name=name) for name in names]
    tensors[-1].name = "notUTF8"
    nodes = [("RELU", None, [a], [b]) for a, b in itertools.pairwise(tensors)]
    path = folder / f"{stem}.tflite"
    # Bytes that are not UTF-8 can stand in such a file, too.
    path.write_bytes(several(G(nodes, name=NAMES[2] + NAMES[5])).replace(b"notUTF8", b"d\xff\x9bta\x1b["))
    return path


def onnx(folder: Path, stem: str) -> Path:
    package = pytest.importorskip("onnx")
    from onnx import helper

    names, pairs = chained(len(NAMES) + 1)
    nodes = [helper.make_node("Relu", [a], [b], name=b + "!") for a, b in pairs]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, package.TensorProto.FLOAT, [1, 4])] for name in (names[0], names[-1])
    )
    graph = helper.make_graph(nodes, NAMES[5], inputs, outputs, doc_string=NAMES[2])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name=NAMES[2], producer_version=NAMES[5])
    path = folder / f"{stem}.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def caffe2(folder: Path, stem: str) -> Path:
    pytest.importorskip("google.protobuf")
    names, pairs = chained(len(NAMES) + 1)
    net = new(NAMES[5])
    for number, (a, b) in enumerate(pairs):
        operator = net.op.add(type="Int8Relu" if number else "Int8Quantize", name=b, input=[a], output=[b])
        argument(operator, "Y_scale", 0.05)
    net.external_input.append(names[0])
    net.external_output.append(names[-1])
    path = folder / f"{stem}.pb"
    path.write_bytes(net.SerializeToString())
    return path


def mxnet(folder: Path, stem: str) -> Path:
    net = Network()
    before = net.variable("data")
    for name in (*NAMES, SURROGATE):
        before = [net.add("Activation", name, [before], act_type="relu"), 0, 0]
    path = folder / f"{stem}-symbol.json"
    path.write_bytes(net.symbol(before))
    return path


MODELS: dict[str, tuple[Callable[[Path, str], Path], str, Sequence[str]]] = {
    "tflite": (tflite, "xnnpack", ()),
    "onnx": (onnx, "onnx", ()),
    "caffe2": (caffe2, "", ("--shape", f"{NAMES[0]}=1,4,4,2")),
    "mxnet": (mxnet, "", ("--shape", "data=1,4,4,2")),
}


class Line:
    """The command line in this process; everything that it prints is looked at."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *words: object, codes: tuple[int, ...] = (0, 1)) -> str:
        self._capfd.readouterr()
        code = endings.run(cli, list(map(str, words)))
        out, err = self._capfd.readouterr()
        for text in (out, err):
            strange = {c for c in text if not c.isprintable() and c != "\n"}
            assert not strange, (words, strange)
            assert not any(line.strip("│┃ ").startswith(FORGED) for line in text.split("\n")), words
        assert code in codes, (words, code, err[-2000:])
        return out

    def json(self, *words: object, codes: tuple[int, ...] = (0, 1)) -> Any:
        def refuse(name: str) -> float:
            raise AssertionError(name)

        return json.loads(self(*words, "--json", codes=codes), parse_constant=refuse)


@pytest.fixture
def line(capfd: pytest.CaptureFixture[str]) -> Line:
    return Line(capfd)


def check_files(folder: Path, *names: str) -> None:
    """Reports are well formed, and show no control characters."""
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        strange = {c for c in text if not c.isprintable() and c not in "\n\t"}
        # The pages' own words have a few typographic spaces.
        assert not strange - set("\u00a0\u2009\u202f"), (name, strange)
        if name.endswith(".xml"):
            ElementTree.fromstring(text)
        elif name.endswith((".sarif", ".json")):
            json.loads(text)
        elif name.endswith(".html"):
            assert "<script>alert" not in text
        assert not any(part.strip().startswith(FORGED) for part in text.split("\n")), name


@pytest.mark.parametrize("kind", MODELS)
def test_models(kind: str, tmp_path: Path, line: Line) -> None:
    make, other, shape = MODELS[kind]
    model = make(tmp_path, FILE)
    reports = [f"--{name}={tmp_path / f'r.{end}'}" for name, end in (("html", "html"), ("markdown", "md"))]
    line("inspect", model, "--tensors", "--nodes")
    assert len(str(line.json("inspect", model))) > 65_000
    line("run", model, *shape)
    line.json("run", model, *shape)
    line("plan", model, *shape, "-o", tmp_path / "saved\x1b.plan")
    line("run", tmp_path / "saved\x1b.plan")
    line("explain", model, *shape)
    line.json("explain", model, *shape)
    plan = line.json("explain", model, *shape)
    for row in plan["tensors"][:9]:
        line("explain", model, *shape, "-t", row["tensor"])
    line("check", model, *shape, "--all", *reports, f"--junit={tmp_path / 'r.xml'}", f"--sarif={tmp_path / 'r.sarif'}")
    check_files(tmp_path, "r.html", "r.md", "r.xml", "r.sarif")
    line("check", model, *shape, "--markdown", "-")
    line.json("check", model, *shape)
    line("bench", model, *shape, "--against", "none", "--profile", "--rounds", "1", "--seconds", "0.01")
    line.json("bench", model, *shape, "--against", "none", "--rounds", "1", "--seconds", "0.01")
    line("inspect", model, "--saturation", *shape, codes=(0, 3))
    # What does not exist is named in messages.
    line("explain", model, *shape, "-t", NAMES[2] + "?", codes=(2,))
    line("run", model, *shape, "-i", f"{NAMES[5]}={tmp_path / NAMES[2]}", codes=(2,))
    line("run", str(model) + "\x1b", codes=(2,))
    line("run", model, f"--{NAMES[2]}", codes=(2,))
    line("run", model, "--numerics", NAMES[5], codes=(2,))
    line("run", model, *shape, "--until", SURROGATE + NAMES[5], codes=(2, 3))
    if other:
        sides = [model, f"{model}@{other}"]
        line("compare", *sides, "--tensors", *reports, "-o", tmp_path / "r.json")
        check_files(tmp_path, "r.html", "r.md", "r.json")
        line("run", model, *shape, "--trace", tmp_path / "trace\x1b", "--seed", 0)
        line("compare", model, f"trace:{tmp_path / 'trace'}\x1b", "--tensors")
        line("report", tmp_path / "r.json", f"--html={tmp_path / 'again.html'}", "--markdown", "-")
        line("reduce", *sides, "-o", tmp_path / f"small{model.suffix}")


DEVICE = f"""
def run(model, inputs):
    raise ValueError("[/x]\\x1b[31m\\n{FORGED}\\u202e\\ud800" + "n" * 65_500)
"""


def test_devices(tmp_path: Path, line: Line) -> None:
    device = tmp_path / f"{FILE}.py"
    device.write_text(DEVICE)
    spec = f"{device}:run"
    words = ("conform", spec, "--case", "RESHAPE/s8/random/000", "--no-demo")
    reports = [f"--{name}={tmp_path / f'r.{end}'}" for name, end in (("html", "html"), ("markdown", "md"))]
    found = line("conform", spec, "--operator", "RESHAPE", "--types", "s8", "--no-demo", *reports)
    assert "raised" in found
    line(*words, "-o", tmp_path / "r.json", f"--junit={tmp_path / 'r.xml'}", codes=(0, 1, 2))
    assert f"\\n{FORGED}" in json.loads((tmp_path / "r.json").read_text())["device_title"]
    check_files(tmp_path, "r.html", "r.md")
    line("identify", spec, "--operator", "RESHAPE", "--types", "s8", "--questions", "2")
    line("conform", f"{tmp_path}/{NAMES[2]}.py:run", codes=(2, 3))
    line("conform", f"program:{tmp_path}/{NAMES[5]}", codes=(2,))


@pytest.mark.parametrize("name", [FILE, NAMES[5]])
def test_no_folded_line_begins_inside_of_a_name(name: str) -> None:
    out = Terminal(width=80)
    for length in range(100):
        with out.capture() as capture:
            out.print(f"{'x' * length}{name} is a device")
        assert not any(line.startswith(FORGED) for line in capture.get().split("\n"))


def test_vectors(tmp_path: Path, line: Line) -> None:
    folder = tmp_path / FILE
    line("vectors", "RESHAPE", "--types", "s8", "--aim", "random", "-o", folder)
    manifest = next(folder.rglob("manifest.json"))
    content = json.loads(manifest.read_text())

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: f"{value[key]}{NAMES[5]}" if key in ("note", "id") else spoil(v) for key, v in value.items()}
        return [spoil(item) for item in value] if isinstance(value, list) else value

    content = spoil(content)
    content["framework"], content["version"] = NAMES[5], NAMES[2]
    manifest.write_text(json.dumps(content))
    line("replay", manifest.parent, codes=(0, 1, 2, 3))
    line("vectors", NAMES[2], "-o", tmp_path / "v", codes=(2,))


def test_other_commands(tmp_path: Path, line: Line) -> None:
    for words in (("rule", NAMES[2]), ("numerics", "show", NAMES[5]), ("numerics", "diff", "litert", NAMES[2])):
        line(*words, codes=(2,))
    line(NAMES[5], codes=(2,))
    line("report", tmp_path / NAMES[2], codes=(2,))
    line("demo")
    # Names of samples and classes.
    folder = tmp_path / "samples"
    for number, name in enumerate(NAMES):
        if "/" not in name and "\0" not in name and len(name) < 99:
            (folder / name).mkdir(parents=True)
            (folder / name / f"{number}.png").write_bytes(name.encode(errors="replace"))
    recipe, model = tmp_path / "grey.toml", tmp_path / "m.tflite"
    recipe.write_text('step = [{do = "decode", colours = "grey"}, {do = "resize"}, {do = "scale", factor = 0.0039}]')
    model.write_bytes(demo_model())
    line("evaluate", model, "--data", folder, "--recipe", recipe, "-o", tmp_path / FILE)
    line("report", tmp_path / FILE, f"--html={tmp_path / 'e.html'}", "--markdown", "-")
    check_files(tmp_path, "e.html")
    line("evaluate", model, "--data", f"{NAMES[5]}:{NAMES[2]}", codes=(2, 3))
    line("evaluate", model, "--data", folder, "--recipe", recipe, "--against", f"litert:{NAMES[5]}", codes=(2,))
    (tmp_path / "r.json").write_text(json.dumps({"format": NAMES[5]}))
    line("report", tmp_path / "r.json", codes=(2,))


def test_all_commands_are_here() -> None:
    driven = set(re.findall(r'(?:line|line\.json)\(\s*"(\w+)"|\(\("(\w+)"|, \("(\w+)"', Path(__file__).read_text()))
    assert {name for names in driven for name in names if name} >= set(_COMMANDS)
