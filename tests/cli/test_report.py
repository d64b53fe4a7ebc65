"""`bittrue report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bittrue.cli import main
from support import results


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(results.fault().to_dict()))
    return path


def test_without_options_the_page_lies_beside_the_result(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["report", str(saved)])
    assert done.value.code == 0
    page = saved.with_suffix(".html")
    assert "a fault in B" in page.read_text(encoding="utf-8")
    assert f"page written to {page}" in capsys.readouterr().err


def test_both_forms(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, summary = tmp_path / "p.html", tmp_path / "s.md"
    with pytest.raises(SystemExit):
        main(["report", str(saved), "--html", str(page), "--markdown", str(summary)])
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert summary.read_text(encoding="utf-8").startswith("## ❌ Different: a fault in B")
    assert not saved.with_suffix(".html").exists()
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["report", str(saved), "--markdown", "-"])
    assert capsys.readouterr().out == summary.read_text(encoding="utf-8")


def test_the_result_is_not_overwritten(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = saved.read_bytes()
    with pytest.raises(SystemExit) as done:
        main(["report", str(saved), "--html", str(saved)])
    assert done.value.code == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert saved.read_bytes() == before


def test_damaged_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result.json"
    data = json.loads(json.dumps(results.fault().to_dict()))
    del data["pairs"][1]["cumulative"]["elements"]
    path.write_text(json.dumps(data))
    with pytest.raises(SystemExit) as done:
        main(["report", str(path)])
    assert done.value.code == 2
    message = capsys.readouterr().err
    assert "[BT-RESULT]" in message
    assert "pairs[1].cumulative.elements: this field is missing" in message
    assert not path.with_suffix(".html").exists()
