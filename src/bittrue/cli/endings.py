"""How a command ends: its exit code, and one readable message instead of a traceback.

Attributes:
    FINE, FOUND, USAGE, COULD_NOT_RUN: what commands themselves end with.
    INTERNAL: a fault of bittrue, EX_SOFTWARE of sysexits.h.
    INTERRUPTED, PIPE: 128 and the number of the signal, as shells have it; 143 after SIGTERM and 129 after SIGHUP.
"""

from __future__ import annotations

import io
import os
import platform
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from .. import __version__
from ..errors import BittrueError, InexactWarning, InputError, InternalError
from ..visible import visible
from .plain import say

FINE, FOUND, USAGE, COULD_NOT_RUN = 0, 1, 2, 3
INTERNAL, INTERRUPTED, PIPE = 70, 128 + signal.SIGINT, 128 + signal.SIGPIPE
# The variable that has tracebacks printed.
TRACEBACK = "BITTRUE_TRACEBACK"
_LONGEST = 2000


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: ends a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def run(command: click.Command, arguments: Sequence[str] | None) -> int:
    """Runs the command line and says on standard error what kept it from its end.

    Args:
        command: what the words are for.
        arguments: the words behind the program's name; None for those of this process.

    Returns:
        The exit code.
    """
    _check_streams()
    try:
        with _terminating(), warnings.catch_warnings():
            # Commands say it in their own words, where users look.
            warnings.simplefilter("ignore", InexactWarning)
            # Shells that complete a line ask for it by this variable.
            if "_BITTRUE_COMPLETE" in os.environ:
                command.main(arguments, prog_name="bittrue")
            # Not `main`, which has an exit code of its own for readers that have gone.
            with command.make_context("bittrue", list(sys.argv[1:] if arguments is None else arguments)) as context:
                command.invoke(context)
            sys.stdout.flush()
        return FINE
    except click.exceptions.Exit as error:
        return error.exit_code
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else FOUND if error.code else FINE
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(*shown.getvalue().removesuffix("\n").split("\n"), err=True)
        return USAGE
    except InternalError as error:
        return _internal(error)
    except BittrueError as error:
        _complain(str(error))
        return USAGE if isinstance(error, InputError) else COULD_NOT_RUN
    except BrokenPipeError:
        # Whoever read standard output has gone, as `head` does: nothing to complain about.
        return PIPE
    except OSError as error:
        _complain(_plain(error))
        return COULD_NOT_RUN
    except MemoryError as error:
        _complain(
            f"[BT-MEMORY] out of memory{f': {error}' if str(error) else ''} (--memory-limit bounds what a run takes)"
        )
        return COULD_NOT_RUN
    except RecursionError:
        _complain("[BT-NESTING] something in this file is nested too deeply to be read (save it flatter)")
        return COULD_NOT_RUN
    except Exception as error:
        return _internal(error)
    finally:
        _close_streams()


@contextmanager
def resumable(advice: str) -> Iterator[None]:
    """While this is open, the message about an interrupt ends in `advice`: what was kept, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = (advice,)
        raise


def _complain(text: str) -> None:
    say(f"bittrue: error: {text if len(text) <= _LONGEST else text[:_LONGEST] + ' ...'}", err=True)


def _plain(error: OSError) -> str:
    """What went wrong with which file, without Python's numbers."""
    if error.filename is None or not error.strerror:
        return str(error)
    return f"{os.fsdecode(error.filename) if not isinstance(error.filename, int) else error.filename}: {error.strerror}"


def _interrupted(error: KeyboardInterrupt) -> int:
    number = error.number if isinstance(error, Terminated) else signal.SIGINT
    what = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    say(f"bittrue: {what}; {error.args[0] if error.args else 'no result was kept'}", err=True)
    return 128 + number


def _internal(error: Exception) -> int:
    told = "".join(traceback.format_exception(error))
    name = type(error).__name__
    say(
        f"bittrue: internal error: {name}: {str(error)[:_LONGEST]}",
        f"This is a bug in bittrue {__version__}; please report it with the command, this message and its traceback.",
        err=True,
    )
    if os.environ.get(TRACEBACK):
        say(*told.rstrip("\n").split("\n"), err=True)
    else:
        say(f"traceback: {_saved(told)}; {TRACEBACK}=1 prints it", err=True)
    return INTERNAL


def _saved(told: str) -> str:
    machine = f"bittrue {__version__}, Python {platform.python_version()}, {platform.platform()}\n{sys.argv[1:]!r}\n"
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="bittrue-", suffix=".traceback", delete=False
        ) as file:
            file.write(visible(machine + told, lines=True))
    except OSError as error:
        return f"could not be written ({_plain(error)})"
    return file.name


@contextmanager
def _terminating() -> Iterator[None]:
    """SIGTERM and SIGHUP raise `Terminated` here, unless whoever started this process has them ignored."""

    def end(number: int, _frame: Any) -> None:
        raise Terminated(number)

    changed = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Handlers belong to the main thread alone.
        with suppress(ValueError):
            if signal.getsignal(number) == signal.SIG_DFL:
                changed.append((number, signal.signal(number, end)))
    try:
        yield
    finally:
        for number, before in changed:
            signal.signal(number, before)


def _check_streams() -> None:
    """Streams that can be written to: with any character, and also where none is open."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            # The terminal's encoding may lack what a table is drawn with, and what names are written in.
            stream.reconfigure(errors="backslashreplace")


def _close_streams() -> None:
    """What cannot be written any more must not be tried again when Python ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
