"""Pages and summaries of evaluations."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("PIL")

from bittrue.errors import InputError
from bittrue.report import html, markdown
from bittrue.report.reading import checked
from support import evaluations
from support.evaluations import HOSTILE
from support.pages import Elements, places, replaced, words_of

MADE = {
    "usual": evaluations.evaluation,
    "many classes": lambda: evaluations.evaluation(1000, 4000, flips=200),
    "hostile": lambda: evaluations.evaluation(6, 300, HOSTILE + "{}"),
    "anomalies": evaluations.anomalies,
    "baseline": evaluations.against_a_baseline,
    "boxes": lambda: evaluations.detections(6, 300, HOSTILE + "{}"),
    "masks": lambda: evaluations.masks(6, 300, HOSTILE + "{}"),
}


@pytest.mark.parametrize("name", MADE)
def test_nothing_of_a_result_is_markup(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    page = html.render(MADE[name]())
    elements = Elements(page)
    assert not [attributes for _, attributes in elements.found if {"onerror", "onclick", "onload"} & set(attributes)]
    assert not {"iframe", "object", "form", "base"} & {tag for tag, _ in elements.found}
    sources = [attributes["src"] or "" for tag, attributes in elements.found if tag == "img"]
    sources += [attributes["href"] or "" for tag, attributes in elements.found if tag == "image"]
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not any("<" in script for script in elements.scripts if "alert" in script)
    assert not {c for c in page if not c.isprintable() and c not in "\n\t\u00a0\u2009\u202f"}


def test_page_says_what_came_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    result = evaluations.evaluation()
    text = words_of(html.render(result))
    (pair,) = result["flips"]
    for expected in (
        "7 of 1,997 answers flip",
        f"{pair['gained']} become right, {pair['lost']} wrong",
        result["recipe"]["digest"],
        "pillow 12.0",
        result["digest"],
        "BT-IMAGE 3 samples",
        "the image cannot be decoded",
        "2 samples have other bytes",
        *(flip["command"] for flip in pair["samples"]),
        *(flip["id"] for flip in pair["samples"]),
    ):
        assert expected in text, expected
    summary = markdown.render(result)
    assert "7 of 1,997 answers flip" in summary
    assert f"\n{pair['samples'][0]['command']}\n" in summary


def test_many_classes_are_pairs_and_not_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    result = MADE["many classes"]()
    page = html.render(result)
    assert " classes are too many for a matrix" in words_of(page)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])  # type: ignore[index]
    assert data["confusion"] is None
    assert len(data["perClass"]["counts"]) == 40
    wrong = max(count for label, answer, count in result["metrics"]["litert"]["confusion"] if label != answer)
    rows = re.findall(r'<tr><td class="figure" data-value="(\d+)">', page[page.index("Confused most often") :])
    assert int(rows[0]) == wrong
    assert page.count('class="sample"') == 150
    assert "rows/ has all 200" in words_of(page)


def test_a_runtime_with_the_same_outputs_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    result = evaluations.evaluation()
    (pair,) = result["flips"]
    nothing = {"count": 0, "gained": None, "lost": None, "samples": []}
    result["digests"] |= {"xnnpack": "9" * 64, "litert:xnnpack": "9" * 64}
    result["against"] = {"litert:xnnpack": "ai-edge-litert 2.3.0"}
    result["metrics"]["litert:xnnpack"] = result["metrics"]["xnnpack"]
    result["margins"]["samples"]["litert:xnnpack"] = result["margins"]["samples"]["xnnpack"]
    result["margins"]["flips"] *= 3
    result["flips"] += [
        {**pair, "pair": ["litert", "litert:xnnpack"]},
        {**nothing, "pair": ["xnnpack", "litert:xnnpack"]},
    ]
    page = html.render(result)
    text = words_of(page)
    assert "litert and litert:xnnpack: the 7 flips between litert and xnnpack, whose outputs are the same." in text
    assert "xnnpack and litert:xnnpack: every output is the same, byte for byte." in text
    assert "litert:xnnpack (ai-edge-litert 2.3.0)" in text
    assert page.count('class="sample"') == 7


def test_without_labels_and_with_one_arithmetic() -> None:
    result = evaluations.evaluation() | {"metrics": {}, "labelled": 0, "flips": [], "margins": None}
    result |= {"numerics": ["a"], "digests": {"a": "0" * 64}}
    page = html.render(result)
    assert "plotly.js" not in page
    assert "there is no accuracy" in words_of(page)
    assert html.render({key: value for key, value in result.items() if key not in ("examples", "thumbnails", "given")})


@pytest.mark.parametrize("task", ["segmentation", "detection"])
def test_figures_of_classes_without_right_answers(task: str) -> None:
    """Classes may be others under each arithmetic: what one never meets has no figure there."""
    text = words_of(html.render(checked(evaluations.by_class(task))))
    for expected in ("IoU under" if task == "segmentation" else "mAP under", "owl 120 0.2500 0.5000", "cat 0 –"):
        assert expected in text, expected


@pytest.mark.parametrize(
    "make",
    [
        evaluations.anomalies,
        evaluations.against_a_baseline,
        lambda *_: evaluations.by_class("segmentation"),
        evaluations.detections,
        evaluations.masks,
    ],
)
def test_damaged_results(make: Callable[[int, int], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with any field is an error that names it, or changes what is said and nothing else."""
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    result = make(2, 40)
    assert checked(checked(result)) == checked(result)
    for path in places(result):
        for new in (..., -1, "x", []):
            if new is ... and not path:
                continue
            with contextlib.suppress(InputError):
                read = checked(replaced(result, path, new))
                html.render(read)
                markdown.render(read)


def test_what_lies_on_images_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_plotly", lambda: "short")
    elements = Elements(html.render(evaluations.detections()))
    said = [attributes["aria-label"] for tag, attributes in elements.found if tag == "svg" and "role" in attributes]
    assert said[:2] == ["litert: class 1 0.75, class 2 missed", "xnnpack: class 1 0.75, class 2 0.50"]
    alone = evaluations.detections()
    for seen in alone["thumbnails"].values():
        seen["boxes"] = {"litert": [], "xnnpack": seen["boxes"]["xnnpack"][:1]}
    assert "litert nothing xnnpack class 1 0.75" in words_of(html.render(alone))
    boxes = [attributes["class"] for tag, attributes in elements.found if tag == "g"]
    assert boxes[:7] == ["box true", "box true", "box seen", "box true", "box true", "box seen", "box only"]
    uses = {attributes["href"] for tag, attributes in elements.found if tag == "use"}
    assert uses == {f"#{attributes['id']}" for tag, attributes in elements.found if tag == "image"}
    page = html.render(evaluations.masks())
    assert "where they differ" in page
    assert "what is wrong" in page
    damaged = evaluations.masks()
    next(iter(damaged["thumbnails"].values()))["legend"][0]["colour"] = "red;background:url(x)"
    with pytest.raises(InputError, match="expected a colour"):
        checked(damaged)


@pytest.mark.parametrize(
    "image",
    ["javascript:alert(1)", "https://example.org/x.png", "data:image/svg+xml;base64,AA==", 'data:image/png;base64,"'],
)
def test_thumbnails_are_images_and_nothing_else(image: str) -> None:
    result: Any = evaluations.evaluation()
    result["thumbnails"] = {"0": {"image": image, "what": "image"}}
    with pytest.raises(InputError, match="expected an image"):
        checked(result)
