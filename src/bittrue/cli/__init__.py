"""The `bittrue` command: thin argument parsing over the public API.

`endings` holds the exit codes.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import click

from .. import __version__
from . import endings
from .clicking import Group

# command, which is called like its module in this folder -> the first sentence of its page. The module is imported only
# when the command is used, so that --help is instant.
_COMMANDS = {
    "run": "Run MODEL, a model file or a saved plan.",
    "inspect": "Show what is in MODEL, and which numerics can run it.",
    "plan": "Print every integer and rule that MODEL is run with, or save them as a plan file.",
    "check": "Find violations of the specification, refusals of runtimes, and hazards in MODEL.",
    "rule": "Explain the check rule CODE (or its name); list all rules without one.",
    "compare": "Compare A and B tensor by tensor, and say where they differ and why.",
    "conform": "Test DEVICE with a suite of one-operator models: a verdict for every operator.",
    "explain": "Work out one element of a tensor step by step, as on paper.",
    "reduce": "Cut a model to the smallest one on which A and B still differ.",
    "bench": "Time MODEL, and compare bytes and time with other runtimes installed here.",
    "evaluate": "Run a data set through MODEL: accuracy, and every sample whose answer changes.",
    "numerics": "List the arithmetics that bittrue reproduces; `show` and `diff` look inside.",
    "identify": "Find out which numerics gives the outputs of DEVICE.",
    "replay": "Run the test vectors in FOLDER and compare the results with the recorded bytes.",
    "report": "Make an HTML page or a summary of RESULT of compare, check, conform or evaluate.",
    "vectors": "Write test vectors aimed at what tells arithmetics apart.",
    "demo": "Recognise handwritten digits with an int8 network, and look into one of its roundings.",
}


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f".{name}", __name__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bittrue")
def cli() -> None:
    """Run, check and compare pre-quantized neural networks, bit for bit.

    \b
    Exit codes:
      0  fine                       70  internal error: a bug in bittrue
      1  a difference or a finding  130 interrupted (Ctrl-C), 143 ended by SIGTERM
      2  wrong usage                141 nobody read standard output to its end
      3  could not run
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point: ends the process with one of the codes above, and never with a traceback."""
    sys.exit(endings.run(cli, arguments))
