"""`bittrue report`: results that were saved as JSON, as an HTML page or a Markdown summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..files import write_text
from .common import check_targets, late_progress
from .plain import say


@click.command("report")
@click.argument("result", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to this file.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="Write a short summary for CI to this file; - prints it.",
)
def command(result: Path, html: Path | None, markdown: Path | None) -> None:
    """Make an HTML page or a summary of RESULT, the JSON of compare, check or conform.

    Without options the page is written beside RESULT. A page is one file that works offline.

    \b
    bittrue compare model.tflite litert:xnnpack model.tflite --json > result.json
    bittrue report result.json                                        # writes result.html
    bittrue report result.json --markdown - >> "$GITHUB_STEP_SUMMARY"
    """
    from ..report.reading import load

    check_targets(markdown, html=html)
    with late_progress("reading the result"):
        data = load(result)
    if html is None and markdown is None:
        html = result.with_suffix(".html")
    write_reports(data, html, markdown, keep=result)


def write_reports(data: dict[str, Any], html: Path | None, markdown: Path | None, keep: Path | None = None) -> None:
    """Write what was asked for and say so.

    Args:
        data: a result.
        html, markdown: where to; None for not at all, ``-`` prints Markdown.
        keep: a file that must not be overwritten.
    """
    from ..report import html as page
    from ..report import markdown as summary

    for target in (html, markdown):
        if target is not None and keep is not None and target.exists() and target.samefile(keep):
            raise InputError("BT-USAGE", f"'{target}' is the result itself; choose another file")
    if html is not None:
        with late_progress("writing the page"):
            write_text(html, page.render(data))
        say(f"page written to {html}", err=True)
    if markdown is not None:
        text = summary.render(data)
        if str(markdown) == "-":
            say(*text.removesuffix("\n").split("\n"))
        else:
            write_text(markdown, text)
            say(f"summary written to {markdown}", err=True)
