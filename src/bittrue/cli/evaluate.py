"""`bittrue evaluate`: a data set through a model, and where its answers change."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .. import api
from ..errors import InexactWarning, InputError
from ..evaluation.evaluate import ENGINES, evaluate
from ..evaluation.merging import merge_evaluations
from ..evaluation.metrics import find_metric
from ..evaluation.recipes import METADATA, known
from ..evaluation.requirements import flipped, numbers
from ..evaluation.sources import KINDS
from ..evaluation.tasks import TASKS
from ..names import parse_shard
from ..report.evaluation import named
from ..report.words import plural
from ..runners.named import NAMES
from .clicking import Choice, DefaultGroup, GroupedCommand, GroupedOption
from .common import console, split_words
from .endings import resumable
from .plain import say, say_json
from .tables import Column, table
from .terminal import Terminal, one_line

# Flips that are shown of each pair.
_SHOWN = 10
_DATA, _HOW, _RESULTS = "Samples", "How they are run", "Results"


def _option(group: str, *names: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


@click.group(
    "evaluate",
    cls=DefaultGroup,
    default="run",
    first_words="Say which model: `bittrue evaluate model.tflite --data SOURCE`; `bittrue evaluate --help` lists all.",
)
def command() -> None:
    """Run a data set through MODEL: accuracy, and every sample whose answer changes.

    \b
    bittrue evaluate model.tflite --data images/ --recipe tf-mobilenet
    bittrue evaluate model.tflite --data test.npz --numerics litert,xnnpack -o result/
    bittrue evaluate model.tflite --data test.npz --numerics litert,xnnpack -o result/ --resume
    bittrue evaluate model.tflite --data test.npz --against litert:builtin_ref,litert:xnnpack
    bittrue evaluate merge shard1/ shard2/ -o result/

    Exit code 0: every sample was evaluated (those with an error are counted) and --require is met; 1: it is not.
    """


def _result_options(function: Any) -> Any:
    for option in (
        _option(
            _RESULTS,
            "--metric",
            callback=lambda context, option, text: None if text is None else find_metric(text),
            metavar="FUNCTION",
            help="Further figures by a Python function or class, module:name or file.py:name. Its code is run: name "
            "none that you do not trust.",
        ),
        _option(_RESULTS, "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."),
        _option(
            _RESULTS,
            "--require",
            multiple=True,
            metavar="NAME=VALUE",
            help="Exit code 1 where this figure of the first arithmetic is below VALUE, as top1=0.7 (errors: above, as "
            "mae=0.1); flips=0: where more answers flip between two arithmetics. Repeat it for more.",
        ),
        _option(
            _RESULTS,
            "--baseline",
            metavar="DIR",
            type=click.Path(exists=True, file_okay=False),
            help="Say what changed against this earlier result (-o) of the same samples.",
        ),
    ):
        function = option(function)
    return function


@command.command("run", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@_option(
    _DATA,
    "--data",
    required=True,
    metavar="SOURCE",
    help="Arrays (.npy, .npz), a .csv file of path,label, COCO's .json, Parquet or Arrow files (.parquet, .arrow, "
    ".feather), WebDataset's .tar files, a folder of either, a folder with a folder of images per class, images/ and "
    "masks/, or a folder of MLPerf Tiny. "
    f"{', '.join(f'{kind}:' for kind in KINDS)} before the path says which; "
    "webdataset: takes patterns (train-{000..031}.tar).",
)
@_option(
    _DATA,
    "--recipe",
    default="raw",
    show_default=True,
    metavar="NAME",
    help=f"How a sample becomes an input: a .toml file, {METADATA} (as the model's own file says), or one of "
    f"{', '.join(known())}.",
)
@_option(_DATA, "--limit", type=click.IntRange(1), metavar="N", help="Only the first N samples.")
@_option(_DATA, "--shard", default="", metavar="I/N", help="Only every N-th sample, from the I-th on.")
@_option(
    _HOW,
    "--numerics",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help="Whose arithmetic, several with commas; by default that of the runtime that the file's format comes with.",
)
@_option(
    _HOW,
    "--against",
    multiple=True,
    callback=split_words,
    metavar="NAMES",
    help=f"Real runtimes as they are installed here, beside the arithmetics: {', '.join(NAMES)}; options follow as "
    "ort?level=basic.",
)
@_option(_HOW, "--task", type=Choice(tuple(TASKS)), default="classification", show_default=True)
@_option(
    _HOW,
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    help="The file with the weights, for formats that have two; by default the one beside MODEL.",
)
@_option(
    _HOW,
    "--threads",
    type=click.IntRange(1),
    help="Samples in progress at once; by default one per processor. With --engine ray: in each actor; by default one.",
)
@_option(
    _HOW,
    "--engine",
    type=Choice(ENGINES),
    default="local",
    show_default=True,
    help="Where samples are run: here, or on the nodes of a Ray cluster, which find the data under the same names.",
)
@_option(
    _HOW,
    "--address",
    metavar="ADDRESS",
    help="Of the Ray cluster: auto for the one that this machine belongs to, or HOST:PORT; by default that of "
    "RAY_ADDRESS or of this machine, or one is begun for this command.",
)
@_option(_HOW, "--executor", default="auto", show_default=True, type=Choice(api.EXECUTORS))
@_option(_HOW, "--isa", metavar="NAME", help="Instruction set of the native executor.")
@_option(
    _HOW,
    "--reset/--no-reset",
    default=True,
    show_default=True,
    help="Whether every sample begins with the first values of variable tensors, or goes on from the one before.",
)
@_option(
    _HOW,
    "--on-error",
    type=Choice(("skip", "stop")),
    default="skip",
    show_default=True,
    help="What a broken sample does: it becomes a row with its error, or it is the end.",
)
@_option(
    _RESULTS,
    "--output",
    "-o",
    type=click.Path(file_okay=False),
    help="Write a row per sample (Parquet) and the summary into this folder.",
)
@_option(_RESULTS, "--resume", is_flag=True, help="Go on with the results in --output.")
@_result_options
def run(
    model: str,
    data: str,
    shard: str,
    output: str | None,
    resume: bool,
    require: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Run a data set through MODEL; the word `run` may be left out.

    Exit code 0: every sample was evaluated and --require is met; 1: it is not.
    """
    if resume and output is None:
        raise InputError("BT-USAGE", "has no effect without --output", place="--resume")
    advice = "no results were kept: --output FOLDER keeps them, and --resume goes on from them"
    if output is not None:
        advice = f"finished parts are kept in {output}: the same command with --resume goes on from there"
    with _progress() as tick, resumable(advice), _inexact_said():
        found = evaluate(
            model,
            data,
            shard=parse_shard(shard),
            output=output,
            resume=resume,
            require=_require(require),
            progress=tick,
            **given,
        )
    _end(found, output, as_json)


