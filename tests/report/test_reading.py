"""Results from files are untrusted: whatever is wrong with one is told by name, and nothing else happens."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bittrue.errors import InputError
from bittrue.report import html, markdown
from bittrue.report.reading import checked, load
from support import results
from support.pages import places, replaced

COMPARED = results.plain(results.benign())
CHECKED = results.checked(results.findings())


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for result in (COMPARED, CHECKED, results.plain(results.hostile()), results.plain(results.real())):
        path.write_text(json.dumps(result))
        assert load(path)["format"] == result["format"]


def test_reading_twice_changes_nothing() -> None:
    once = checked(results.plain(results.hostile()))
    assert checked(once) == once


def test_a_fresh_result_needs_no_detour_over_json() -> None:
    assert markdown.render(results.benign().to_dict()) == markdown.render(COMPARED)


DAMAGE = {
    "missing": ...,
    "null": None,
    "3": 3,
    "-1": -1,
    "text": "x",
    "list": [],
    "object": {},
    "lists": [[]],
    "true": True,
}
DAMAGE |= {"huge": 10**400, "nan": math.nan}


@pytest.mark.in_turns(6)
@pytest.mark.parametrize("result", [COMPARED, CHECKED], ids=["compare", "check"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_anywhere_is_told_or_harmless(
    monkeypatch: pytest.MonkeyPatch, result: dict[str, Any], damage: str
) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    refused = 0
    for path in places(result):
        if not path and damage == "missing":
            continue
        error = refusal(replaced(result, path, DAMAGE[damage]))
        named = [str(key) for key in path if not isinstance(key, int)]
        if error is not None:
            refused += 1
            assert error.code == "BT-RESULT"
            assert not named or named[0] in error.place, (path, error)
    assert refused


def refusal(result: Any) -> InputError | None:
    """Why a result is refused; None when both reports can be made of it."""
    try:
        data = checked(result)
    except InputError as error:
        return error
    html.render(data)
    markdown.render(data)
    return None


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("pairs", 2, "cumulative", "elements"), "pairs[2].cumulative.elements"),
        (("a",), "a"),
        (("pairs", 0, "shape"), "pairs[0].shape"),
    ],
)
def test_a_missing_field_is_named(path: tuple[Any, ...], place: str) -> None:
    with pytest.raises(InputError, match="this field is missing") as caught:
        checked(replaced(COMPARED, path, ...))
    assert caught.value.place == place


def test_more_differing_elements_than_there_are() -> None:
    with pytest.raises(InputError, match="expected at most 2048"):
        checked(replaced(COMPARED, ("pairs", 1, "cumulative", "differing"), 2049))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "expected an object"),
        (b"3", "expected an object"),
        (b"{}", "found nothing"),
        (b'{"format": "bittrue-bench-1"}', "found 'bittrue-bench-1'"),
        (b'{"format": ["bittrue-compare-1"]}', "expected 'bittrue-compare-1'"),
    ],
)
def test_foreign_files(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=said) as caught:
        load(path)
    assert str(path) in caught.value.place
    assert "bittrue compare" in caught.value.advice


def test_deep_free_data_is_refused() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"x": deep}
    with pytest.raises(InputError, match="nested deeper"):
        checked(replaced(COMPARED, ("passes",), deep))
