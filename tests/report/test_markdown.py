"""Summaries for CI."""

from __future__ import annotations

import re

import pytest

from bittrue.report import markdown
from support import results
from support.results import plain


def test_summary_of_a_comparison() -> None:
    text = markdown.render(plain(results.benign()))
    lines = text.splitlines()
    assert lines[0] == "## 🟡 Different, explained: another legal rounding"
    assert "| B | LiteRT 2.3.0, XNNPACK | `litert:xnnpack model.tflite` |" in lines
    assert "### First divergence" in lines
    assert "bittrue explain model.tflite --tensor block_1/conv;block_1/relu --element 0,3,5,2" in lines
    row = "| `block_1/conv;block_1/relu` | CONV\\_2D | 3.91 % | 1 | 3.91 % | benign | `rescale=q31_one_step_up` |"
    assert row in lines
    assert any(line.startswith("- `rescale=q31_one_step_up` (rounding, benign): B rescales") for line in lines)


@pytest.mark.parametrize(
    ("result", "headline"),
    [
        (results.equal(), "## ✅ Equal, bit for bit"),
        (results.fault(), "## ❌ Different: a fault in B"),
        (results.unexplained(), "## ❌ Different, and unexplained"),
        (results.nothing(), "## ❔ Nothing was compared"),
    ],
    ids=["equal", "fault", "unexplained", "nothing"],
)
def test_headlines(result: results.CompareResult, headline: str) -> None:
    assert markdown.render(plain(result)).splitlines()[0] == headline


def test_long_tables_end_with_a_count() -> None:
    text = markdown.render(plain(results.many(50)))
    assert text.count("| `layer_") == markdown.MOST_ROWS
    assert "and 30 more tensors" in text


def test_hostile_text_stays_text() -> None:
    text = markdown.render(plain(results.hostile()))
    fenced = re.sub(r"(?ms)^(`{3,})sh\n.*?^\1$", "", text)
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", fenced)
    assert not re.search("<[a-zA-Z/]", outside_code)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    for line in text.splitlines():
        if line.startswith("| ") and "---" not in line:
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) - 2 in (3, 7), line


def test_summary_of_a_check() -> None:
    lines = markdown.render(results.checked(results.findings())).splitlines()
    assert lines[0] == "## ❌ 2 errors, 1 warning"
    assert "### ❌ BT204 bias-scale (2)" in lines
    message = "the bias scale is 0.02, expected 0.01 = 0.1 \\* 0.1"
    assert f"| error | main, node 1 CONV\\_2D, conv/bias | {message} | quantize it again |" in lines
    assert "`bittrue rule BT204` explains this rule." in lines
    assert markdown.render(results.checked([])).splitlines()[0] == "## ✅ No findings"
