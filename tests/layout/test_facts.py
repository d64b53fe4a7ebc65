"""Fact sheets: each one that is cited exists, with the section that is cited, and names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bittrue.rules import rules, slots
from support.shared import REPOSITORY

SHEETS = REPOSITORY / "docs" / "facts"
CITING = ("src/**/*.py", "native/**/*.[hc]*", "tests/**/*.py", "tools/*", "docs/**/*.md", "*.md")
# docs/facts/xnnpack.md 4.1, 4.2; also broken into lines, as comments are.
_CITATION = re.compile(r"\bfacts/(\w+\.md)((?:(?:,| to| and)? (?:section )?\d+(?:\.\d+)?(?![\w.]*\d|[-/]))*)")
# What leads nowhere: a sheet without its folder, a section without its sheet.
_VAGUE = re.compile(r"fact sheet \w+\.md|\bfacts \d+(?:\.\d+)?\b")
_HEADING = re.compile(r"^(?:#+ (\d+(?:\.\d+)?)|(\d+\.\d+)) \S", re.MULTILINE)


def sections(sheet: str) -> set[str]:
    """Numbers of a sheet's headings, and of paragraphs that begin with one."""
    return {heading or paragraph for heading, paragraph in _HEADING.findall(sheet)}


def wrong_citations(text: str, sheets: dict[str, set[str]]) -> list[str]:
    """Citations in `text` that do not lead to a section of one of the `sheets`."""
    if "fact" not in text:
        return []
    flat = re.sub(r"[ \t]*\n[ \t]*(?:(?:#|//)[ \t]*)?", " ", text)
    wrong = [match[0] for match in _VAGUE.finditer(flat)]
    for match in _CITATION.finditer(flat):
        name, places = match.groups()
        cited = re.findall(r"\d+(?:\.\d+)?", places)
        found = name in sheets and sheets[name].issuperset(cited)
        if not found or not re.search(r"(?<![\w/.])docs/$", flat[: match.start()][-10:]):
            wrong.append(match[0])
    return wrong


@pytest.fixture(scope="module")
def sheets() -> dict[str, set[str]]:
    return {path.name: sections(path.read_text()) for path in SHEETS.glob("*.md")}


def test_citations_lead_somewhere(sheets: dict[str, set[str]]) -> None:
    count = 0
    for pattern in CITING:
        for path in sorted(REPOSITORY.glob(pattern)):
            if path == Path(__file__) or not path.is_file():
                continue
            text = path.read_text()
            assert wrong_citations(text, sheets) == [], path.relative_to(REPOSITORY)
            count += len(_CITATION.findall(text))
    assert count > 300


@pytest.mark.parametrize(
    "text",
    [
        "Source: docs/facts/nobody.md 1.",
        "Source: docs/facts/litert.md 1.99, verified by running.",
        "Source: docs/facts/litert.md 1.1, 9.9",
        "Source: docs/facts/litert.md\n    # 1.1 and 8",
        "Source: facts/litert.md 1.1",
        "Source: ../shared/facts/litert.md 1.1",
        "Source: fact sheet litert.md 1.1",
        "run; facts 2.4: 8 k values",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(sheets: dict[str, set[str]], text: str) -> None:
    assert len(wrong_citations(text, sheets)) == 1


@pytest.mark.parametrize("path", sorted(SHEETS.glob("*.md")), ids=lambda path: path.stem)
def test_sheets_name_what_exists(path: Path) -> None:
    text = path.read_text()
    assert "```sh" in text, "a sheet says how its facts are checked again"
    for name in re.findall(r"\b(?:tests|tools|src|docs)/[\w/.-]*\w", text):
        assert (REPOSITORY / name).exists(), name
    for name in re.findall(r"`((?:arithmetic|rules|operators|numerics)/[\w/]+\.py)`", text):
        assert (REPOSITORY / "src" / "bittrue" / name).exists(), name
    for slot, rule in re.findall(r"`([a-z_]+)=([a-z0-9_]+)`", text):
        assert slot in slots(), f"no slot '{slot}'"
        assert rule in rules(slot), f"slot '{slot}' has no rule '{rule}'"
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (path.parent / link).exists(), link
