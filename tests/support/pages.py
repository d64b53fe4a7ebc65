"""Pages as elements and words, and results with a field changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any


class Elements(HTMLParser):
    """Elements with their attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.words.append(data)


def words_of(page: str) -> str:
    return re.sub("[ \n]+", " ", " ".join(Elements(page).words))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything within a result; of lists the first and the last entry."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list) and value:
        for index in sorted({0, len(value) - 1}):
            yield from places(value[index], (*path, index))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same with another value there, the rest of it shared; without it for `...`."""
    if not path:
        return new
    key, *rest = path
    found = value.copy()
    if rest:
        found[key] = replaced(value[key], tuple(rest), new)
    elif new is ...:
        del found[key]
    else:
        found[key] = new
    return found
