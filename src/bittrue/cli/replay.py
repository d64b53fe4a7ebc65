"""`bittrue replay`: recorded vectors of another runtime, run again and compared byte for byte."""

from __future__ import annotations

import click

from .. import numerics
from ..conformance.recorded import Outcome, Replay, replay
from ..conformance.recorded.replay import EXECUTORS
from .clicking import Choice
from .common import console, late_progress
from .plain import say_json
from .tables import Column, table


@click.command("replay")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--numerics",
    "name",
    type=Choice(numerics.names()),
    help="Whose arithmetic; by default that of the framework that recorded the vectors.",
)
@click.option("--operator", "operators", multiple=True, metavar="NAME", help="Only this operator; repeat for more.")
@click.option("--executor", default="auto", show_default=True, type=Choice(EXECUTORS))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(folder: str, name: str | None, operators: tuple[str, ...], executor: str, as_json: bool) -> None:
    """Run the test vectors in FOLDER and compare the results with the recorded bytes.

    FOLDER holds what `bittrue vectors` wrote, a manifest.json of the form bittrue-vectors-1 with its files, ONNX
    backend tests (folders with a model.onnx and test_data_set_*), or folders with a desc.json. The exit code is 1 when
    a case differs or is refused, or runs although it must be refused.

    \b
    bittrue replay vectors/onnxruntime
    bittrue replay vectors/onnxruntime --operator QLinearConv --numerics onnx
    bittrue replay onnx/backend/test/data/node --json
    """
    with late_progress("replaying") as progress:
        found = replay(folder, name, operators=operators, executor=executor, progress=progress)
    if as_json:
        say_json(found.to_dict())
    else:
        _print(found)
    if not found.passed:
        raise SystemExit(1)


def _print(found: Replay) -> None:
    out = console()
    out.print(f"vectors of {found.framework} ({found.version})")
    columns = [Column("operator", "name"), Column("cases", right=True), Column("equal", right=True)]
    columns += [Column("refused", right=True, least=1), Column("values", right=True, least=2)]
    columns += [Column("unequal", right=True), Column("first difference", "text")]
    rows = [
        (
            summary.operator,
            f"{summary.cases:,}",
            f"{summary.equal:,}",
            f"{summary.refused:,}" if summary.refused else "",
            f"{summary.values:,}",
            f"{summary.differing:,}" if summary.differing else "",
            "" if summary.first is None else _first(summary.first),
        )
        for summary in found.operators()
    ]
    out.print(table(columns, rows, out.width, f"replayed with numerics {', '.join(found.numerics)}"))
    for reason, outcomes in found.apart().items():
        equal = sum(outcome.equal for outcome in outcomes)
        out.print(f"of these, {equal:,} of {len(outcomes):,} equal where the result depends on {reason}")
    values = sum(outcome.values for outcome in found.outcomes)
    verdict = f"{found.equal:,} of {len(found.outcomes):,} cases equal, {values:,} values compared"
    out.print(verdict, style="green" if found.passed else "red")


def _first(outcome: Outcome) -> str:
    return f"{outcome.case}: {outcome.refusal or outcome.first}"
