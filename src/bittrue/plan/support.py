"""Which nodes of a graph a numerics has rows for, and one error that names all the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..errors import BittrueError, InputError, ResourceError, UnsupportedError
from ..graph import Graph, Node, Tensor
from ..numerics import Numerics, Row
from ..numerics import find as find_numerics
from ..operators import Call, find
from ..operators.core.base import place_errors
from .calls import find_called

if TYPE_CHECKING:
    from .plan import Source

# Far above any real model; bounds the planner's own time on hostile files.
MAX_NODES = 20_000


def check_graph(graph: Graph, source: Source) -> None:
    """What is checked before anything is planned: calls of other graphs, and a row for every operator in all of them.

    Raises:
        UnsupportedError, InvalidModelError, ResourceError: see `make_plan`.
    """
    called = find_called(graph, source.graphs)
    _refuse_unsupported(graph, source.numerics, {source.label(index): source.graphs[index] for index in called})


def _all_nodes(graph: Graph, called: Mapping[str, Graph]) -> Iterator[tuple[str, Graph, Node]]:
    for label, part in {"": graph, **called}.items():
        yield from ((label, part, node) for node in part.nodes)


def _refuse_unsupported(graph: Graph, numerics: Numerics, called: Mapping[str, Graph]) -> None:
    """One error that names every operator and type combination without a row, so that users see the whole gap."""
    count = len(graph.nodes) + sum(len(part.nodes) for part in called.values())
    if count > MAX_NODES:
        raise ResourceError("BT-NODES", f"{count:,} operators, the limit is {MAX_NODES:,}")
    missing: dict[str, list[str]] = {}
    first: tuple[Graph, Node] | None = None
    for label, part, node in _all_nodes(graph, called):
        place = f"graph '{label}', {node}" if label else f"{node}"
        inputs, outputs = node_types(part, node)
        rows = numerics.candidates(node.operator, inputs, outputs)
        # A row that refuses needs no implementation.
        if not rows or not (rows[0].refuses or find(node.operator)):
            signature = f"{node.source} ({', '.join(inputs)} -> {', '.join(outputs)})"
            missing.setdefault(signature, []).append(f"{node.index} of '{label}'" if label else f"{node.index}")
            first = first or (part, node)
        elif rows[0].refuses and not rows[0].when:
            raise undefined(place, rows[0], numerics)
        elif not numerics.knows(node.source, node.version):
            oldest, newest = numerics.versions.get(node.source, (1, 1))
            raise UnsupportedError(
                "BT-OPERATOR-VERSION",
                f"version {node.version} is asked for, numerics '{numerics.name}' knows versions {oldest} to {newest}",
                place=place,
                advice="the runtime refuses it, too; convert with a converter of the same age",
            )
    if first is None:
        return
    lines = [f"{signature} at node {', '.join(nodes[:5])}" for signature, nodes in missing.items()]
    more = f" and {len(lines) - 8} more" if len(lines) > 8 else ""
    part, node = first
    known = numerics.alternatives(node.operator) if find(node.operator) else ()
    if known:
        advice = f"{node.source} is implemented for: {'; '.join(known[:6])}"
    elif node.operator == "custom":
        advice = "custom operators are defined by the program that registers them"
    else:
        advice = "`bittrue inspect MODEL` lists what the model needs"
    before = [t.name for t in (part.tensors[i] for i in node.inputs if i is not None) if not t.is_constant]
    if part is graph and node.index != graph.nodes[0].index and before:
        advice += f"; prepare(outputs={before}) or --until runs what comes before it"
    raise UnsupportedError(
        "BT-OPERATOR",
        f"numerics '{numerics.name}' has no row for {'; '.join(lines[:8])}{more}",
        place=f"{node}" if part is graph else f"graph '{part.name}', {node}",
        advice=advice,
    )


def undefined(place: str, row: Row, numerics: Numerics) -> UnsupportedError:
    """The error about a node that a row refuses."""
    message = f"numerics '{numerics.name}' has no defined result: {row.refuses}"
    return UnsupportedError("BT-UNDEFINED", message, place=place, advice=row.advice)


def refused(call: Call, error: BittrueError, numerics: Numerics, graph: Graph) -> BittrueError:
    """The error at its node; about a shift that another numerics has bits for, with the name of that."""
    error = place_errors(call, error)
    if error.code != "BT-MULTIPLIER" or not numerics.goes_on:
        return error
    rows = find_numerics(numerics.goes_on).candidates(call.node.operator, *node_types(graph, call.node))
    if not any("shift_count" in row.rules for row in rows):
        return error
    told = f"if a product was shipped with these scales, numerics '{numerics.goes_on}' has its bits"
    return type(error)(error.code, error.message, place=error.place, advice=f"{error.advice}; {told}")


def open_shape(tensor: Tensor) -> InputError:
    """The error about an input whose shape nobody has said."""
    signature = tensor.shape_signature or ()
    advice = f"give it: shapes={{'{tensor.name}': (...)}}, or --shape {tensor.name}="
    if signature == (-1,):
        # One open dimension stands for a shape of which nothing is known.
        shown, example = "", "N,N,..."
        weights = "; if it is a weight, pass the file that holds it: weights=..., or --weights FILE"
    else:
        shown = f": [{', '.join('?' if size == -1 else str(size) for size in signature)}]"
        example, weights = ",".join("N" if size == -1 else str(size) for size in signature), ""
    return InputError(
        "BT-INPUT-OPEN",
        f"the file does not say the shape of this input{shown}",
        place=f"input '{tensor.name}'",
        advice=f"{advice}{example} with numbers for N{weights}",
    )


def node_types(graph: Graph, node: Node) -> tuple[list[str], list[str]]:
    """Input types (``-`` for absent ones, none at the end) and output types of a node, as rows match them."""
    inputs = ["-" if i is None else graph.tensors[i].dtype for i in node.inputs]
    while inputs and inputs[-1] == "-":
        inputs.pop()
    return inputs, [graph.tensors[i].dtype for i in node.outputs]
