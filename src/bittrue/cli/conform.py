"""`bittrue conform`: is a device right, operator by operator, and what may be claimed of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from .. import numerics
from ..conformance.certificate import merge, verify
from ..conformance.conform import REPEAT, TIMEOUT, conform
from ..conformance.devices.opening import open_device
from ..conformance.models import ModelFile
from ..conformance.result import (
    COMBINED,
    EXACT,
    FAULTS,
    MUST,
    REFUSED,
    SHOULD,
    SKIPPED,
    TOLERATED,
    ConformResult,
    OperatorResult,
)
from ..conformance.suite import AIMS, SUITES
from ..errors import InputError
from ..files import read_file
from ..visible import visible
from .clicking import Choice, DefaultGroup, DeviceCommand, GroupedOption
from .common import check_targets, console, late_progress, split_aims, split_words
from .endings import resumable
from .plain import say, say_json
from .report import write_reports
from .tables import Column, table

_STYLES = {EXACT: "green", COMBINED: "green", TOLERATED: "yellow", SKIPPED: "dim"}
_MOST_SHOWN, _MOST_SAID, _MOST_REASONS = 3, 100, 2
_FILE = click.Path(dir_okay=False, path_type=Path)
_DASH = click.Path(dir_okay=False, path_type=Path, allow_dash=True)
_KNOWN = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(
    "conform",
    cls=DefaultGroup,
    default="run",
    first_words="Say which device: `bittrue conform litert:xnnpack`, for instance; `bittrue conform --help` lists all.",
)
def command() -> None:
    """Test DEVICE with a suite of one-operator models: a verdict for every operator.

    A verdict names the arithmetic that the operator has, or what is wrong with it.

    \b
    bittrue conform litert:xnnpack
    bittrue conform ./my_device.py:run --operator CONV_2D --html report.html
    bittrue conform program:./device.sh -j2 --resume run.journal -o result.json
    bittrue conform verify result.json
    bittrue conform merge part1.json part2.json -o result.json

    Exit code 0: the required level is reached (3: every operator bit-exact to a named numerics) and every model that
    must be refused was refused; 1: not so; 2: wrong usage; 3: could not run.
    """


def _grouped(group: str, *names: str, **more: Any) -> Any:
    return click.option(*names, cls=GroupedOption, group=group, **more)


_WHAT, _HOW, _MODELS, _FILES = "What is run", "How it is run", "Whole models (level 4)", "Reports"


def _file_options(function: Any) -> Any:
    for name, kind, title in reversed(
        (
            ("output", _FILE, "Write the result as JSON: the certificate, which `bittrue conform verify` checks."),
            ("html", _FILE, "Write one HTML page that works offline."),
            ("junit", _FILE, "Write JUnit XML: one test per case."),
            ("markdown", _DASH, "Write a short summary for CI; - prints it."),
        )
    ):
        names = ("--output", "-o") if name == "output" else (f"--{name}",)
        function = _grouped(_FILES, *names, type=kind, metavar="FILE", help=title)(function)
    return _grouped(_FILES, "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")(
        function
    )


def _model_options(function: Any) -> Any:
    for option in reversed(
        (
            _grouped(_MODELS, "--model", "models", multiple=True, type=_KNOWN, help="A whole model; repeat for more."),
            _grouped(
                _MODELS,
                "--inputs",
                multiple=True,
                metavar="[NAME=]FILE",
                help="What models are fed: .npy, .npz, images, or a folder of them. Without it: random values.",
            ),
            _grouped(
                _MODELS,
                "--runs",
                show_default="8",
                type=click.IntRange(1, 10_000),
                help="Random inputs per model: seeds 0, 1, ...",
            ),
        )
    ):
        function = option(function)
    return function


@command.command("run", cls=DeviceCommand)
@click.argument("device")
@_grouped(_WHAT, "--suite", type=Choice(tuple(SUITES)), help="By default by the format that the device reads.")
@_grouped(
    _WHAT,
    "--operator",
    "operators",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help="Only these, comma-separated or repeated; `bittrue vectors list` shows them.",
)
@_grouped(
    _WHAT,
    "--types",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help="Comma-separated types such as s8,u8,s16, or 'all'; by default those of the specification.",
)
@_grouped(
    _WHAT,
    "--aim",
    "aims",
    multiple=True,
    callback=split_aims,
    metavar="NAMES",
    help=f"Only cases aimed at these: {', '.join(AIMS)}.",
)
@_grouped(_WHAT, "--case", "cases", multiple=True, metavar="IDENTITY", help="Only this case, as CONV_2D/s8/ties/003.")
@_grouped(_WHAT, "--shard", default="", metavar="I/N", help="Only part I of N; `bittrue conform merge` joins parts.")
@_grouped(
    _WHAT, "--numerics", default="", type=Choice(("", *numerics.names())), metavar="NAME", help="Claim only this."
)
@_grouped(
    _WHAT,
    "--require",
    multiple=True,
    default=(3,),
    show_default="3",
    type=click.IntRange(0, 4),
    metavar="LEVEL",
    help="The least level of arithmetic for exit code 0; 0: that what must be refused is. Repeat it for both.",
)
@_grouped(
    _HOW, "--repeat", default=REPEAT, show_default=True, type=click.IntRange(1, 100), help="How often a case is asked."
)
@_grouped(
    _HOW,
    "--timeout",
    default=TIMEOUT,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="For one case.",
)
@_grouped(_HOW, "--jobs", "-j", default=1, show_default=True, type=click.IntRange(1, 256), help="Processes.")
@_grouped(_HOW, "--prints", "show_prints", is_flag=True, help="Show what the device prints, case by case.")
@_grouped(_HOW, "--resume", type=_FILE, help="Keep answers in this file, and go on from it when it exists.")
@_grouped(
    _HOW,
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save the smallest failing case of every operator: model, inputs, expected outputs, facts.",
)
@_model_options
@_grouped(_MODELS, "--no-demo", is_flag=True, help="Leave the embedded digit network out.")
@_file_options
def run(
    device: str,
    suite: str | None,
    operators: tuple[str, ...],
    types: tuple[str, ...],
    aims: tuple[str, ...],
    cases: tuple[str, ...],
    shard: str,
    numerics: str,
    require: tuple[int, ...],
    repeat: int,
    timeout: float,
    jobs: int,
    show_prints: bool,
    resume: Path | None,
    save: Path | None,
    models: tuple[Path, ...],
    inputs: tuple[str, ...],
    runs: int | None,
    no_demo: bool,
    as_json: bool,
    output: Path | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    """Run the suite on DEVICE; the word `run` may be left out.

    Exit code 0: the required level is reached (3: every operator bit-exact to a named numerics) and nothing ran that
    must be refused; 1: not so. To end without an answer over a model that must be refused (LiteRT aborts over some)
    costs level 0 alone, which --require 0 asks for.
    """
    _check_prints(as_json, markdown)
    check_targets(output, junit, markdown, resume, html=html)
    advice = "no answers were kept: --resume FILE keeps them, and goes on from them"
    if resume is not None:
        advice = f"finished answers are kept in {resume}: the same command goes on from there"
    with late_progress(f"conformance of {device}") as progress, resumable(advice):
        result = conform(
            device,
            suite or "",
            operators=operators,
            types=(() if "all" in types else types) if types else None,
            aims=aims,
            cases=cases,
            shard=shard,
            numerics=numerics,
            repeat=repeat,
            resume=resume,
            models=read_models(models, inputs, runs),
            demo=not no_demo,
            jobs=jobs,
            timeout=timeout,
            save=save,
            progress=progress,
            prints=_show_prints if show_prints else None,
        )
    _report(result, as_json, output, html, junit, markdown)
    click.get_current_context().exit(0 if all(map(result.reaches, require)) else 1)


@command.command("verify")
@click.argument("file", type=_KNOWN)
@click.option("--device", metavar="DEVICE", help="Also ask this device again and compare.")
@_model_options
def verify_command(
    file: Path, device: str | None, models: tuple[Path, ...], inputs: tuple[str, ...], runs: int | None
) -> None:
    """Check FILE, the JSON of a run: make the suite again and work out every verdict and claim anew.

    Exit code 0: everything holds; 1: something does not, and is listed.
    """
    data = _read(file)
    opened = None if device is None else open_device(device)
    try:
        with late_progress(f"verifying {file.name}") as progress:
            problems = verify(data, read_models(models, inputs, runs), opened, progress)
    finally:
        if opened is not None:
            opened.close()
    out = console()
    for problem in problems:
        out.print(f"does not hold: {problem}", style="red")
    if not problems:
        result = ConformResult.from_dict(data)
        out.print(
            f"holds: {_counted(result.count(), 'case')}, {_counted(len(result.operators), 'verdict')}, "
            f"digest {result.digest[:16]}",
            style="green",
        )
        out.print(result.claim)
    click.get_current_context().exit(1 if problems else 0)


@command.command("merge")
@click.argument("files", nargs=-1, required=True, type=_KNOWN)
@_file_options
def merge_command(
    files: tuple[Path, ...],
    as_json: bool,
    output: Path | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    """Put the parts of one run (`--shard`) together. Exit code as for `bittrue conform run`."""
    _check_prints(as_json, markdown)
    check_targets(output, junit, markdown, html=html)
    parts = [ConformResult.from_dict(_read(file), str(file)) for file in files]
    with late_progress("merging"):
        result = merge(parts)
    _report(result, as_json, output, html, junit, markdown)
    click.get_current_context().exit(0 if result.passed else 1)


def _show_prints(case: str, text: str) -> None:
    say(*(f"{case}: {line}" for line in text.splitlines()), err=True)


def read_models(models: Sequence[Path], inputs: Sequence[str], runs: int | None) -> list[ModelFile]:
    """Models of the command line, with what they are fed."""
    if inputs and not models:
        raise InputError("BT-USAGE", "--inputs are for models", place="--inputs", advice="name one with --model")
    if runs is not None and (inputs or not models):
        why = "files of --inputs are the runs" if inputs else "random runs are those of models (--model)"
        raise InputError("BT-USAGE", f"has no effect: {why}", place="--runs", advice="leave it out")
    return [ModelFile.read(path, inputs, range(runs or 0)) for path in models]


def _read(file: Path) -> Any:
    try:
        return json.loads(read_file(file))
    except (ValueError, RecursionError) as error:
        raise InputError("BT-RESULT", f"this is no JSON: {error}", place=str(file)) from None


def _check_prints(as_json: bool, markdown: Path | None) -> None:
    if as_json and str(markdown) == "-":
        raise InputError("BT-USAGE", "--json and --markdown - both print; write one of them to a file")


def _report(
    result: ConformResult,
    as_json: bool,
    output: Path | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    data = result.to_dict()
    write_reports(data, {".json": output, ".xml": junit, ".html": html, ".md": markdown})
    if as_json:
        say_json(data)
    elif str(markdown) != "-":
        show(result)
        console().print(f"next: {_next(result, output)}", soft_wrap=True)


def _next(result: ConformResult, output: Path | None) -> str:
    """What to type after this result."""
    if result.operators and all(found.verdict == SKIPPED for found in result.operators):
        case = result.operators[0].cases[0].identity
        folder = result.device.removeprefix("results:")
        if folder != result.device:
            return f"outputs are looked for in folders such as {folder.rstrip('/')}/{case}"
        return "--operator NAMES chooses what the device can run; --suite and --types choose other models"
    if result.selection.shard:
        return "bittrue conform merge PART.json ... joins all parts, each written with -o"
    if output is not None:
        return f"bittrue conform verify {shlex.quote(str(output))}"
    if any(found.failing is not None for found in result.operators):
        return "--save DIR keeps the failing cases as files, --html FILE shows them all, -o FILE keeps the result"
    return "-o FILE keeps this as a certificate, --html FILE makes a page of it"


def show(result: ConformResult) -> None:
    """The result on the terminal: one row per operator, then what failed, then the claim."""
    out = console()
    out.print(
        f"{result.device_title} ({result.device}): {result.suite_title}, suite version "
        f"{result.suite_version}, {result.count():,} cases, each asked {_times(result.repeat)}, {result.seconds:.0f} s",
    )
    columns = [Column("operator"), Column("types", "text"), Column("level"), Column("exact", right=True)]
    columns += [Column("refuses", right=True, least=1), Column("verdict", "text")]
    rows = []
    for found in result.operators:
        refused = found.counts.get(REFUSED, 0)
        must = sum(found.counts.get(outcome, 0) for outcome in MUST)
        ran = sum(n for o, n in found.counts.items() if o not in ("skipped", *MUST, *SHOULD))
        level = f"L{found.level}" if found.level else "-"
        exact = f"{found.counts.get('exact', 0)}/{ran}"
        refuses = Text(f"{refused}/{must}" if must else "", style="" if refused == must else "yellow")
        verdict = Text(visible(_verdict(found)), style=_style(found))
        rows.append((found.operator, found.types, level, exact, refuses, verdict))
    out.print(table(columns, rows, out.width))
    failing = [found for found in result.operators if found.failing is not None]
    for found in failing[:_MOST_SHOWN]:
        _show_failing(out, found)
    if len(failing) > _MOST_SHOWN:
        out.print(f"and failing cases of {len(failing) - _MOST_SHOWN} more operators: --json, --html, --save")
    for model in result.models:
        who = f"bit-exact to {', '.join(model.matches)}" if model.matches else model.text or "not exact"
        out.print(f"model {model.name}, {len(model.inputs)} inputs: {who}")
    for note in result.notes:
        out.print(f"note: {note}")
    style = "bold green" if result.passed else "bold yellow" if result.level else "bold red"
    out.print(result.claim, style=style)


def _style(found: OperatorResult) -> str:
    return _STYLES.get(found.verdict, "red")


def _verdict(found: OperatorResult) -> str:
    """The row's sentence: for exact operators who it is, else the verdict's own text."""
    said = found.text
    if found.verdict == EXACT:
        said = said.removeprefix("bit-exact to ").partition(": ")[0] if found.matches else said
    elif found.verdict not in FAULTS:
        said = f"{found.verdict}: {said}"
    if found.skipped:
        reasons = "; ".join(f"{n} skipped: {_short(why)}" for why, n in list(found.skipped.items())[:_MOST_REASONS])
        if len(found.skipped) > _MOST_REASONS:
            reasons += f"; {len(found.skipped) - _MOST_REASONS} more reasons in the JSON"
        said = reasons if found.verdict == SKIPPED else f"{said}; {reasons}"
    if found.known:
        said = f"{said}; recorded of {found.reference}: {found.known}"
    return said


def _short(text: str) -> str:
    """A device's reason on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SAID else f"{line[: _MOST_SAID - 3]}..."


