"""`bittrue numerics`: which arithmetics there are, what each one does, and where two of them differ."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.text import Text

from .. import numerics as tables
from ..compare.tables import NumericsComparison, compare_numerics
from ..errors import InputError
from ..names import near_or_all
from ..numerics import Row
from ..numerics.processors import elsewhere
from ..rules import formula
from .clicking import Choice, Group
from .common import console
from .plain import say_json
from .tables import Column, table

_NAME = Choice(tables.names())


@click.group("numerics", cls=Group, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List the arithmetics that bittrue reproduces; `show` and `diff` look inside.

    \b
    bittrue numerics
    bittrue numerics show litert --operator conv
    bittrue numerics diff litert xnnpack
    """
    if context.invoked_subcommand is None:
        _list()


def _list() -> None:
    columns = [Column("name"), Column("reproduces", "text", room=36), Column("verified by", "text", least=2, room=36)]
    columns += [Column(title, right=True, least=1) for title in ("operators", "rows", "limits")]
    rows = []
    for name in tables.names():
        found = tables.find(name)
        limits = sum(bool(row.limit or row.refuses) for row in found.rows)
        counts = (str(len(found.operators())), str(len(found.rows)), str(limits))
        rows.append((name, found.reproduces, found.verified, *counts))
    out = console()
    out.print(table(columns, rows, out.width, "numerics"))


@command.command("show")
@click.argument("name", type=_NAME, metavar="NAME")
@click.option("--operator", metavar="STEM", help="Only this operator, for example conv.")
def show(name: str, operator: str | None) -> None:
    """Print every row of one numerics: types, rules, evidence, limits, and what came of it on aarch64."""
    found = tables.find(name)
    _check_operator(operator, name)
    columns = [Column("operator", "text"), Column("types", "text"), Column("when", "text"), Column("rules", "text")]
    columns.append(Column("evidence and limits", "text"))
    rows = [
        (Text(row.operator), *map(Text, (_types(row), _when(row), _rules(row), _evidence(name, row))))
        for row in sorted(found.rows, key=lambda row: row.operator)
        if operator in (None, row.operator)
    ]
    out = console()
    out.print(table(columns, rows, out.width, f"{name}: {found.reproduces}"))
    if found.limit:
        out.print(f"limit of all rows on real numbers: {found.limit}")


def _check_operator(operator: str | None, *names: str) -> None:
    """Refuse an operator that none of the numerics has, with the names that it may stand for."""
    known = {stem for name in names for stem in tables.find(name).operators()}
    if operator is None or operator in known:
        return
    raise InputError(
        "BT-OPERATOR",
        f"'{operator}' is no operator of {' or '.join(names)}",
        place="--operator",
        advice=near_or_all(operator, sorted(known), "there are")
        + "; `bittrue inspect MODEL` gives the stems for the names in a file",
    )


def _types(row: Row) -> str:
    text = "\n".join(row.types)
    return f"{text}\nT = {' '.join(row.where)}" if row.where else text


def _when(row: Row) -> str:
    return "\n".join(" ".join(map(str, condition)) for condition in row.when)


def _rules(row: Row) -> str:
    return "\n".join(f"{slot}: {rule}" for slot, rule in row.rules.items())


def _evidence(name: str, row: Row) -> str:
    if row.refuses:
        return f"refused: {row.refuses}"
    limit = f"limit{' (inexact)' if row.inexact else ''}: {row.limit}" if row.limit else ""
    return "\n".join(filter(None, (row.evidence, limit, elsewhere(name, row))))


@command.command("diff")
@click.argument("first", type=_NAME, metavar="FIRST")
@click.argument("second", type=_NAME, metavar="SECOND")
@click.option("--operator", metavar="STEM", help="Only this operator, for example conv.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def diff(first: str, second: str, operator: str | None, as_json: bool) -> None:
    """Print where two numerics differ, and an example for each pair of rules.

    The exit code is 1 when there is a difference.
    """
    _check_operator(operator, first, second)
    found = compare_numerics(first, second, operator)
    if as_json:
        say_json(_plain(found))
    else:
        _print(found)
    if found.differences:
        raise SystemExit(1)


def _plain(found: NumericsComparison) -> dict[str, object]:
    examples = [
        {"slot": slot, "rules": [one, other], "example": None if shown is None else asdict(shown)}
        for (slot, one, other), shown in found.examples.items()
    ]
    return {
        "first": found.first,
        "second": found.second,
        "same": found.same,
        "differences": [asdict(difference) for difference in found.differences],
        "examples": examples,
    }


def _print(found: NumericsComparison) -> None:
    out = console()
    columns = [Column("operator", "text"), Column("types", "text"), Column("slot", "text")]
    columns += [Column(found.first, "text"), Column(found.second, "text")]
    rows: list[tuple[str | Text, ...]] = []
    for difference in found.differences:
        types = "\n".join(difference.signatures[:3])
        more = f"\nand {len(difference.signatures) - 3} more" if len(difference.signatures) > 3 else ""
        cells = [
            f"{rule}\nwhen {condition}" if condition else rule
            for rule, condition in zip(difference.rules, difference.condition, strict=True)
        ]
        rows.append((difference.operator, Text(types + more), difference.slot or "(row)", *map(Text, cells)))
    if rows:
        out.print(table(columns, rows, out.width, f"{found.first} and {found.second}"))
    titles = ("slot", f"rule of {found.first}", f"rule of {found.second}", "for example", found.first, found.second)
    apart: list[tuple[str, ...]] = []
    for (slot, one, other), shown in found.examples.items():
        if shown is None:
            apart.append((slot, one, other, "by their formulas", formula(slot, one), formula(slot, other)))
        else:
            apart.append((slot, one, other, shown.given, *shown.results))
    if apart:
        out.print(table([Column(title, "text") for title in titles], apart, out.width, "where the rules part"))
    combinations = sum(len(difference.signatures) for difference in found.differences)
    out.print(
        f"{found.same} combinations of operator and types are computed by the same rules, {combinations} entries differ"
    )
