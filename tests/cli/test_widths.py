"""Every table at 40, 80 and 160 columns: nothing is wider than the terminal, nothing is cut that would fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bittrue
from bittrue.cli import cli
from bittrue.cli.tables import Column, table
from bittrue.cli.terminal import Terminal
from support import cases_made_once
from support.shared import SHARED

cases_are_made_once = cases_made_once.cases_are_made_once
COMMANDS = (
    "demo",
    "run digits.tflite --top 3",
    "inspect digits.tflite --nodes --tensors",
    "inspect {mobilenet}",
    "plan digits.tflite",
    "check {mobilenet}",
    "check digits.tflite --all",
    "rule",
    "rule BT204",
    "numerics",
    "numerics show xnnpack --operator conv",
    "numerics diff litert xnnpack --operator conv",
    "explain {mobilenet}",
    "explain digits.tflite -t 0",
    "explain digits.tflite -t 0 --against xnnpack",
    "compare digits.tflite digits.tflite@xnnpack --tensors --amplify",
    "compare digits.tflite digits.tflite",
    "vectors list add conv2d",
    "bench digits.tflite --against none --profile --seconds 0.05 --rounds 3",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("widths")
    (path / "digits.tflite").write_bytes(bittrue.demo_model())
    np.save(path / "x.npy", np.zeros((1, 8, 8, 1), np.int8))
    return path


def run(words: str, width: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    mobilenet = SHARED / "models" / "coral_mobilenet_v1_0.25_128_quant.tflite"
    if "{mobilenet}" in words and not mobilenet.exists():
        pytest.skip(f"no {mobilenet}")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(width))
    arguments = [word.replace("{mobilenet}", str(mobilenet)) for word in words.split()]
    found = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert found.exit_code in (0, 1), found.output
    return found.stdout


@pytest.mark.in_turns(2)
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_the_terminal(
    words: str, width: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = run(words, width, folder, monkeypatch).splitlines()
    assert lines
    # What is meant to be copied stays whole.
    shown = [line for line in lines if not line.startswith(("replay:", "next: "))]
    assert max(map(len, shown)) <= width, max(shown, key=len)
    # A column that is squeezed to nothing shows as one letter or an ellipsis per line.
    assert sum(line.strip() in ("…", "│") for line in shown) == 0


@pytest.mark.parametrize("words", ["explain {mobilenet}", "compare digits.tflite digits.tflite@xnnpack --tensors"])
def test_rows_are_distinct_at_80_columns(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(words, 80, folder, monkeypatch).splitlines()
    rows = [line.split(None, 1)[1] for line in lines if line[:4].strip().isdigit()]
    assert rows
    assert len(set(rows)) == len(rows)


def _printed(columns: list[Column], rows: list[tuple[str, ...]], width: int) -> list[str]:
    out = Terminal(width=width)
    with out.capture() as capture:
        out.print(table(columns, rows, width, "title"))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_nothing_is_cut_that_fits_and_what_is_left_out_is_named() -> None:
    columns = [Column("n", right=True), Column("name", "name"), Column("more", least=1)]
    rows = [("1", "network/block_1/add/bias", "x" * 20), ("2", "network/block_2/add/bias", "y" * 20)]
    wide = "\n".join(_printed(columns, rows, 50))
    assert "network/block_1/add/bias" in wide
    assert "x" * 20 in wide
    narrow = _printed(columns, rows, 26)
    assert narrow[-1] == "left out in 26 columns:"[:26] or "more" in " ".join(narrow[-2:])
    assert max(map(len, narrow)) <= 26
    assert len({line for line in narrow if line[:1].isdigit()}) == 2
    # No room for columns at all: each row becomes lines of its own.
    lines = _printed([Column("a"), Column("b")], [("k" * 12, "v" * 12)], 20)
    assert [line.strip() for line in lines] == ["title", f"a: {'k' * 12}", f"b: {'v' * 12}"]
