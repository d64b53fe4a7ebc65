"""`bittrue explain`: the arithmetic of one element of a tensor, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..api import Session
from ..errors import InputError
from ..explain import (
    Explanation,
    Pair,
    closest_to_tie,
    explain_element,
    explain_under,
    first_difference,
    first_different,
    numerics_against,
    paired,
    sensible,
    step_of,
)
from ..plan import Plan
from ..runners.inputs import inputs_of_levels, one_input_set
from ..visible import visible
from .clicking import GroupedCommand
from .common import console, input_options, is_plan, open_session, prepare_options, progress, shortened
from .plain import say_json
from .sampled import sample_inputs, sample_options
from .tables import Column, table
from .terminal import Terminal, one_line

# Columns from which values of two numerics and where they come from stand side by side.
_WIDE = 120


@click.command("explain", cls=GroupedCommand)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--tensor",
    "-t",
    metavar="NAME|NODE",
    help="The tensor: its name, a part of it that no other has, or the number of the node that computes it (3, or #3; "
    "3:1 for a second output); without it, the tensors are listed.",
)
@click.option(
    "--element",
    "-e",
    metavar="I,J,K",
    help="Index of the element, counted from 0; without it, the one with the smallest distance to a tie.",
)
@click.option(
    "--against",
    metavar="NUMERICS|RULE",
    help="The same element of the same inputs under another numerics, or with one rule replaced (rule or slot=rule).",
)
@input_options
@sample_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@prepare_options
def command(
    model: str,
    tensor: str | None,
    element: str | None,
    against: str | None,
    files: tuple[str, ...],
    seed: int | None,
    image_range: tuple[float, float] | None,
    as_json: bool,
    data: str | None,
    sample: int | None,
    recipe: str | None,
    sha256: str | None,
    **prepare: Any,
) -> None:
    """Work out one element of a tensor step by step, as on paper.

    Products, accumulator, multiplier, roundings, zero point and clamp, each with where it comes from; the last line is
    the integer that the runtime stores.

    \b
    bittrue explain model.tflite                                     # which tensors there are
    bittrue explain model.tflite --tensor T --element 0,12,7,33      # one element, random input, seed 0
    bittrue explain model.tflite -t T -i x.npy --against xnnpack     # where two runtimes differ
    bittrue explain model.tflite -t T --against q31_one_step_up      # the same with another rule
    """
    session = open_session(model, **prepare)
    if tensor is None:
        if element or against:
            raise InputError("BT-USAGE", "--element and --against need --tensor")
        _list(session.plan, as_json)
        return
    index = None if element is None else _index(element)
    tensor = _whole_name(session.plan, tensor)
    step_of(session.plan, tensor)
    other = None if against is None else _other(model, session.plan, tensor, against, prepare)
    others = {"--input": files, "--seed": seed, "--image-range": image_range}
    sampled = sample_inputs(session.inputs, others, data=data, sample=sample, recipe=recipe, sha256=sha256)
    if sampled is None:
        values, remarks = one_input_set(session.inputs, files, seed, image_range, inputs_of_levels(session.plan))
    elif len(sampled[0]) > 1:
        raise InputError("BT-USAGE", f"the sample has {len(sampled[0])} runs, one is explained", place="--sample")
    else:
        values, remarks = sampled[0][0][0], [sampled[0][0][1]]
    session = session.fitting(values)
    if other is not None:
        other = other.fitting(values)
    with progress(session, "running") as tick:
        traced = session.trace(values, progress=tick)
    if index is None:
        index, why = _chosen(session.plan, None if other is None else other.plan, traced, tensor)
        remarks.append(f"element {_shown(index)}: {why}")
    first = explain_element(session, traced, tensor, index)
    second = None if other is None else explain_under(other.plan, traced, first)
    pairs = [] if second is None else paired(first, second)
    if as_json:
        say_json(_as_json(first, second, pairs, remarks))
        return
    out = console()
    for remark in remarks:
        out.print(remark)
    if second is None:
        show(out, first)
        return
    _show_pairs(out, first, second, pairs)


def _index(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.strip("[]() ").split(",") if part.strip())
    except ValueError:
        raise InputError(
            "BT-USAGE", f"cannot read the element '{text}'", place="--element", advice="write 0,12,7,33"
        ) from None


def _whole_name(plan: Plan, text: str) -> str:
    """The tensor's name from a part that no other name holds; names of fused operators are too long to type."""
    if any(tensor.name == text for tensor in plan.tensors):
        return text
    names = [name for name in (plan.tensors[i].name for step in plan.steps for i in step.outputs) if text in name]
    return names[0] if text and len(names) == 1 else text


def _shown(index: tuple[int, ...]) -> str:
    return ",".join(map(str, index)) or "()"


def _other(model: str, plan: Plan, tensor: str, against: str, prepare: Mapping[str, Any]) -> Session:
    """The same model under what `--against` names."""
    if is_plan(model):
        raise InputError("BT-USAGE", "--against needs the model; a plan is fixed", place="--against")
    numerics = numerics_against(plan, step_of(plan, tensor)[0], against)
    with sensible(against):
        return open_session(model, **{**prepare, "numerics": numerics})


