"""`bittrue replay`: recorded vectors of another runtime, run again and compared byte for byte."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .. import numerics
from ..conformance.recorded import Outcome, Replay, replay
from ..conformance.recorded.replay import EXECUTORS
from .common import console


@click.command("replay")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--numerics",
    "name",
    type=click.Choice(numerics.names()),
    help="Whose arithmetic; by default that of the framework that recorded the vectors.",
)
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Only this operator; repeat for more.")
@click.option("--executor", default="auto", show_default=True, type=click.Choice(EXECUTORS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(folder: str, name: str | None, operators: tuple[str, ...], executor: str, as_json: bool) -> None:
    """Run the recorded vectors in FOLDER and compare the results with the recorded bytes.

    FOLDER holds what `bittrue vectors` wrote, a manifest.json of the form bittrue-vectors-1 with its files, ONNX
    backend tests (folders with a model.onnx and test_data_set_*), or folders with a desc.json. The exit code is 1 when
    a case differs or is refused, or runs although it must be refused.

    \b
    bittrue replay vectors/onnxruntime
    bittrue replay vectors/onnxruntime --operator QLinearConv --numerics onnx
    bittrue replay onnx/backend/test/data/node --json
    """
    with Progress(
        TextColumn("replaying"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("")
        found = replay(
            folder,
            name,
            operators=operators,
            executor=executor,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=1))
    else:
        _print(found)
    if not found.passed:
        raise SystemExit(1)


def _print(found: Replay) -> None:
    out = console()
    out.print(f"vectors of {found.framework} ({found.version})", markup=False)
    table = Table(title=f"replayed with numerics {', '.join(found.numerics)}", title_justify="left")
    table.add_column("operator", overflow="fold")
    for column in ("cases", "equal", "refused", "values", "unequal"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("first difference", overflow="fold", ratio=1)
    for summary in found.operators():
        table.add_row(
            summary.operator,
            f"{summary.cases:,}",
            f"{summary.equal:,}",
            f"{summary.refused:,}" if summary.refused else "",
            f"{summary.values:,}",
            f"{summary.differing:,}" if summary.differing else "",
            "" if summary.first is None else _first(summary.first),
        )
    out.print(table)
    for reason, outcomes in found.apart().items():
        equal = sum(outcome.equal for outcome in outcomes)
        out.print(f"of these, {equal:,} of {len(outcomes):,} equal where the result depends on {reason}", markup=False)
    values = sum(outcome.values for outcome in found.outcomes)
    verdict = f"{found.equal:,} of {len(found.outcomes):,} cases equal, {values:,} values compared"
    out.print(f"[{'green' if found.passed else 'red'}]{verdict}[/]")


def _first(outcome: Outcome) -> str:
    from rich.markup import escape

    return escape(f"{outcome.case}: {outcome.refusal or outcome.first}")
