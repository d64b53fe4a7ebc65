"""Result files: JSON of compare, check and conform, through every report."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from damage import damaged, spoiled, written
from oracle import tried

from bittrue.report import html, junit, markdown, sarif
from bittrue.report.reading import CHECK, COMPARE, load


def seeds(folder: Path) -> Iterable[bytes]:
    """Made-up results of the real classes, and a real one of each conformance verdict."""
    from support import results

    from . import certificate

    for make in (results.benign, results.hostile, results.real, results.fault):
        yield written(_short(results.plain(make())))
    for findings in (results.findings(), []):
        yield written(_short(results.checked(findings)))
    yield from certificate.seeds(folder)


def _short(value: Any) -> Any:
    """Three entries of every list tell as much as a thousand."""
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    return [_short(inner) for inner in value[:3]] if isinstance(value, list) else value


def change(content: bytes, seed: int) -> bytes:
    """Entries; one time in four bytes."""
    numbers = random.Random(seed)
    return spoiled(content, numbers) if seed % 4 == 0 else written(damaged(json.loads(content), numbers))


def attempt(content: bytes, folder: Path) -> str:
    path = folder / "result.json"
    path.write_bytes(content)

    def call() -> str:
        data = load(path)
        made = [html.render(data), markdown.render(data)]
        if data["format"] == CHECK:
            made.append(sarif.render(data))
        if data["format"] != COMPARE:
            made.append(junit.render(data))
        for text in made:
            text.encode()
        return "result"

    return tried(call)
