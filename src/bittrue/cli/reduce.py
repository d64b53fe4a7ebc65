"""`bittrue reduce`: the smallest model on which two sides still differ."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from ..compare.reduce import TRIALS, Reduction, check_output, reduce_model
from ..errors import InputError
from ..runners.inputs import input_sets
from ..runners.sides import join_words, open_sides
from .clicking import GroupedCommand
from .common import check_targets, console, input_options, late_progress, parse_shapes, random_options, shortened
from .plain import say, say_json
from .tables import Column, table


@click.command("reduce", cls=GroupedCommand)
@click.argument("sides", nargs=-1, required=True, metavar="A B")
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The small model.")
@input_options
@random_options
@click.option(
    "--trials", default=TRIALS, show_default=True, type=click.IntRange(1), help="Smaller models to try at most."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    sides: tuple[str, ...],
    output: str,
    files: tuple[str, ...],
    seed: int | None,
    image_range: tuple[float, float] | None,
    runs: int | None,
    shapes: tuple[str, ...],
    trials: int,
    as_json: bool,
) -> None:
    """Cut a model to the smallest one on which A and B still differ.

    It is saved with the input that shows the difference.

    A and B are what `bittrue compare` takes, over one .tflite or .onnx file (or two that differ in constants only).
    Both run every smaller model that is tried: first fewer operators, then smaller batches, images and channels.
    Beside the model it writes its inputs (.npz) and the answers of both sides (.a.npz, .b.npz).

    \b
    bittrue reduce litert:builtin_ref litert:xnnpack m.tflite -o small.tflite
    bittrue reduce ort:m.onnx?level=disable ort:m.onnx -o small.onnx --runs 5
    bittrue reduce m.tflite fixed.tflite -o small.tflite -i image.png

    Exit code 0: the sides agree on every tensor, and nothing is written; 1: they differ, and the files are written.
    """
    specs = join_words(list(sides))
    if len(specs) != 2:
        raise InputError(
            "BT-USAGE",
            f"takes two sides, found {len(specs)}: {', '.join(map(repr, specs))}",
            advice="bittrue reduce A B -o FILE; quote what holds spaces",
        )
    check_targets(Path(output))
    with ExitStack() as stack:
        runners = open_sides(specs, parse_shapes(shapes))
        for runner in runners:
            stack.callback(runner.close)
            check_output(Path(output), runner.path)
        seeds = () if seed is None and runs is None else range(seed or 0, (seed or 0) + (runs or 1))
        given = input_sets(runners[0].inputs, files, seeds, image_range) if runners[0].inputs else []
        tick = stack.enter_context(late_progress("reducing"))
        reduction = reduce_model(
            runners[0],
            runners[1],
            [one.values for one in given],
            Path(output),
            trials,
            None if tick is None else lambda _, done: tick(done, trials),
        )
    if as_json:
        found = {"format": "bittrue-reduce-1", "equal": reduction is None}
        say_json({**found, **(asdict(reduction) if reduction else {})})
    elif reduction is None:
        runs_text = "1 run" if len(given) == 1 else f"{len(given)} runs"
        console().print(f"equal: both sides give every tensor the same bytes, {runs_text}; nothing to reduce")
    else:
        _show(reduction)
    click.get_current_context().exit(0 if reduction is None else 1)


def _show(reduction: Reduction) -> None:
    out = console()
    values = ""
    if reduction.element is not None:
        values = f"; element {list(reduction.element)}: A {reduction.of_a}, B {reduction.of_b}"
    share = f"{reduction.differing:,} of {reduction.elements:,} elements"
    shapes = ", ".join(f"{name} {list(shape)}" for name, shape in reduction.inputs.items())
    rows = [
        ("left", " -> ".join(reduction.operators)),
        ("inputs", shapes),
        ("differs", f"'{shortened(reduction.tensor, 56)}': {share}{values}"),
        *(("step", step) for step in reduction.steps),
        ("files", ", ".join(reduction.files)),
    ]
    columns = [Column(""), Column("", "text")]
    out.print(table(columns, [(Text(name, style="bold"), text) for name, text in rows], out.width))
    if not reduction.complete:
        out.print(f"all {reduction.trials} trials are used up: --trials {4 * reduction.trials} may find a smaller one")
    say("shown again by:", reduction.command)
