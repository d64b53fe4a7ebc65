"""`bittrue inspect`: what is inside a model file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from .. import api, numerics
from ..graph import Graph, Node, Tensor
from ..operators import find
from ..plan.support import node_types
from ..text import shown_shapes
from .common import console, parse_shapes
from .saturation import show_saturation


@click.command("inspect")
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("--tensors", is_flag=True, help="List every tensor with its quantization.")
@click.option("--nodes", is_flag=True, help="List every operator with its attributes.")
@click.option(
    "--saturation",
    is_flag=True,
    help="List the layers of u8 by s8 products that give other results on processors without VNNI.",
)
@click.option(
    "--shape", "shapes", multiple=True, metavar="NAME=1,8,8,3", help="New shape of an input, for --saturation."
)
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
    """Show inputs, outputs, operators and quantization of MODEL, and which numerics can run it."""
    loaded = api.load(model, weights)
    if saturation:
        show_saturation(loaded, parse_shapes(shapes), as_json)
        return
    if as_json:
        click.echo(json.dumps(_as_json(loaded), indent=1))
        return
    out = console()
    out.print(f"{loaded.format} model, {loaded.file.size:,} bytes  {loaded.file.producer}", markup=False)
    for position, graph in enumerate(loaded.graphs):
        signature = f", signature '{graph.signature}'" if graph.signature else ""
        out.print(f"\ngraph {position} '{graph.name}'{signature}", markup=False, style="bold")
        told = shown_shapes(graph, loaded.format)
        out.print(_ports(graph, told))
        out.print(_census(graph))
        if nodes:
            out.print(_nodes(graph))
        if tensors:
            out.print(_tensors(graph, told))
    names = ", ".join(_whole(loaded.graphs)) or "none"
    out.print(f"numerics that have rows for all operators: {names}", markup=False)
    for note in loaded.notes:
        out.print(f"note: {note}", markup=False)


def _quantization(tensor: Tensor) -> str:
    return str(tensor.quantization) if tensor.quantization is not None else ""


def _ports(graph: Graph, shapes: list[str]) -> Table:
    table = Table(title="inputs and outputs", title_justify="left")
    for column in ("", "name", "signature name", "type", "shape", "quantization"):
        table.add_column(column, overflow="fold")
    aliases = {index: name for name, index in graph.aliases.items()}
    for title, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            tensor = graph.tensors[index]
            table.add_row(
                title, tensor.name, aliases.get(index, ""), tensor.type.title, shapes[index], _quantization(tensor)
            )
    return table


def _able(graph: Graph, node: Node) -> list[str]:
    """The numerics that have a row for a node: its operator, version and types."""
    if not find(node.operator):
        return []
    types = node_types(graph, node)
    return [name for name in numerics.names() if numerics.find(name).runs(node.operator, node.version, *types)]


def _whole(graphs: Sequence[Graph]) -> list[str]:
    """Which numerics have a row for every operator of a model."""
    found = set(numerics.names()).intersection(*(_able(graph, node) for graph in graphs for node in graph.nodes))
    return [name for name in numerics.names() if name in found]


def _census(graph: Graph) -> Table:
    table = Table(title=f"{len(graph.nodes)} operators", title_justify="left")
    table.add_column("count", justify="right")
    for column in ("operator", "stem", "version", "inputs", "outputs", "numerics that run it"):
        table.add_column(column, overflow="fold")
    census: Counter[tuple[str, str, int, str, str, str]] = Counter()
    for node in graph.nodes:
        inputs, outputs = node_types(graph, node)
        able = ", ".join(_able(graph, node))
        census[(node.operator, node.source, node.version, ", ".join(inputs), ", ".join(outputs), able)] += 1
    for (stem, source, version, inputs_text, outputs_text, able_text), count in census.most_common():
        table.add_row(str(count), source, stem, str(version), inputs_text, outputs_text, able_text or "none yet")
    return table


def _nodes(graph: Graph) -> Table:
    table = Table(title="operators in execution order", title_justify="left")
    table.add_column("#", justify="right")
    for column in ("operator", "attributes", "inputs", "outputs"):
        table.add_column(column, overflow="fold")
    for node in graph.nodes:
        names = ["-" if i is None else graph.tensors[i].name for i in node.inputs]
        pairs = ((key, "''" if value == "" else value) for key, value in node.attributes.items())
        attributes = " ".join(f"{key}={value}" for key, value in pairs)
        outputs = ", ".join(graph.tensors[i].name for i in node.outputs)
        table.add_row(str(node.index), node.source, attributes, ", ".join(names), outputs)
    return table


def _tensors(graph: Graph, shapes: list[str]) -> Table:
    table = Table(title=f"{len(graph.tensors)} tensors", title_justify="left")
    table.add_column("#", justify="right")
    for column in ("name", "type", "shape", "kind", "quantization"):
        table.add_column(column, overflow="fold")
    for index, tensor in enumerate(graph.tensors):
        kind = "constant" if tensor.is_constant else "variable" if tensor.is_variable else ""
        table.add_row(str(index), tensor.name, tensor.type.title, shapes[index], kind, _quantization(tensor))
    return table


def _as_json(loaded: api.Model) -> dict[str, Any]:
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
        "notes": list(loaded.notes),
        "numerics": _whole(loaded.graphs),
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