def _chosen(
    plan: Plan, other: Plan | None, traced: Mapping[str, np.ndarray], tensor: str
) -> tuple[tuple[int, ...], str]:
    """The first element that both plans store differently, else the closest call."""
    if other is not None:
        found = first_different(plan, other, traced, tensor)
        if found is not None:
            return found
    index, why = closest_to_tie(plan, traced, tensor)
    return index, why if other is None else f"no element differs; {why}"


def _list(plan: Plan, as_json: bool) -> None:
    rows = [
        {
            "node": step.index,
            "tensor": plan.tensors[i].name,
            "operator": step.operator,
            "type": plan.tensors[i].dtype,
            "shape": list(plan.tensors[i].shape),
            "rules": dict(step.rules),
        }
        for step in plan.steps
        for i in step.outputs
    ]
    if as_json:
        say_json({"numerics": plan.numerics, "tensors": rows})
        return
    columns = [
        Column("node", right=True),
        Column("operator"),
        Column("type"),
        Column("shape"),
        Column("tensor", "name"),
    ]
    listed = [[str(row[key]) for key in ("node", "operator", "type", "shape", "tensor")] for row in rows]
    out = console()
    out.print(table(columns, listed, out.width, f"tensors that steps compute, numerics {plan.numerics}"))
    out.print("next: bittrue explain MODEL --tensor NODE [--element I,J,K]; a tensor's name will do as well")


def _title(explanation: Explanation, width: int) -> str:
    index = ", ".join(map(str, explanation.element))
    end = f" [{index}] = {explanation.stored}: node {explanation.node} ({explanation.source})"
    return f"'{shortened(explanation.tensor, max(width - len(end) - 2, 20))}'{end}"


def worked_out(lines: Sequence[tuple[str, str, str]], width: int, title: str = "") -> RenderableType:
    """Lines of an explanation as a table: what, value, where it comes from."""
    columns = [Column("", "text"), Column("", "text", right=True), Column("", "text")]
    rows = [(label, one_line((value, "bold")), remark) for label, value, remark in lines]
    return table(columns, rows, width, title)


def show(out: Terminal, explanation: Explanation) -> None:
    """An explanation as a table, and its rules."""
    lines = [(line.label, line.value, line.remark) for line in explanation.lines]
    out.print(worked_out(lines, out.width, _title(explanation, out.width)))
    rules = ", ".join(f"{slot} {rule}" for slot, rule in explanation.rules.items())
    out.print(f"numerics {explanation.numerics}" + (f"; rules: {rules}" if rules else ""))


def _show_pairs(out: Terminal, first: Explanation, second: Explanation, pairs: list[Pair]) -> None:
    rows = []
    parted = first_difference(pairs)
    for position, pair in enumerate(pairs):
        remarks = dict.fromkeys(line.remark for line in (pair.first, pair.second) if line is not None and line.remark)
        style = "bold red" if position == parted else "red" if pair.differs else ""
        label = Text(f"{pair.label} (differs)" if position == parted else pair.label, style=style)
        one, two = (Text(line.value if line is not None else "", style=style) for line in (pair.first, pair.second))
        rows.append((label, one, two, Text("\n".join(map(visible, remarks)))))
    out.print(_title(first, out.width), style="italic")
    out.print(_side_by_side((first.numerics, second.numerics), rows, out.width))
    if first.stored == second.stored:
        out.print(f"both store {first.stored}")
    else:
        out.print(f"{first.numerics} stores {first.stored}, {second.numerics} stores {second.stored}")


def _side_by_side(titles: tuple[str, str], rows: Sequence[tuple[Text, Text, Text, Text]], width: int) -> RenderableType:
    """What, both values, and where they come from: beside them, or on lines of its own where there is no room."""
    if width >= _WIDE:
        columns = [Column("", "text"), *(Column(title, "text", right=True) for title in titles), Column("", "text")]
        return table(columns, rows, width)
    widths = [max(len(row[i].plain) for row in rows) for i in range(3)]
    widths = [widths[0], *(max(w, len(title)) for w, title in zip(widths[1:], titles, strict=True))]
    if sum(widths) + 4 > width:
        return table([Column("", "text"), *map(Column, titles), Column("")], rows, width)
    parts: list[RenderableType] = []
    for label, one, two, remark in [(Text(), *map(Text, titles), Text()), *rows]:
        line = Table.grid(padding=(0, 2, 0, 0))
        for room, justify in zip(widths, ("left", "right", "right"), strict=True):
            line.add_column(width=room, justify=justify)  # type: ignore[arg-type]
        line.add_row(label, one, two)
        parts.append(line)
        if remark.plain:
            remark.stylize("dim")
            parts.append(Padding(remark, (0, 0, 0, 4), expand=False))
    return Group(*parts)


def _as_json(first: Explanation, second: Explanation | None, pairs: list[Pair], remarks: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"explanation": first.to_dict(), "remarks": remarks}
    if second is not None:
        parted = first_difference(pairs)
        made |= {
            "against": second.to_dict(),
            "equal": first.stored == second.stored,
            "first_difference": None if parted is None else pairs[parted].label,
        }
    return made
