"""`bittrue rule`: what a check rule asks for, why, who enforces it, and how to fix a model."""

from __future__ import annotations

import click
from rich.padding import Padding
from rich.text import Text

from ..check import Rule
from ..check.rules import all_rules, find
from .common import console
from .plain import say_json
from .tables import Column, table


@click.command("rule")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per rule.")
def command(code: str | None, as_json: bool) -> None:
    """Explain the check rule CODE (or its name); list all rules without one.

    \b
    bittrue rule
    bittrue rule BT204
    bittrue rule bias-scale
    """
    rules = (find(code),) if code is not None else all_rules()
    if as_json:
        pages = [rule.to_dict() for rule in rules]
        say_json(pages[0] if code is not None else pages)
    elif code is not None:
        _show(rules[0])
    else:
        _list(rules)


def _show(rule: Rule) -> None:
    out = console()
    formats = ", ".join(rule.formats) or "every format"
    out.print(Text(f"{rule.code} {rule.name}", style="bold"), Text(f"({rule.severity}; {formats})", style="dim"))
    parts = (
        ("what it asks for", rule.what),
        ("why", rule.why),
        ("who enforces it", rule.enforced),
        ("how to fix", rule.fix),
        ("source", rule.source),
    )
    for title, text in parts:
        out.print()
        out.print(title, style="bold")
        out.print(Padding(text, (0, 0, 0, 2)))


def _list(rules: tuple[Rule, ...]) -> None:
    columns = [Column("code"), Column("name"), Column("severity", least=1), Column("formats", least=2)]
    columns.append(Column("what it asks for", "text", room=36))
    rows = [
        # The first sentence.
        (r.code, r.name, r.severity, ", ".join(r.formats) or "all", r.what.split(". ")[0].rstrip("."))
        for r in rules
    ]
    out = console()
    out.print(table(columns, rows, out.width, f"{len(rules)} check rules; `bittrue rule CODE` explains one"))
