"""What several commands share: opening models, consoles, tables of tensors, progress."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from .. import api, numerics
from ..errors import InputError
from ..files import read_file
from ..names import distinct, short
from ..numerics import Numerics
from ..plan import DEFAULT_MEMORY_LIMIT
from ..plan.passes import PASSES
from ..runtime import DEFAULT_ITERATION_LIMIT
from ..visible import visible
from .clicking import Choice, GroupedOption
from .plain import say
from .terminal import Terminal

if TYPE_CHECKING:
    from rich.progress import Progress

# Work (multiply-accumulates) from which a bar is worth showing.
_LONG = 200_000_000
# Seconds after which people want to see that something happens.
_PATIENCE = 2.0


def console() -> Terminal:
    """Standard output: as wide as COLUMNS says, else as the terminal is, else 120 columns."""
    return Terminal(width=_columns() or (None if sys.stdout.isatty() else 120))


def _columns() -> int | None:
    text = os.environ.get("COLUMNS", "")
    return max(int(text), 20) if text.isascii() and text.isdigit() and 0 < int(text) <= 10_000 else None


def print_lines(text: str) -> None:
    """Our own lines of text: folded where somebody looks or COLUMNS is set, else whole, for other programs."""
    folds = _columns() is not None or sys.stdout.isatty()
    say(*(folded(text, console().width) if folds else text).split("\n"))


def split_words(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The callback of options that may be repeated or hold several words with commas: ``--types s8,u8 --types s16``."""
    return tuple(word for text in given for word in map(str.strip, text.split(",")) if word)


