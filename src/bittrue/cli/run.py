"""`bittrue run`: run a model and show, save or trace what comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from ..api import Session
from ..errors import InputError
from ..quantization import dequantize
from ..runners.inputs import inputs_of_levels, one_input_set
from ..runtime import write_trace
from .common import (
    GroupedCommand,
    console,
    digest,
    executor_name,
    input_options,
    open_session,
    prepare_options,
    progress,
    read_lines,
    tensor_table,
)


@click.command("run", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@input_options
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write all outputs to this .npz file.")
@click.option("--trace", type=click.Path(file_okay=False), help="Write every tensor to this folder, with an index.")
@click.option("--labels", type=click.Path(exists=True, dir_okay=False), help="One label per line.")
@click.option("--top", default=5, show_default=True, type=click.IntRange(1), help="With --labels: how many to show.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@prepare_options
def command(
    model: str,
    files: tuple[str, ...],
    seed: int,
    image_range: tuple[float, float] | None,
    output: str | None,
    trace: str | None,
    labels: str | None,
    top: int,
    threads: int,
    as_json: bool,
    **prepare: Any,
) -> None:
    """Run MODEL (a model file, or a plan saved by `bittrue plan --output`).

    \b
    bittrue run model.tflite                                   # random input, seed 0
    bittrue run model.tflite -i cat.jpg --labels labels.txt    # a picture
    bittrue run model.tflite -i x.npy -o y.npz --trace trace/  # arrays in, arrays out, every tensor
    """
    session = open_session(model, threads=threads, **prepare)
    values, remarks = one_input_set(session.inputs, files, seed, image_range, inputs_of_levels(session.plan))
    with progress(session, "running") as tick:
        if trace:
            traced = session.trace(values, progress=tick)
            results = {
                port.name: traced[port.name] if port.name in traced else _constant(session, port.name)
                for port in session.outputs
            }
            write_trace(trace, session.plan, traced)
            remarks.append(f"{len(traced)} tensors written to {trace}")
        else:
            results = session.run(values, progress=tick)
    if output:
        path = Path(output)
        with path.open("wb") as file:
            np.savez(file, **results)  # type: ignore[arg-type]
        remarks.append(f"outputs written to {path}")
    ranking = _ranking(session, results, read_lines(labels), top) if labels else []
    if as_json:
        click.echo(json.dumps(_as_json(session, values, results, ranking, remarks), indent=1))
        return
    out = console()
    out.print(
        f"numerics [bold]{session.plan.numerics}[/bold] ({session.plan.reproduces}), executor {executor_name(session)}"
    )
    for remark in remarks:
        out.print(remark, markup=False)
    out.print(tensor_table("inputs", values))
    out.print(tensor_table("outputs", results))
    if ranking:
        table = Table(title=f"top {len(ranking)} of output '{session.outputs[0].name}'", title_justify="left")
        for column, justify in (
            ("#", "right"),
            ("label", "left"),
            ("index", "right"),
            ("raw", "right"),
            ("value", "right"),
        ):
            table.add_column(column, justify=justify)  # type: ignore[arg-type]
        for position, entry in enumerate(ranking, 1):
            table.add_row(
                str(position), entry["label"], str(entry["index"]), str(entry["raw"]), f"{entry['value']:.6g}"
            )
        out.print(table)


def _constant(session: Session, name: str) -> np.ndarray:
    """An output that no step computes: an input passed through is in the trace, so this is a constant."""
    return next(t.value for t in session.plan.tensors if t.name == name and t.value is not None)


def _ranking(session: Session, results: dict[str, np.ndarray], labels: list[str], top: int) -> list[dict[str, Any]]:
    port = session.outputs[0]
    raw = results[port.name].reshape(-1)
    if raw.size > len(labels):
        raise InputError(
            "BT-LABELS",
            f"output '{port.name}' has {raw.size} values, the label file {len(labels)} lines",
            place="--labels",
        )
    order = np.argsort(-raw.astype(np.float64), kind="stable")[:top]
    real = raw if port.scale is None or port.zero_point is None else dequantize(raw, port.scale, port.zero_point)
    return [
        {"index": int(i), "label": labels[int(i)], "raw": raw[int(i)].item(), "value": float(real[int(i)])}
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
