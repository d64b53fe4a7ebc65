"""`bittrue vectors`: test vectors aimed at what tells arithmetics apart, as files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .. import numerics
from ..conformance.formats.options import ENDIANNESSES, ORDERS, Options
from ..conformance.formats.writing import FORMATS, Written, check_folder, chosen_formats, write_vectors
from ..conformance.recorded.replay import WRITTEN
from ..conformance.suite import AIMS, SUITES, Suite, SuiteCase, find_suite
from . import vectors_score
from .clicking import Choice, DefaultGroup
from .common import console, late_progress, split_aims, split_words
from .plain import say_json
from .tables import Column, table

_HELP = "Write test vectors of OPERATORs (all without one) with the expected outputs of a numerics."


def case_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which cases: operators, suite, types, aims."""
    for option in reversed(
        (
            click.argument("operators", nargs=-1, metavar="[OPERATOR]..."),
            click.option("--suite", "suite_name", default="litert", show_default=True, type=Choice(list(SUITES))),
            click.option(
                "--types",
                multiple=True,
                callback=split_words,
                metavar="NAMES",
                help="Comma-separated types such as s8,u8,s16, or 'all'; by default those of the specification.",
            ),
            click.option(
                "--aim",
                "aims",
                multiple=True,
                callback=split_aims,
                metavar="NAMES",
                help=f"Comma-separated: {', '.join(AIMS)}.",
            ),
        )
    ):
        command = option(command)
    return command


def chosen_cases(
    suite: Suite, operators: tuple[str, ...], types: tuple[str, ...], aims: tuple[str, ...]
) -> list[SuiteCase]:
    """The cases that the options of `case_options` choose."""
    with late_progress("making cases") as advance:
        found = []
        for case in suite.cases(operators, (() if "all" in types else types) if types else None, aims):
            found.append(case)
            if advance is not None:
                advance(len(found), 0)
    return found


@click.group(
    "vectors",
    cls=DefaultGroup,
    default="write",
    first_words="Say where to: `bittrue vectors -o vectors` writes the whole suite, `bittrue vectors list` shows it.",
)
def command() -> None:
    """Write test vectors aimed at what tells arithmetics apart.

    Rounding ties, saturation, corners of padding, zero points, and the differences between any two numerics.

    \b
    bittrue vectors -o vectors
    bittrue vectors CONV_2D ADD --types s8,u8 --format npz,c -o vectors
    bittrue vectors CONV_2D --aim ties --format hex --accumulators -o vectors
    bittrue vectors --suite onnx --numerics onnxruntime --format all -o vectors
    bittrue vectors list
    """


