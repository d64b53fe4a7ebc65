"""`bittrue check`: what is wrong with a model, or could go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.padding import Padding
from rich.text import Text

from .. import numerics
from ..check import SEVERITIES, CheckResult, Finding, Rule, check_model
from ..errors import InputError
from .clicking import Choice
from .common import check_targets, console, late_progress, open_shape_option, parse_shapes, short_names
from .plain import say_json
from .report import write_reports
from .terminal import Terminal, one_line

# Findings of one kind that are shown before the others are counted.
_SHOWN = 2
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_FILES = {
    "sarif": "Also write SARIF 2.1.0.",
    "junit": "Also write JUnit XML.",
    "markdown": "Also write a short summary for CI; - prints it.",
    "html": "Also write one HTML page that works offline.",
}


def _file_options(command: Any) -> Any:
    for name, title in reversed(_FILES.items()):
        path = click.Path(dir_okay=False, path_type=Path, allow_dash=name == "markdown")
        command = click.option(f"--{name}", type=path, metavar="FILE", help=title)(command)
    return command


@click.command("check")
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--numerics",
    "numerics_name",
    type=Choice(numerics.names()),
    metavar="NAME",
    help="The runtime to check for (`bittrue numerics` lists them); by default that of the file's format.",
)
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    help="The file with the weights, for formats that have two; by default the one beside MODEL.",
)
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, beginnings of codes or names.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Leave these rules out; as in --select.")
@click.option(
    "--severity",
    default="note",
    show_default=True,
    type=Choice(SEVERITIES),
    help="The least that is shown. Files and --json hold everything.",
)
@open_shape_option
@click.option("--all", "show_all", is_flag=True, help="Show every finding, also those that are alike, and whole names.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything.")
@_file_options
def command(
    model: str,
    numerics_name: str | None,
    weights: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: str,
    shapes: tuple[str, ...],
    show_all: bool,
    as_json: bool,
    sarif: Path | None,
    junit: Path | None,
    markdown: Path | None,
    html: Path | None,
) -> None:
    """Find violations of the specification, refusals of runtimes, and hazards in MODEL.

    \b
    bittrue check model.tflite
    bittrue check model.tflite --select BT2,bias-scale --severity warning
    bittrue check model.onnx --sarif findings.sarif --junit findings.xml

    Exit code 1 when there are errors, 3 when a rule came to no end and none of the others found an error.
    """
    if as_json and str(markdown) == "-":
        raise InputError("BT-USAGE", "--json and --markdown - both print; write one of them to a file")
    check_targets(sarif, junit, markdown, html=html)
    with late_progress(f"checking {Path(model).name}") as progress:
        result = check_model(
            model,
            numerics_name,
            weights,
            select=_split(select),
            ignore=_split(ignore),
            shapes=parse_shapes(shapes),
            progress=progress,
        )
    plain = result.to_dict()
    write_reports(plain, {".sarif": sarif, ".xml": junit, ".html": html, ".md": markdown}, keep=Path(model))
    if as_json:
        say_json(plain)
    elif str(markdown) != "-":
        _show(result, severity, show_all)
    click.get_current_context().exit(1 if result.errors else 3 if result.failures else 0)


def _split(texts: Sequence[str]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _show(result: CheckResult, severity: str, show_all: bool) -> None:
    out = console()
    out.print(
        f"{result.model}: {result.model_format} model, checked for numerics '{result.numerics}' with "
        f"{_plural(len(result.rules), 'rule')}",
    )
    shown = SEVERITIES[: SEVERITIES.index(severity) + 1]
    findings = [finding for finding in result.findings if finding.severity in shown]
    rules = {rule.code: rule for rule in result.rules}
    if findings:
        groups = [list(group) for _, group in groupby(findings, key=lambda finding: finding.code)]
        groups.sort(key=lambda group: min(SEVERITIES.index(finding.severity) for finding in group))
        single = len({finding.graph for finding in findings if finding.graph}) == 1
        for group in groups:
            _show_group(out, rules[group[0].code], group, show_all, single)
        out.print()
    for failure in result.failures:
        out.print(f"{failure.code} came to no end: {failure.message}", style="bold red")
    for note in result.notes:
        out.print(f"note: {note}")
    hidden = len(result.findings) - len(findings)
    summary = ", ".join(_plural(result.count(name), name) for name in SEVERITIES)
    summary += f" ({hidden} not shown)" if hidden else ""
    out.print(summary, style="bold" if result.errors else "")
    if findings:
        out.print(f"`bittrue rule {groups[0][0].code}` explains a rule and how to fix a model")


def _show_group(out: Terminal, rule: Rule, findings: Sequence[Finding], show_all: bool, single: bool) -> None:
    """One rule: its title, then its findings, of which those that are alike are folded; a `single` graph is unnamed."""

    def say(text: str | Text, indent: int) -> None:
        out.print(Padding(text, (0, 0, 0, indent), expand=False))

    out.print()
    out.print(one_line((f"{rule.code} {rule.name}", "bold"), (f"  {_plural(len(findings), 'finding')}", "dim")))
    kinds = list(_kinds(findings))
    for position, alike in enumerate(kinds):
        shown = alike if show_all or len(alike) <= _SHOWN + 1 else alike[:_SHOWN]
        for finding in shown:
            place, message = place_of(finding, graph=not single), finding.message
            if not show_all:
                place, message = short_names(place), short_names(message)
            say(one_line((finding.severity, _STYLES[finding.severity]), "  ", place), 2)
            say(message, 6)
        if len(alike) > len(shown):
            say(Text(f"and {len(alike) - len(shown)} more like it (--all shows them)", style="dim"), 6)
        following = kinds[position + 1][0].advice if position + 1 < len(kinds) else ""
        if alike[0].advice and alike[0].advice != following:
            say(one_line((f"what to do: {alike[0].advice}", "italic")), 6)


def _kinds(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Findings that differ in numbers and names alone, together; in the order of their first ones."""
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        words = re.sub(r"'[^']*'|[-+]?\d[\d.,e+-]*", "#", finding.message)
        # Numbers that some have and others lack (units, channels) come after the first clause.
        kinds.setdefault((finding.severity, finding.source, re.split(r"[;,(]", words)[0]), []).append(finding)
    yield from kinds.values()


def place_of(finding: Finding, graph: bool = True) -> str:
    """Graph, node, tensor and place of a finding on one line.

    >>> place_of(Finding("BT204", "error", "", "main", 3, "CONV_2D", "w", "element [0, 1]"))
    "node 3 CONV_2D of 'main', tensor 'w', element [0, 1]"
    >>> place_of(Finding("BT505", "note", "", "main"), graph=False)
    'the graph'
    """
    node = "" if finding.node is None else f"node {finding.node} {finding.source}"
    name = f"'{finding.graph}'" if finding.graph and graph else ""
    start = f"{node} of {name}" if node and name else node or (f"graph {name}" if name else "")
    tensor = f"tensor '{finding.tensor}'" if finding.tensor else ""
    # What a runtime refused says once more which node it was.
    place = "" if finding.place == f"node {finding.node} ({finding.source})" else finding.place
    found = ", ".join(text for text in (start, tensor, place) if text)
    return found or ("the graph" if finding.graph else "")


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
