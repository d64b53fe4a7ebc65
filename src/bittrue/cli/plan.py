"""`bittrue plan`: every decision taken, as text, as JSON or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from ..runners.processor import processor_note
from .clicking import GroupedCommand
from .common import check_targets, open_session, prepare_options, print_lines
from .plain import say, say_json


@click.command("plan", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Also save the plan; `bittrue run` runs it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with the members of a plan file.")
@click.option("--constants", is_flag=True, help="With --json: the values of weights and other constants, too.")
@prepare_options
def command(model: str, output: str | None, as_json: bool, constants: bool, **prepare: Any) -> None:
    """Print every integer and rule that MODEL is run with, or save them as a plan file.

    Multipliers, exponents, zero points, clamps, and the proven bounds of the accumulators.
    """
    check_targets(None if output is None else Path(output))
    if constants and not as_json:
        raise InputError("BT-USAGE", "--constants needs --json")
    session = open_session(model, **prepare)
    if output:
        session.plan.save(output)
    if as_json:
        say_json(session.plan.to_dict(constants))
        return
    print_lines(str(session.plan))
    if note := processor_note(session.plan.numerics):
        say("", f"note: {note}")
    if output:
        say("", f"saved to {output}")
