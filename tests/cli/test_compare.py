"""`bittrue compare`: exit codes, what is printed at 80 and 120 columns, files that are written."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import bittrue
from bittrue.cli import cli
from bittrue.cli.comparison import show
from bittrue.compare.inputs import Given
from bittrue.compare.result import CompareResult
from bittrue.errors import InputError
from compare.test_planted_faults import pair_model


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "digits.tflite"
    path.write_bytes(bittrue.demo_model())
    return path


@pytest.fixture(scope="module")
def different(demo: Path) -> CompareResult:
    given = [Given(seed=k, text=f"random values, seed {k}", options=f"--seed {k}") for k in range(20)]
    return bittrue.compare_models(demo, f"{demo}@xnnpack", given, amplify=True)


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, arguments)])


def refused(*arguments: Any) -> InputError:
    result = run(*arguments)
    assert isinstance(result.exception, InputError), result.output
    return result.exception


def printed(result: CompareResult, width: int, every_tensor: bool = False) -> list[str]:
    out = io.StringIO()
    show(result, Console(file=out, width=width, highlight=False), every_tensor)
    return out.getvalue().splitlines()


def test_equal_is_exit_code_0(demo: Path) -> None:
    result = run(demo, demo)
    assert result.exit_code == 0
    assert "EQUAL: " in result.output
    assert "DIFFERENT" not in result.output


def test_different_is_exit_code_1(demo: Path) -> None:
    result = run(demo, f"{demo}@xnnpack", "--runs", 20, "--no-explain")
    assert result.exit_code == 1
    assert "DIFFERENT: " in result.output
    assert "20 runs in all" in result.output


def test_the_same_kernels_of_another_processor(tmp_path: Path) -> None:
    """What makes the difference is the rule that the table for the other processor has, and nothing stays over."""
    path = tmp_path / "product.tflite"
    path.write_bytes(pair_model("MUL"))
    result = run(f"{path}@xnnpack", f"{path}@xnnpack@aarch64")
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert "`rescale = q31_one_step_up` instead of `binary32_multiply_even`" in text
    assert "0 unexplained of " in text


def test_json_is_the_result_and_nothing_else(demo: Path, tmp_path: Path) -> None:
    result = run(demo, f"{demo}@xnnpack", "--runs", 20, "--no-explain", "--json", "-o", tmp_path / "r.json")
    data = json.loads(result.stdout)
    assert data == json.loads((tmp_path / "r.json").read_text())
    again = CompareResult.from_dict(data)
    direct = bittrue.compare_models(demo, f"{demo}@xnnpack", seeds=range(20), explain=False)
    assert again.pairs == direct.pairs
    assert not data["equal"]


def test_reports_are_written(demo: Path, tmp_path: Path) -> None:
    run(demo, f"{demo}@xnnpack", "--runs", 6, "--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    assert "<html" in (tmp_path / "r.html").read_text()
    assert "xnnpack" in (tmp_path / "r.md").read_text()


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_tables_fit_the_terminal(different: CompareResult, width: int) -> None:
    lines = printed(different, width)
    long = [line for line in lines if len(line) > width and not line.startswith("replay: ")]
    assert not long
    rows = [line for line in lines if " benign" in line and "CONV_2D" in line]
    differing = [p for p in different.pairs if p.verdict is not None and p.source.endswith("CONV_2D")]
    assert len([row for row in rows if not row.startswith(("verdict", "why"))]) == len(differing)
    text = "\n".join(lines)
    (head,) = [line for line in lines if line.lstrip().startswith("node") and "isolated" in line]
    assert ("worst" in head) == (width >= 160)
    assert "top-1 label" in text


def test_what_is_said_of_the_first_difference(different: CompareResult) -> None:
    text = "\n".join(printed(different, 2000))
    first = next(p for p in different.pairs if p.verdict is not None)
    assert first.verdict is not None
    assert first.verdict.text in text
    assert f"replay: {first.verdict.command}" in text
    assert "0 unexplained of " in text
    place = ", ".join(map(str, first.verdict.witness["element"]))
    assert f"witness [{place}]: A " in text


def test_every_tensor(different: CompareResult) -> None:
    lines = printed(different, 160, every_tensor=True)
    assert any(line.startswith("matched tensors") for line in lines)
    assert sum("same name" in line for line in lines) == len(different.pairs)


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    name = "x\x1b[2J[bold]y[/bold]"
    np.save(folder / "0.npy", np.arange(3, dtype=np.int8))
    entry = {"name": name, "file": "0.npy", "dtype": "int8", "shape": [3], "scales": [], "zero_points": []}
    index = {"format": "bittrue-trace-1", "graph": "", "numerics": "", "tensors": [entry]}
    (folder / "trace.json").write_text(json.dumps(index))
    result = run(f"trace:{folder}", f"trace:{folder}", "--tensors")
    assert result.exit_code == 0, result.output
    assert "\x1b[2J" not in result.output
    assert "x\\x1b[2J[bold]y" in result.output


def test_files_make_runs(demo: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.npy")
        np.save(paths[-1], rng.integers(-128, 127, (1, 8, 8, 1)).astype(np.int8))
    options = [word for path in paths for word in ("-i", str(path))]
    one = run(demo, f"{demo}@xnnpack", *options, "--no-explain", "--json")
    assert json.loads(one.stdout)["inputs"] == ["0.npy", "1.npy", "2.npy"]
    folder = run(demo, f"{demo}@xnnpack", "-i", tmp_path, "--no-explain", "--json")
    assert json.loads(folder.stdout)["pairs"] == json.loads(one.stdout)["pairs"]


def test_amplify_before_the_sides(demo: Path) -> None:
    """The word behind `--amplify` is a side where there would be too few of them."""
    first = run("--amplify", demo, f"{demo}@xnnpack", "--runs", 20, "--no-explain", "--json")
    last = run(demo, f"{demo}@xnnpack", "--runs", 20, "--no-explain", "--json", "--amplify")
    assert json.loads(first.stdout)["amplification"] == json.loads(last.stdout)["amplification"] != []


def test_matches_from_options_and_files(demo: Path, tmp_path: Path) -> None:
    names = [t["a"] for t in json.loads(run(demo, demo, "--json").stdout)["pairs"]]
    (tmp_path / "pairs.txt").write_text(f"# comment\n{names[0]}\t{names[0]}\n")
    result = run(demo, demo, "--match", f"{names[1]}={names[1]}", "--match-file", tmp_path / "pairs.txt", "--json")
    assert [p["how"] for p in json.loads(result.stdout)["pairs"]][:3] == ["given", "given", "name"]


def test_wrong_usage_is_named(demo: Path, tmp_path: Path) -> None:
    assert "takes two sides, found 1" in refused(demo).message
    assert "takes two sides, found 3" in refused(demo, demo, demo).message
    assert refused(demo, demo, "--match", "a").place == "--match"
    assert "no tensor 'a'" in refused(demo, demo, "--match", "a=b").message
    assert refused(demo, demo, "-i", tmp_path / "nix.npy").code == "BT-FILE-MISSING"
    assert refused(demo, f"{tmp_path}/nix.tflite").code == "BT-FILE-PATH"
    assert refused(demo, f"{demo}@xnnpack", "--amplify=nix", "--no-explain").place == "--amplify"


def test_markdown_on_standard_output_stands_alone(demo: Path) -> None:
    summary = run(demo, f"{demo}@xnnpack", "--runs", 6, "--markdown", "-")
    assert summary.stdout.startswith("## ")
    assert "differing tensors in execution order" not in summary.stdout
    assert "both print" in str(refused(demo, demo, "--markdown", "-", "--json"))


def test_files_are_refused_before_anything_runs(demo: Path, tmp_path: Path) -> None:
    before = demo.read_bytes()
    for option in ("-o", "--html", "--markdown"):
        assert "is a side" in str(refused(demo, f"{demo}@xnnpack", option, demo))
        assert "no folder" in str(refused(demo, f"{demo}@xnnpack", option, tmp_path / "missing" / "file"))
    assert demo.read_bytes() == before


def test_the_first_fault_is_worked_out_behind_benign_differences(demo: Path, tmp_path: Path) -> None:
    session = bittrue.load(demo).prepare("single-rounding")
    image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1), np.int8)
    values = session.trace({session.inputs[0].name: image})
    stem, scores = list(values)[1:9:7]
    tensors = {session.inputs[0].name: image, stem: values[stem], scores: values[scores] + np.int8(1)}
    np.savez(tmp_path / "dump.npz", **tensors)
    text = run(demo, f"trace:{tmp_path}").stdout
    benign, fault = text.index("verdict on node 0 CONV_2D"), text.index("verdict on node 7 FULLY_CONNECTED")
    assert benign < text.index("benign", benign) < fault
    assert "zero point is one too large: a fault" in " ".join(text[fault:].split())


def test_a_guessed_partner_is_questioned(different: CompareResult) -> None:
    position, pair = next((i, pair) for i, pair in enumerate(different.pairs) if pair.verdict is not None)
    assert pair.verdict is not None
    lost = replace(pair.verdict, unexplained=pair.verdict.differing, causes=(), exact=False)
    for how, asked in (("order and shape", True), ("name", False)):
        pairs = list(different.pairs)
        pairs[position] = replace(pair, how=how, verdict=lost)
        text = " ".join(" ".join(printed(replace(different, pairs=tuple(pairs)), 120)).split())
        assert ("only order and shape say so: --match A=B" in text) == asked


def test_equal_tensors_without_an_isolated_difference_are_not_listed(different: CompareResult) -> None:
    position, pair = next((i, pair) for i, pair in enumerate(different.pairs) if pair.equal and pair.verdict is None)
    pairs = list(different.pairs)
    pairs[position] = replace(pair, isolated=None, note="no isolated difference: it reads variables")
    listed = [printed(replace(different, pairs=found), 200) for found in (different.pairs, tuple(pairs))]
    assert listed[0] == listed[1]
    pairs[position] = replace(pair, isolated=None, note="cannot be compared: u8 and f32")
    text = "\n".join(printed(replace(different, pairs=tuple(pairs)), 200))
    assert "cannot be compared: u8 and f32" in text