@command.command("merge", cls=GroupedCommand)
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True, file_okay=False))
@_option(
    _RESULTS,
    "--output",
    "-o",
    required=True,
    type=click.Path(file_okay=False),
    help="Write the rows of all of them and the summary into this folder.",
)
@_result_options
def merge_command(folders: tuple[str, ...], output: str, require: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Put the results of all shards (--shard, -o) together. Exit code as for `bittrue evaluate run`."""
    _end(merge_evaluations(folders, output, require=_require(require), **given), output, as_json)


def _end(found: Mapping[str, Any], output: str | None, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        _show(found, output)
    click.get_current_context().exit(1 if found["unmet"] else 0)


def _require(texts: Sequence[str]) -> dict[str, float]:
    """Requirements by name."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise InputError(
                "BT-REQUIRE", f"expected NAME=VALUE, found '{text}'", place="--require", advice="for example top1=0.7"
            ) from None
        if name in found:
            raise InputError("BT-REQUIRE", f"'{name}' is given twice", place="--require")
        found[name] = number
    return found


@contextmanager
def _inexact_said() -> Iterator[None]:
    """Says on standard error, before the first sample, whose results may differ from the runtime's."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", InexactWarning)
        warnings.showwarning = lambda message, *_: say(f"note: {message}", err=True)
        yield


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """A bar with rate and time left on standard error, if someone is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("evaluating", total=None, rate="")

        def tick(done: int, count: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=count, rate="" if speed is None else f"{speed:,.0f}/s")

        yield tick


