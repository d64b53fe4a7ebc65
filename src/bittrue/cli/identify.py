"""`bittrue identify`: whose arithmetic a device computes with, operator by operator."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from ..conformance.identification import QUESTIONS, CounterExample, Finding, IdentifyResult, identify
from ..conformance.suite import SUITES
from .clicking import Choice, DeviceCommand
from .common import check_targets, console, late_progress, split_words
from .plain import say_json
from .report import write_reports
from .tables import Column, table


@click.command("identify", cls=DeviceCommand)
@click.argument("device", metavar="DEVICE")
@click.option("--suite", type=Choice(sorted(SUITES)), help="By default the one in the format that DEVICE takes.")
@click.option(
    "--operator",
    "operators",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help="Only these, comma-separated or repeated; `bittrue vectors list` shows them.",
)
@click.option(
    "--types",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help="Comma-separated types such as s8,u8,s16, or 'all'; by default those of the specification.",
)
@click.option(
    "--questions",
    default=QUESTIONS,
    show_default=True,
    type=click.IntRange(1),
    help="Most runs of DEVICE per operator and types.",
)
@click.option("--seed", default="", metavar="WORD", help="Make other questions than without it.")
@click.option("--verbose", "-v", is_flag=True, help="Also show what ruled out which numerics.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Also write the result as JSON.")
def command(
    device: str,
    suite: str | None,
    operators: tuple[str, ...],
    types: tuple[str, ...],
    questions: int,
    seed: str,
    verbose: bool,
    as_json: bool,
    output: str | None,
) -> None:
    """Find out which numerics gives the outputs of DEVICE.

    Models of one operator and their inputs are chosen, and made anew, so that each answer rules out as many
    arithmetics as it can; what is left must then give all other answers, too. Where none is left, other rules and
    several numerics at once are tried, and else the nearest arithmetic is shown with its first counter-example.

    \b
    bittrue identify litert:xnnpack
    bittrue identify my_device.py --operator CONV_2D --operator ADD
    bittrue identify program:./device.sh --questions 8

    Exit code 0: named numerics explain everything that DEVICE ran; 1: something else.
    """
    check_targets(None if output is None else Path(output))
    with late_progress("identifying") as tick:
        result = identify(
            device,
            suite,
            operators=operators,
            types=types,
            questions=questions,
            seed=seed,
            progress=None if tick is None else tick,
        )
    data = result.to_dict()
    write_reports(data, {".json": None if output is None else Path(output)})
    if as_json:
        say_json(data)
    else:
        _show(result, verbose)
    click.get_current_context().exit(0 if result.explained else 1)


def _show(result: IdentifyResult, verbose: bool) -> None:
    columns = [Column("operator", "text"), Column("types"), Column("verdict", "text"), Column("rules", "text")]
    columns.append(Column("asked", right=True, least=1))
    rows = []
    for finding in result.findings:
        rules = "\n".join(f"{slot} = {rule}" for slot, rule in finding.rules.items())
        rows.append((finding.operator, finding.types, Text(_verdict(finding)), Text(rules), _asked(finding)))
    out = console()
    title = f"{result.device}, suite {result.suite} {result.suite_version}"
    out.print(table(columns, rows, out.width, title))
    for finding in result.findings if verbose else ():
        for one in finding.ruled_out:
            line = f"{finding.operator} {finding.types}: not {', '.join(one.numerics)}: {_example(one.example)}"
            out.print(line, soft_wrap=True)
    for line in result.summary:
        out.print(line)
    out.print(f"{result.questions:,} question{'' if result.questions == 1 else 's'}")
    if result.named:
        named = result.named[0].numerics
        out.print(f"next: bittrue numerics show {named}, or bittrue conform {result.device}")


def _verdict(finding: Finding) -> str:
    remark = f"\n{finding.remark}" if finding.remark else ""
    if finding.verdict == "named":
        names = finding.numerics
        others = f"\nthe same here: {', '.join(names[1:])}" if finding.alike else ""
        if not finding.alike:
            others = f"\nnot told apart here: {', '.join(names[1:])}"
        return f"{names[0]}{others if names[1:] else ''}{remark}"
    if finding.verdict == "other rules":
        users = f"\nas in {', '.join(finding.changed_in)}" if finding.changed_in else ""
        others = "".join(f"\nor {change}" for change in finding.changes[1:])
        return f"{finding.numerics[0]} with {finding.changes[0]}{users}{others}{remark}"
    if finding.verdict == "several numerics":
        return "\n".join(f"{', '.join(part.numerics)} for {part.where}" for part in finding.parts) + remark
    if finding.verdict == "unknown":
        return f"{_nearest(finding)}{remark}"
    return f"{'answers change between runs' if finding.verdict == 'unstable' else 'not run'}{remark}"


def _nearest(finding: Finding) -> str:
    nearest = finding.nearest
    if nearest is None:
        return "unknown: no numerics runs what the device runs"
    lines = [
        f"unknown; nearest: {nearest.name}, {nearest.differing} of {nearest.elements} elements differ, "
        f"{nearest.cases} of {nearest.of} answers equal"
    ]
    if nearest.cause:
        lines.append(f"{'rule' if nearest.legal else 'fault'}: {nearest.cause} ({nearest.text})")
        lines += [f"or {name}" for name in nearest.also]
    lines += [nearest.cut] if nearest.cut else []
    lines += [f"seen: {text}" for text in nearest.described]
    if nearest.first is not None:
        lines.append(f"first: {_example(nearest.first)}")
    return "\n".join(lines)


def _example(first: CounterExample) -> str:
    element = f"[{', '.join(map(str, first.element))}]" if first.element else ""
    accumulator = "" if first.accumulator is None else f", accumulator {first.accumulator}"
    values = f"expected {first.expected}, got {first.got}{accumulator}"
    return f"{first.case} {first.output}{element}: {values}"


def _asked(finding: Finding) -> str:
    made = f" ({finding.made} made)" if finding.made else ""
    return f"{finding.asked}{made}"
