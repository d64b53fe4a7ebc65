"""`bittrue inspect`: what is inside a model file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType

from .. import api, numerics
from ..errors import InputError
from ..graph import Graph, Tensor
from ..plan.able import Able, numerics_able
from ..plan.inexact import counted, may_differ
from ..plan.support import node_types
from ..runners.processor import processor_note
from ..text import shown_shapes
from .common import all_shortened, console, is_plan, open_shape_option, parse_shapes
from .plain import say_json
from .saturation import show_saturation
from .tables import Column, table


@click.command("inspect")
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--tensors", is_flag=True, help="List every tensor with its quantization.")
@click.option("--nodes", is_flag=True, help="List every operator with its attributes.")
@click.option(
    "--saturation",
    is_flag=True,
    help="List the layers of u8 by s8 products that give other results on processors without VNNI.",
)
@open_shape_option
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    help="The file with the weights, for formats that have two; by default the one beside MODEL.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything.")
def command(
    model: str,
    tensors: bool,
    nodes: bool,
    saturation: bool,
    shapes: tuple[str, ...],
    weights: str | None,
    as_json: bool,
) -> None:
    """Show what is in MODEL, and which numerics can run it.

    Inputs, outputs and operators with their types, shapes and quantization.
    """
    if is_plan(model):
        raise InputError("BT-USAGE", "this is a plan file", place=model, advice=f"`bittrue plan {model}` shows it")
    loaded = api.load(model, weights)
    if saturation:
        show_saturation(loaded, parse_shapes(shapes), as_json)
        return
    able = numerics_able(loaded.graphs, parse_shapes(shapes))
    if as_json:
        say_json(_as_json(loaded, able))
        return
    out = console()
    out.print(f"{loaded.format} model, {loaded.file.size:,} bytes  {loaded.file.producer}")
    for position, graph in enumerate(loaded.graphs):
        signature = f", signature '{graph.signature}'" if graph.signature else ""
        out.print()
        out.print(f"graph {position} '{graph.name}'{signature}", style="bold")
        told = shown_shapes(graph, loaded.format)
        out.print(_ports(graph, told, out.width))
        out.print(_census(graph, position, able, out.width))
        if nodes:
            out.print(_nodes(graph, out.width))
        if tensors:
            out.print(_tensors(graph, told, out.width))
    for line in _told(able):
        out.print(line)
    for note in (*loaded.notes, *_limits(loaded, able)):
        out.print(f"note: {note}")


def _limits(loaded: api.Model, able: Able) -> list[str]:
    """What is known, before anything runs, of differences from the runtime that the format comes with."""
    table = numerics.find(numerics.default_of(loaded.format))
    found = [
        node.source for graph in loaded.graphs for node in graph.nodes if may_differ(graph, node, table, surely=True)
    ]
    told = [f"under '{table.name}' these may differ from the runtime in bits: {counted(found)}"] if found else []
    return [*told, *able.notes.get(table.name, ()), *filter(None, [processor_note(table.name)])]


def _quantization(tensor: Tensor) -> str:
    return str(tensor.quantization) if tensor.quantization is not None else ""


def _ports(graph: Graph, shapes: list[str], width: int) -> RenderableType:
    columns = [Column(""), Column("name", "name"), Column("signature name", "name", least=1), Column("type")]
    columns += [Column("shape"), Column("quantization", "text")]
    aliases = {index: name for name, index in graph.aliases.items()}
    rows = []
    for title, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            tensor = graph.tensors[index]
            alias = aliases.get(index, "")
            rows.append((title, tensor.name, alias, tensor.type.title, shapes[index], _quantization(tensor)))
    return table(columns, rows, width, "inputs and outputs")


def _census(graph: Graph, position: int, able: Able, width: int) -> RenderableType:
    columns = [Column("count", right=True), Column("operator", "text"), Column("stem", "text", least=2)]
    columns += [Column("version", least=3), Column("inputs", "text"), Column("outputs", "text")]
    columns += [Column("numerics that run it", "text")]
    census: Counter[tuple[str, str, int, str, str, tuple[str, ...]]] = Counter()
    for node in graph.nodes:
        inputs, outputs = node_types(graph, node)
        names = tuple(name for name, nodes in able.nodes.items() if node.index in nodes[position])
        census[(node.operator, node.source, node.version, ", ".join(inputs), ", ".join(outputs), names)] += 1
    rows = []
    for (stem, source, version, inputs_text, outputs_text, names), count in census.most_common():
        # Those that run all of the model are named once, below.
        others = [name for name in names if name not in able.whole]
        told = ", ".join((["those below"] if able.whole else []) + _families(others)) if names else "none yet"
        rows.append((str(count), source, stem, str(version), inputs_text, outputs_text, told))
    starred = "; name*: with all variants of it" if any("*" in row[-1] for row in rows) else ""
    return table(columns, rows, width, f"{len(graph.nodes)} operators{starred}")


def _families(names: list[str]) -> list[str]:
    """Numerics by name; one that stands there with all of its variants is one entry with a star."""
    variants = {one: [name for name in numerics.names() if name.startswith((f"{one}-", f"{one}@"))] for one in names}
    whole = {one: found for one, found in variants.items() if found and set(found) <= set(names)}
    joined = {name for found in whole.values() for name in found}
    return [f"{name}*" if name in whole else name for name in names if name not in joined]


def _told(able: Able) -> Iterator[str]:
    """Which numerics run the model, and why others that have rows for all operators do not."""
    names = ", ".join(able.whole) or "none"
    if able.open is None:
        yield f"numerics that run it: {names}"
    else:
        yield f"numerics that have rows for all operators: {names}"
        yield f"note: {able.open}; then it is said which of them run it"
    reasons: dict[str, list[str]] = {}
    for name, error in able.refused.items():
        reasons.setdefault(str(error), []).append(name)
    for reason, refusing in reasons.items():
        yield f"{', '.join(refusing)} {'refuse' if len(refusing) > 1 else 'refuses'} it: {reason}"


def _nodes(graph: Graph, width: int) -> RenderableType:
    columns = [Column("node", right=True), Column("operator", "text"), Column("attributes", "text", least=1)]
    columns += [Column("inputs", "text"), Column("outputs", "text")]
    names = dict(enumerate(all_shortened([tensor.name for tensor in graph.tensors], max(width // 4, 16))))
    rows = []
    for node in graph.nodes:
        pairs = ((key, "''" if value == "" else value) for key, value in node.attributes.items())
        attributes = " ".join(f"{key}={value}" for key, value in pairs)
        inputs = ", ".join("-" if i is None else names[i] for i in node.inputs)
        rows.append((str(node.index), node.source, attributes, inputs, ", ".join(names[i] for i in node.outputs)))
    return table(columns, rows, width, "operators in execution order")


def _tensors(graph: Graph, shapes: list[str], width: int) -> RenderableType:
    columns = [Column("node", right=True), Column("name", "name"), Column("type"), Column("shape")]
    columns += [Column("kind", least=1), Column("quantization", "text", room=24)]
    made = {index: str(node.index) for node in graph.nodes for index in node.outputs}
    rows = []
    for index, tensor in enumerate(graph.tensors):
        kind = "constant" if tensor.is_constant else "variable" if tensor.is_variable else ""
        start = (made.get(index, ""), tensor.name, tensor.type.title, shapes[index])
        rows.append((*start, kind, _quantization(tensor)))
    return table(columns, rows, width, f"{len(graph.tensors)} tensors; node: what computes it")


def _as_json(loaded: api.Model, able: Able) -> dict[str, Any]:
    def tensor(t: Tensor) -> dict[str, Any]:
        q = t.quantization
        return {
            "name": t.name,
            "dtype": t.type.title,
            "shape": list(t.shape),
            "shape_signature": None if t.shape_signature is None else list(t.shape_signature),
            "constant": t.is_constant,
            "variable": t.is_variable,
            "quantization": None
            if q is None
            else {
                "scales": [float(s) for s in q.scales],
                "zero_points": [int(z) for z in q.zero_points],
                "axis": q.axis,
            },
        }

    return {
        "format": loaded.format,
        "producer": loaded.file.producer,
        "bytes": loaded.file.size,
        "notes": [*loaded.notes, *_limits(loaded, able)],
        "numerics": list(able.whole),
        "refused": {name: str(error) for name, error in able.refused.items()},
        "open": None if able.open is None else str(able.open),
        "graphs": [
            {
                "name": g.name,
                "signature": g.signature,
                "inputs": list(g.inputs),
                "outputs": list(g.outputs),
                "aliases": dict(g.aliases),
                "tensors": [tensor(t) for t in g.tensors],
                "nodes": [
                    {
                        "index": n.index,
                        "operator": n.operator,
                        "source": n.source,
                        "version": n.version,
                        "attributes": dict(n.attributes),
                        "inputs": list(n.inputs),
                        "outputs": list(n.outputs),
                    }
                    for n in g.nodes
                ],
            }
            for g in loaded.graphs
        ],
    }
