"""What benchmarks write: a page in Markdown and the figures behind it in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
SHARED = Path(__file__).resolve().parents[2] / "shared"


def write(output: Path, page: str, figures: Any) -> None:
    """OUTPUT.md and OUTPUT.json; folders that are missing are made."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.with_suffix(".md").write_text(page)
    output.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def made_on(machine: Mapping[str, Any]) -> str:
    """When and where a page was made, and with which versions; `machine` is what `bittrue.measure.machine` says."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    cores = f"{machine['usable_cores']} cores, load {machine['load']}"
    return f"{machine['date']}, {machine['cpu']}, {machine['architecture']}, {cores}; {versions}."
