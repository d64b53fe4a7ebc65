"""Texts that users and contributors read have the field's words: quantized value, image, dimension or size, integer."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.shared import REPOSITORY

PACKAGE = REPOSITORY / "src" / "bittrue"
_TYPES = r"[su](?:4|8|16|32)|u?int(?:4|8|16|32)|\d+-bit|[Ss]igned|[Uu]nsigned|[Qq]uantized|[Bb]ias|[Ww]eight"
WORDS = {
    r"\b[Ee]xtents?\b": "dimension or size",
    r"\b[Pp]ictures?\b": "image or feature map",
    r"\b[Ww]hole numbers?\b": "integer",
    r"\b[Ss]tored (?:number|integer)s?\b": "quantized value",
    rf"\b(?:{_TYPES}) codes?\b": "quantized value",
}
# A line of this stands wherever a pattern above finds something: files without one need no look at their tokens.
PARTS = re.compile(rf"xtent|icture|hole.* number|tored.* (?:number|integer)|(?:{_TYPES}).* code")
# (File, text): why it stays.
ALLOWED = {
    ("rules/narrow.py", "unsigned codes"): "bits of floating-point numbers are no quantized values",
}


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of comments, docstrings and messages, without what stands for code in them."""
    with path.open() as stream:
        for token in tokenize.generate_tokens(stream.readline):
            text = token.string
            if token.type not in (tokenize.COMMENT, tokenize.STRING) or " " not in text:
                continue
            if token.type == tokenize.STRING and "f" in text[: re.search("[\"']", text).start()].lower():  # type: ignore[union-attr]
                text = re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "", text)
            for number, line in enumerate(text.split("\n"), token.start[0]):
                # Names of arguments and attributes that are explained.
                yield number, re.sub(r"^\s*\w+(?:, \w+)*:(?= |$)", "", line)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text()
    if not PARTS.search(text):
        return
    if path.suffix == ".py":
        yield from _texts(path)
        return
    block = False
    for number, line in enumerate(text.split("\n"), 1):
        block ^= line.startswith("```")
        if not block:
            yield number, line


def found(path: Path) -> Iterator[tuple[int, str, str]]:
    """Lines, words that are not the field's, and those to write."""
    for number, line in _lines(path):
        plain = re.sub(r"`[^`]*`|>>> .*", "", line)
        for pattern, better in WORDS.items():
            for match in re.finditer(pattern, plain):
                yield number, match.group(), better


def _pages() -> list[Path]:
    return [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.md")]


@pytest.mark.parametrize(
    "room", sorted(p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists())
)
def test_texts_have_the_words_of_the_field(room: str) -> None:
    place = PACKAGE / room
    for path in [place] if place.suffix == ".py" else sorted(place.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        for number, word, better in found(path):
            assert (name, word) in ALLOWED, f"src/bittrue/{name}:{number} says '{word}': write {better}"


def test_pages_have_the_words_of_the_field() -> None:
    for path in _pages():
        name = str(path.relative_to(REPOSITORY))
        for number, word, better in found(path):
            assert (name, word) in ALLOWED, f"{name}:{number} says '{word}': write {better}"


@pytest.mark.parametrize("folder", ["src", "native", "tests", "tools", "bench", "examples"])
def test_names_have_the_words_of_the_field(folder: str) -> None:
    for path in sorted((REPOSITORY / folder).rglob("*")):
        if path.suffix not in (".py", ".cc", ".h") or path == Path(__file__):
            continue
        # Names of tensors in files stay as they are.
        wrong = re.search(r"""(?<!["_(])[Pp]icture|[Ee]xtent""", path.read_text())
        assert wrong is None, f"{path.relative_to(REPOSITORY)} says '{wrong and wrong.group()}': write image, size"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('raise ValueError("an extent of 0, and pictures")', 2),
        ('f"{extent} of u8 codes"', 1),
        ('def f():\n    """The sizes.\n\n    extent: of an axis; `picture` is no word.\n    """', 0),
        ("# exit codes, and whole numbers", 1),
        ('code = {"extent": 1}', 0),
    ],
)
def test_words_are_found(tmp_path: Path, text: str, count: int) -> None:
    path = tmp_path / "one.py"
    path.write_text(text)
    assert len(list(found(path))) == count