def split_aims(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """The same for aims, which the names of cases write with hyphens."""
    return tuple(word.replace("-", " ") for word in split_words(ctx, parameter, given))


def _option(group: str, *names: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


_INPUTS, _PREPARE = "Inputs", "How the model is prepared"


def prepare_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that prepares a model."""
    for option in reversed(
        (
            _option(
                _PREPARE,
                "--numerics",
                type=Choice(numerics.names()),
                metavar="NAME",
                help="Whose arithmetic (`bittrue numerics` lists them); "
                "by default that of the runtime that the file's format comes with.",
            ),
            _option(
                _PREPARE,
                "--weights",
                type=click.Path(exists=True, dir_okay=False),
                help="The file with the weights, for formats that have two; by default the one beside MODEL.",
            ),
            _option(_PREPARE, "--graph", default="0", show_default=True, help="Graph index, name or signature key."),
            _option(
                _PREPARE,
                "--shape",
                "shapes",
                multiple=True,
                metavar="NAME=1,8,8,3",
                help="New shape of an input, or size of a free dimension (sequence=64); repeat for more.",
            ),
            _option(
                _PREPARE,
                "--until",
                "outputs",
                multiple=True,
                metavar="TENSOR",
                help="Compute this tensor instead of the model's outputs; repeat for more.",
            ),
            _option(
                _PREPARE,
                "--memory-limit",
                default=DEFAULT_MEMORY_LIMIT >> 20,
                show_default=True,
                type=click.IntRange(1),
                metavar="MIB",
                help="Live activations and temporaries that a run may need, beside eight times the bytes of the "
                "model's constants.",
            ),
            _option(
                _PREPARE,
                "--iteration-limit",
                default=DEFAULT_ITERATION_LIMIT,
                show_default=True,
                type=click.IntRange(1),
                metavar="N",
                help="Loop iterations, branches and calls of other graphs that a run may take.",
            ),
            _option(_PREPARE, "--executor", default="auto", show_default=True, type=Choice(api.EXECUTORS)),
            _option(_PREPARE, "--isa", metavar="NAME", help="Instruction set of the native executor."),
            _option(
                _PREPARE,
                "--passes",
                metavar="NAMES",
                help=f"Comma-separated passes of the native executor, or 'none'; all by default: {', '.join(PASSES)}.",
            ),
        )
    ):
        command = option(command)
    return command


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `bittrue.runners.inputs.one_input_set` takes."""
    for option in reversed(
        (
            _option(
                _INPUTS,
                "--input",
                "-i",
                "files",
                multiple=True,
                metavar="[NAME=]FILE",
                help="An .npy, .npz, raw (.bin, .raw) or image file; repeat for more. Without it: random values.",
            ),
            _option(_INPUTS, "--seed", show_default="0", type=click.IntRange(0), help="Seed of random inputs."),
            _option(
                _INPUTS,
                "--image-range",
                nargs=2,
                type=float,
                metavar="LOW HIGH",
                help="Real values of black and white; by default an 8-bit input takes the values over its whole range.",
            ),
        )
    ):
        command = option(command)
    return command


def open_shape_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--shape`, for commands that look at a model without running it."""
    option: Callable[..., Any] = click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="NAME=1,8,8,3",
        help="Shape of an open input, or size of a free dimension.",
    )
    made: Callable[..., Any] = option(command)
    return made


def random_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--runs` and `--shape`, for commands that compare on random inputs."""
    runs = _option(
        _INPUTS,
        "--runs",
        show_default="1",
        type=click.IntRange(1, 10_000),
        help="Random runs: seeds count on.",
    )
    shape = _option(
        _INPUTS,
        "--shape",
        "shapes",
        multiple=True,
        metavar="NAME=1,8,8,3",
        help="Shape of an open input's random values, or size of a free dimension (sequence=64); repeat for more.",
    )
    made: Callable[..., Any] = runs(shape(command))
    return made


def open_session(
    path: str,
    *,
    numerics: str | Numerics | None,
    graph: str,
    shapes: tuple[str, ...],
    outputs: tuple[str, ...],
    memory_limit: int,
    iteration_limit: int,
    executor: str,
    isa: str | None,
    passes: str | None,
    weights: str | None = None,
    threads: int = 1,
) -> api.Session:
    """A session from a model file, or from a plan that `bittrue plan --output` wrote."""
    chosen = None if passes is None else [name for name in passes.split(",") if name and name != "none"]
    if is_plan(path):
        if shapes or outputs or weights:
            raise InputError("BT-USAGE", "--shape, --until and --weights need the model; a plan is fixed")
        return api.load_plan(
            path,
            executor=executor,
            threads=threads,
            isa=isa,
            passes=chosen,
            memory_limit=memory_limit << 20,
            iteration_limit=iteration_limit,
        )
    return api.load(path, weights).prepare(
        numerics,
        executor=executor,
        threads=threads,
        isa=isa,
        passes=chosen,
        graph=int(graph) if graph.lstrip("-").isdigit() else graph,
        shapes=parse_shapes(shapes),
        outputs=outputs or None,
        memory_limit=memory_limit << 20,
        iteration_limit=iteration_limit,
    )


def executor_name(session: api.Session) -> str:
    """Executor and instruction set, for people."""
    return f"{session.executor} ({session.isa})" if session.isa else session.executor


def is_plan(path: str) -> bool:
    """Whether the file is a plan that `bittrue plan --output` wrote."""
    if not os.path.isfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "plan.json" in archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return False


def parse_shapes(texts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes by input name from NAME=1,8,8,3, sizes by dimension name from NAME=64."""
    return dict(_shape(text) for text in texts)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sizes = text.rpartition("=")
    try:
        return name, tuple(int(size) for size in sizes.replace("x", ",").split(","))
    except ValueError:
        raise InputError("BT-USAGE", f"cannot read the shape '{text}'", advice="write NAME=1,8,8,3") from None


@contextmanager
def progress(session: api.Session, title: str, runs: int = 1) -> Iterator[Callable[[int], None] | None]:
    """A bar over the steps on standard error, when the work is long enough and someone is looking."""
    if session.plan.work * runs < _LONG or not sys.stderr.isatty():
        yield None
        return
    with _bar() as bar:
        # Nobody knows yet how many steps later stages have.
        task = bar.add_task(title, total=None if session.plan.later else len(session.plan.steps) * runs)
        yield lambda position: bar.advance(task)


@contextmanager
def late_progress(title: str) -> Iterator[Callable[..., None] | None]:
    """A bar on standard error for work of unknown length, once it has taken long and if someone is looking.

    Yields:
        What to call with the number of parts that are done, of all (0 when nobody knows), and what is being done now.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _bar()
    task = bar.add_task(title, total=None)
    timer = Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:

        def tick(done: int, count: int, what: str = title) -> None:
            bar.update(task, completed=done, total=count or None, description=what)

        yield tick
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _bar() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Terminal(stderr=True),
        transient=True,
    )


def check_targets(*files: Path | None, html: Path | None = None) -> None:
    """Whether results can be written there: said before anything is worked out, not after.

    Raises:
        InputError: the folder of a file is not there or cannot be written to, or the file is a folder; a page is asked
            for, and what draws pages is not installed.
    """
    for file in (*files, html):
        if file is None or str(file) == "-":
            continue
        folder = file.absolute().parent
        if not folder.is_dir():
            advice = f"make it first: mkdir -p {shlex.quote(str(file.parent))}"
            raise InputError("BT-FILE-MISSING", f"there is no folder '{file.parent}'", place=str(file), advice=advice)
        if file.is_dir() or not os.access(file if file.exists() else folder, os.W_OK):
            raise InputError("BT-FILE-WRITE", "it cannot be written", place=str(file), advice="name another file")
    if html is not None:
        from ..report.html import check_packages

        check_packages()


def shortened(name: str, width: int) -> str:
    """A name within `width` columns, fit for a terminal."""
    return short(visible(name), width)


def all_shortened(names: Sequence[str], width: int) -> list[str]:
    """Names that are shown together, each within `width` columns, different ones still different."""
    return distinct([visible(name) for name in names], width)


def short_names(text: str, width: int = 48) -> str:
    """A text in which the quoted names are short.

    >>> short_names("B shows 'a/rather/long/name' as it is", 12)
    "B shows 'a/rat…g/name' as it is"
    """
    return re.sub(rf"'[^']{{{width + 1},}}'", lambda found: f"'{shortened(found.group()[1:-1], width)}'", text)


def folded(text: str, width: int) -> str:
    """Lines of our own, those that are too long continued further in, broken at blanks where there are any.

    >>> print(folded("  rules  one two three", 16))
      rules  one two
          three
    """
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * min(len(line) - len(line.lstrip()) + 4, max(width // 2, 1))
        while len(line) > width:
            at = line.rfind(" ", len(indent) + 1, width + 1)
            if at < 0 or not line[:at].strip():
                # Names are paths.
                at = max(line.rfind(mark, len(indent) + 1, width) for mark in ";/") + 1 or width
            lines.append(line[:at].rstrip())
            line = indent + line[at:].lstrip()
        lines.append(line)
    return "\n".join(lines)


def digest(value: np.ndarray) -> str:
    """SHA-256 of the array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()


def read_lines(path: str) -> list[str]:
    """Lines of a text file without their ends."""
    return read_file(path).decode("utf-8-sig", errors="replace").splitlines()
