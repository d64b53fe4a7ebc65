"""The command line in this process: starting another one costs more than most commands do."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from bittrue.cli import cli, endings


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(*words: object, check: int | None = 0, together: bool = False) -> Done:
    """`bittrue` with these words; it must end with the code `check`, and never in a traceback.

    together: both streams are one, as on a terminal; it is `stdout`.
    """
    held, said = io.BytesIO(), io.BytesIO()
    out = io.TextIOWrapper(held, "utf-8", write_through=True)
    err = out if together else io.TextIOWrapper(said, "utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        code = endings.run(cli, list(map(str, words)))
    done = Done(code, held.getvalue().decode(), said.getvalue().decode())
    assert "Traceback" not in done.stderr, done.stderr
    assert check is None or code == check, done.stdout + done.stderr
    return done
