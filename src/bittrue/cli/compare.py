"""`bittrue compare`: two runtimes, or two formats, on the same inputs; where they part, and why."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..compare.comparison import compare_models
from ..compare.hypotheses import SECONDS
from ..compare.inputs import Given
from ..compare.matching import read_pairs
from ..compare.optimizer_passes import optimised_side, passes_of
from ..errors import InputError
from ..files import read_file
from ..runners.base import Runner
from ..runners.inputs import InputSet, input_sets, sets_of_files
from ..runners.sides import join_words, open_sides
from .clicking import GroupedCommand
from .common import check_targets, console, input_options, late_progress, parse_shapes, random_options
from .comparison import show
from .plain import say_json
from .report import write_reports
from .sampled import sample_inputs, sample_options

# What `--amplify` without a tensor stands for.
_FIRST = "\0first"


@click.command("compare", cls=GroupedCommand)
@click.argument("sides", nargs=-1, required=True, metavar="A B")
@input_options
@random_options
@sample_options
@click.option(
    "--match", "pairs", multiple=True, metavar="A=B", help="A tensor of A and the one of B that stands for it; repeat."
)
@click.option(
    "--match-file", type=click.Path(exists=True, dir_okay=False), help="The same from a file of two columns of names."
)
@click.option(
    "--amplify",
    is_flag=False,
    flag_value=_FIRST,
    metavar="[TENSOR]",
    help="What the isolated difference of TENSOR (by default: of the first one) does downstream, to outputs and label.",
)
@click.option(
    "--passes", is_flag=True, help="Which optimiser level and passes of ONNX Runtime change the bits of an ort: side."
)
@click.option("--tensors", is_flag=True, help="Every tensor, and how it was matched.")
@click.option("--no-explain", is_flag=True, help="Do not look for reasons.")
@click.option(
    "--search",
    default=SECONDS,
    show_default=f"{SECONDS:g}",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="About what looking for reasons that no numerics has may take; what was left out then is said.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), help="Also write the result as JSON; `bittrue report` reads it."
)
@click.option("--html", type=click.Path(dir_okay=False), help="Also write one HTML page that works offline.")
@click.option("--markdown", type=click.Path(dir_okay=False), help="Also write a short summary for CI; - prints it.")
def command(
    sides: tuple[str, ...],
    files: tuple[str, ...],
    seed: int | None,
    image_range: tuple[float, float] | None,
    runs: int | None,
    shapes: tuple[str, ...],
    pairs: tuple[str, ...],
    match_file: str | None,
    amplify: str | None,
    passes: bool,
    tensors: bool,
    no_explain: bool,
    search: float,
    as_json: bool,
    output: str | None,
    html: str | None,
    markdown: str | None,
    **sampled: Any,
) -> None:
    """Compare A and B tensor by tensor, and say where they differ and why.

    Each is a model file, a model under a numerics, another runtime, or a trace.

    \b
    bittrue compare model.tflite model.tflite@xnnpack             # two arithmetics
    bittrue compare litert:builtin_ref litert:xnnpack m.tflite
    bittrue compare model.tflite ort:model.onnx -i image.png    # two formats, two runtimes
    bittrue compare model.tflite model.tflite@xnnpack --data images/ --recipe tf-mobilenet --sample 17
    bittrue compare model.tflite trace:dump/                      # against what a device wrote
    bittrue compare ort:m.onnx?level=disable ort:m.onnx --passes  # which passes of the optimiser change bits

    Exit code 0: every matched tensor is equal, byte for byte; 1: something differs.
    """
    if as_json and markdown == "-":
        raise InputError("BT-USAGE", "--json and --markdown - both print; write one of them to a file")
    words = list(sides)
    if amplify not in (None, _FIRST) and len(join_words(words)) < 2:
        # `--amplify A B`: the word behind the option is a side.
        words.insert(0, str(amplify))
        amplify = _FIRST
    specs = join_words(words)
    if len(specs) != 2:
        raise InputError(
            "BT-USAGE",
            f"takes two sides, found {len(specs)}: {', '.join(map(repr, specs))}",
            advice="bittrue compare A B; quote what holds spaces",
        )
    given = [_pair(text) for text in pairs]
    if match_file is not None:
        given += read_pairs(read_file(match_file).decode(errors="replace"), match_file)
    files_written = [Path(name) for name in (output, html, markdown) if name is not None]
    check_targets(*files_written, html=None if html is None else Path(html))
    with ExitStack() as stack:
        runners = open_sides(specs, parse_shapes(shapes))
        for runner in runners:
            stack.callback(runner.close)
            for file in files_written:
                if file.exists() and runner.path.exists() and file.samefile(runner.path):
                    raise InputError("BT-USAGE", f"'{file}' is a side of the comparison; choose another file")
        chosen = _given(runners, files, seed, runs, shapes, image_range, sampled)
        optimised = optimised_side(runners) if passes else None
        tick = stack.enter_context(late_progress("comparing"))
        result = compare_models(
            runners[0],
            runners[1],
            chosen,
            match=given,
            explain=not no_explain,
            search=search,
            amplify=amplify is not None if amplify in (None, _FIRST) else str(amplify),
            progress=None if tick is None else lambda text, done, total: tick(done, total, text),
        )
        if optimised is not None:
            counter = None if tick is None else lambda text, done: tick(done, 0)
            result = replace(result, passes=passes_of(optimised, runners, chosen, counter))
    data = result.to_dict()
    named = {".json": output, ".html": html, ".md": markdown}
    write_reports(data, {ending: None if name is None else Path(name) for ending, name in named.items()})
    if as_json:
        say_json(data)
    elif markdown != "-":
        show(result, console(), tensors)
    click.get_current_context().exit(0 if result.equal else 1)


def _pair(text: str) -> tuple[str, str]:
    one, equals, two = text.partition("=")
    if not equals or not one or not two or "=" in two:
        raise InputError(
            "BT-USAGE", f"cannot read '{text}'", place="--match", advice="write A=B, or name pairs in a --match-file"
        )
    return one, two


def _given(
    runners: Sequence[Runner],
    files: tuple[str, ...],
    seed: int | None,
    runs: int | None,
    shapes: tuple[str, ...],
    image_range: tuple[float, float] | None,
    sampled: Mapping[str, Any],
) -> list[Given]:
    """What is fed: a sample or files, else one run on random values per seed. Beside a trace: no random values."""
    recorded = [runner for runner in runners if runner.recorded()]
    for name, value in (("--seed", seed), ("--runs", runs), ("--shape", shapes or None)):
        if recorded and value is not None:
            raise InputError(
                "BT-INPUT-SEED",
                f"has no effect: {recorded[0].spec} says which runs are compared",
                place=name,
                advice="leave it out; inputs that the trace lacks are given with --input",
            )
    sized = "".join(f" --shape {shlex.quote(text)}" for text in shapes)
    # Files are read for the side with channels last, as images are.
    live = sorted((one for one in runners if not one.recorded()), key=lambda runner: runner.format != "tflite")
    others = {"--input": files, "--seed": seed, "--runs": runs, "--image-range": image_range}
    of_sample = sample_inputs(live[0].inputs if live else (), others, **sampled)
    if of_sample is not None:
        inputs, options = of_sample
        # Of several runs nothing takes just one.
        return [Given(values, 0, text, options if len(inputs) == 1 else "") for values, text in inputs]
    if not files and image_range is None:
        first = seed or 0
        count = 1 if recorded else runs or 1
        return [Given(seed=first + k, options=f"--seed {first + k}{sized}") for k in range(count)]
    if not live:
        raise InputError("BT-USAGE", "both sides are recorded already: there is nothing to feed", place="--input")
    if recorded:
        # What files leave open is in the trace, or missing.
        sets = sets_of_files(live[0].inputs, files, image_range)
    else:
        seeds = () if seed is None and runs is None else range(seed or 0, (seed or 0) + (runs or 1))
        sets = input_sets(live[0].inputs, files, seeds, image_range)
    given = []
    for position, one in enumerate(sets):
        entries = _entries(files, sets, position)
        options = " ".join(f"-i {shlex.quote(entry)}" for entry in entries)
        if entries and image_range is not None:
            options += f" --image-range {image_range[0]:g} {image_range[1]:g}"
        if entries and any("random" in remark for remark in one.remarks):
            options += f" --seed {seed or 0}{sized}"
        given.append(Given(one.values, seed or 0, "; ".join((one.description, *one.remarks)), options))
    return given


def _entries(files: Sequence[str], sets: Sequence[InputSet], position: int) -> Sequence[str]:
    """The files of one run, as `bittrue explain` takes them; nothing where that cannot be said."""
    if len(sets) == 1 and not any(Path(text).is_dir() for text in files):
        return files
    if len(sets) == len(files):
        return [files[position]]
    inside = Path(files[0]) / sets[position].description
    return [str(inside)] if len(files) == 1 and inside.is_file() else []
