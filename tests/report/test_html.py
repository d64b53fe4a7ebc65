"""Pages as text: what is in them, and what must not be."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

from bittrue.errors import InputError
from bittrue.report import comparison, html
from bittrue.report.reading import checked
from support import results
from support.pages import Elements, words_of

CASES = {
    "benign": (results.benign, "another legal rounding"),
    "fault": (results.fault, "a fault in B"),
    "unexplained": (results.unexplained, "unexplained"),
    "not_judged": (results.not_judged, "the cause is open"),
    "equal": (results.equal, "Equal, bit for bit"),
    "nothing": (results.nothing, "Nothing was compared"),
    "real": (results.real, ""),
    "hostile": (results.hostile, "another legal arithmetic"),
}


def page_of(name: str) -> str:
    return html.render(results.plain(CASES[name][0]()))


@pytest.mark.parametrize("name", CASES)
def test_verdict_stands_at_the_top(name: str) -> None:
    page = page_of(name)
    headline = re.search(r"<h1>(.*?)</h1>", page)
    assert headline is not None
    assert CASES[name][1] in headline[1]
    assert page.index("<h1>") < page.index("<main>")


@pytest.mark.parametrize("name", CASES)
def test_page_asks_for_nothing(name: str) -> None:
    """No element loads anything, and the policy would forbid it."""
    elements = Elements(page_of(name))
    for tag, attributes in elements.found:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form", "audio", "video"), tag
        assert not {"src", "srcset", "action", "onclick", "onload", "style"} & set(attributes), (tag, attributes)
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), attributes
    policies = [a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    ]
    ours = "".join(script for script in elements.scripts if "plotly.js v" not in script)
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|import\(", ours)


@pytest.mark.parametrize("name", CASES)
def test_plotly_is_embedded_once_where_there_is_something_to_draw(name: str) -> None:
    page = page_of(name)
    assert page.count("* plotly.js v") == (0 if name in ("equal", "nothing") else 1)
    assert len(page) < (5_300_000 if "plotly.js v" in page else 60_000)


def test_hostile_text_stays_text() -> None:
    page = page_of("hostile")
    elements = Elements(page)
    assert len(elements.scripts) == 4, "one of all pages, the data, Plotly, the charts"
    json.loads(next(s for (_, a), s in zip(_scripts(elements), elements.scripts, strict=True) if a.get("id") == "data"))
    assert not [tag for tag, _ in elements.found if tag in ("svg", "b onclick=alert(1)")]
    shown = results.HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00").replace("\x1b", "\\x1b")
    assert any(shown in words for words in elements.words)
    own = page[: page.index("* plotly.js v")]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", own)
    assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b", own)


def _scripts(elements: Elements) -> list[tuple[str, dict[str, str | None]]]:
    return [element for element in elements.found if element[0] == "script"]


@pytest.mark.parametrize("module", ["jinja2", "plotly"])
def test_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    real = importlib.import_module

    def refuse(name: str, package: str | None = None) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return real(name, package)

    html._environment.cache_clear()
    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(InputError, match=module) as caught:
        page_of("benign")
    assert caught.value.advice == "pip install 'bittrue[report]'"


def test_everything_of_the_first_divergence_is_on_the_page() -> None:
    page = page_of("benign")
    words = words_of(page)
    for text in (
        "block_1/conv;block_1/relu",
        "CONV_2D (conv)",
        "80 of 2,048 (3.91 %)",
        "rescale=q31_one_step_up",
        "q31_two_step_up_away",
        results.ROUNDING.formula,
        results.ROUNDING.text,
        "right shift by 9",
        "ties up: 66.4999",
        "bittrue explain model.tflite --tensor block_1/conv;block_1/relu --element 0,3,5,2",
        "random values, seed 0",
        "LiteRT 2.3.0, XNNPACK",
        "for 1 of 1 input (1 → 2)",
        "ConvActivationFusion",
        "a/only",
        "a note",
    ):
        assert text in words, text


def test_witness_shows_both_arithmetics_side_by_side() -> None:
    witness = checked(results.plain(results.benign()))["pairs"][1]["verdict"]["witness"]
    rows = comparison.witness_rows(witness)
    shown = [(r["label"], r["a"] and r["a"]["value"], r["b"] and r["b"]["value"], r["changed"]) for r in rows]
    assert shown == [
        ("accumulator", "48531", "48531", False),
        ("high half", "34316", None, True),
        ("right shift by 9", "67", None, True),
        ("one division", None, "66", True),
    ]


def test_a_cause_counts_over_all_tensors() -> None:
    report = comparison.report(checked(results.plain(results.benign())))
    (cause,) = report.causes
    assert (cause.elements, len(cause.tensors)) == (80 * 8, 8)
    assert report.causes_of(1) == [cause]
    assert report.causes_of(3) == []


def test_a_difference_without_a_verdict_is_never_called_explained() -> None:
    pairs = [results.pair("first", 0, 80, 80), results.pair("second", 1, 90, None, note="variable tensors")]
    report = comparison.report(checked(results.plain(results.compared(pairs))))
    assert report.kind == comparison.OPEN
    assert "1 differing tensor could not be run alone" in report.sentence


def test_an_unexplained_tensor_outweighs_a_fault() -> None:
    pairs = [results.pair("first", 0, 80, 80, results.FAULT), results.pair("second", 1, 90, 9, None)]
    report = comparison.report(checked(results.plain(results.compared(pairs))))
    assert report.kind == comparison.UNEXPLAINED
    assert "9 elements in 1 tensor" in report.sentence


def test_tensors_that_cannot_be_compared_are_not_called_equal() -> None:
    pairs = [results.pair("first", 0, 0, 0), results.pair("second", 1, 0, None, note="cannot be compared: shapes")]
    report = comparison.report(checked(results.plain(results.compared(pairs))))
    assert report.kind == comparison.OPEN
    assert "1 tensor could not be compared" in report.sentence


def test_where_only_b_is_known_the_words_are_about_a() -> None:
    pairs = [results.pair("first", 0, 80, 80, results.FAULT), results.pair("second", 1, 90, 9)]
    page = html.render(results.plain(results.compared(pairs, host="B")))
    words = words_of(page)
    for text in (
        "Different: a fault in A",
        "B's arithmetic gets A's inputs",
        "B stores 67 A stores 66",
        "gives A's bits",
        "A's rule q31_one_step_up B's rule q31_two_step_up_away",
    ):
        assert text in words, text


def test_deep_networks_keep_details_for_some_and_a_table_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert html.MOST_DETAILS == 300
    monkeypatch.setattr(html, "MOST_DETAILS", 60)
    page = html.render(results.plain(results.many(80)))
    assert page.count("<template ") == 60 - 1
    assert page.count("<tr data-differs>") == 80
    assert "60 differing tensors of 80 can be chosen here" in page


def test_check_page_shows_findings_with_the_pages_of_their_rules() -> None:
    page = html.render(results.checked(results.findings()))
    words = words_of(page)
    assert "2 errors, 1 warning" in words
    assert words.index("BT204 bias-scale error What it asks for") < words.index(
        "BT601 accumulator-overflow warning What"
    )
    for text in ("dense/bias", "quantize it again", "bound 2,147,483,648", "BT602 dead-channel"):
        assert text in words, text
    assert "plotly.js v" not in page


def test_check_that_did_not_end_is_not_called_clean() -> None:
    failures = [{"code": "BT601", "message": "<b>internal error"}]
    page = html.render(results.checked([], failures=failures))
    assert "the check is incomplete" in page
    assert "&lt;b&gt;internal error" in page
    assert "No findings</h1>" in html.render(results.checked([]))
    assert "Nothing was checked</h1>" in html.render(results.checked([], rules=[]))


def test_finding_of_an_unknown_rule_says_where_its_page_is() -> None:
    page = html.render(results.checked(results.findings(), rules=[]))
    assert "<code>bittrue rule BT204</code>" in page