def _show(found: Mapping[str, Any], output: str | None) -> None:
    out = console()
    data, recipe = found["data"], found["recipe"]
    libraries = "".join(f", {name} {version}" for name, version in recipe["libraries"].items())
    out.print(one_line(f"{found['samples']:,} samples ({data['kind']}), recipe ", (recipe["name"], "bold"), libraries))
    if found["against"]:
        out.print("against " + ", ".join(f"{name} ({version})" for name, version in found["against"].items()))
    for code, count in found["errors"].items():
        first = found["examples"][code][0]
        out.print(one_line((f"{plural(count, 'sample')} with {code}", "red"), ", in no figure below; the first one:"))
        out.print(one_line((first["id"], "name"), f": {first['error']}"))
    for note in found.get("notes", ()):
        say(f"note: {note}", err=True)
    if found["metrics"]:
        out.print(_figures(found, out.width))
    if found["samples"] > sum(found["errors"].values()) and not found["labelled"]:
        out.print("no sample has a label: there is no accuracy")
    shown: dict[frozenset[str], str] = {}
    for pair in found["flips"]:
        first, second = pair["pair"]
        digests = frozenset(found["digests"][name] for name in (first, second))
        if len(digests) == 1:
            out.print(f"{first} and {second}: every output is the same")
        elif pair["count"] and digests in shown:
            out.print(f"{first} and {second}: as {shown[digests]}")
        else:
            shown[digests] = f"{first} and {second}"
            _show_flips(out, pair, found)
    if "baseline" in found:
        _show_baseline(out, found["baseline"], found)
    out.print(one_line(f"{found['seconds']:.2f} s; digest of all bits ", (found["digest"][:16], "bold")))
    if output is not None:
        say(f"results are in {shlex.quote(output)}", f"a page of them: bittrue report {shlex.quote(output)}")
    for line in found["unmet"]:
        out.print(one_line((line, "bold red")))


def _figures(found: Mapping[str, Any], width: int) -> Any:
    """The figures of every arithmetic that are single numbers, the one that matters most first."""
    head = found["headline"]
    names = list(numbers(next(iter(found["metrics"].values()))))
    names.sort(key=lambda name: name != head)
    columns = [Column("numerics"), *(Column(name, right=True) for name in names), Column("digest", least=1)]
    rows = [
        (name, *(_number(figures[figure]) for figure in names), found["digests"][name][:16])
        for name, figures in found["metrics"].items()
    ]
    return table(columns, rows, width)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _show_baseline(out: Terminal, baseline: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    differs = ", ".join(baseline["differs"])
    out.print(one_line(f"against {baseline['folder']}: ", f"{differs} differ" if differs else "the same was asked for"))
    if baseline["sources"]:
        out.print(one_line((f"{baseline['sources']:,} samples have other bytes than before", "red")))
    if baseline["errors"]:
        out.print(one_line((f"{baseline['errors']:,} samples have an error that they had not, or the reverse", "red")))
    for change in baseline["changes"]:
        figures = [
            f"{name} {_number(was)} -> {_number(now)}" for name, (was, now) in change["metrics"].items() if was != now
        ]
        changed = f"outputs of {plural(change['outputs'], 'sample')} changed" if change["outputs"] else ""
        figures.append(changed or "every output is the same as before")
        out.print(one_line((change["numerics"], "bold"), f": {', '.join(figures)}"))
        if changed:
            _show_flips(out, change["answers"], found)


def _show_flips(out: Terminal, pair: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    first, second = pair["pair"]
    if not pair["count"]:
        out.print(f"{first} and {second}: every answer is the same")
        return
    effect = ""
    if pair["gained"] is not None:
        effect = f"; {pair['gained']} become right, {pair['lost']} wrong ({pair['gained'] - pair['lost']:+d})"
    out.print(one_line((flipped(pair["count"]), "bold"), f" from {first} to {second}{effect}"))
    classes: Sequence[str] = found["data"]["classes"]
    columns = [Column("sample", "name"), Column("label"), Column(first), Column(second), Column("margin", right=True)]
    rows = [
        (
            flip["id"],
            named(flip["label"], classes),
            *(named(answer, classes) for answer in flip["predictions"]),
            f"{flip['margin']:.4g}",
        )
        for flip in pair["samples"][:_SHOWN]
    ]
    out.print(table(columns, rows, out.width, "largest margins first"))
    if pair["count"] > _SHOWN:
        out.print(f"and {pair['count'] - _SHOWN:,} more; --output keeps all of them")
    if command := pair["samples"][0].get("command"):
        say("what is behind the first one:", command)
