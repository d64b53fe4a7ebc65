"""The `bittrue` command: thin argument parsing over the public API.

Exit codes: 0 fine, 1 a difference or finding, 2 wrong usage, 3 could not run.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from .. import __version__
from ..errors import BittrueError, InputError

# command -> module of this folder; imported only when the command is used, so that --help is instant
_COMMANDS = {
    "run": "run",
    "inspect": "inspect",
    "plan": "plan",
    "explain": "explain",
    "check": "check",
    "rule": "rule",
    "bench": "bench",
    "compare": "compare",
    "numerics": "numerics",
    "replay": "replay",
    "report": "report",
    "demo": "demo",
}

USAGE, COULD_NOT_RUN = 2, 3


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f".{_COMMANDS[name]}", __name__).command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bittrue")
def cli() -> None:
    """Run, check and compare pre-quantized neural networks, bit for bit."""


def main(arguments: list[str] | None = None) -> Any:
    """Entry point: typed errors become one readable line and an exit code, never a traceback."""
    try:
        return cli(arguments, prog_name="bittrue")
    except BittrueError as error:
        click.echo(f"bittrue: error: {error}", err=True)
        sys.exit(USAGE if isinstance(error, InputError) else COULD_NOT_RUN)
    except OSError as error:
        click.echo(f"bittrue: error: {error}", err=True)
        sys.exit(COULD_NOT_RUN)
