"""The examples of the pages in docs/systems and of other pages run as they stand, from top to end."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import onnxruntime
import pytest

import bittrue
from bittrue.pytest_plugin import Bittrue
from support import cases_made_once
from support.command import Done, run
from support.compilers import compiler
from support.shared import REPOSITORY

pytestmark = pytest.mark.long
cases_are_made_once = cases_made_once.cases_are_made_once
PAGES = sorted((REPOSITORY / "docs" / "systems").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert blocks, f"{page.name} has no example"
    code = "\n".join(blocks)
    environment = {**os.environ, "PYTHONPATH": str(Path(bittrue.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    # What an example prints stands beside it as a comment, in the order of the lines.
    promised = re.findall(r"^(?:print\(.*?)  # (.*)$", code, re.MULTILINE)
    printed = done.stdout.splitlines()
    assert [line for line in printed if line in promised] == promised


def test_compare_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and Python of docs/compare.md, top to bottom in one folder, with what they print."""
    names = run_page("compare", tmp_path, monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="the output's zero point is one too large"):
        names["test_my_chip"](Bittrue())  # type: ignore[operator]


def test_evaluate_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the page about whole data sets."""
    pytest.importorskip("pyarrow")
    run_page("evaluate", tmp_path, monkeypatch)


@pytest.mark.parametrize("page", ["conformance", "vectors"])
def test_conformance_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the pages about devices and test vectors."""
    run_page(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", ["device_differs", "ship_a_model", "data_sets"])
def test_guides(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the guides."""
    run_page(f"guides/{page}", tmp_path, monkeypatch)


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README shows runs as printed, and it stays short."""
    run_page("../README", tmp_path, monkeypatch)
    assert len((REPOSITORY / "README.md").read_text().split()) <= 900


@pytest.mark.skipif(shutil.which("make") is None or shutil.which("cc") is None, reason="no make or C compiler")
def test_example_in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for an example's own page, in its folder."""
    monkeypatch.setenv("CC", compiler("gcc") or "cc")
    run_page("../examples/c_device/README", tmp_path, monkeypatch, "examples/c_device")


def test_links_between_pages() -> None:
    """Every relative link of every page leads to a file, and every anchor to a title."""
    pages = [page for part in ("", "docs/**/", "examples/**/") for page in REPOSITORY.glob(f"{part}*.md")]
    for page in pages:
        for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", page.read_text()):
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            assert target.exists(), f"{page.name}: {link}"
            if anchor and target.suffix == ".md":
                titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
                anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                assert anchor in anchors, f"{page.name}: {link}"


def test_python_reference_is_current() -> None:
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / "make_api_page.py", "--check"])
    assert done.returncode == 0, "run: python tools/make_api_page.py"


def run_page(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, inside: str = "") -> dict[str, object]:
    """Run a page's commands and Python in a folder that has the repository's examples, or `inside` of it; a file that
    Python begins with naming is written instead.

    Returns:
        What the page's Python defined.
    """
    for package in ("ai_edge_litert", "jinja2", "plotly"):
        pytest.importorskip(package)
    source, tools = Path(bittrue.__file__).parents[1], folder / "bin"
    tools.mkdir()
    for name, arguments in (("python", ""), ("bittrue", "-m bittrue")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(source), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    # Pages show what goes into a file, whatever the width that is set for the tests' own output.
    environment.pop("COLUMNS", None)
    monkeypatch.delenv("COLUMNS", raising=False)
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    monkeypatch.chdir(folder / inside)
    monkeypatch.syspath_prepend(str(folder))
    names: dict[str, object] = {}
    count = 0
    text = (REPOSITORY / "docs" / f"{page}.md").read_text()
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language == "python":
            file = re.match(r"# file: (\S+)\n", block)
            if file:
                (folder / file[1]).write_text(block)
                continue
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(block, names)
            promised = re.findall(r"^ *print\(.*?\)  # (.*)$", block, re.MULTILINE)
            assert out.getvalue().splitlines() == promised
            continue
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            code = re.search(r"# exit code (\d)$", command)
            done: Done | subprocess.CompletedProcess[str]
            if re.match(r"bittrue [^|<>;&$*`]*$", command):
                done = run(*shlex.split(command, comments=True)[1:], check=None, together=True)
            else:
                done = subprocess.run(
                    command, shell=True, env=environment, text=True, timeout=300, stdout=-1, stderr=subprocess.STDOUT
                )
            assert done.returncode == (int(code[1]) if code else 0), done.stdout
            # Pages were written on x86-64 with AVX-512, whose tables have no such endings.
            shown = done.stdout.replace(f"@{platform.machine()}", "").replace("(as xnnpack-avx2)", "(as xnnpack)")
            assert_shown(expected, shown, command)
            count += 1
    assert count or page.startswith("guides/")
    return names


def assert_shown(expected: str, output: str, command: str) -> None:
    """A page's output stands in the real one: lines in a row, and `...` for any number of them."""
    lines = [line.rstrip() for line in output.splitlines()]
    position, gap = 0, False
    for line in map(str.rstrip, expected.splitlines()):
        if line == "...":
            gap = True
            continue
        end = len(lines) if gap else position + 1
        assert line in lines[position:end], f"{command}\nprints no '{line}' there:\n{output}"
        position, gap = lines.index(line, position) + 1, False
    assert gap or position == len(lines) or not expected, f"{command} prints more:\n{output}"


@pytest.mark.skipif(platform.machine() == "aarch64", reason="the page is about ONNX Runtime on x86-64")
def test_where_quantize_linear_and_its_implementations_part() -> None:
    """The page is what the installed versions say; of others it says nothing."""
    text = (REPOSITORY / "docs" / "onnx_quantize_linear.md").read_text()
    if f"onnx {onnx.__version__} and ONNX Runtime {onnxruntime.__version__}:" not in text:
        pytest.skip("made with other versions of onnx or ONNX Runtime")
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / "make_quantize_linear_page.py", "--check"])
    assert done.returncode == 0, "run: python tools/make_quantize_linear_page.py"