@command.command("write", help=_HELP)
@case_options
@click.option(
    "--numerics",
    "name",
    type=Choice(numerics.names()),
    metavar="NAME",
    help="Whose outputs are the expected ones (`bittrue numerics` lists them); by default the suite's.",
)
@click.option(
    "--format",
    "formats",
    default="npz",
    show_default=True,
    metavar="NAMES",
    help=f"Comma-separated: {', '.join(FORMATS)}, or all. Each is written to a folder of its own in DIR.",
)
@click.option(
    "--accumulators",
    is_flag=True,
    help="Also write the accumulator of each output, multipliers, exponents and the whole plan.",
)
@click.option(
    "--word-width",
    default=0,
    metavar="BITS",
    type=click.IntRange(0, 4096),
    help="hex: bits of a word; by default those of an element.",
)
@click.option(
    "--per-word",
    default=0,
    metavar="N",
    type=click.IntRange(0, 4096),
    help="hex: elements in one word; by default as many as fit.",
)
@click.option(
    "--order",
    default="low",
    show_default=True,
    type=Choice(ORDERS),
    help="hex: whether the first element of a word is in its lowest or highest bits.",
)
@click.option(
    "--endianness",
    default="little",
    show_default=True,
    type=Choice(ENDIANNESSES),
    help="hex and bin: byte order of each element.",
)
@click.option(
    "--layout",
    default="",
    metavar="NAME",
    help="hex: nhwc, nchw, or blocks of channels such as nc/16hw, for tensors with four axes; by default the model's.",
)
@click.option(
    "--split",
    is_flag=True,
    help="One folder per case in hex too, and with `all` in desc and onnx, which are else packed into .zip files.",
)
@click.option("--comments", is_flag=True, help="hex: say behind each word which element it begins with.")
@click.option("--output", "-o", required=True, type=click.Path(file_okay=False), metavar="DIR", help="An empty folder.")
@click.option("--overwrite", is_flag=True, help="Remove the vectors that an earlier call left in DIR.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def write(
    operators: tuple[str, ...],
    suite_name: str,
    types: tuple[str, ...],
    aims: tuple[str, ...],
    name: str | None,
    formats: str,
    accumulators: bool,
    word_width: int,
    per_word: int,
    order: str,
    endianness: str,
    layout: str,
    split: bool,
    comments: bool,
    output: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Cases to files."""
    suite = find_suite(suite_name)
    options = Options(word_width, per_word, order, endianness, layout.lower(), comments, split)
    # What is wrong with these is said before anything is worked out.
    names = [part.strip() for part in formats.split(",") if part.strip()]
    chosen_formats(names, suite)
    check_folder(Path(output), overwrite)
    cases = chosen_cases(suite, operators, types, aims)
    with late_progress("writing vectors") as advance:
        written = write_vectors(
            output,
            suite,
            cases,
            names,
            name,
            options=options,
            accumulators=accumulators,
            overwrite=overwrite,
            progress=None if advance is None else lambda done: advance(done, len(cases)),
        )
    if as_json:
        say_json({"folder": output, **written.to_dict()})
    else:
        _say(written, output)


def _say(written: Written, output: str) -> None:
    out = console()
    columns = [Column("format"), Column("files", right=True), Column("bytes", right=True), Column("what", "text")]
    rows = [
        (name, f"{found['files']:,}", f"{found['bytes']:,}", FORMATS[name].title)
        for name, found in written.formats.items()
    ]
    title = f"suite {written.suite}, expected outputs of {written.numerics}"
    out.print(table(columns, rows, out.width, title))
    for skipped in written.skipped[:5]:
        out.print(f"left out: {skipped.case}: {skipped.reason}")
    if len(written.skipped) > 5:
        out.print(f"left out: {len(written.skipped) - 5} more, in suite.json")
    text = f"{written.cases:,} cases ({written.must_fail:,} must be refused), {written.elements:,} expected elements, "
    text += f"{written.files:,} files, {written.bytes:,} bytes in {output}"
    out.print(text, soft_wrap=True)
    if any(name in written.formats for name in WRITTEN):
        after = f"bittrue replay {shlex.quote(output)}"
    elif "c" in written.formats:
        after = f"cc -std=c99 -I {shlex.quote(output + '/c')} ..., with a table of cases in each header"
    else:
        after = f"$readmemh files are listed in {output}/hex/manifest.json"
    out.print(f"next: {after}", soft_wrap=True)


@command.command("list")
@case_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def list_cases(
    operators: tuple[str, ...], suite_name: str, types: tuple[str, ...], aims: tuple[str, ...], as_json: bool
) -> None:
    """List the operators of a suite: types, cases by aim, elements."""
    suite = find_suite(suite_name)
    rows: dict[tuple[str, str], dict[str, int]] = {}
    elements: dict[tuple[str, str], int] = {}
    for case in chosen_cases(suite, operators, types, aims):
        key = (case.operator, case.types)
        counts = rows.setdefault(key, dict.fromkeys(AIMS, 0))
        counts[case.aim] += 1
        elements[key] = elements.get(key, 0) + _elements(case)
    if as_json:
        found = [
            {"operator": o, "types": t, "cases": sum(c.values()), "elements": elements[o, t], "aims": c}
            for (o, t), c in rows.items()
        ]
        say_json({"suite": suite.name, "operators": found})
        return
    out = console()
    columns = [Column("operator"), Column("types"), Column("cases", right=True)]
    columns += [Column("elements", right=True, least=1), Column("by aim", "text")]
    lines = []
    for (operator, label), counts in rows.items():
        aimed = ", ".join(f"{aim} {count:,}" for aim, count in counts.items() if count)
        total = f"{sum(counts.values()):,}"
        lines.append((operator, label, total, f"{elements[operator, label]:,}", aimed))
    out.print(table(columns, lines, out.width, f"suite {suite.name}: {suite.title}"))
    cases = sum(sum(counts.values()) for counts in rows.values())
    out.print(f"{len(rows):,} operators and types, {cases:,} cases, {sum(elements.values()):,} output elements")
    out.print("next: bittrue vectors [OPERATOR]... -o DIR")


def _elements(case: SuiteCase) -> int:
    """Output elements, by the shapes that the file declares; none of a case that must be refused."""
    if case.rejects:
        return 0
    graph = case.model.graph
    total = 0
    for index in graph.outputs:
        count = 1
        for size in graph.tensors[index].shape:
            count *= max(size, 0)
        total += count
    return total


command.add_command(vectors_score.command)
