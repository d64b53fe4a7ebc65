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
    "run": "Run MODEL (a model file, or a plan saved by `bittrue plan --output`).",
    "inspect": "Show inputs, outputs, operators and quantization of MODEL, and which numerics can run it.",
    "plan": "Print the plan of MODEL: rules, multipliers, exponents, zero points, clamps,...",
    "check": "Check MODEL against the specification of its format, what its runtime refuses, and...",
    "rule": "Explain the check rule CODE (or its name); list all rules without one.",
    "compare": "Compare A and B: each is a model file, a model under a numerics, another runtime, or a...",
    "conform": "Put a suite of single-operator models to DEVICE and say which arithmetic it has, or...",
    "explain": "Work out one stored number of MODEL by hand: products, accumulator, multiplier,...",
    "reduce": "Cut a model to the smallest one on which A and B still differ, and save it with its input.",
    "bench": "Time MODEL, and compare bytes and time with other runtimes installed here.",
    "numerics": "List the arithmetics that bittrue reproduces; `show` and `diff` look inside.",
    "identify": "Find out which numerics gives the outputs of DEVICE.",
    "replay": "Run the recorded vectors in FOLDER and compare the results with the recorded bytes.",
    "report": "Make a page or a summary of RESULT, the JSON of `bittrue compare`, `check` or `conform`.",
    "vectors": "Write test vectors aimed at ties, saturation, padding corners and all else that tells...",
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
