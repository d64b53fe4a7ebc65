"""`bittrue report`: results that were saved as JSON, as an HTML page or a Markdown summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..files import write_text
from ..report.result import rendered
from .common import check_targets, late_progress
from .plain import say

# Files that a reader opens next.
_SAID = {".html": "page", ".md": "summary"}


@click.command("report")
@click.argument("result", type=click.Path(exists=True, path_type=Path))
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="Write a short summary for CI to this file; - prints it.",
)
@click.option(
    "--data", default="", metavar="SOURCE", help="Where the samples of a folder are now, for thumbnails of its flips."
)
def command(result: Path, html: Path | None, markdown: Path | None, data: str) -> None:
    """Make an HTML page or a summary of RESULT of compare, check, conform or evaluate.

    RESULT is their JSON, or evaluate's folder.

    Without options the page is written beside RESULT. A page is one file that works offline.

    \b
    bittrue compare model.tflite litert:xnnpack model.tflite --json > result.json
    bittrue report result.json                                        # writes result.html
    bittrue report result.json --markdown - >> "$GITHUB_STEP_SUMMARY"
    bittrue report result/                                            # writes result.html, with thumbnails of flips
    """
    from ..evaluation.showing import shown
    from ..report.reading import load

    check_targets(markdown, html=html)
    if data and not result.is_dir():
        raise InputError("BT-USAGE", "has no effect: RESULT is no folder of `bittrue evaluate -o`", place="--data")
    with late_progress("reading the result"):
        found = shown(result, data) if result.is_dir() else load(result)
    if html is None and markdown is None:
        beside = result if result.name not in ("", "..") else result.resolve()
        html = beside.with_name(f"{beside.name}.html") if result.is_dir() else result.with_suffix(".html")
    write_reports(found, {".html": html, ".md": markdown}, keep=result)


def write_reports(data: dict[str, Any], files: Mapping[str, Path | None], keep: Path | None = None) -> None:
    """Write what was asked for, and say so of pages and summaries.

    Args:
        data: a result.
        files: the endings of `Result.save` to where such a file goes; None for not at all, ``-`` prints it.
        keep: a file that must not be overwritten.
    """
    wanted = {ending: path for ending, path in files.items() if path is not None}
    for path in wanted.values():
        if keep is not None and path.exists() and path.samefile(keep):
            raise InputError("BT-USAGE", f"'{path}' is the file that is read; choose another one")
    for ending, path in wanted.items():
        with late_progress(f"writing {path.name}"):
            text = rendered(data, ending)
        if str(path) == "-":
            say(*text.removesuffix("\n").split("\n"))
            continue
        write_text(path, text)
        if ending in _SAID:
            say(f"{_SAID[ending]} written to {path}", err=True)