def _show_failing(out: Any, found: OperatorResult) -> None:
    failing = found.failing
    assert failing is not None
    index = ", ".join(map(str, failing.element))
    got, expected = _number(failing.got), _number(failing.expected)
    out.print(
        f"{found.operator} {found.types}, smallest failing case {failing.identity} ({failing.note}): "
        f"{failing.output}[{index}] is {got}, {failing.numerics} gives {expected}",
        style="bold",
    )
    numbers = [f"{key.replace('_', ' ')} {_number(value)}" for key, value in failing.numbers.items()]
    if numbers:
        out.print(f"  {', '.join(numbers)}")
    if failing.reduced is not None:
        kept = ", ".join(f"{c.input}[{c.position}] = {_number(c.value)}" for c in failing.reduced[:8])
        more = f" and {len(failing.reduced) - 8} more" if len(failing.reduced) > 8 else ""
        what = f"with {kept}{more} and zero points elsewhere" if kept else "with zero points everywhere"
        out.print(f"  {what}: {_number(failing.reduced_got)}, expected {_number(failing.reduced_expected)}")
    if failing.replay:
        out.print(f"  replay: {failing.replay}", soft_wrap=True)


def _number(value: float | None) -> str:
    """Integers with all their digits.

    >>> _number(1195033660.0), _number(-20.5)
    ('1195033660', '-20.5')
    """
    if value is None:
        return "-"
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else f"{value:.9g}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
