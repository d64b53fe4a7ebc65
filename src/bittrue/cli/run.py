"""`bittrue run`: run a model and show, save or trace what comes out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..api import Port, Session
from ..compare.archive import write_arrays
from ..errors import InputError
from ..files import written
from ..plan.inexact import counted
from ..quantization import dequantize
from ..runners.inputs import inputs_of_levels, one_input_set
from ..runners.processor import processor_note
from ..runtime.trace import write_trace
from .clicking import GroupedCommand
from .common import (
    check_targets,
    console,
    digest,
    executor_name,
    input_options,
    open_session,
    prepare_options,
    progress,
    read_lines,
)
from .plain import say_json
from .tables import Column, table, tensor_table
from .terminal import one_line


@click.command("run", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@input_options
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write all outputs to this .npz file.")
@click.option("--trace", type=click.Path(file_okay=False), help="Write every tensor to this folder, with an index.")
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False),
    help="Names of the classes, one per line, from class 0 on.",
)
@click.option(
    "--labels-offset",
    "offset",
    type=int,
    metavar="N",
    help="With --labels: class 0 is called by line N + 1. 1 leaves out a first line that the model has no class for; "
    "-1 leaves class 0 without a name.",
)
@click.option(
    "--top", type=click.IntRange(1), show_default="5 with --labels", help="How many classes to show, largest first."
)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(0, min_open=True), help="End the run after this time."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@prepare_options
def command(
    model: str,
    files: tuple[str, ...],
    seed: int | None,
    image_range: tuple[float, float] | None,
    output: str | None,
    trace: str | None,
    labels: str | None,
    offset: int | None,
    top: int | None,
    threads: int,
    timeout: float | None,
    as_json: bool,
    **prepare: Any,
) -> None:
    """Run MODEL, a model file or a saved plan.

    \b
    bittrue run model.tflite                                   # random input, seed 0
    bittrue run model.tflite -i cat.jpg --labels labels.txt    # an image
    bittrue run model.tflite -i x.npy -o y.npz --trace trace/  # arrays in, arrays out, every tensor
    """
    if offset is not None and labels is None:
        raise InputError("BT-USAGE", "has no effect without --labels", place="--labels-offset")
    check_targets(None if output is None else Path(output))
    session = open_session(model, threads=threads, **prepare)
    names = None if labels is None else _class_names(session.outputs[0], labels, offset)
    values, remarks = one_input_set(session.inputs, files, seed, image_range, inputs_of_levels(session.plan))
    session = session.fitting(values)
    if session.plan.inexact:
        known = counted(session.plan.inexact)
        remarks.append(f"may differ from the runtime in bits, as `bittrue plan` and `bittrue check` tell: {known}")
    remarks += filter(None, [processor_note(session.plan.numerics)])
    with progress(session, "running") as tick:
        if trace:
            traced = session.trace(values, progress=tick, timeout=timeout)
            results = {port.name: traced[port.name] for port in session.outputs}
            write_trace(trace, session.plan, traced)
            remarks.append(f"{len(traced)} tensors written to {trace}")
        else:
            results = session.run(values, progress=tick, timeout=timeout)
    if output:
        with written(output) as file:
            write_arrays(file, results)
        remarks.append(f"outputs written to {output}")
    ranking = _ranking(session, results, names, top or 5) if top or labels else []
    if as_json:
        say_json(_as_json(session, values, results, ranking, remarks))
        return
    out = console()
    reproduces = f" ({session.plan.reproduces}), executor {executor_name(session)}"
    out.print(one_line("numerics ", (session.plan.numerics, "bold"), reproduces))
    for remark in remarks:
        out.print(remark)
    out.print(tensor_table("inputs", values, out.width))
    out.print(tensor_table("outputs", results, out.width))
    if ranking:
        columns = [Column("#", right=True), Column("class", right=True), Column("label", "text")]
        columns += [Column("raw", right=True), Column("value", right=True)]
        rows = [
            (str(position), str(entry["index"]), entry["label"] or "", str(entry["raw"]), f"{entry['value']:.6g}")
            for position, entry in enumerate(ranking, 1)
        ]
        title = f"top {len(ranking)} of output '{session.outputs[0].name}'"
        out.print(table(columns, rows, out.width, title))


def _class_names(port: Port, path: str, offset: int | None) -> list[str]:
    """A name for every class of an output.

    Raises:
        InputError: the file has more or fewer names than there are classes. Files with a line for the background, and
            models with a class for it, are common: without a word every name would be off by one.
    """
    lines, classes, skipped = read_lines(path), math.prod(port.shape), offset or 0
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) - skipped != classes:
        known = "an unknown number of" if classes < 0 else f"{classes:,}"
        found = f"{len(lines):,} lines for {known} values of output '{port.name}'"
        advice = "give a file with one name per class"
        if abs(len(lines) - classes) == 1 and not skipped:
            # The two usual ones.
            why = (
                "where the first line is a background that the model has no class for"
                if len(lines) > classes
                else "where class 0 is a background that the file does not name"
            )
            advice = f"{why}: --labels-offset {len(lines) - classes}"
        text = f"{found}, with --labels-offset {offset}" if offset is not None else found
        raise InputError("BT-LABELS", text, place=path, advice=advice)
    return [f"(class {i})" for i in range(-skipped)] + lines[max(skipped, 0) :]


def _ranking(
    session: Session, results: dict[str, np.ndarray], names: list[str] | None, top: int
) -> list[dict[str, Any]]:
    """The largest values of the first output, with the names of their classes."""
    port = session.outputs[0]
    raw = results[port.name].reshape(-1)
    order = np.argsort(-raw.astype(np.float64), kind="stable")[:top]
    real = raw if port.scale is None or port.zero_point is None else dequantize(raw, port.scale, port.zero_point)
    return [
        {
            "index": int(i),
            "label": None if names is None else names[int(i)],
            "raw": raw[int(i)].item(),
            "value": float(real[int(i)]),
        }
        for i in order
    ]


def _as_json(
    session: Session,
    values: dict[str, np.ndarray],
    results: dict[str, np.ndarray],
    ranking: list[dict[str, Any]],
    remarks: list[str],
) -> dict[str, Any]:
    def describe(arrays: dict[str, np.ndarray]) -> list[dict[str, Any]]:
        return [
            {"name": name, "dtype": str(a.dtype), "shape": list(a.shape), "sha256": digest(a)}
            for name, a in arrays.items()
        ]

    return {
        "numerics": session.plan.numerics,
        "executor": session.executor,
        "isa": session.isa,
        "inputs": describe(values),
        "outputs": describe(results),
        "top": ranking,
        "remarks": remarks,
    }
