"""`bittrue vectors score`: how many wrong implementations the suite tells from the right one."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Any

import click

from .. import numerics
from ..conformance.mutation import FORMAT, OperatorScore, score
from ..conformance.suite import SUITES, find_suite
from .clicking import Choice
from .common import console, late_progress
from .plain import say_json
from .tables import Column, table


@click.command("score")
@click.argument("operators", nargs=-1, metavar="[OPERATOR]...")
@click.option("--suite", "suite_name", default="litert", show_default=True, type=Choice(list(SUITES)))
@click.option(
    "--types",
    metavar="NAMES",
    help="Comma-separated types such as s8,u8,s16, or 'all'; by default those of the specification.",
)
@click.option(
    "--numerics",
    "name",
    default="",
    type=Choice(["", *numerics.names()]),
    metavar="NAME",
    help="The arithmetic that is right (`bittrue numerics` lists them); by default the suite's.",
)
@click.option(
    "--jobs",
    "-j",
    default=0,
    type=click.IntRange(0, 512),
    metavar="N",
    help="Processes to use; by default as many as there are processors.",
)
@click.option("--mutants", "every", is_flag=True, help="List every mutant with the case that kills it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(
    operators: tuple[str, ...],
    suite_name: str,
    types: str | None,
    name: str,
    jobs: int,
    every: bool,
    as_json: bool,
) -> None:
    """Run every neighbouring wrong implementation (mutant) of OPERATORs (all without one) against the suite.

    A mutant does one thing differently: another tie, another order, a zero point left out, padding off by one, a
    narrower accumulator, another numerics' row. It is killed when a case's outputs have other bytes than they should.
    Beside the whole suite its random cases are scored alone, and with so many more random inputs that both have as many
    elements. Exit code 1 when a mutant survives of which it is not known why.

    \b
    bittrue vectors score CONV_2D ADD
    bittrue vectors score SOFTMAX --types s8,s16 --mutants
    bittrue vectors score --json > score.json
    """
    suite = find_suite(suite_name)
    words: Any = None
    if types is not None:
        words = () if types == "all" else tuple(part.strip() for part in types.split(",") if part.strip())
    with late_progress("scoring") as advance:
        scores = score(suite, operators, words, name, jobs or os.cpu_count() or 1, advance)
    if as_json:
        found = [one.to_dict() for one in scores]
        say_json({"format": FORMAT, "suite": suite.name, "operators": found})
    else:
        _say(scores, every)
    sys.exit(1 if any(one.survivors for one in scores) else 0)


def _say(scores: list[OperatorScore], every: bool) -> None:
    out = console()
    titles = ("cases", "elements", "mutants", "distinguishable", "killed", "random alone", "as many random", "score")
    # What is left out first in narrow terminals; the score never.
    least = {"elements": 6, "distinguishable": 5, "as many random": 4, "random alone": 3, "cases": 2, "mutants": 1}
    columns = [Column("operator"), Column("types"), *(Column(t, right=True, least=least.get(t, 0)) for t in titles)]
    rows = []
    for one in scores:
        numbers = (
            one.cases,
            one.elements,
            len(one.mutants),
            len(one.distinguishable),
            len(one.killed),
            sum(m.random for m in one.mutants),
            sum(m.inflated for m in one.mutants),
        )
        share = f"{100 * len(one.killed) / max(1, len(one.distinguishable)):.1f} %"
        rows.append((one.operator, one.types, *(f"{number:,}" for number in numbers), share))
    out.print(table(columns, rows, out.width, "mutation score"))
    for one in scores:
        if every:
            _list(one)
        for mutant in one.survivors:
            out.print(f"survives {one.operator} {one.types}: {mutant.name}: {mutant.text}", soft_wrap=True)
    claims = sum(bool(m.indistinguishable) for one in scores for m in one.mutants)
    if claims:
        out.print(
            f"{claims:,} mutants compute the same as the right arithmetic on all inputs: --mutants says why",
            soft_wrap=True,
        )


def _list(one: OperatorScore) -> None:
    columns = [Column("mutant", "text"), Column("family", "text", least=1)]
    columns.append(Column("killed by, or why it cannot be", "text"))
    listed = [asdict(mutant) for mutant in one.mutants]
    rows = [(r["name"], r["family"], r["killed_by"] or r["indistinguishable"] or "survives") for r in listed]
    out = console()
    out.print(table(columns, rows, out.width, f"{one.operator} {one.types}"))
