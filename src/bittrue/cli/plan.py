"""`bittrue plan`: every decision taken, as text or as a file."""

from __future__ import annotations

from typing import Any

import click

from .common import GroupedCommand, open_session, prepare_options


@click.command("plan", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Also save the plan; `bittrue run` runs it.")
@prepare_options
def command(model: str, output: str | None, **prepare: Any) -> None:
    """Print the plan of MODEL: rules, multipliers, exponents, zero points, clamps, accumulator bounds."""
    session = open_session(model, **prepare)
    if output:
        session.plan.save(output)
    click.echo(str(session.plan))
    if output:
        click.echo(f"\nsaved to {output}")
