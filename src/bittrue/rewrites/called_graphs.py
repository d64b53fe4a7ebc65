"""Graphs that others call: rewritten when the graph around them is, or put in place of the node that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from ..graph import Graph, Node, Tensor
from ..operators import find
from ..operators.core.base import GraphUse
from ..operators.core.called import unchanged_inputs, uses
from ..records import replace
from . import KnownSizes, Shapes, known_sizes, settle_reshapes, share_sizes

Rewritten = tuple[Graph, tuple[str, ...]]
DIVIDED = (
    "a branch stands in place of an If whose condition is constant, in a graph with free sizes: a normalization or an"
    " attention with nodes on both sides of it may be computed in another order than the runtime's (1 of 900 random"
    " graphs)"
)
# Marks dequantizations whose readers were outside of the branch: level 1 joins those before each gets its own.
INLINED = "inlined"


def rewritten_inwards(
    graph: Graph, graphs: Sequence[Graph], shapes: Callable[[Graph], Shapes], rewrite: Callable[[Graph], Rewritten]
) -> tuple[Rewritten, list[Rewritten]]:
    """`graph` and `graphs` rewritten, called ones when the graph around them has said what it knows of values it gives.

    Inputs without a declared shape that never change inside get that of what the calling node gives, as far as it
    follows from the file. What rewriting made a constant around a graph is one inside, too. Indices are not believed.
    Source: ONNX Runtime, whose shape inference takes the shapes of values from outside into called graphs, whose
    level 1 has computed what a node reads when it comes to the graphs that the node calls, and which puts the nodes of
    a branch in place of an If whose condition it knows then.
    """
    found, done = list(graphs), dict[int, Rewritten]()
    seen, todo = set[int](), [graph]
    while todo:
        given = around = todo.pop()
        after, notes = rewrite(around)
        while (chosen := _chosen(after, len(found), seen)) is not None:
            seen.add(chosen)
            around = _with_branch(around, chosen, found[chosen], shapes)
            after, notes = rewrite(around)
            if any(-1 in (around.tensors[i].shape_signature or ()) for i in around.inputs):
                notes = (*notes, DIVIDED)
        done[id(given)] = after, notes
        known = cache(partial(known_sizes, after, shapes))
        for node in around.nodes:
            operator = find(node.operator)
            for use in operator.graphs if operator is not None else ():
                index = node.attributes.get(use.attribute)
                if not isinstance(index, int) or not 0 <= index < len(found) or index in seen:
                    continue
                seen.add(index)
                if found[index] is not graph:
                    found[index] = _told(found[index], use, around, node, known, after)
                    todo.append(found[index])
    return done[id(graph)], [done.get(id(one)) or rewrite(one) for one in found]


def _chosen(graph: Graph, count: int, seen: set[int]) -> int | None:
    """Which of `count` graphs a node with a constant condition always calls; each graph once."""
    for node in graph.nodes:
        operator = find(node.operator)
        condition = node.inputs[0] if node.inputs else None
        if operator is None or condition is None or node.attributes.get("plans_both") is not False:
            continue
        value = graph.tensors[condition].data
        for use in operator.graphs:
            index = node.attributes.get(use.attribute)
            if use.when is None or value is None or value.size != 1 or bool(value.reshape(-1)[0]) != use.when:
                continue
            if isinstance(index, int) and 0 <= index < count and index not in seen:
                return index
    return None


def _with_branch(graph: Graph, number: int, inner: Graph, shapes: Callable[[Graph], Shapes]) -> Graph:
    """`graph` with the nodes of graph `number` in place of the one that calls it.

    Source: ONNX Runtime 1.31.1, which has made equal nodes one in either graph by then, and settles what Reshapes read
    before it does so in both together.
    """
    inner = replace(inner, called=True)
    return settle_reshapes(_inlined(share_sizes(graph, shapes), number, share_sizes(inner, shapes)), shapes)


def _inlined(graph: Graph, number: int, inner: Graph) -> Graph:
    """`graph` with the nodes of graph `number` in place of the one that calls it; as it is where they do not fit."""
    place = next(place for place, node in enumerate(graph.nodes) if number in uses(node))
    call = graph.nodes[place]
    results = call.outputs
    if len(call.inputs) != 1 + len(inner.inputs) or len(results) != len(inner.outputs):
        return graph
    inner = _dequantized_apart(inner)
    tensors = list(graph.tensors)
    index_of: dict[int | None, int | None] = {None: None, **dict(zip(inner.inputs, call.inputs[1:], strict=True))}
    written = {index for node in inner.nodes for index in node.outputs}
    copied, inferred = [], call.attributes.get("inferred_results", ())
    for position, (result, output) in enumerate(zip(results, inner.outputs, strict=True)):
        if output in written and output not in index_of:
            index_of[output] = result
            if isinstance(inferred, tuple) and position in inferred:
                # What inference says of both branches is not known of the one.
                tensors[result] = replace(inner.tensors[output], name=tensors[result].name)
        else:
            copied.append((result, output))
    for index, tensor in enumerate(inner.tensors):
        if index not in index_of:
            index_of[index] = len(tensors)
            name = f"{tensors[results[0]].name}/{tensor.name}"
            tensors.append(replace(tensor, name=name, outside=max(tensor.outside - 1, 0)))
    nodes = [
        replace(
            node,
            inputs=tuple(index_of[index] for index in node.inputs),
            outputs=tuple(index for index in map(index_of.get, node.outputs) if index is not None),
        )
        for node in inner.nodes
    ]
    nodes += [
        Node(0, "identity", "Identity", call.version, {}, (index_of[output],), (result,)) for result, output in copied
    ]
    together = (*graph.nodes[:place], *nodes, *graph.nodes[place + 1 :])
    numbered = tuple(replace(node, index=number) for number, node in enumerate(together))
    return replace(graph, tensors=tuple(tensors), nodes=numbered, inlined=True)


def _dequantized_apart(inner: Graph) -> Graph:
    """The graph whose dequantizations of results are marked, and dequantize once more for the nodes that read them."""
    tensors, nodes = list(inner.tensors), list[Node]()
    read = {index for node in inner.nodes for index in node.inputs}
    apart: dict[int | None, int] = {}
    for node in inner.nodes:
        operator = find(node.operator)
        result = node.outputs[0] if operator is not None and operator.dequantizes else None
        if result is not None and result in inner.outputs:
            if result in read:
                apart[result] = len(tensors)
                tensors.append(replace(tensors[result], name=f"{tensors[result].name}/apart"))
                nodes.append(replace(node, outputs=(apart[result],)))
            node = replace(node, attributes={**node.attributes, INLINED: True})
        nodes.append(node)
    nodes = [replace(node, inputs=tuple(apart.get(index, index) for index in node.inputs)) for node in nodes]
    return replace(inner, tensors=tuple(tensors), nodes=tuple(nodes))


def _told(
    inner: Graph, use: GraphUse, around: Graph, node: Node, known: Callable[[], KnownSizes], after: Graph
) -> Graph:
    given = () if use.first_input is None else node.inputs[use.first_input :]
    fixed = unchanged_inputs(inner) if use.repeats is not None else range(len(inner.inputs))
    tensors, constants = list(inner.tensors), dict[int | None, int]()
    for position, (index, outside) in enumerate(zip(inner.inputs, given, strict=False)):
        if position not in fixed or outside is None:
            continue
        if tensors[index].is_unranked:
            tensors[index] = _with_shape_of(tensors[index], around, outside, known)
        value = after.tensors[outside]
        if tensors[index].outside and value.is_constant and not value.is_default:
            constants[index] = len(tensors)
            name = f"{tensors[index].name}#outside"
            tensors.append(replace(value, name=name, outside=value.outside + 1))
    reading = (replace(n, inputs=tuple(constants.get(i, i) for i in n.inputs)) for n in inner.nodes)
    nodes = tuple(reading) if constants else inner.nodes
    return replace(inner, tensors=tuple(tensors), nodes=nodes, called=True, widened=after.widened)


def _with_shape_of(tensor: Tensor, around: Graph, index: int, known: Callable[[], KnownSizes]) -> Tensor:
    outside = around.tensors[index]
    if index in around.inputs and not outside.is_unranked:
        return replace(tensor, shape=outside.shape, shape_signature=outside.shape_signature, symbols=outside.symbols)
    sizes = outside.shape if outside.is_constant else known()(index)
    if sizes is None:
        return tensor
    signature = tuple(size if isinstance(size, int) else -1 for size in sizes)
    symbols = tuple("" if isinstance(size, int) else size for size in sizes)
    shape = tuple(1 if size == -1 else size for size in signature)
    return replace(tensor, shape=shape, shape_signature=signature, symbols=symbols)
