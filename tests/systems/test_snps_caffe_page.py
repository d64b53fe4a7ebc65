"""The worked example of the page runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "systems" / "snps_caffe.md"


def test_the_worked_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert re.search(r"snps_caffe \[\[ *-?\d+ +-?\d+\]\]", printed)
    assert "fully_connected" in printed
