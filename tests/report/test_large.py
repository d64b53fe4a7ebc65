"""Results of any size make pages of a bounded size, which say what is left out."""

from __future__ import annotations

import pytest

from bittrue.report import comparison, html, markdown
from bittrue.report.reading import checked
from support import results


def test_pages_hold_so_many_tensors_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_TENSORS", 12)
    equal = [results.pair(f"equal_{i:02}", i, 0, 0) for i in range(30)]
    differing = [results.pair(f"other_{i:02}", 30 + i, 5, 5) for i in range(10)]
    page = html.render(results.plain(results.compared([*equal, *differing])))
    assert "10 of 40 compared tensors differ" in page
    assert "This report shows 12 of 40 tensors; those left out are equal." in page
    assert "equal_01" in page
    assert "equal_02" not in page
    assert all(f"other_{i:02}" in page for i in range(10))
    many = [results.pair(f"other_{i:02}", i, 5, 5) for i in range(40)]
    page = html.render(results.plain(results.compared(many)))
    assert "This report shows 12 of 40 tensors; 28 of those left out differ." in page
    assert "in 40 tensors" in page


def test_what_is_kept_stays_in_its_place() -> None:
    pairs = [results.pair(f"t{i}", i, 5 * (i % 3 == 2), 5 * (i % 3 == 2)) for i in range(20)]
    whole = comparison.report(checked(results.plain(results.compared(pairs))))
    thin = comparison.thinned(whole, 8)
    names = [pair["a"] for pair in thin.pairs]
    assert names == ["t0", "t1", "t2", "t5", "t8", "t11", "t14", "t17"]
    assert [names[i] for i in thin.differing] == ["t2", "t5", "t8", "t11", "t14", "t17"]
    assert thin.first == 2
    assert [names[i] for i in thin.causes[0].tensors] == ["t2", "t5", "t8", "t11", "t14", "t17"]
    assert (thin.kind, thin.headline) == (whole.kind, whole.headline)
    assert comparison.thinned(whole, 20) is whole


def test_long_texts_lose_their_middle() -> None:
    data = results.plain(results.benign())
    text = "start" + "<b>" * 400_000 + "end"
    for pair in data["pairs"]:
        pair["a"] = text
    data["notes"] = [text]
    page = html.render(data)
    assert "start&lt;b&gt;" in page
    assert len(page) < 8 << 20
    assert len(markdown.render(data)) < 1 << 20
    assert checked(checked(data)) == checked(data)
